// A plan must know which frees hand memory to another lane: without the event recorded there the planned
// place cannot be taken, and with one too many every free costs an event.
#include "planner/crossings.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

constexpr uint64_t kA = 0;
constexpr uint64_t kB = 1;

std::vector<bool> Crossings(const std::vector<Use>& uses) { return FindCrossings(uses, /*cyclic=*/true); }

TEST(Crossings, OneLaneHasNone) {
  EXPECT_EQ(Crossings({{0, 1024, kA, kA}, {0, 1024, kA, kA}}), (std::vector<bool>{false, false}));
}

TEST(Crossings, APlaceThatGoesToAnotherLaneAndBack) {
  EXPECT_EQ(Crossings({{0, 1024, kA, kA}, {0, 1024, kB, kB}}), (std::vector<bool>{true, true}));
}

TEST(Crossings, OutsideOfACycleThereIsNoWayBack) {
  EXPECT_EQ(FindCrossings(std::vector<Use>{{0, 1024, kA, kA}, {0, 1024, kB, kB}}, /*cyclic=*/false),
            (std::vector<bool>{true, false}));
}

TEST(Crossings, LeftOnAnotherLaneThanTakenOn) {
  EXPECT_EQ(Crossings({{0, 1024, kA, kB}, {0, 1024, kA, kA}}), (std::vector<bool>{true, false}));
}

TEST(Crossings, APartOfAPlaceIsEnough) {
  EXPECT_EQ(Crossings({{0, 4096, kA, kA}, {3584, 4096, kB, kB}, {0, 512, kA, kA}}),
            (std::vector<bool>{true, true, false}));
}

TEST(Crossings, NeighboursDoNotMeet) {
  EXPECT_EQ(Crossings({{0, 1024, kA, kA}, {1024, 1536, kB, kB}}), (std::vector<bool>{false, false}));
}

TEST(Crossings, WhoHadItLastCounts) {
  // The first one's place goes to the second, of its own lane, before the third of the other takes it.
  EXPECT_EQ(Crossings({{0, 512, kA, kA}, {0, 512, kA, kA}, {0, 512, kB, kB}}),
            (std::vector<bool>{false, true, true}));
}

TEST(CountCrossings, OfAPlacement) {
  const Problem problem{{OnLane(0, Block(0, 2, 4)), OnLane(1, Block(2, 4, 4)), OnLane(0, Block(4, 6, 4))}};
  EXPECT_EQ(CountCrossings(problem, At({0, 0, 0}, 4)), 2);
  EXPECT_EQ(CountCrossings(problem, At({0, 4, 0}, 8)), 0);
}

TEST(CountCrossings, AGapGivesAndTakesBack) {
  const Problem problem{{OnLane(0, WithGaps(Block(0, 10, 4), {{2, 8}})), OnLane(1, Block(3, 6, 4))}};
  EXPECT_EQ(CountCrossings(problem, At({0, 0}, 4)), 2);
}

TEST(CountCrossings, PinnedBuffersHaveNoLane) {
  const Problem problem{{OnLane(1, Pinned(0, 2, 4, 0)), OnLane(0, Block(2, 4, 4))}};
  EXPECT_EQ(CountCrossings(problem, At({0, 0}, 4)), 0);
}

}  // namespace
}  // namespace reprise::planner
