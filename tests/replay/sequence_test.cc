// Why: a sequence decides under the engine's lock what to plan, and the job waits meanwhile.
#include "replay/sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/portfolio.h"
#include "tests/replay/sequence_job.h"

namespace reprise::replay {
namespace {

TEST(Sequence, ACycleOfMoreThanIsRememberedAtFirstIsPlanned) {
  SequenceJob job;
  job.Rounds(6, SizesOf(5000));
  EXPECT_EQ(job.periods, std::vector<int64_t>({5000}));
  EXPECT_NE(job.sequence.plan(), nullptr);
}

TEST(Sequence, TheAllocationThatAdoptsAPlanIsOfThoseThatMatch) {
  SequenceJob job;
  for (int round = 0; round < 40; ++round) {
    job.Round(SizesOf(8));
    EXPECT_TRUE(job.sequence.plan() == nullptr || job.sequence.promising());
  }
  EXPECT_NE(job.sequence.plan(), nullptr);
}

TEST(Sequence, OfThePlansThatWaitTheOneUsedLongestAgoGoes) {
  SequenceJob job;
  const auto run = [&](uint32_t number) { job.Rounds(30, SizesOf(40 + 10 * number, number)); };
  for (const uint32_t number : {0, 1, 2, 3}) run(number);
  ASSERT_EQ(LengthsOf(job.sequence), std::vector<size_t>({40, 50, 60, 70}));
  run(0);
  run(4);
  EXPECT_EQ(LengthsOf(job.sequence), std::vector<size_t>({40, 60, 70, 80})) << "40 has been used again";
  run(2);
  run(5);
  EXPECT_EQ(LengthsOf(job.sequence), std::vector<size_t>({40, 60, 80, 90}));
}

TEST(Sequence, WhatAPlanDoesNotExpectCountsWhileItIsInUse) {
  SequenceJob job;
  const auto counters_after = [&](uint32_t number) {
    job.Rounds(30, SizesOf(60 + 10 * number, number));
    return job.sequence.counters();
  };
  const Sequence::Counters one = counters_after(0);
  const Sequence::Counters other = counters_after(1);
  const Sequence::Counters again = counters_after(0);
  EXPECT_EQ(one.mismatches, 0);
  EXPECT_EQ(other.times_lost, 1) << "of the first, before the second had its plan";
  EXPECT_EQ(again.plan_switches, 1);
  EXPECT_EQ(again.times_lost, 2);
  EXPECT_GT(other.mismatches, 60);
  EXPECT_GT(again.mismatches, other.mismatches);
  EXPECT_LT(again.mismatches, other.mismatches + 10);
}

std::vector<ServingPlan::Slot> Shifted(std::vector<ServingPlan::Slot> slots) {
  for (ServingPlan::Slot& slot : slots) slot.offset = slot.offset + Bytes(1 << 30);
  return slots;
}

// Another plan takes over in the middle of it: when the job comes back, what was in the way then is long gone.
TEST(Sequence, AFirstCycleThatIsLeftIsNotGoneOnWith) {
  SequenceJob job;
  const Sizes one = SizesOf(60);
  const Sizes other = SizesOf(70, 2);
  job.Rounds(30, one);
  job.Rounds(30, other);
  ASSERT_EQ(job.sequence.plan()->slots.size(), 70u);
  const std::vector<ServingPlan::Slot> planned = job.sequence.plan()->slots;
  const std::vector<ServingPlan::Slot> first = Shifted(planned);
  job.sequence.BeginWith(first);
  EXPECT_EQ(job.sequence.plan()->slots[0].offset, first[0].offset);
  EXPECT_EQ(job.sequence.plan()->lasting()[0].offset, planned[0].offset);
  job.Round(one);
  ASSERT_EQ(job.sequence.plan()->slots.size(), 60u);
  job.Round(other);
  ASSERT_EQ(job.sequence.plan()->slots.size(), 70u);
  for (size_t i = 0; i < planned.size(); ++i)
    EXPECT_EQ(job.sequence.plan()->slots[i].offset, planned[i].offset);
}

TEST(Sequence, AFirstCycleInWhichAnotherPlanIsAdoptedIsNotGoneOnWith) {
  SequenceJob job;
  const Sizes one = SizesOf(60);
  const Sizes other = SizesOf(70, 2);
  job.Rounds(30, one);
  job.at_once = false;
  while (!job.waits()) job.Round(other);
  job.PlanAsked();
  ASSERT_EQ(job.sequence.plan()->slots.size(), 60u);
  const std::vector<ServingPlan::Slot> planned = job.sequence.plan()->slots;
  job.sequence.BeginWith(Shifted(planned));
  job.Round(other);
  ASSERT_EQ(job.sequence.plan()->slots.size(), 70u);
  job.Round(one);
  ASSERT_EQ(job.sequence.plan()->slots.size(), 60u);
  for (size_t i = 0; i < planned.size(); ++i)
    EXPECT_EQ(job.sequence.plan()->slots[i].offset, planned[i].offset);
}

// The slots of a round that has so many other allocations from its 30th on, and of the usual one after it.
std::vector<uint32_t> SlotsAfter(size_t others, Sequence::Rules rules) {
  SequenceJob job(rules);
  const Sizes sizes = SizesOf(100);
  job.Rounds(20, sizes);
  const Sizes other = SizesOf(others, 2);
  job.slots.clear();
  Sizes left = sizes;
  std::copy(other.begin(), other.end(), left.begin() + 30);
  job.Round(left);
  job.Round(sizes);
  return job.slots;
}

TEST(Sequence, APlanThatWasLeftIsFollowedAgainFromAnEntryOn) {
  const std::vector<uint32_t> slots = SlotsAfter(20, {});
  EXPECT_EQ(slots[29], 29u);
  for (size_t i = 50; i < 100; ++i) EXPECT_EQ(slots[i], Matcher::kNoSlot) << i;
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(slots[100 + i], i);
  const std::vector<uint32_t> without = SlotsAfter(20, {.entries = false});
  for (size_t i = 54; i < 100; ++i) EXPECT_EQ(without[i], i);
}

TEST(Sequence, APlanThatWasLeftForLittleIsFollowedOn) {
  const std::vector<uint32_t> slots = SlotsAfter(6, {});
  for (size_t i = 40; i < 100; ++i) EXPECT_EQ(slots[i], i);
}

TEST(Sequence, BeforeAnEntryAPlanIsNotInStepAndWhatItMatchesIsCounted) {
  SequenceJob job;
  Sizes sizes = SizesOf(100);
  job.Rounds(20, sizes);
  const Sizes other = SizesOf(20, 2);
  std::copy(other.begin(), other.end(), sizes.begin() + 30);
  for (const int64_t bytes : sizes) job.Alloc(bytes);
  EXPECT_FALSE(job.sequence.KeepsPlaces(Stream{}));
  EXPECT_EQ(job.sequence.counters().withheld, 47) << "but for three by which the matcher has found its place";
}

TEST(Sequence, AnEntryMayLieInTheMiddleOfARound) {
  SequenceJob job;
  const Sizes sizes = SizesOf(100);
  // Nothing of a half outlives it.
  const auto halves = [&](const Sizes& round) {
    job.Round(Sizes(round.begin(), round.begin() + 50));
    job.Round(Sizes(round.begin() + 50, round.end()));
  };
  for (int i = 0; i < 20; ++i) halves(sizes);
  ASSERT_NE(job.sequence.plan(), nullptr);
  ASSERT_EQ(job.slots.back(), 49u) << "the cut is where the second half begins";
  Sizes left = sizes;
  const Sizes other = SizesOf(20, 2);
  std::copy(other.begin(), other.end(), left.begin() + 70);
  halves(left);
  job.slots.clear();
  halves(sizes);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(job.slots[i], (50 + i) % 100);
}

// It was there before, and goes by itself.
TEST(Sequence, WhatIsInTheWayOfAPlansFirstCycleIsNoReasonToLayItAgain) {
  for (const int cycle : {0, 1}) {
    SequenceJob job;
    const Sizes sizes = SizesOf(60);
    int followed = 0;
    for (int round = 0; round < 20; ++round) {
      std::vector<Tick> blocks;
      for (const int64_t bytes : sizes) {
        blocks.push_back(job.Alloc(bytes));
        if (blocks.size() != 30 || job.sequence.plan() == nullptr) continue;
        if (followed++ == cycle) job.sequence.OnConflict(kGiB);
      }
      for (size_t i = 0; i < sizes.size(); ++i) job.Free(blocks[i], sizes[i]);
    }
    ASSERT_GT(followed, 4);
    EXPECT_EQ(job.periods.size(), cycle == 0 ? 1u : 2u);
  }
}

// Whatever comes in between, what the plan has live lies in its places.
TEST(Sequence, WhatIsSteppedOverIsNoReasonToWaitForAnEntry) {
  SequenceJob job;
  const Sizes sizes = SizesOf(100);
  job.Rounds(20, sizes);
  Sizes with_more = sizes;
  with_more.insert(with_more.begin() + 30, int64_t{1} << 32);
  job.slots.clear();
  job.Round(with_more);
  for (size_t i = 31; i < with_more.size(); ++i) EXPECT_EQ(job.slots[i], i - 1);
}

TEST(Sequence, WhatAStreamTakesThatThePlanDoesNotKnowIsNoReasonToWaitForAnEntry) {
  SequenceJob job;
  const Sizes sizes = SizesOf(100);
  job.Rounds(20, sizes);
  job.slots.clear();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i == 30) job.Alloc(int64_t{1} << 32, Stream{7});
    job.Alloc(sizes[i]);
  }
  for (size_t i = 31; i < 101; ++i) EXPECT_EQ(job.slots[i], i - 1);
}

