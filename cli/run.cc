// reprise run: starts a job under the preload library and says what it left behind.
#include "cli/run.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/shell.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/cuda_driver.h"
#include "cli/frameworks.h"
#include "cli/job_summary.h"
#include "cli/output_folder.h"
#include "cli/preload.h"
#include "cli/run_ending.h"
#include "cli/status.h"

namespace reprise::cli {
namespace {

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
  if (!folder.run.empty()) variables["REPRISE_RUN"] = folder.run;
  // Absolute, because the job may go to another folder before they are read.
  for (const auto& [name, given] :
       {std::pair("REPRISE_PLAN", options.plan), std::pair("REPRISE_CACHE", options.cache)}) {
    const char* const present = getenv(name);
    const std::string path = given.empty() && present != nullptr ? present : given;
    if (!path.empty()) variables[name] = AbsolutePath(path);
  }
  if (options.capacity) variables["REPRISE_CAPACITY"] = fmt::format("{}", options.capacity->count());
  if (options.threshold) variables["REPRISE_THRESHOLD"] = fmt::format("{}", options.threshold->count());
  return variables;
}

// What turns everything off; empty: nothing does.
std::string_view WhyOff(const RunOptions& options) {
  const char* const disable = getenv("REPRISE_DISABLE");
  if (disable != nullptr && *disable != '\0' && strcmp(disable, "0") != 0) return "REPRISE_DISABLE is set";
  if (options.mode == "off") return "--mode is off";
  const char* const mode = getenv("REPRISE_MODE");
  return options.mode.empty() && mode != nullptr && strcmp(mode, "off") == 0 ? "REPRISE_MODE is off" : "";
}

void SayIfNotStarted(const std::vector<std::string>& job, const ChildEnd& end) {
  if (end.start_error == 0) return;
  Say(fmt::format("cannot start {}: {}", ShellQuoted(job[0]),
                  end.start_error == ENOENT ? "command not found" : strerror(end.start_error)));
}

// As if it had been started without us, also where what it inherits preloads our library. The options stay as they
// were: this is how one looks whether it is us.
ChildEnd RunPlain(std::string_view why, const RunOptions& options, const std::vector<std::string>& job) {
  if (LaunchedHere().rank == 0) {
    const std::string_view of_no_use = OnlyForWhatIsCaught(options);
    Say(fmt::format("{}: nothing will be caught{}", why,
                    of_no_use.empty() ? "" : fmt::format(", and {} comes to nothing", of_no_use)));
  }
  const ChildEnd end = RunChild(job, {{"REPRISE_MODE", "off"}});
  SayIfNotStarted(job, end);
  return end;
}

// Runs the job, and says all there is to say.
ChildEnd RunWatched(const RunOptions& options, const std::string& preload,
                    const std::vector<std::string>& job) {
  const OutputFolder folder = ChooseFolder(options);
  const ChildEnd end = RunChild(job, VariablesOf(options, preload, folder));
  SayIfNotStarted(job, end);
  if (end.start_error == 0) SayWhatCame(options, folder, end);
  return end;
}

int Run(const RunOptions& options, const std::vector<std::string>& job) {
  if (const std::string_view why = WhyOff(options); !why.empty()) return EndLike(RunPlain(why, options, job));
  if (!options.host && !options.cuda && !HasCudaDriver()) {
    return Fail("no CUDA driver here; catching the host's memory needs --host", kUsage);
  }
  const absl::StatusOr<std::string> library = FindLibrary(options.host ? kHostLibrary : kCudaLibrary);
  if (!library.ok()) return Fail(library.status(), kUsage);
  const absl::StatusOr<std::string> preload = NameToPreload(*library);
  if (!preload.ok()) return Fail(preload.status(), kUsage);
  return EndLike(RunWatched(options, *preload, job));
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
  AddRunOptions(*command, *options);
  command->footer(
      "The job's output and exit status are its own. 127: no such command, 126: it cannot be "
      "started.\n\nOn CUDA the job gets PYTORCH_CUDA_ALLOC_CONF, TF_GPU_ALLOCATOR, "
      "XLA_PYTHON_CLIENT_ALLOCATOR and "
      "XLA_PYTHON_CLIENT_PREALLOCATE,\nso that each tensor is a call that can be caught; what you have set "
      "yourself "
      "stays.\n\nExample:\n"
      "  reprise run --mode record -- python train.py --epochs 3");
  command->callback([options, command, instead = kind.instead, &job, &exit_status] {
    if (const std::string_view why = WhyContradictory(*options); !why.empty()) {
      exit_status = Fail(why, kUsage);
      return;
    }
    if (const std::optional<int> done = instead ? instead(*options, command->remaining()) : std::nullopt) {
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
