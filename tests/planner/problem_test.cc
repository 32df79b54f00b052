// A faulty problem must be named by buffer and fault before any solver sees it, and slots must keep exactly
// the overlaps of the ticks they stand for: every solver and the bound build on that.
#include "planner/problem.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::string FaultOf(const Problem& problem) {
  const absl::Status status = Validate(problem);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(Validate, TakesWhatIsRight) {
  EXPECT_TRUE(Validate({}).ok());
  EXPECT_TRUE(Validate({{Block(-5, 5, 1), Block(0, 1, kMax / 8), Pinned(0, 1, 8, 3)}}).ok());
  EXPECT_TRUE(Validate({{Block(9, 19, 1), Block(0, 10, 1)}, 10}).ok()) << "a whole cycle, from anywhere";
}

TEST(Validate, NamesTheBufferAndTheFault) {
  const Buffer good = Block(0, 1, 1);
  EXPECT_THAT(FaultOf({{good, Block(0, 1, 0)}}), HasSubstr("buffer 1: its size is 0"));
  EXPECT_THAT(FaultOf({{good, Block(0, 1, -4)}}), HasSubstr("buffer 1: its size is -4"));
  EXPECT_THAT(FaultOf({{Block(3, 3, 1)}}), HasSubstr("buffer 0: its lifetime [3, 3) is empty"));
  EXPECT_THAT(FaultOf({{Block(3, 2, 1)}}), HasSubstr("buffer 0: its lifetime [3, 2) is empty"));
  EXPECT_THAT(FaultOf({{Block(0, 1, 1, 0)}}), HasSubstr("buffer 0: its alignment is 0"));
  EXPECT_THAT(FaultOf({{good, Pinned(0, 1, 1, -1)}}),
              HasSubstr("buffer 1: it is pinned at the negative offset -1"));
}

TEST(Validate, NamesBuffersAsItIsTold) {
  const auto name = [](size_t i) { return i == 0 ? "alpha" : "beta"; };
  EXPECT_EQ(Validate({{Pinned(0, 4, 5, 0), Pinned(2, 3, 5, 3)}}, name).message(),
            "alpha: pinned, it overlaps beta, pinned as well, at tick 2");
}

TEST(Validate, RefusesWhatCouldOverflow) {
  EXPECT_THAT(FaultOf({{Block(0, 1, kMax)}}), HasSubstr("buffer 0: the sum of all sizes and alignments"));
  EXPECT_THAT(FaultOf({{Block(0, 1, kMax / 5), Block(1, 2, kMax / 5)}}), HasSubstr("buffer 1: the sum"));
  EXPECT_THAT(FaultOf({{Block(0, 1, 1, kMax)}}), HasSubstr("buffer 0: the sum"));
  EXPECT_THAT(FaultOf({{Pinned(0, 1, 8, kMax - 4)}}), HasSubstr("ends beyond the largest offset"));
  EXPECT_THAT(FaultOf({{Pinned(0, 1, kMax, 5)}}), HasSubstr("ends beyond the largest offset"));
  EXPECT_THAT(FaultOf({{Pinned(0, 1, 8, kMax / 5), Block(0, 1, kMax / 10)}}), HasSubstr("buffer 1: the sum"))
      << "above what is pinned";
}

TEST(Validate, CountsWhatIsPinnedByItsEndAndWhatIsOutsideNotAtAll) {
  Buffer outside = Block(0, 1, kMax / 5);
  outside.outside = true;
  EXPECT_TRUE(Validate({{Pinned(0, 1, kMax / 5, 0), Block(0, 1, kMax / 25), outside, outside}}).ok());
  outside.size = Bytes(kMax);
  EXPECT_THAT(FaultOf({{outside}}), HasSubstr("buffer 0: the sum")) << "it is looked at all the same";
}

