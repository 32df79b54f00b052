// Where time is cut decides what a large problem costs, and that no buffer is forgotten whether it can be
// placed at all.
#include "planner/stretches.h"

#include <algorithm>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;

TEST(CutWhereQuiet, LeavesWhatIsSmallInOnePiece) {
  EXPECT_THAT(CutWhereQuiet(Compress({{Block(0, 1, 1), Block(1, 2, 1), Block(2, 3, 1)}}), 32, 64),
              ElementsAre(0, 3));
  EXPECT_THAT(CutWhereQuiet(Compress({}), 1, 3), ElementsAre(0, 0));
}

TEST(CutWhereQuiet, CutsMoreOftenWhereNothingCrosses) {
  EXPECT_THAT(
      CutWhereQuiet(Compress({{Block(0, 1, 1), Block(0, 2, 1), Block(1, 2, 1), Block(2, 3, 1)}}), 16, 32),
      ElementsAre(0, 2, 3));
}

TEST(CutWhereQuiet, CutsWhereTheFewestBytesCross) {
  // Three begin in the first slot; the boundary after it is crossed by 9 bytes, the next ones by 3 and 6.
  const Problem problem{{Block(0, 7, 1), Block(0, 1, 8), Block(0, 3, 8), Block(2, 4, 2), Block(3, 5, 5),
                         Block(4, 5, 1), Block(5, 6, 1), Block(6, 7, 1)}};
  const Instance instance = Compress(problem);
  EXPECT_THAT(CutWhereQuiet(instance, 2, 5), ElementsAre(0, 2, instance.slots));
}

TEST(CutWhereQuiet, NeverCutsMoreThanBeginBefore) {
  Problem problem;
  for (int i = 0; i < 100; ++i) problem.buffers.push_back(Block(0, 101, 1));
  for (int i = 0; i < 100; ++i) problem.buffers.push_back(Block(i, i + 1, 1));
  EXPECT_THAT(CutWhereQuiet(Compress(problem), 2, 10), ElementsAre(0, 1, 100))
      << "after the first tick, in which a hundred begin, only another hundred would pay for a cut";
}

TEST(Stretches, EveryBufferIsInsideOneOrShared) {
  const Instance instance = Compress({{Block(0, 1, 1), Block(0, 4, 1), Block(1, 2, 1), Block(2, 3, 1),
                                       Pinned(2, 3, 1, 9), Block(3, 4, 1), Block(1, 3, 1)}});
  const Stretches stretches(instance, {0, 2, 4});
  EXPECT_THAT(stretches.inside(0), ElementsAre(0, 2));
  EXPECT_THAT(stretches.inside(1), ElementsAre(3, 5));
  EXPECT_THAT(stretches.across(0), ElementsAre(1, 6));
  EXPECT_THAT(stretches.across(1), ElementsAre(1, 4, 6));
  EXPECT_THAT(stretches.shared(), ElementsAre(1, 4, 6));
}

TEST(Stretches, ALifetimeWithGapsIsNotWhereItIsNotInUse) {
  const Instance instance = Compress(
      {{Block(0, 1, 1), Block(1, 2, 1), Block(2, 3, 1), Block(3, 4, 1), WithGaps(Block(0, 4, 1), {{1, 3}})}});
  const Stretches stretches(instance, {0, 1, 3, 4});
  EXPECT_THAT(stretches.across(0), ElementsAre(4));
  EXPECT_TRUE(stretches.across(1).empty());
  EXPECT_THAT(stretches.across(2), ElementsAre(4));
}

}  // namespace
}  // namespace reprise::planner