TEST(Sequence, OfTwoPlansTheOtherIsFollowedFromAnEntryOn) {
  SequenceJob job;
  const Sizes one = SizesOf(60);
  const Sizes other = SizesOf(70, 3);
  job.Rounds(30, one);
  job.Rounds(30, other);
  ASSERT_EQ(job.sequence.plan()->slots.size(), 70u);
  Sizes late = one;
  std::copy(other.begin() + 20, other.begin() + 50, late.begin());
  job.slots.clear();
  job.Round(late);
  job.Round(one);
  EXPECT_EQ(job.sequence.plan()->slots.size(), 60u);
  for (size_t i = 33; i < 60; ++i) EXPECT_EQ(job.slots[i], Matcher::kNoSlot) << "joined in its middle: " << i;
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ(job.slots[60 + i], i);
}

TEST(Sequence, WhatWasPlacedForAnotherPlanLiesElsewhere) {
  SequenceJob job;
  const Sizes one = SizesOf(60);
  Sizes other = SizesOf(90, 3);
  std::copy(one.begin(), one.begin() + 40, other.begin());
  job.Rounds(30, one);
  job.Rounds(30, other);
  ASSERT_EQ(job.sequence.plan()->slots.size(), 90u);
  job.slots.clear();
  job.Round(one);
  EXPECT_EQ(job.sequence.plan()->slots.size(), 60u);
  EXPECT_EQ(job.slots[39], 39u) << "of the other";
  for (size_t i = 40; i < 60; ++i) EXPECT_EQ(job.slots[i], Matcher::kNoSlot) << i;
}

