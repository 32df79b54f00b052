// One process under Reprise, whatever it catches: its configuration, its files, its summary.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "replay/abi.h"
#include "replay/core/config.h"
#include "replay/core/interim_summary.h"
#include "replay/core/output_dir.h"
#include "replay/core/shared_solves.h"
#include "replay/core/summary.h"
#include "replay/core/trace.h"
#include "replay/engine.h"
#include "replay/saved_plan.h"
#include "replay/stacks/stack_source.h"

namespace reprise::replay {

class CoreSession {
 public:
  // Reads the environment and begins the log. Null where REPRISE_MODE is off.
  static std::unique_ptr<CoreSession> Open(const reprise_stderr& stderr_at_start,
                                           const reprise_cpus* cpus_at_start);

  const Config& config() const { return config_; }
  // False in a fork's child, also in one made while the core was being opened or without fork's handlers.
  bool InItsProcess() const;
  // In the child, which may have its parent's number: in a namespace of its own.
  void AbandonAfterFork() { abandoned_ = true; }

  // Begins to take call stacks where they are wanted; before the first trace. `depth`: see StackSource.
  void BeginStacks(int* (*depth)());
  // Null where no stacks are wanted.
  StackSource* stacks() { return stacks_.get(); }
  // Where the names of a trace's activities are kept.
  profiler::SharedStacks& activity_names() {
    return stacks_ == nullptr ? names_of_activities_ : stacks_->stacks();
  }

  // A trace of device `device`'s engine, in a folder that is made now. Null where no files are wanted, or
  // after saying why there will be none.
  // `passed`: see CoreTrace::Options.
  std::unique_ptr<CoreTrace> BeginTrace(int device, Bytes threshold, Bytes granule,
                                        std::function<Bytes()> passed);

  // Gives the engine of a device the plans that an earlier run of this job has left, where there are any.
  // `kind` names what is served: "host", or the device as CUDA calls it.
  PlansSummary ExpectPlans(Engine& engine, const std::string& kind, int device) const;
  // Whether there is anywhere to leave plans.
  bool LeavesPlans() const { return config_.mode == Mode::kServe && !(config_.out + config_.cache).empty(); }
  // Leaves what this run has learnt for the next one: in the folder of its files and in that of the cache.
  // `plans` says what it has left before, which that takes the place of. Of one device by one thread at a time. False: nothing
  // lies there yet, as there was none to be had, or another rank is laying them.
  bool LeavePlans(const std::vector<Sequence::Known>& known, const std::string& kind, int device,
                  PlansSummary& plans) const;

  // How engines solve: ranks of a job that have a folder in common do it once between them.
  Solver EngineSolver() const;

  // Everything that is known before the counters are.
  Summary NewSummary() const;
  // What a trace has come to so far.
  TraceSummary SummaryOf(int device, const CoreTrace& trace) const {
    return {TracePath(device), trace.counters()};
  }
  // Ends a trace and says what it came to.
  TraceSummary FinishTrace(int device, CoreTrace& trace) const;
  // From now on a summary of the process as it is, which is what `so_far` returns, is left beside its traces now
  // and then. Both run on a thread of ours, `on_thread` first.
  void BeginInterim(std::function<void()> on_thread, std::function<Summary()> so_far);
  // Called at some of the requests, by any thread and under an engine's lock.
  void Tend() {
    if (interim_ != nullptr) interim_->Tend();
  }
  // Writes the summary's file, which none is written after, and the lines for people where the process was worth
  // them. One without counters does not take the place of one that has them.
  void Report(const Summary& summary);

 private:
  CoreSession(Config config, ProcessNames names, std::vector<std::string> command)
      : config_(std::move(config)), names_(std::move(names)), command_(std::move(command)) {}
  bool OpenFolder();
  std::unique_ptr<CoreTrace> TryToBeginTrace(int device, Bytes threshold, Bytes granule,
                                             std::function<Bytes()> passed);
  void WriteInterim(const std::function<Summary()>& so_far);
  void WriteLast(const Summary& summary);
  std::string TracePath(int device) const;
  JobSignature Signature(const std::string& kind, int device) const;

  Config config_;
  ProcessNames names_;
  const std::vector<std::string> command_;  // read once: a job may give itself a title later
  const double started_ = WallSeconds();
  std::optional<OutputDir> out_;
  std::unique_ptr<StackSource> stacks_;         // null: none are wanted
  std::unique_ptr<SharedSolves> solves_;        // null: there is nobody to share with, or nowhere
  profiler::SharedStacks names_of_activities_;  // where there are no stacks
  std::timed_mutex summary_file_;
  std::optional<uint64_t> summary_left_;  // a hash of what is in the file
  bool interim_left_ = false;             // one of the process as it was is in the file
  bool reported_ = false;                 // the last summary is written
  bool folder_tried_ = false;
  // The first device's trace has not begun: an empty file keeps others from our names. No reader could do anything
  // with it, so it goes at the end.
  bool only_claimed_ = false;
  bool abandoned_ = false;
  std::unique_ptr<InterimSummary> interim_;  // null: no files are wanted; its thread uses all of the above
};

}  // namespace reprise::replay
