// reprise run: starts a job under the preload library and says what it left behind.
#include "cli/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/child.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/cuda_driver.h"
#include "cli/frameworks.h"
#include "cli/job_summary.h"
#include "cli/memory_limits.h"
#include "cli/options.h"
#include "cli/preload.h"
#include "cli/quantity.h"
#include "cli/ranks_report.h"
#include "cli/report.h"
#include "cli/status.h"
#include "profiler/read_file.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFolders = 10000;

struct RunOptions {
  bool host = false;
  bool cuda = false;
  std::string mode;    // empty: not named
  std::string stacks;  // empty: not named
  std::string out;     // empty: a new folder
  std::string plan;    // empty: none named
  std::string cache;
  std::optional<Bytes> capacity;
  std::optional<Bytes> threshold;
  bool timeline = false;
  bool oversubscribe = false;
  bool report = false;
  std::string folder;  // where files go unless the user says; empty: a new one
};

// Where the job's processes leave their files.
struct OutputFolder {
  std::string pattern;           // for REPRISE_OUT, absolute; empty: no files
  std::string path;              // as people name it; empty: only the processes know (a pattern, no files)
  bool made_here = false;        // and ours to remove if nothing came
  std::set<std::string> before;  // what was in it
};

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

std::string Absolute(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute.string();
}

OutputFolder NamedFolder(const std::string& out) {
  OutputFolder folder;
  folder.pattern = AbsolutePattern(out);
  if (out.find('%') == std::string::npos) {
    folder.path = out;
    folder.before = FilesIn(out);
  }
  return folder;
}

// reprise-out, or reprise-out.2 and so on, whichever is not there yet. Made at once, so that no other run
// takes the same.
OutputFolder NewFolder() {
  std::error_code error;
  for (int number = 1; number <= kMostFolders; ++number) {
    const std::string name = number == 1 ? "reprise-out" : fmt::format("reprise-out.{}", number);
    if (fs::create_directory(name, error)) {
      OutputFolder folder = NamedFolder(name);
      folder.made_here = true;
      return folder;
    }
    if (error && error != std::errc::file_exists) break;
  }
  Say(fmt::format("cannot make reprise-out here ({}); going on without files, --out DIR names another place",
                  error ? error.message() : "every name is taken"));
  return {};
}

OutputFolder ChooseFolder(const RunOptions& options) {
  if (!options.out.empty()) return NamedFolder(options.out);
  const char* const present = getenv("REPRISE_OUT");
  if (present != nullptr && *present != '\0') return NamedFolder(present);
  if (const replay::Launched here = LaunchedHere(); options.mode != "off" && here.OneOfMany()) {
    return NamedFolder(FolderOfRanks(here));
  }
  if (options.mode != "off" && !options.folder.empty()) return NamedFolder(options.folder);
  return options.mode == "off" ? OutputFolder() : NewFolder();
}

std::map<std::string, std::string> VariablesOf(const RunOptions& options, const std::string& library,
                                               const OutputFolder& folder) {
  const char* const preload = getenv("LD_PRELOAD");
  std::map<std::string, std::string> variables;
  if (!options.host) variables = FrameworkVariables();
  variables["LD_PRELOAD"] = Preloading(library, preload == nullptr ? "" : preload);
  if (!options.mode.empty()) variables["REPRISE_MODE"] = options.mode;
  if (!options.stacks.empty()) variables["REPRISE_STACKS"] = options.stacks;
  if (options.timeline) variables["REPRISE_TIMELINE"] = "1";
  if (options.oversubscribe) variables["REPRISE_OVERSUBSCRIBE"] = "1";
  if (!folder.pattern.empty()) variables["REPRISE_OUT"] = folder.pattern;
  if (!folder.path.empty() && !LaunchedHere().OneOfMany()) variables["REPRISE_GATHERED"] = "1";
  if (!options.plan.empty()) variables["REPRISE_PLAN"] = Absolute(options.plan);
  if (!options.cache.empty()) variables["REPRISE_CACHE"] = Absolute(options.cache);
  if (options.capacity) variables["REPRISE_CAPACITY"] = fmt::format("{}", options.capacity->count());
  if (options.threshold) variables["REPRISE_THRESHOLD"] = fmt::format("{}", options.threshold->count());
  return variables;
}

