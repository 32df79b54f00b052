// Why: a job that does several things by turns keeps a plan for each, and each of them is followed where it fits.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "replay/sequence.h"
#include "tests/replay/sequence_job.h"

namespace reprise::replay {
namespace {

Sizes Joined(Sizes first, const Sizes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A step's forward pass is the evaluation's, too: which of them it is shows when much of it is live.
TEST(PlanSet, ALongerPlanTakesOverFromOneThatIsFollowedWhereItsBlocksLieInItsPlaces) {
  SequenceJob job;
  const Sizes step = SizesOf(60);
  const Sizes evaluation = Joined(SizesOf(10, 5), Sizes(step.begin(), step.begin() + 20));
  job.Rounds(20, step);
  for (int i = 0; i < 20; ++i) {
    job.Round(evaluation);
    job.Round(step);
  }
  ASSERT_EQ(job.sequence.plan()->slots.size(), 90u);
  job.Rounds(2, step);
  ASSERT_EQ(job.sequence.plan()->slots.size(), 60u);
  job.slots.clear();
  job.Rounds(3, step);
  EXPECT_EQ(job.sequence.plan()->slots.size(), 60u);
  for (size_t i = 0; i < job.slots.size(); ++i) EXPECT_EQ(job.slots[i], i % 60) << i;
}

// In each round something comes that never came before, so that none repeats exactly.
void NoisyRounds(int count, const Sizes& sizes, SequenceJob& job) {
  for (int64_t i = 0; i < count && !job.waits(); ++i) {
    Sizes with_more = sizes;
    with_more.insert(with_more.begin() + 20, 4096 * (2000 + i));
    job.Round(with_more);
  }
}

// The one whose live bytes swing by less than half of the other's is no period of its own.
TEST(PlanSet, ACycleFoundUnderThePeriodOfAnotherIsLaidAgainAroundWhatIsInItsWay) {
  SequenceJob job;
  NoisyRounds(20, SizesOf(60), job);
  Sizes small = SizesOf(40, 3);
  for (int64_t& bytes : small) bytes = 4096 + bytes / 8;
  job.Rounds(10, small);
  ASSERT_NE(job.sequence.period()->length, 40);
  ASSERT_EQ(job.sequence.plan()->slots.size(), 40u);
  job.periods.clear();
  for (int i = 0; i < 6; ++i) {
    job.Round(small);
    job.sequence.OnConflict(Bytes(small[0]) * 40);
  }
  ASSERT_FALSE(job.periods.empty());
  EXPECT_EQ(job.periods.front(), 40);
}

TEST(PlanSet, WhatAJobDoesWhileItIsElsewhereIsNoRoundToPlan) {
  SequenceJob job;
  const Sizes one = SizesOf(60);
  const Sizes other = SizesOf(70, 3);
  job.Rounds(20, one);
  job.Rounds(20, other);
  job.Rounds(20, one);  // and its period has been found anew
  ASSERT_EQ(job.sequence.period()->length, 60);
  ASSERT_EQ(job.periods, std::vector<int64_t>({60, 70}));
  job.Round(SizesOf(400, 8));
  EXPECT_EQ(job.periods, std::vector<int64_t>({60, 70}));
}

TEST(PlanSet, ACycleFoundWithNoiseInItThatCannotBePlannedIsTriedLessAndLess) {
  SequenceJob job;
  job.Rounds(50, SizesOf(8));
  job.solve = [](const planner::Problem&, const planner::Budget&) -> absl::StatusOr<planner::Solution> {
    return absl::ResourceExhaustedError("as told");
  };
  const Sizes round = SizesOf(200, 2);
  NoisyRounds(20, round, job);
  ASSERT_GT(job.sequence.period()->length, 200);
  job.periods.clear();
  job.Rounds(40, round);
  EXPECT_GE(job.periods.size(), 1u);
  EXPECT_LE(job.periods.size(), 7u);
}

TEST(PlanSet, ACycleThatHasItsPlanPushesNoneOutThatWaitsForItsCut) {
  SequenceJob job;
  const Sizes known = SizesOf(60);
  job.Rounds(20, known);
  ASSERT_EQ(job.periods, std::vector<int64_t>({60}));
  job.at_once = false;
  NoisyRounds(20, SizesOf(90, 3), job);
  ASSERT_TRUE(job.waits());
  const std::vector<int64_t> asked = job.periods;
  job.Rounds(3, known);
  EXPECT_EQ(job.periods, asked);
}

// It is in the way of one slot after another, in each round.
TEST(PlanSet, WhatStaysInAPlansPlacesForGoodIsNoReasonToDoubtIt) {
  const auto in_step_after = [](int64_t age) {
    SequenceJob job;
    const Sizes round = SizesOf(60);
    job.Rounds(20, round);
    for (int i = 0; i < 30; ++i) job.Alloc(round[static_cast<size_t>(i)]);
    const ServingPlan& plan = *job.sequence.plan();
    const auto its = static_cast<size_t>((29 - age % 60 + 60) % 60);
    job.sequence.OnTaken(29, plan.swing, job.sequence.now() - 1 - age, plan.slots[its].offset);
    job.Alloc(round[30]);
    return job.sequence.KeepsPlaces(Stream{});
  };
  EXPECT_FALSE(in_step_after(65)) << "of the round before: all that it was freed with may be there still";
  EXPECT_TRUE(in_step_after(665));
}

// What it has live swings by little beside what it lies around: others find no room outside of its range.
TEST(PlanSet, APlanThatIsLittleOfItsRangeKeepsNoPlaces) {
  const Sizes round = SizesOf(60);
  SequenceJob earlier;
  earlier.Rounds(20, round);
  for (const auto& [parts, keeps] : {std::pair(5, true), std::pair(6, false)}) {
    ServingPlan plan = *earlier.sequence.plan();
    plan.end = plan.begin + plan.swing * parts;
    SequenceJob job;
    job.sequence.Expect({.plan = plan, .from = Tick(0)});
    job.Rounds(2, round);
    ASSERT_NE(job.sequence.plan(), nullptr);
    EXPECT_EQ(job.sequence.KeepsPlaces(Stream{}), keeps) << parts;
  }
}

// A period with a stray allocation in it, and the plan of the round that repeats exactly.
SequenceJob FoundWithNoise(const Sizes& round) {
  SequenceJob job;
  NoisyRounds(20, round, job);
  job.Rounds(20, round);
  return job;
}

TEST(PlanSet, ACycleWithNoiseInItGivesWayToTheOneThatRepeatsExactly) {
  const SequenceJob job = FoundWithNoise(SizesOf(200, 2));
  ASSERT_GT(job.periods.front(), 200);
  ASSERT_EQ(job.periods.back(), 200);
  for (const Sequence::Known& known : job.sequence.KnownPlans()) EXPECT_EQ(known.cycle.size(), 200u);
}

TEST(PlanSet, APeriodWithNoiseInItIsJudgedAnewWhereItsPlansBlocksOutliveIt) {
  const Sizes round = SizesOf(200, 2);
  SequenceJob job = FoundWithNoise(round);
  ASSERT_GT(job.sequence.period()->length, 200);
  const ServingPlan& plan = *job.sequence.plan();
  for (size_t i = 0; i < 100; ++i) job.Alloc(round[i]);
  ASSERT_EQ(job.slots.back(), 99u);
  job.sequence.OnTaken(99, plan.swing, job.sequence.now() - 1 - 205, plan.slots[94].offset);
  job.Alloc(round[100]);
  EXPECT_EQ(job.sequence.period()->length, 200);
}

// The step has come again often enough by then to be confirmed with the next allocation.
TEST(PlanSet, AStepIsPlannedThoughItIsFoundAtOnceWhereItsMicroBatchIsDoubted) {
  SequenceJob job;
  const Sizes micro_batch = SizesOf(200);
  const auto step = [&] {
    job.Rounds(6, micro_batch);
    job.Round({4096 * 2000, 4096 * 3000});
  };
  job.Rounds(20, micro_batch);
  for (int i = 0; i < 10; ++i) step();
  ASSERT_EQ(job.sequence.plan()->slots.size(), 200u);
  ASSERT_EQ(job.sequence.period()->length, 200);
  for (size_t i = 0; i < 100; ++i) job.Alloc(micro_batch[i]);
  const ServingPlan& plan = *job.sequence.plan();
  job.sequence.OnTaken(99, plan.swing, job.sequence.now() - 1 - 205, plan.slots[94].offset);
  job.Alloc(micro_batch[100]);
  ASSERT_EQ(job.sequence.period()->length, 1202);
  for (int i = 0; i < 4; ++i) step();
  EXPECT_EQ(job.sequence.plan()->slots.size(), 1202u);
}

}  // namespace
}  // namespace reprise::replay