TEST(Validate, KeepsTheRulesOfCycles) {
  EXPECT_THAT(FaultOf({{}, 0}), HasSubstr("period of the cycle is 0"));
  EXPECT_THAT(FaultOf({{Block(-1, 1, 1)}, 10}), HasSubstr("begins at -1, outside of the cycle [0, 10)"));
  EXPECT_THAT(FaultOf({{Block(10, 11, 1)}, 10}), HasSubstr("begins at 10, outside of the cycle [0, 10)"));
  EXPECT_THAT(FaultOf({{Block(2, 13, 1)}, 10}), HasSubstr("[2, 13) is longer than the cycle of 10 ticks"));
}

TEST(Validate, KeepsTheRulesOfGaps) {
  const auto fault_of = [](std::vector<LifetimeGap> gaps) {
    Buffer buffer = Block(0, 10, 1);
    buffer.gaps = std::move(gaps);
    return FaultOf({{buffer}});
  };
  EXPECT_EQ(fault_of({{Tick(1), Tick(3)}, {Tick(5), Tick(9)}}), "");
  EXPECT_THAT(fault_of({{Tick(3), Tick(3)}}), HasSubstr("buffer 0: its gap [3, 3) is empty"));
  EXPECT_THAT(fault_of({{Tick(0), Tick(3)}}), HasSubstr("gap [0, 3)"));
  EXPECT_THAT(fault_of({{Tick(7), Tick(10)}}), HasSubstr("gap [7, 10)"));
  EXPECT_THAT(fault_of({{Tick(1), Tick(5)}, {Tick(5), Tick(6)}}), HasSubstr("gap [5, 6)"));
}

TEST(Validate, RefusesWhatIsPinnedOutside) {
  Buffer both = Pinned(0, 1, 1, 0);
  both.outside = true;
  EXPECT_THAT(FaultOf({{both}}), HasSubstr("both pinned and outside"));
}

TEST(Validate, RefusesPinnedBuffersThatOverlap) {
  EXPECT_THAT(FaultOf({{Block(0, 9, 1), Pinned(0, 5, 8, 0), Pinned(4, 9, 8, 7)}}),
              HasSubstr("buffer 1: pinned, it overlaps buffer 2, pinned as well, at tick 4"));
  EXPECT_EQ(FaultOf({{Pinned(0, 5, 8, 0), Pinned(5, 9, 8, 7)}}), "");
  EXPECT_THAT(FaultOf({{Pinned(0, 5, 8, 0), Pinned(8, 11, 8, 7)}, 10}), HasSubstr("overlaps"));
}

TEST(Validate, RefusesACapacityOfNothing) {
  EXPECT_THAT(FaultOf({{}, std::nullopt, Bytes(0)}), HasSubstr("capacity is 0"));
}

