#include "cli/run_options.h"

#include "cli/options.h"
#include "replay/core/config.h"

namespace reprise::cli {
namespace {

// Whose memory, and what becomes of it.
void AddWhat(CLI::App& command, RunOptions& options) {
  CLI::Option* const host = command.add_flag("--host", options.host, "Catch the host's aligned allocations");
  command
      .add_flag("--cuda", options.cuda,
                "Catch the memory of CUDA devices: the default where there is a driver")
      ->excludes(host);
  command.add_option("--mode", options.mode, "serve (default), record or off")
      ->check(CLI::IsMember({"serve", "record", "off"}))
      ->type_name("MODE");
}

// What is kept of it.
void AddRecorded(CLI::App& command, RunOptions& options) {
  command
      .add_option("--stacks", options.stacks,
                  "off (default), native or python: whose call stacks the trace keeps with its allocations. "
                  "A trace ends when the first plan is adopted, so for all of a run add --mode record")
      ->check(CLI::IsMember({"off", "native", "python"}))
      ->type_name("KIND");
  command.add_flag(
      "--timeline", options.timeline,
      "On CUDA: the trace says too which kernels and copies ran when, as CUPTI tells. One profiler at "
      "a time can use CUPTI: not for a job that profiles itself");
}

CLI::Validator OutPattern() {
  return {[](const std::string& out) {
            return replay::ExpandOut(out, {})
                       ? ""
                       : "\"" + out + "\" has a % that is none of %h, %p, %r, %j, %s, %%";
          },
          ""};
}

// Files that are read and written.
void AddFiles(CLI::App& command, RunOptions& options) {
  command
      .add_option("--out", options.out,
                  "Folder for traces and summaries; by default a new reprise-out, of ranks and with slurm "
                  "reprise-out/JOB; %h, %p, %r, %j, %s as in REPRISE_OUT")
      ->check(OutPattern())
      ->type_name("DIR");
  command
      .add_option("--plan", options.plan,
                  "Plans that an earlier run of this job has left (plans.json in its folder), to serve from "
                  "the first iteration that recurs")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  command
      .add_option("--cache", options.cache,
                  "Folder where each job leaves its plans and finds those of its last run")
      ->type_name("DIR");
}

void AddLimits(CLI::App& command, RunOptions& options) {
  AddSizeOption(command, "--capacity", options.capacity, "The most memory to hold for the job");
  command.add_flag(
      "--oversubscribe", options.oversubscribe,
      "On CUDA: a job that needs more than the device has goes on in the host's memory, slowly, so "
      "that it can be planned");
  AddSizeOption(command, "--threshold", options.threshold,
                "Catch allocations from this size up, 4KiB by default");
}

}  // namespace

// In the order in which --help has them.
void AddRunOptions(CLI::App& command, RunOptions& options) {
  AddWhat(command, options);
  AddRecorded(command, options);
  AddFiles(command, options);
  AddLimits(command, options);
  command.add_flag(
      "--report", options.report,
      "Write report.html into the folder when the job has ended: one offline page on its trace, or on its "
      "ranks");
}

std::string_view WhyContradictory(const RunOptions& options) {
  if (options.timeline && options.host)
    return "--timeline is of what a CUDA device does; with --host there is none";
  if (options.oversubscribe && options.host)
    return "--oversubscribe is for the memory of CUDA devices; with --host there is none";
  if (options.mode == "record" && !options.plan.empty())
    return "--plan is to be followed, which --mode record does not";
  if (options.mode == "record" && !options.cache.empty())
    return "--cache is for plans, which --mode record neither makes nor follows";
  return "";
}

std::string_view OnlyForWhatIsCaught(const RunOptions& options) {
  if (!options.stacks.empty()) return "--stacks";
  if (options.timeline) return "--timeline";
  if (!options.out.empty()) return "--out";
  if (!options.plan.empty()) return "--plan";
  if (!options.cache.empty()) return "--cache";
  return options.report ? "--report" : "";
}

}  // namespace reprise::cli
