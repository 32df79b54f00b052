// Why: the project's targets on sequences recorded from real training. The marks in the recordings say where
// the true iterations begin; they are read here to judge, and nowhere else. Skipped without REPRISE_BENCH.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "replay/host_memory.h"
#include "replay/simulator.h"
#include "tests/replay/bench_streams.h"

namespace reprise::replay {
namespace {

struct Case {
  std::string name;
  int64_t period;       // tokens of a true iteration
  double reserved = 0;  // the most, of the live peak; reached while recording
};

class FixedShape : public testing::TestWithParam<Case> {};

// How many true iterations had begun when request `number` (from 1) was made.
int64_t TrueIteration(const std::vector<profiler::Event>& events, int64_t number) {
  int64_t iterations = 0;
  for (const profiler::Event& event : events) {
    if (event.kind == profiler::EventKind::kMark) ++iterations;
    if (event.kind == profiler::EventKind::kAlloc && --number == 0) break;
  }
  return iterations;
}

TEST_P(FixedShape, IsPlannedFromTheFourthIterationOnAndTight) {
  const auto events = RecordedStream(GetParam().name);
  if (!events.has_value()) GTEST_SKIP() << "REPRISE_BENCH is not set";
  const auto result = Simulate(*events, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const Counters& c = result->counters;
  EXPECT_EQ(c.period, GetParam().period);
  ASSERT_GT(c.plans, 0);
  EXPECT_LE(TrueIteration(*events, c.first_planned_request), 4);
  EXPECT_GE(result->planned_after_plan, 0.995);
  EXPECT_GE(result->planned_bytes_after_plan, 0.995);
  EXPECT_EQ(c.passed, 0);
  EXPECT_EQ(result->overlaps, 0);
  EXPECT_LE(Share(c.slab.count(), c.lower_bound.count()), 1.02);
  EXPECT_LE(Share(result->reserved_peak.count(), c.live_peak.count()), GetParam().reserved);
}

// Where they were recorded, memory comes in smaller granules.
TEST_P(FixedShape, IsTightOnTheHost) {
  const auto events = RecordedStream(GetParam().name);
  if (!events.has_value()) GTEST_SKIP() << "REPRISE_BENCH is not set";
  const auto result = Simulate(*events, {.granule = HostMemory::kGranule});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->counters.passed, 0);
  EXPECT_EQ(result->overlaps, 0);
  EXPECT_LE(Share(result->reserved_peak.count(), result->counters.live_peak.count()), 1.02);
}

INSTANTIATE_TEST_SUITE_P(Recorded, FixedShape,
                         testing::Values(Case{"alexnet", 93, 1.02}, Case{"resnet50", 663, 1.04},
                                         Case{"googlenet", 660, 1.03}, Case{"gpt", 522, 1.025}),
                         [](const auto& info) { return info.param.name; });

TEST(PhasedJob, PlanningResumesAfterEachEvaluation) {
  const auto events = RecordedStream("gpt_accum_eval");
  if (!events.has_value()) GTEST_SKIP() << "REPRISE_BENCH is not set";
  const auto result = Simulate(*events, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const Counters& c = result->counters;
  EXPECT_EQ(result->overlaps, 0);
  EXPECT_EQ(c.passed, 0);
  EXPECT_LE(Share(result->reserved_peak.count(), c.live_peak.count()), 1.03);
  EXPECT_GE(result->planned_bytes_after_plan, 0.9);
}

}  // namespace
}  // namespace reprise::replay
