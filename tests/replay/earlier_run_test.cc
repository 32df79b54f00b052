// Why: a plan that the job's last run has left is followed before anything was found in this one, on the word of a file.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "replay/sequence.h"
#include "tests/replay/sequence_job.h"

namespace reprise::replay {
namespace {

TEST(PlanOfAnEarlierRun, ThatIsFoundAnewIsKeptOnce) {
  SequenceJob first;
  first.Rounds(20, SizesOf(60));
  ASSERT_NE(first.sequence.plan(), nullptr);
  SequenceJob job;
  job.sequence.Expect({.plan = *first.sequence.plan(), .from = Tick(1 << 20)});  // by then it is over
  job.Rounds(20, SizesOf(60));
  EXPECT_EQ(job.periods.size(), 1u);
  EXPECT_EQ(LengthsOf(job.sequence), std::vector<size_t>({60}));
}

// `job` is to follow what an earlier run of these rounds was planned as.
void ExpectPlanOf(const Sizes& sizes, SequenceJob& job) {
  SequenceJob earlier;
  earlier.Rounds(20, sizes);
  ASSERT_NE(earlier.sequence.plan(), nullptr);
  job.sequence.Expect({.plan = *earlier.sequence.plan(), .from = Tick(0)});
}

// Its start is another one by a few allocations.
TEST(PlanOfAnEarlierRun, IsFollowedAndNothingIsPlanned) {
  SequenceJob job;
  ExpectPlanOf(SizesOf(60), job);
  job.Round(SizesOf(20, 2));
  EXPECT_EQ(job.sequence.plan(), nullptr);
  job.Round(SizesOf(60));
  EXPECT_NE(job.sequence.plan(), nullptr);
  EXPECT_EQ(job.resumed, 1);
  EXPECT_EQ(job.sequence.counters().mismatches, 0) << "before it was in use";
  job.Rounds(20, SizesOf(60));
  EXPECT_EQ(job.resumed, 1);
  EXPECT_EQ(job.periods.size(), 0u);
}

TEST(PlanOfAnEarlierRun, ThatIsNotMetInItsFirstRoundIsForgotten) {
  SequenceJob job;
  ExpectPlanOf(SizesOf(60), job);
  job.Round(SizesOf(61, 2));
  EXPECT_TRUE(job.sequence.expecting());
  job.Round(SizesOf(1, 2));
  EXPECT_FALSE(job.sequence.expecting());
  EXPECT_EQ(LengthsOf(job.sequence), std::vector<size_t>());
}

Sizes StepOfThree(const Sizes& micro_batch) {
  Sizes step;
  for (int i = 0; i < 3; ++i) step.insert(step.end(), micro_batch.begin(), micro_batch.end());
  step.insert(step.end(), {4096 * 2000, 4096 * 3000});
  return step;
}

// In its places a micro-batch's blocks would lie.
TEST(PlanOfAnEarlierRun, WhatIsInsideItIsNotPlanned) {
  const Sizes micro_batch = SizesOf(60);
  const Sizes step = StepOfThree(micro_batch);
  SequenceJob earlier;
  for (int i = 0; i < 8; ++i) earlier.Round(step);
  ASSERT_EQ(earlier.sequence.plan()->slots.size(), 182u);
  SequenceJob job;
  job.sequence.Expect({.plan = *earlier.sequence.plan(), .from = Tick(600)});
  job.Rounds(9, micro_batch);
  EXPECT_TRUE(job.sequence.period().has_value());
  EXPECT_EQ(job.periods.size(), 0u);
  job.Round(step);
  EXPECT_EQ(job.resumed, 1);
  EXPECT_EQ(job.periods.size(), 0u);
}

// Micro-batches that are alike can be told apart by number alone.
TEST(PlanOfAnEarlierRun, IsFollowedFromWhereThatRunWas) {
  const Sizes step = StepOfThree(SizesOf(60));
  SequenceJob earlier;
  for (int i = 0; i < 8; ++i) earlier.Round(step);
  SequenceJob job;
  job.sequence.Expect({.plan = *earlier.sequence.plan(), .from = Tick(5), .cut = Tick(5 + 122)});
  job.Round(SizesOf(5, 2));
  job.Round({step.begin() + 60, step.end()});
  for (size_t i = 8; i < job.slots.size(); ++i) EXPECT_EQ(job.slots[i], 60 + i - 5) << i;
  EXPECT_EQ(job.sequence.KnownPlans()[0].cut, Tick(5 + 122));
}

TEST(PlanOfAnEarlierRun, WhatIsInsideOneThatWasExpectedInVainIsPlanned) {
  const Sizes round = SizesOf(60);
  SequenceJob job;
  ExpectPlanOf(SizesOf(182, 2), job);
  job.Rounds(3, round);
  EXPECT_TRUE(job.sequence.period().has_value());
  EXPECT_EQ(job.periods.size(), 0u);
  job.Rounds(3, round);
  EXPECT_EQ(job.sequence.plan()->slots.size(), 60u);
}

// Nor is another one that comes later: its start is not over when that of the first is.
TEST(PlanOfAnEarlierRun, IsNotFollowedBeforeItsTimeThoughAnotherIs) {
  SequenceJob job;
  ExpectPlanOf(SizesOf(60), job);
  SequenceJob later;
  later.Rounds(20, SizesOf(70, 2));
  ASSERT_NE(later.sequence.plan(), nullptr);
  job.sequence.Expect({.plan = *later.sequence.plan(), .from = Tick(250)});
  job.Rounds(2, SizesOf(60));
  ASSERT_EQ(job.resumed, 1);
  job.Round(SizesOf(70, 2));
  EXPECT_EQ(job.resumed, 1);
  job.Round(SizesOf(70, 2));
  EXPECT_EQ(job.resumed, 2);
  EXPECT_EQ(job.sequence.plan()->slots.size(), 70u);
}

TEST(PlanOfAnEarlierRun, OfAJobsStartItIsKnownWhichSlotsItWas) {
  SequenceJob job;
  const Sizes sizes = SizesOf(60);
  SequenceJob earlier;
  earlier.Rounds(20, sizes);
  job.sequence.Expect(
      {.plan = *earlier.sequence.plan(), .from = Tick(80), .stays = {{Tick(40), Bytes(4096 * 5001)}}});
  Sizes first = sizes;
  first.insert(first.begin() + 40, {4096 * 5001, 4096 * 5002});  // what the first step has more
  job.Round(first);
  job.Round(sizes);
  ASSERT_NE(job.sequence.plan(), nullptr);
  const auto slot_of = [&](int64_t token) { return job.sequence.SlotInStart(Tick(token)); };
  const uint32_t slot = slot_of(20);
  ASSERT_NE(slot, Matcher::kNoSlot);
  EXPECT_EQ(job.sequence.plan()->slots[slot].bytes, Bytes(sizes[20]));
  EXPECT_EQ(slot_of(30), (slot + 10) % 60);
  EXPECT_EQ(slot_of(0), (slot + 40) % 60) << "by these it has found its place";
  EXPECT_EQ(slot_of(40), Matcher::kNoSlot);
  EXPECT_EQ(slot_of(41), Matcher::kNoSlot);
  EXPECT_EQ(slot_of(52), (slot + 30) % 60) << "behind what was more";
  EXPECT_EQ(slot_of(-1), Matcher::kNoSlot);
  EXPECT_EQ(slot_of(1000), Matcher::kNoSlot);
  EXPECT_TRUE(job.sequence.Stays(Tick(40)));
  EXPECT_FALSE(job.sequence.Stays(Tick(41)));
  job.Rounds(3, sizes);
  EXPECT_EQ(slot_of(20), Matcher::kNoSlot) << "the first cycle is over";
}

TEST(PlanOfAnEarlierRun, ThatComesSecondIsFollowedWhereItIsMet) {
  const Sizes sizes[] = {SizesOf(60), SizesOf(70, 3)};
  SequenceJob job;
  for (const Sizes& round : sizes) ExpectPlanOf(round, job);
  job.asks = false;
  job.Round(sizes[0]);
  EXPECT_EQ(job.resumed, 1);
  job.Round(Sizes(sizes[1].begin() + 30, sizes[1].end()));
  EXPECT_EQ(job.resumed, 2);
  for (size_t i = 60 + 3; i < job.slots.size(); ++i) EXPECT_EQ(job.slots[i], i - 60 + 30);
}

}  // namespace
}  // namespace reprise::replay