// It is as long, and still the period that was found: the finder steps over what is new.
TEST(Sequence, ACycleThatHasChangedTakesThePlaceOfTheOneThatWas) {
  SequenceJob job;
  Sizes sizes = SizesOf(100);
  job.Rounds(20, sizes);
  ASSERT_EQ(job.periods.size(), 1u);
  const Tick from = job.sequence.KnownPlans()[0].from;
  const Sizes other = SizesOf(100, 2);
  std::copy(other.begin() + 40, other.begin() + 46, sizes.begin() + 40);  // 6 %
  job.Rounds(20, sizes);
  EXPECT_EQ(job.periods.size(), 2u);
  EXPECT_EQ(job.sequence.counters().plans_renewed, 1);
  ASSERT_EQ(LengthsOf(job.sequence), std::vector<size_t>({100}));
  EXPECT_EQ(job.sequence.KnownPlans()[0].from, from);
}

// Whose allocations behind the cut come now and then in something else.
void ExpectNeverAdopted(const Sizes& round, const Sizes& other) {
  SequenceJob job;
  job.at_once = false;
  for (int i = 0; i < 20 && !job.waits(); ++i) job.Round(round);
  ASSERT_TRUE(job.waits());
  job.asks = false;
  job.PlanAsked();
  job.Rounds(30, other);
  EXPECT_EQ(job.sequence.plan(), nullptr);
  job.Rounds(3, round);
  EXPECT_NE(job.sequence.plan(), nullptr) << "its cut has come";
}