TEST(Compress, ANewSlotOnlyWhereAStartFollowsAnEnd) {
  const Instance instance =
      Compress({{Block(0, 100, 1), Block(50, 300, 1), Block(100, 301, 1), Block(200, 400, 1)}});
  EXPECT_EQ(instance.slots, 2);
  EXPECT_THAT(instance.begin, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(instance.end, ElementsAre(1, 2, 2, 2));
}

TEST(Compress, ACycleBeginsWhereTheLeastBytesAreInUseAcross) {
  const Instance instance = Compress({{Block(8, 12, 3), Block(1, 5, 2), Block(4, 9, 1)}, 10});
  EXPECT_EQ(instance.slots, 3);
  EXPECT_TRUE(instance.cyclic);
  EXPECT_THAT(instance.begin, ElementsAre(0, 1, 2));
  EXPECT_THAT(instance.end, ElementsAre(2, 3, 4)) << "the smallest wraps: its end is past the last slot";
  EXPECT_THAT(instance.ranges(2), ElementsAre(Range{0, 1}, Range{2, 3}));
}

TEST(Compress, ACycleThatNothingCrossesAnywhereIsNone) {
  const Instance instance = Compress({{Block(8, 12, 1), Block(2, 5, 1), Block(6, 16, 1)}, 10});
  EXPECT_FALSE(instance.cyclic);
  EXPECT_THAT(instance.begin, ElementsAre(1, 0, 0));
  EXPECT_THAT(instance.end, ElementsAre(3, 1, 3)) << "what is always there crosses nothing";
}

TEST(Compress, GapsDivideALifetime) {
  const Instance instance = Compress({{WithGaps(Block(0, 10, 1), {{3, 6}}), Block(3, 6, 1)}});
  EXPECT_THAT(instance.ranges(0), ElementsAre(Range{0, 1}, Range{2, 3}));
  EXPECT_THAT(instance.ranges(1), ElementsAre(Range{1, 2}));
  EXPECT_EQ(instance.begin[0], 0);
  EXPECT_EQ(instance.end[0], 3);
}

TEST(Compress, WhatIsOutsideHasNoSlots) {
  Buffer outside = Block(0, 10, 1);
  outside.outside = true;
  const Instance instance = Compress({{outside, Block(3, 6, 1)}});
  EXPECT_EQ(instance.slots, 1);
  EXPECT_TRUE(instance.ranges(0).empty());
  EXPECT_FALSE(instance.is_free(0));
  EXPECT_FALSE(instance.is_pinned(0));
}

TEST(Unrolled, GivesEachBlockOfALongLifetimeItsOwnPlace) {
  Problem cycle{{Block(0, 12, 4), Block(5, 8, 2)}, 10};
  EXPECT_FALSE(Validate(cycle).ok());
  const Problem twice = Unrolled(cycle, 2);
  ASSERT_TRUE(Validate(twice).ok()) << Validate(twice);
  EXPECT_EQ(twice.period, 20);
  ASSERT_EQ(twice.buffers.size(), 4u);
  EXPECT_EQ(twice.buffers[2].lower, Tick(10));
  EXPECT_EQ(twice.buffers[2].upper, Tick(22));
  EXPECT_TRUE(ShareTick(twice, twice.buffers[0], twice.buffers[2]));
}

TEST(Compress, KeepsExactlyTheOverlapsOfTicks) {
  RandomProblems random(1);
  for (int round = 0; round < 1000; ++round) {
    const Problem problem =
        random.Make({.buffers = 7, .ticks = 12, .cyclic = round % 2 == 1, .gaps = round % 3 == 1});
    ASSERT_TRUE(Validate(problem).ok()) << Validate(problem);
    const Instance instance = Compress(problem);
    for (int i = 0; i < 7; ++i) {
      for (int k = 0; k < 7; ++k) {
        EXPECT_EQ(ShareTick(problem, problem.buffers[i], problem.buffers[k]),
                  ShareSlot(instance.ranges(i), instance.ranges(k)));
      }
    }
  }
}

TEST(LoadOfSlots, CountsWrappedBuffersOnBothSides) {
  EXPECT_THAT(LoadOfSlots(Compress({{Block(8, 12, 5), Block(2, 5, 1), Block(4, 9, 2)}, 10})),
              ElementsAre(3, 7, 5));
  EXPECT_THAT(LoadOfSlots(Compress({})), ElementsAre());
}

TEST(LoadOfSlots, LeavesObstaclesOutWhereOnlyWhatIsFreeCounts) {
  const Instance instance = Compress({{Block(0, 4, 5), Pinned(2, 6, 3, 100), Block(5, 9, 1)}});
  EXPECT_THAT(LoadOfSlots(instance), ElementsAre(8, 4));
  EXPECT_THAT(LoadOfSlots(instance, [&](int32_t i) { return instance.is_free(i); }), ElementsAre(5, 1));
}

// All cross tick 15, never two at once: their sum is not a number that a sum of sizes can be.
TEST(Compress, ACycleDoesNotBeginAmongObstaclesThatOnlyGapsKeepApart) {
  Problem problem{.period = 100};
  for (int64_t k = 0; k < 10; ++k)
    problem.buffers.push_back(WithGaps(Pinned(k, 32 + k, int64_t{1} << 60, 0), {{k + 1, 31 + k}}));
  problem.buffers.push_back(Block(3, 20, 8));
  ASSERT_TRUE(Validate(problem).ok()) << Validate(problem);
  EXPECT_FALSE(Compress(problem).cyclic) << "from tick 42 on nothing is in use";
}

}  // namespace
}  // namespace reprise::planner