// Names in `folder` that were not there before and are of that kind, the shortest first.
std::vector<std::string> NewFiles(const OutputFolder& folder, bool (*is_of_kind)(std::string_view)) {
  std::vector<std::string> names;
  for (const std::string& name : FilesIn(folder.path)) {
    if (!folder.before.contains(name) && is_of_kind(name)) names.push_back(name);
  }
  std::stable_sort(names.begin(), names.end(),
                   [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  return names;
}

// The files by name while they are few.
std::string Listed(std::vector<std::string> summaries, const std::vector<std::string>& traces) {
  constexpr size_t kFew = 4;
  if (summaries.size() + traces.size() > kFew) {
    return fmt::format("summaries {}, traces {}", summaries.size(), traces.size());
  }
  summaries.insert(summaries.end(), traces.begin(), traces.end());
  return fmt::format("{}", fmt::join(summaries, ", "));
}

std::string WhyNothingCaught(bool host) {
  if (!host) return "no process asked the CUDA driver for memory, or none that the library was loaded into";
  for (const MemoryLimit& limit : MemoryLimits()) {
    if (limit.bytes < Bytes(0)) continue;
    return fmt::format("nothing is served where the {} is limited, here to {}; '{}' lifts it", limit.of,
                       FormatSize(limit.bytes), limit.lifted_by);
  }
  return "a static binary, a program with an allocator of its own, or no aligned allocation above the "
         "threshold";
}

void SayNothingCaught(bool host) {
  Say(fmt::format("no process left a summary: nothing was caught ({})", WhyNothingCaught(host)));
  SayNext("doctor");
}

void SayIfOnlySegments(const OutputFolder& folder, const std::vector<std::string>& summaries) {
  for (const std::string& summary : summaries) {
    const absl::StatusOr<std::string> json = profiler::ReadFile(folder.path + "/" + summary);
    if (!json.ok() || !SawOnlySegments(*json)) continue;
    for (const std::string& line : SegmentsAdvice()) Say(line);
    return;
  }
}

std::string PagePath(const OutputFolder& folder) {
  std::error_code error;
  std::string page = folder.path + "/report.html";
  for (int number = 2; fs::exists(page, error) && number <= kMostFolders; ++number) {
    page = fmt::format("{}/report.{}.html", folder.path, number);
  }
  return page;
}

// A page on the ranks of this run, or on the largest of its traces. That it cannot be made is no fault of the
// job's.
void WritePage(const OutputFolder& folder, const std::vector<std::string>& summaries,
               const std::vector<std::string>& traces) {
  std::vector<std::string> paths, trace_paths;
  for (const std::string& name : traces) trace_paths.push_back(folder.path + "/" + name);
  for (const std::string& name : summaries) paths.push_back(folder.path + "/" + name);
  paths.insert(paths.end(), trace_paths.begin(), trace_paths.end());
  const FilesBelow files = FilesOfRanks(paths);
  MergedSummaries merged = MergeBelow(files);
  absl::Status status;
  if (HasRanks(merged, files)) {
    status = WriteRanksReport(std::move(merged), files, {.input = folder.path, .output = PagePath(folder)});
  } else if (const std::string largest = LargestTrace(trace_paths); largest.empty()) {
    status = absl::NotFoundError("there is no trace to report on");
  } else {
    const absl::StatusOr<Report> report = MakeReport({.input = largest, .output = PagePath(folder)});
    status = report.ok() ? WriteReport(*report) : report.status();
  }
  if (!status.ok()) Say(fmt::format("no report: {}", MessageOf(status)));
}

// One of several ranks: the others may still be running. One of them says where the files are, unless whoever
// started them all will.
void SayAsRank(const RunOptions& options, const OutputFolder& folder) {
  if (LaunchedHere().rank != 0 || getenv("REPRISE_GATHERED") != nullptr || folder.path.empty()) return;
  Say(fmt::format("files of all ranks are in {}", folder.path));
  if (options.report) Say("no report: other ranks may still be running");
  SayNext(fmt::format("{} {}", options.report ? "report" : "merge", ShellQuoted(folder.path)));
}

void SayWhatCame(const RunOptions& options, const OutputFolder& folder, const ChildEnd& end) {
  if (LaunchedHere().OneOfMany()) {
    SayAsRank(options, folder);
    return;
  }
  if (folder.pattern.empty()) {
    SayNext("doctor");
    return;
  }
  if (folder.path.empty()) {
    Say(fmt::format("files are under {}", folder.pattern));
    if (options.report) Say("no report: which folders they are in, only the job's processes know");
    SayNext("stats TRACE");
    return;
  }
  const std::vector<std::string> summaries = NewFiles(folder, IsSummary);
  const std::vector<std::string> traces = NewFiles(folder, IsTrace);
  std::error_code error;
  if (folder.made_here) fs::remove(folder.path, error);  // only if it is empty
  if (summaries.empty() && traces.empty()) {
    SayNothingCaught(options.host);
    return;
  }
  if (summaries.empty()) {
    Say(fmt::format("no summary: the job was ended {}; the traces hold what was recorded until then",
                    end.signal == 0 ? "in a way that runs no exit handlers" : "by a signal"));
  }
  Say(fmt::format("in {}: {}", folder.path, Listed(summaries, traces)));
  SayIfOnlySegments(folder, summaries);
  if (options.report) WritePage(folder, summaries, traces);
  if (SayRanks(folder.path, summaries)) return;
  SayNext(traces.empty() ? "doctor"
                         : fmt::format("stats {}", ShellQuoted(folder.path + "/" + traces.front())));
}

// Runs the job, and says all there is to say.
ChildEnd RunWatched(const RunOptions& options, const std::string& library,
                    const std::vector<std::string>& job) {
  if (const char* const disable = getenv("REPRISE_DISABLE");
      disable && *disable && strcmp(disable, "0") != 0 && LaunchedHere().rank == 0) {
    Say("REPRISE_DISABLE is set: nothing will be caught");
  }
  const OutputFolder folder = ChooseFolder(options);
  const ChildEnd end = RunChild(job, VariablesOf(options, library, folder));
  if (end.start_error != 0) {
    std::error_code error;
    if (folder.made_here) fs::remove(folder.path, error);
    Say(fmt::format("cannot start {}: {}", ShellQuoted(job[0]),
                    end.start_error == ENOENT ? "command not found" : strerror(end.start_error)));
  } else {
    SayWhatCame(options, folder, end);
  }
  return end;
}

int Run(const RunOptions& options, const std::vector<std::string>& job) {
  if (options.timeline && options.host) {
    return Fail("--timeline is of what a CUDA device does; with --host there is none", kUsage);
  }
  if (options.oversubscribe && options.host) {
    return Fail("--oversubscribe is for the memory of CUDA devices; with --host there is none", kUsage);
  }
  if (!options.host && !options.cuda && !HasCudaDriver()) {
    return Fail("no CUDA driver here; catching the host's memory needs --host", kUsage);
  }
  const absl::StatusOr<std::string> library = FindLibrary(options.host ? kHostLibrary : kCudaLibrary);
  if (!library.ok()) return Fail(library.status(), kUsage);
  ChildEnd end;
  {
    const absl::StatusOr<PreloadName> preload = PreloadName::For(*library);
    if (!preload.ok()) return Fail(preload.status(), kUsage);
    end = RunWatched(options, preload->name(), job);
  }
  return EndLike(end);  // may end us at once, so all that has to be cleaned up is
}

// What CLI11 left over is the job's command when no `--` came before it.
std::vector<std::string> JobOf(const CLI::App& command, const std::vector<std::string>& behind_dashes) {
  std::vector<std::string> job = command.remaining();
  if (!job.empty() && job[0].size() > 1 && job[0][0] == '-') {
    throw CLI::ExtrasError(command.get_name(), {job[0]});
  }
  if (job.empty()) return behind_dashes;
  if (!behind_dashes.empty()) {
    job.emplace_back("--");
    job.insert(job.end(), behind_dashes.begin(), behind_dashes.end());
  }
  return job;
}

}  // namespace

void AddRun(CLI::App& app, const std::vector<std::string>& job, int& exit_status) {
  AddJobOptions(app.add_subcommand("run", "Run a job, watched and served"), {}, job, exit_status);
}

void AddJobOptions(CLI::App* const command, const JobCommand& kind, const std::vector<std::string>& job,
                   int& exit_status) {
  const auto options = std::make_shared<RunOptions>();
  options->folder = kind.folder;
  command->prefix_command();
  CLI::Option* const host =
      command->add_flag("--host", options->host, "Catch the host's aligned allocations");
  command
      ->add_flag("--cuda", options->cuda,
                 "Catch the memory of CUDA devices: the default where there is a driver")
      ->excludes(host);
  command->add_option("--mode", options->mode, "serve (default), record or off")
      ->check(CLI::IsMember({"serve", "record", "off"}))
      ->type_name("MODE");
  command
      ->add_option("--stacks", options->stacks,
                   "off (default), native or python: whose call stacks the trace keeps with its allocations. "
                   "A trace ends when the first plan is adopted, so for all of a run add --mode record")
      ->check(CLI::IsMember({"off", "native", "python"}))
      ->type_name("KIND");
  command->add_flag(
      "--timeline", options->timeline,
      "On CUDA: the trace says too which kernels and copies ran when, as CUPTI tells. One profiler at "
      "a time can use CUPTI: not for a job that profiles itself");
  command
      ->add_option("--out", options->out,
                   "Folder for traces and summaries, a new reprise-out by default; %h, %p, %r, %j, %s as in "
                   "REPRISE_OUT")
      ->type_name("DIR");
  command
      ->add_option("--plan", options->plan,
                   "Plans that an earlier run of this job has left (plans.json in its folder), to serve from "
                   "the first iteration that recurs")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  command
      ->add_option("--cache", options->cache,
                   "Folder where each job leaves its plans and finds those of its last run")
      ->type_name("DIR");
  AddSizeOption(*command, "--capacity", options->capacity, "The most memory to hold for the job");
  command->add_flag(
      "--oversubscribe", options->oversubscribe,
      "On CUDA: a job that needs more than the device has goes on in the host's memory, slowly, so "
      "that it can be planned");
  AddSizeOption(*command, "--threshold", options->threshold,
                "Catch allocations from this size up, 4KiB by default");
  command->add_flag(
      "--report", options->report,
      "Write report.html into the folder when the job has ended: one offline page on its trace, or on its "
      "ranks");
  command->footer(
      "The job's output and exit status are its own. 127: no such command, 126: it cannot be "
      "started.\n\nOn CUDA the job gets PYTORCH_CUDA_ALLOC_CONF, TF_GPU_ALLOCATOR, "
      "XLA_PYTHON_CLIENT_ALLOCATOR and "
      "XLA_PYTHON_CLIENT_PREALLOCATE,\nso that each tensor is a call that can be caught; what you have set "
      "yourself "
      "stays.\n\nExample:\n"
      "  reprise run --mode record -- python train.py --epochs 3");
  command->callback([options, command, instead = kind.instead, &job, &exit_status] {
    if (const std::optional<int> done = instead ? instead(command->remaining()) : std::nullopt) {
      exit_status = *done;
      return;
    }
    const std::vector<std::string> words = JobOf(*command, job);
    if (words.empty()) {
      throw CLI::RequiredError(command->get_name() + " needs the job's command line behind --",
                               CLI::ExitCodes::RequiredError);
    }
    exit_status = Run(*options, words);
  });
}

}  // namespace reprise::cli