TEST(Sequence, NoPlanIsAdoptedBehindItsCutByAJobThatGoesRoundInAPartOfIt) {
  const Sizes round = SizesOf(100);
  ExpectNeverAdopted(round, Sizes(round.begin() + 1, round.begin() + 60));
}

TEST(Sequence, NoPlanIsAdoptedBehindItsCutByAJobThatIsElsewhereInBetween) {
  const Sizes round = SizesOf(100);
  Sizes other = SizesOf(100, 2);
  std::copy(round.begin() + 1, round.begin() + 20, other.begin() + 1);
  ExpectNeverAdopted(round, other);
}

// A batch of any size comes first, and takes a dozen allocations to be made ready.
TEST(Sequence, APlanIsAdoptedBehindATenthOfTheRoundThatIsNeverTheSame) {
  Sizes round = SizesOf(400);
  SequenceJob job;
  for (uint32_t batch = 0; batch < 20 && job.adopted_at.empty(); ++batch) {
    std::ranges::copy(SizesOf(30, 2 + batch), round.begin());
    job.Round(round);
  }
  ASSERT_EQ(job.adopted_at.size(), 1u);
  EXPECT_GE(job.adopted_at[0], 30u);
  EXPECT_LE(job.adopted_at[0], 40u);
}

// What each round hands to the next has two places by turns; which is meant must not depend on noise.
TEST(Sequence, APlanOfTwoRoundsIsAdoptedInTheNextOneThoughAnAllocationIsMissing) {
  const Sizes sizes = SizesOf(60);
  SequenceJob job;
  job.at_once = false;
  Tick handed_on, handed_over;
  bool missing = false;
  for (int round = 0; round < 20 && job.adopted_at.empty(); ++round) {
    std::vector<Tick> blocks;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (job.waits()) {
        job.PlanAsked();
        missing = true;
        continue;
      }
      blocks.push_back(job.Alloc(sizes[i]));
      if (i == 30) handed_over = std::exchange(handed_on, blocks.back());
      if (i == 40 && round > 0) job.Free(handed_over, sizes[30]);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i] != handed_on) job.Free(blocks[i], sizes[i]);
    }
  }
  ASSERT_TRUE(missing);
  EXPECT_EQ(job.sequence.plan()->slots.size(), 120u);
  EXPECT_EQ(job.adopted_at, std::vector<uint32_t>({60}));
}

// A gradient: when half of a second round has been seen, nobody knows yet how long it lives.
TEST(Sequence, ACycleIsPlannedOnceItsLifetimesAreKnown) {
  const Sizes sizes = SizesOf(100);
  SequenceJob job;
  std::optional<Tick> gradient;
  for (int round = 0; round < 6; ++round) {
    std::vector<Tick> blocks;
    for (size_t i = 0; i < sizes.size(); ++i) {
      blocks.push_back(job.Alloc(sizes[i]));
      if (i == 80 && gradient.has_value()) job.Free(*gradient, sizes[90]);
    }
    gradient = blocks[90];
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (i != 90) job.Free(blocks[i], sizes[i]);
    }
  }
  ASSERT_NE(job.sequence.plan(), nullptr);
  const auto& cycle = job.sequence.plan()->cycle;
  const auto slot = std::ranges::find(cycle, Bytes(sizes[90]), &profiler::Slot::bytes);
  EXPECT_EQ(slot->length, 91);
  EXPECT_EQ(job.periods.size(), 1u);
}

absl::StatusOr<planner::Solution> Fail(const planner::Problem&, const planner::Budget&) {
  return absl::ResourceExhaustedError("as told");
}

TEST(Sequence, WhatCannotBePlannedIsTriedAgainEvery64RoundsAtTheLatest) {
  SequenceJob job;
  job.solve = Fail;
  job.Rounds(600, SizesOf(60));
  EXPECT_GE(job.periods.size(), 13u);
  EXPECT_LE(job.periods.size(), 15u);
  EXPECT_EQ(job.sequence.counters().plans_failed, static_cast<int64_t>(job.periods.size()));
}

