#include "cli/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>

#include "absl/status/statusor.h"
#include "cli/console.h"
#include "cli/job_summary.h"
#include "cli/merge.h"
#include "cli/rank_files.h"
#include "profiler/trace_reader.h"
#include "replay/core/config.h"
#include "replay/core/rank_summaries.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFolders = 10000;

std::set<std::string> FilesIn(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.insert(it->path().filename().string());
  }
  return names;
}

// Absolute, because the job may change its folder; percent signs of the present folder are not ours to
// expand.
std::string AbsolutePattern(const std::string& out) {
  if (out.front() == '/') return out;
  std::error_code error;
  std::string pattern;
  for (const char c : fs::current_path(error).string()) pattern += c == '%' ? "%%" : std::string(1, c);
  return error ? out : pattern + "/" + out;
}

// Of a run within a run, one: it is a part of that. Else one that no other run has.
std::string RunNameHere() {
  const char* const outer = getenv("REPRISE_RUN");
  if (outer != nullptr && *outer != '\0') return replay::RunName(outer);
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

// What a file says that it is a part of; empty: nothing, or that cannot be read.
std::string RunOf(const std::string& path, std::string_view name) {
  if (IsSummary(name)) {
    const absl::StatusOr<replay::ProcessSummary> process = ReadSummary(path);
    return process.ok() ? process->run : "";
  }
  const absl::StatusOr<profiler::TraceMetadata> metadata = profiler::ReadTraceMetadata(path);
  return metadata.ok() ? metadata->run : "";
}

OutputFolder NamedFolder(const std::string& out) {
  OutputFolder folder;
  // A job that has a number here has the same for all that it starts.
  const std::string job = LaunchedHere().job;
  const std::optional<std::string> path = replay::ExpandOut(out, {.launched = {.job = job}});
  if (!path) return folder;  // the variable's: whoever reads it says so
  folder.pattern = AbsolutePattern(out);
  const replay::ProcessNames another = {
      .host = "another",
      .pid = 1,
      .launched = {.rank = 1, .job = job == "0" ? "another" : job, .step = "another"}};
  if (replay::ExpandOut(out, another) == path) {  // all processes go there
    folder.path = *path;
    // One of several says nothing of its files, and if each looked where all leave theirs, a job would read as many
    // names as the square of its ranks.
    if (!LaunchedHere().OneOfMany()) {
      folder.before = FilesIn(*path);
      folder.run = RunNameHere();
    }
  }
  return folder;
}

// reprise-out, or reprise-out.2 and so on, whichever is not there yet. Made only to see whether it can be: a job may
// expect the folder that it begins in to be empty, or take all that is in it, so whoever leaves something makes it.
// Where another run has chosen the same meanwhile, each has names of its own in it.
OutputFolder NewFolder() {
  std::error_code error;
  for (int number = 1; number <= kMostFolders; ++number) {
    const std::string name = number == 1 ? "reprise-out" : fmt::format("reprise-out.{}", number);
    if (fs::create_directory(name, error)) {
      fs::remove(name, error);
      return NamedFolder(name);
    }
    if (error && error != std::errc::file_exists) break;
  }
  Say(fmt::format("cannot make reprise-out here ({}); going on without files, --out DIR names another place",
                  error ? error.message() : "every name is taken"));
  return {};
}

}  // namespace

std::string NamedPattern(const RunOptions& options) {
  if (!options.out.empty()) return options.out;
  const char* const present = getenv("REPRISE_OUT");
  return present == nullptr ? "" : present;
}

OutputFolder ChooseFolder(const RunOptions& options) {
  if (const std::string pattern = NamedPattern(options); !pattern.empty()) return NamedFolder(pattern);
  if (const replay::Launched here = LaunchedHere(); here.OneOfMany()) return NamedFolder(FolderOfRanks(here));
  return options.folder.empty() ? NewFolder() : NamedFolder(options.folder);
}

std::vector<std::string> NewFiles(const OutputFolder& folder, bool (*is_of_kind)(std::string_view)) {
  std::vector<std::string> names;
  for (const std::string& name : FilesIn(folder.path)) {
    if (folder.before.contains(name) || !is_of_kind(name)) continue;
    const std::string run = folder.run.empty() ? "" : RunOf(folder.path + "/" + name, name);
    if (run.empty() || run == folder.run) names.push_back(name);
  }
  std::stable_sort(names.begin(), names.end(),
                   [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  return names;
}

std::string PagePath(const OutputFolder& folder) {
  std::error_code error;
  std::string page = folder.path + "/report.html";
  for (int number = 2; fs::exists(page, error) && number <= kMostFolders; ++number) {
    page = fmt::format("{}/report.{}.html", folder.path, number);
  }
  return page;
}

int WhyNotWritable(const std::string& folder) {
  const std::string path = fmt::format("{}/reprise.{}.part", folder, getpid());
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return errno == EEXIST ? 0 : errno;
  int error = write(file, "", 1) == 1 ? 0 : errno;
  if (close(file) != 0 && error == 0) error = errno;
  if (unlink(path.c_str()) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace reprise::cli
