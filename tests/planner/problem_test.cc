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

TEST(Validate, RefusesWhatCouldOverflow) {
  EXPECT_THAT(FaultOf({{Block(0, 1, kMax)}}), HasSubstr("buffer 0: the sum of all sizes and alignments"));
  EXPECT_THAT(FaultOf({{Block(0, 1, kMax / 5), Block(1, 2, kMax / 5)}}), HasSubstr("buffer 1: the sum"));
  EXPECT_THAT(FaultOf({{Block(0, 1, 1, kMax)}}), HasSubstr("buffer 0: the sum"));
  EXPECT_THAT(FaultOf({{Pinned(0, 1, 8, kMax - 4)}}), HasSubstr("ends beyond the largest offset"));
  EXPECT_THAT(FaultOf({{Pinned(0, 1, kMax, 5)}}), HasSubstr("ends beyond the largest offset"));
}

TEST(Validate, KeepsTheRulesOfCycles) {
  EXPECT_THAT(FaultOf({{}, 0}), HasSubstr("period of the cycle is 0"));
  EXPECT_THAT(FaultOf({{Block(-1, 1, 1)}, 10}), HasSubstr("begins at -1, outside of the cycle [0, 10)"));
  EXPECT_THAT(FaultOf({{Block(10, 11, 1)}, 10}), HasSubstr("begins at 10, outside of the cycle [0, 10)"));
  EXPECT_THAT(FaultOf({{Block(2, 13, 1)}, 10}), HasSubstr("[2, 13) is longer than the cycle of 10 ticks"));
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

TEST(Compress, WrappedLifetimesEndPastTheLastSlot) {
  const Instance instance = Compress({{Block(8, 12, 1), Block(2, 5, 1), Block(6, 16, 1)}, 10});
  EXPECT_EQ(instance.slots, 3);
  EXPECT_THAT(instance.begin, ElementsAre(2, 1, 2));
  EXPECT_THAT(instance.end, ElementsAre(4, 2, 5));
}

TEST(Compress, KeepsExactlyTheOverlapsOfTicks) {
  RandomProblems random(1);
  for (int round = 0; round < 500; ++round) {
    const Problem problem = random.Make({.buffers = 7, .ticks = 12, .cyclic = round % 2 == 1});
    const Instance instance = Compress(problem);
    ASSERT_LE(instance.slots, 8);
    Problem slots;
    if (instance.cyclic) slots.period = instance.slots;
    for (int i = 0; i < 7; ++i) slots.buffers.push_back(Block(instance.begin[i], instance.end[i], 1));
    for (int i = 0; i < 7; ++i) {
      for (int k = 0; k < 7; ++k) {
        EXPECT_EQ(ShareTick(problem, problem.buffers[i], problem.buffers[k]),
                  ShareTick(slots, slots.buffers[i], slots.buffers[k]));
      }
    }
  }
}

TEST(LoadOfSlots, CountsWrappedBuffersOnBothSides) {
  EXPECT_THAT(LoadOfSlots(Compress({{Block(8, 12, 5), Block(2, 5, 1), Block(4, 9, 2)}, 10})),
              ElementsAre(5, 3, 7));
  EXPECT_THAT(LoadOfSlots(Compress({})), ElementsAre());
}

}  // namespace
}  // namespace reprise::planner