// The short plan asks at each round of its own.
TEST(Sequence, WhatCannotBePlannedIsNotTriedMoreOftenBecauseAShortPlanIsInUse) {
  SequenceJob job;
  job.Rounds(50, SizesOf(8));
  ASSERT_NE(job.sequence.plan(), nullptr);
  job.periods.clear();
  job.solve = Fail;
  job.Rounds(40, SizesOf(1000, 2));
  EXPECT_GE(job.periods.size(), 4u);
  EXPECT_LE(job.periods.size(), 7u) << "after 1, 2, 4 ... rounds";
}

TEST(Sequence, IsPromisingFromAPeriodOnWhileItsPlanMayStillCome) {
  const Sizes round = SizesOf(60);
  SequenceJob job;
  job.asks = false;
  EXPECT_FALSE(job.sequence.promising());
  while (!job.sequence.period().has_value()) job.Round(round);
  job.Rounds(2, round);
  EXPECT_TRUE(job.sequence.promising());
  job.Rounds(4, round);
  EXPECT_FALSE(job.sequence.promising()) << "nobody has asked for one";
}

TEST(Sequence, IsPromisingWhileItsPlanIsSolvedOrMayBeAdopted) {
  const Sizes round = SizesOf(60);
  SequenceJob job;
  job.at_once = false;
  for (int i = 0; i < 20 && !job.waits(); ++i) job.Round(round);
  ASSERT_TRUE(job.waits());
  job.asks = false;
  job.Rounds(20, round);
  EXPECT_TRUE(job.sequence.promising()) << "however long it takes";
  job.PlanAsked();
  job.Rounds(3, SizesOf(60, 2));
  EXPECT_TRUE(job.sequence.promising());
  job.Rounds(2, SizesOf(60, 2));
  EXPECT_FALSE(job.sequence.promising());
}

TEST(Sequence, IsPromisingWhileItsPlanIsFollowed) {
  SequenceJob job;
  job.Rounds(20, SizesOf(60));
  ASSERT_NE(job.sequence.plan(), nullptr);
  EXPECT_TRUE(job.sequence.promising());
  job.Rounds(2, SizesOf(60, 2));
  EXPECT_FALSE(job.sequence.promising());
}

// A plan of eight slots asks after every eight allocations, all the time that a long cycle is being planned.
TEST(Sequence, ALongCycleIsLookedThroughAFewTimesHoweverShortThePlanInUse) {
  constexpr int64_t kShort = 8, kLong = 3000;
  SequenceJob job;
  for (int round = 0; round < 100; ++round) {
    std::vector<Tick> blocks;
    for (int64_t i = 1; i <= kShort; ++i) blocks.push_back(job.Alloc(i << 20));
    for (int64_t i = 1; i <= kShort; ++i) job.Free(blocks[static_cast<size_t>(i - 1)], i << 20);
  }
  ASSERT_EQ(job.periods, std::vector({kShort}));
  ASSERT_NE(job.sequence.plan(), nullptr);
  job.at_once = false;
  const int64_t before = job.sequence.counters().looks;
  // Activations and, as these go, gradients that stay until the next round has others.
  std::mt19937 random(1);
  std::vector<int64_t> bytes(kLong / 2);
  for (int64_t& size : bytes) size = 65536 + static_cast<int64_t>(random() % 1000) * 512;
  std::vector<Tick> gradients(bytes.size());
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Tick> activations;
    for (const int64_t size : bytes) activations.push_back(job.Alloc(size));
    for (size_t i = bytes.size(); i-- > 0;) {
      job.Free(activations[i], bytes[i]);
      if (round > 0) job.Free(gradients[i], 4096 + bytes[i] / 64);
      gradients[i] = job.Alloc(4096 + bytes[i] / 64);
    }
  }
  EXPECT_EQ(job.periods, std::vector({kShort, kLong}));
  EXPECT_LE(job.sequence.counters().looks - before, 8 * kRounds);
}

}  // namespace
}  // namespace reprise::replay
