// What a job needs at any batch, from what it needed at some: the reasoning of `reprise fit`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cli/contenders.h"
#include "cli/input_stats.h"
#include "profiler/line_fit.h"

namespace reprise::cli {

// The job at one batch.
struct BatchRun : MeasuredInput {
  int64_t batch = 0;
  std::vector<Contender> contenders;
};

// What an allocator reserved beside the live peak, at each batch.
struct Overhead {
  struct Seen {
    int64_t batch = 0;
    double live = 0, reserved = 0;
    double ratio() const { return reserved / live; }
  };
  std::string name;
  double most_added = 0;   // to one request, by rounding
  std::vector<Seen> seen;  // by run
};

// The largest batch within a capacity. What an allocator needs at a batch that was not run is known only to be no
// less than what is live: `most` holds for every allocator, the others are estimates. None is below a batch that was
// run and for which it has reserved no more.
struct Largest {
  std::optional<int64_t> cautious, expected, most;  // none: it does not grow with the batch
};

// How much of a site is live at the peak, as a line of the batch.
struct SiteGrowth {
  std::string label;
  profiler::Line line;
  Bytes at_smallest;
  Bytes at_largest;
};

struct FitModel {
  std::vector<BatchRun> runs;  // by batch
  profiler::LineFit live;
  std::vector<Overhead> overheads;
  std::vector<SiteGrowth> sites;  // fastest growing first; empty unless all inputs have stacks
  Bytes moved;  // live at the peak of the smallest batch, and no more at that of the largest
};

// `runs`: of at least two different batches.
FitModel ModelOf(std::vector<BatchRun> runs);

// The most that is missing at the peak of `run` because its blocks were too small to be recorded, judged by
// those that are recorded at the largest batch and shrink with it.
Bytes Unrecorded(const BatchRun& run, const BatchRun& largest);

// How far the peaks of its iterations lie apart.
Bytes Apart(const BatchRun& run);

// What was recorded of one iteration is exact: what was not, and how far another's peak may lie from it, is
// not.
profiler::Measurement LivePeak(const BatchRun& run, const BatchRun& largest);

Largest LargestBatch(const profiler::LineFit& live, const Overhead& overhead, Bytes capacity);

// What no allocator can do without.
Overhead LiveAlone(const FitModel& model);

// That, and those of the allocators.
std::vector<Overhead> AllOf(const FitModel& model);

// The least and the most that was reserved for a live byte.
std::pair<double, double> RatiosOf(const Overhead& overhead);

}  // namespace reprise::cli
