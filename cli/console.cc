#include "cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/status/status.h"
#include "base/files.h"
#include "base/numbers.h"
#include "base/printable.h"
#include "base/shell.h"
#include "cli/status.h"
#include "replay/core/log.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

fs::path FolderOf(const fs::path& file) {
  std::error_code error;
  return fs::canonical(file.has_parent_path() ? file.parent_path() : ".", error);
}

// What lies in a process's folder of descriptors is no name but the open file itself, whatever name it shows.
bool IsOpenFile(const fs::path& file) {
  const fs::path folder = FolderOf(file);
  return folder.filename() == "fd" && folder.native().starts_with("/proc/");
}

// The number of an open file of ours, as /dev/stdout is.
std::optional<int> OwnDescriptor(const fs::path& file) {
  std::error_code error;
  const fs::path ours = fs::canonical("/proc/self/fd", error);
  if (error || FolderOf(file) != ours) return std::nullopt;
  return ParseNumber<int>(file.filename().native());
}

// What a link names in the end, be it there yet or not: that is replaced, and not the link. What cannot be
// followed, a circle, stays as it is.
std::string BehindLinks(const std::string& path) {
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::none) return path;
  fs::path file = path;
  while (fs::is_symlink(file, error) && !IsOpenFile(file)) {
    file = file.parent_path() / fs::read_symlink(file, error);
  }
  return file.string();
}

// Of pipes and devices there is nothing to lose: they are never the same file here.
absl::Status RefuseIfInput(const std::string& path, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!fs::equivalent(path, input == "-" ? "/dev/stdin" : input, error)) continue;
    return absl::InvalidArgumentError(
        fmt::format("{}: the output and the input {} are the same file; name another output", path, input));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteStdout(std::string_view data) {
  if (WriteAll(STDOUT_FILENO, data)) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot write to standard output");
}

absl::Status WriteOutput(const std::string& path, std::string_view data,
                         const std::vector<std::string>& inputs) {
  if (path == "-") return WriteStdout(data);
  if (absl::Status refused = RefuseIfInput(path, inputs); !refused.ok()) return refused;
  const std::string file = BehindLinks(path);
  const std::optional<int> descriptor = OwnDescriptor(file);
  // Opened anew it would have a place of its own in the file, and others write where they are.
  if (!descriptor) return WriteFile(file, data);
  if (WriteAll(*descriptor, data)) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot write " + path);
}

// That nobody reads it is no reason to end: there may be a job to start.
void Say(std::string_view line) {
  const replay::WriteSignalsHeld held;
  WriteAll(STDERR_FILENO, fmt::format("reprise: {}\n", Printable(line)));
}

void SayNext(std::string_view command) { Say(fmt::format("next: reprise {}", command)); }

bool IsHandedOpen(const std::string& input) { return input == "-" || IsOpenFile(BehindLinks(input)); }

void SayNextOf(std::string_view command, const std::string& input, std::string_view more) {
  if (!IsHandedOpen(input)) SayNext(fmt::format("{} {}{}", command, QuotedFile(input), more));
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

}  // namespace reprise::cli
