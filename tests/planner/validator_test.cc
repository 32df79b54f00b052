// The validator is the last word on every placement, so it is compared with a check of all pairs, tick by
// tick, on placements that are right, nearly right and wrong; and its messages must name the fault.
#include "planner/validator.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::HasSubstr;

std::string FaultOf(const Problem& problem, const Placement& placement) {
  const absl::Status status = CheckPlacement(problem, placement);
  EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
  return std::string(status.message());
}

TEST(CheckPlacement, TakesWhatIsRight) {
  EXPECT_EQ(FaultOf({}, {}), "");
  EXPECT_EQ(FaultOf({{Block(0, 5, 8), Block(5, 9, 8), Block(3, 7, 4)}}, At({0, 0, 8}, 12)), "");
  EXPECT_EQ(FaultOf({{Block(8, 12, 8), Block(2, 8, 8)}, 10}, At({0, 0}, 8)), "");
}

TEST(CheckPlacement, NamesBothBuffersOfAnOverlap) {
  EXPECT_EQ(
      FaultOf({{Block(0, 9, 1), Block(0, 5, 8), Block(4, 9, 8)}}, At({90, 0, 7}, 91)),
      "buffer 1 (bytes [0, 8), ticks [0, 5)) and buffer 2 (bytes [7, 15), ticks [4, 9)) overlap at tick 4");
}

TEST(CheckPlacement, SeesEveryKindOfOverlap) {
  const Problem problem{{Block(0, 5, 8), Block(4, 9, 4)}};
  EXPECT_THAT(FaultOf(problem, At({4, 4}, 12)), HasSubstr("overlap")) << "the same begin";
  EXPECT_THAT(FaultOf(problem, At({4, 6}, 12)), HasSubstr("overlap")) << "inside";
  EXPECT_THAT(FaultOf(problem, At({4, 1}, 12)), HasSubstr("overlap")) << "from below, by one byte";
  EXPECT_THAT(FaultOf(problem, At({4, 11}, 15)), HasSubstr("overlap")) << "from above, by one byte";
  EXPECT_EQ(FaultOf(problem, At({4, 0}, 12)), "");
  EXPECT_EQ(FaultOf(problem, At({4, 12}, 16)), "");
}

TEST(CheckPlacement, SeesOverlapsAcrossTheEndOfACycle) {
  EXPECT_THAT(FaultOf({{Block(8, 12, 8), Block(1, 3, 8)}, 10}, At({0, 0}, 8)),
              HasSubstr("overlap at tick 1"));
  EXPECT_THAT(FaultOf({{Block(3, 13, 8), Block(1, 3, 8)}, 10}, At({0, 0}, 8)),
              HasSubstr("overlap at tick 1"));
}

TEST(CheckPlacement, SeesWhatIsToStayOutsideAndDoesNot) {
  Problem problem{{Block(0, 5, 8), Block(0, 5, 4)}};
  problem.buffers[1].outside = true;
  EXPECT_EQ(FaultOf(problem, At({0, kOutside.count()}, 8)), "");
  EXPECT_THAT(FaultOf(problem, At({0, 8}, 8)),
              HasSubstr("buffer 1 at offset 8: the buffer is to stay outside"));
}

TEST(CheckPlacement, KnowsGaps) {
  Problem problem{{Block(0, 9, 8), Block(3, 6, 8)}};
  problem.buffers[0].gaps = {{Tick(3), Tick(6)}};
  EXPECT_EQ(FaultOf(problem, At({0, 0}, 8)), "");
  problem.buffers[0].gaps = {{Tick(4), Tick(6)}};
  EXPECT_THAT(FaultOf(problem, At({0, 0}, 8)), HasSubstr("overlap at tick 3"));
}

TEST(CheckPlacement, SeesBytesThatLanesShare) {
  Problem problem{{Block(0, 1, 8), Block(2, 3, 8)}};
  problem.buffers[1].lane = 1;
  EXPECT_EQ(FaultOf(problem, At({0, 0}, 8)), "");
  problem.reuse = Reuse::kForbidden;
  EXPECT_THAT(FaultOf(problem, At({0, 7}, 15)), HasSubstr("share bytes"));
  EXPECT_EQ(FaultOf(problem, At({0, 8}, 16)), "");
}

TEST(CheckPlacement, SeesWrongOffsets) {
  EXPECT_THAT(FaultOf({{Block(0, 1, 8)}}, At({}, 0)), HasSubstr("0 offsets for 1 buffers"));
  EXPECT_THAT(FaultOf({{Block(0, 1, 8)}}, At({-1}, 7)),
              HasSubstr("buffer 0 at offset -1: the offset is negative"));
  EXPECT_THAT(FaultOf({{Block(0, 1, 8)}}, At({std::numeric_limits<int64_t>::max() - 7}, 1)),
              HasSubstr("overflows"));
  EXPECT_THAT(FaultOf({{Block(0, 1, 8), Block(0, 1, 8, 16)}}, At({0, 8}, 16)),
              HasSubstr("buffer 1 at offset 8: the offset is not a multiple of the alignment 16"));
  EXPECT_THAT(FaultOf({{Pinned(0, 1, 8, 3)}}, At({4}, 0)),
              HasSubstr("buffer 0 at offset 4: the buffer is pinned at 3"));
}

TEST(CheckPlacement, SeesAWrongSlab) {
  EXPECT_EQ(FaultOf({{Block(0, 1, 8), Pinned(0, 1, 8, 50)}}, At({0, 50}, 8)), "") << "obstacles do not count";
  EXPECT_THAT(FaultOf({{Block(0, 1, 8)}}, At({4}, 8)),
              HasSubstr("the slab is given as 8 but its buffers end at 12"));
  EXPECT_THAT(FaultOf({{Block(0, 1, 8)}}, At({4}, 13)), HasSubstr("the slab is given as 13"));
}

// All pairs, tick by tick.
bool AnyOverlap(const Problem& problem, const Placement& placement) {
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (ShareTick(problem, problem.buffers[i], problem.buffers[k]) &&
          ShareBytes(problem.buffers[i], placement.offsets[i], problem.buffers[k], placement.offsets[k])) {
        return true;
      }
    }
  }
  return false;
}

TEST(CheckPlacement, AgreesWithACheckOfAllPairs) {
  RandomProblems random(7);
  int overlaps = 0, sound = 0;
  for (int round = 0; round < 20000; ++round) {
    const Problem problem = random.Make({.buffers = 5, .cyclic = round % 2 == 1});
    Placement placement;
    for (const Buffer& buffer : problem.buffers) {
      placement.offsets.emplace_back(random.Below(40));
      placement.slab = std::max(placement.slab, placement.offsets.back() + buffer.size - Offset(0));
    }
    const bool overlap = AnyOverlap(problem, placement);
    (overlap ? overlaps : sound) += 1;
    ASSERT_EQ(CheckPlacement(problem, placement).ok(), !overlap) << round;
  }
  EXPECT_GT(overlaps, 2000);
  EXPECT_GT(sound, 2000);
}

}  // namespace
}  // namespace reprise::planner
