// Plans on disk: what one run has learnt about its iterations, for the next run of the same job.
//
// A file holds the plan set of one device: of each cycle its slots with their lifetimes, and where they lie
// where nothing else is in the way. Nothing in it is trusted: a file for another job, or one that is cut
// short, or whose places overlap, is refused with the reason; and the arena never hands out live memory
// whatever a plan says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "profiler/iteration.h"
#include "profiler/period_finder.h"
#include "replay/sequence.h"
#include "replay/serving_plan.h"

namespace reprise::replay {

// The largest file of plans that is read: a row for each slot of the longest cycle that is found. As a tree it may take
// thirty times as much memory of a job that starts, where somebody else has written it.
inline constexpr int64_t kMostPlanBytes = profiler::PeriodFinder::Options().max_tokens / 2 * 48;

// What has to be the same for a plan to be tried.
struct JobSignature {
  std::vector<std::string> command;  // the program and its arguments: any bytes
  std::string device;                // its kind: "host", or as CUDA names it
  int ordinal = 0;                   // of the device
  int world_size = 1;                // processes in the job
};

struct SavedPlan {
  struct Cycle {
    std::vector<profiler::Slot> slots;
    std::vector<Offset> offsets;  // by slot; negative: not planned
    Bytes slab;
    Bytes lower_bound;
    Tick from;                        // the first token of the job that belonged to it,
    Tick cut;                         // and the first from there on that was its first slot
    std::vector<StayingBlock> stays;  // of the tokens before it; by token
  };
  JobSignature job;
  std::vector<Cycle> cycles;  // the one in use when it was saved comes first
};

// Sixteen letters, the same for the same signature: for names of files.
std::string HashOf(const JobSignature& job);

// FailedPrecondition names the first thing that differs.
absl::Status CheckIsFor(const SavedPlan& saved, const JobSignature& job);

// Lays each cycle anew, with nothing in its way; takes up to `seconds` in all. Cycles that cannot be laid are
// left out.
SavedPlan MakeSavedPlan(JobSignature job, const std::vector<Sequence::Known>& known, double seconds);

// A plan to serve from. InvalidArgument where places of slots that live at the same time overlap.
absl::StatusOr<ServingPlan> ToServe(const SavedPlan::Cycle& cycle);
// All of them, for Engine::Expect.
absl::StatusOr<std::vector<Sequence::Expected>> ToExpect(const SavedPlan& saved);

// The file's text: JSON that begins with a checksum of the rest.
std::string FormatSavedPlan(const SavedPlan& saved);
// The inverse, strict. InvalidArgument names `name` and what is wrong. Safe on hostile input.
absl::StatusOr<SavedPlan> ParseSavedPlan(std::string_view text, std::string_view name);

}  // namespace reprise::replay
