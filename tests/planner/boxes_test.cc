// A box that does not hold its members, all their time, would let what is worked out about boxes end in
// placements that are too high, and one that is forgotten in buffers that are not placed at all.
#include "planner/boxes.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;

std::vector<int32_t> Members(const Boxes& boxes, int32_t box) {
  std::vector<int32_t> members(boxes.of(box).begin(), boxes.of(box).end());
  std::ranges::sort(members);
  return members;
}

TEST(Boxes, AlikeLifetimesShareOne) {
  // Two early and two late small ones, and a large one.
  const Instance whole =
      Compress({{Block(0, 4, 2), Block(6, 9, 2), Block(0, 10, 50), Block(1, 4, 3), Block(6, 10, 3)}});
  const Boxes boxes = BoxesOf(whole, 5);
  ASSERT_EQ(boxes.instance.buffers(), 3);
  EXPECT_THAT(Members(boxes, 0), ElementsAre(2));
  EXPECT_THAT(Members(boxes, 1), ElementsAre(0, 3));
  EXPECT_THAT(Members(boxes, 2), ElementsAre(1, 4));
  EXPECT_THAT(boxes.instance.size, ElementsAre(50, 5, 5));
  EXPECT_EQ(boxes.instance.begin[1], whole.begin[0]);
  EXPECT_EQ(boxes.instance.end[1], whole.end[3]);
}

TEST(Boxes, OneThatWrapsHasTwoRanges) {
  Problem problem{{Block(7, 11, 2), Block(8, 12, 2), Block(4, 6, 9)}};
  problem.period = 10;
  const Instance whole = Compress(problem, /*turn_cycles=*/false);
  const Boxes boxes = BoxesOf(whole, 4);
  ASSERT_EQ(boxes.instance.buffers(), 2);
  EXPECT_THAT(Members(boxes, 1), ElementsAre(0, 1));
  EXPECT_TRUE(boxes.instance.cyclic);
  ASSERT_EQ(boxes.instance.ranges(1).size(), 2u);
  EXPECT_EQ(boxes.instance.ranges(1)[0], (Range{0, whole.end[1] - whole.slots}));
  EXPECT_EQ(boxes.instance.ranges(1)[1], (Range{whole.begin[0], whole.slots}));
}

TEST(Boxes, HoldTheirMembers) {
  RandomProblems random(11);
  int shared = 0;
  for (int round = 0; round < 500; ++round) {
    const Problem problem = random.Make({.buffers = 40,
                                         .ticks = 30,
                                         .max_size = 60,
                                         .cyclic = (round & 1) != 0,
                                         .aligned = (round & 2) != 0,
                                         .pinned = (round & 4) != 0 ? 10 : 0,
                                         .gaps = (round & 8) != 0,
                                         .outside = (round & 16) != 0});
    const Instance whole = Compress(problem);
    const int64_t height = random.Below(150);
    const Boxes boxes = BoxesOf(whole, height);
    std::vector<int> boxed(whole.buffers(), 0);
    for (int32_t box = 0; box < boxes.instance.buffers(); ++box) {
      int64_t room = 0;
      for (int32_t i : boxes.of(box)) {
        ++boxed[i];
        room += whole.size[i];
        EXPECT_LE(boxes.instance.alignment[box] % whole.alignment[i], 0) << "or it is not a multiple";
        for (const Range& range : whole.ranges(i)) {
          EXPECT_TRUE(std::ranges::any_of(boxes.instance.ranges(box), [&](const Range& r) {
            return r.begin <= range.begin && range.end <= r.end;
          })) << round;
        }
      }
      EXPECT_GE(boxes.instance.size[box], room);
      if (boxes.of(box).size() == 1) continue;
      ++shared;
      EXPECT_LE(boxes.instance.size[box], height);
      for (int32_t i : boxes.of(box)) EXPECT_TRUE(whole.is_free(i));
    }
    for (int32_t i = 0; i < whole.buffers(); ++i)
      ASSERT_EQ(boxed[i], whole.pinned[i] == Instance::kOutside ? 0 : 1) << round;
  }
  EXPECT_GT(shared, 1000);
}

}  // namespace
}  // namespace reprise::planner
