#include "cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "base/files.h"
#include "cli/printable.h"
#include "cli/status.h"

namespace reprise::cli {
namespace {

// The file that a link names, which need not be there yet: it is replaced, and not the link.
std::string BehindLinks(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_type behind = fs::status(path, error).type();
  if (behind != fs::file_type::regular && behind != fs::file_type::not_found) return path;
  fs::path file = path;
  while (fs::is_symlink(file, error)) file = file.parent_path() / fs::read_symlink(file, error);
  return file.string();
}

}  // namespace

absl::Status WriteStdout(std::string_view data) {
  if (WriteAll(STDOUT_FILENO, data)) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot write to standard output");
}

absl::Status WriteOutput(const std::string& path, std::string_view data) {
  if (path == "-") return WriteStdout(data);
  return WriteFile(BehindLinks(path), data);
}

void Say(std::string_view line) { WriteAll(STDERR_FILENO, fmt::format("reprise: {}\n", Printable(line))); }

void SayNext(std::string_view command) { Say(fmt::format("next: reprise {}", command)); }

void SayNextOf(std::string_view command, const std::string& input, std::string_view more) {
  if (input != "-") SayNext(fmt::format("{} {}{}", command, ShellQuoted(input), more));
}

std::string MessageOf(const absl::Status& error) { return std::string(error.message()); }

int Fail(std::string_view error, int exit_status) {
  Say(error);
  return exit_status;
}

int Fail(const absl::Status& error, int exit_status) { return Fail(MessageOf(error), exit_status); }

int Finish(std::string_view data, int exit_status) {
  if (const absl::Status written = WriteStdout(data); !written.ok()) return Fail(written, kUsage);
  return exit_status;
}

std::string ShellQuoted(std::string_view word) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace reprise::cli
