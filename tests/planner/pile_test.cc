// The cheapest place is found by a sweep that must agree with trying every offset.
#include "planner/pile.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Pile, TheLowestFreePlaceCostsNothing) {
  const Instance instance = Compress({{Block(0, 2, 4), Block(1, 3, 3), Block(0, 3, 2), Block(0, 3, 5)}});
  Pile pile(instance, 14);
  pile.Put(0, 0, 7);
  pile.Put(1, 6, 1);
  EXPECT_EQ(pile.Cheapest(2, 20).offset, 4) << "between the two";
  EXPECT_EQ(pile.Cheapest(2, 20).cost, 0);
  EXPECT_EQ(pile.Cheapest(3, 14).offset, 9) << "on top of both";
  EXPECT_EQ(pile.Cheapest(3, 13).offset, 4) << "where only the cheaper one is in the way";
  EXPECT_EQ(pile.Cheapest(3, 13).cost, 1);
  EXPECT_THAT(pile.InTheWay(3, 4), ElementsAre(1));
  EXPECT_THAT(pile.InTheWay(2, 4), IsEmpty());
  pile.Take(0);
  EXPECT_EQ(pile.Cheapest(3, 13).offset, 0);
}

TEST(Pile, ThereMayBeNoPlace) {
  const Instance instance = Compress({{Block(0, 2, 4), Pinned(1, 3, 3, 1)}});
  Pile pile(instance, 14);
  EXPECT_GE(pile.Cheapest(0, 3).cost, Pile::kImmovable) << "too high by itself";
  pile.Put(1, 1, Pile::kImmovable);
  EXPECT_GE(pile.Cheapest(0, 7).cost, Pile::kImmovable);
  EXPECT_EQ(pile.Cheapest(0, 8).offset, 4);
}

TEST(Pile, AgreesWithTryingEveryOffset) {
  RandomProblems random(4);
  int costly = 0;
  for (int round = 0; round < 80; ++round) {
    const Problem problem = random.Make(
        {.buffers = 80, .ticks = 9, .max_size = 8, .cyclic = round % 2 == 1, .aligned = round % 4 >= 2});
    const Instance instance = Compress(problem);
    constexpr int64_t kHeight = 60;
    Pile pile(instance, kHeight * 2 / 3);  // what is above lies on the last shelf
    std::vector<int64_t> cost(instance.buffers());
    const auto in_the_way = [&](int32_t buffer, int64_t offset) {
      std::vector<int32_t> others;
      for (int32_t j = 0; j < instance.buffers(); ++j) {
        if (pile.has(j) && ShareTick(problem, problem.buffers[buffer], problem.buffers[j]) &&
            offset < pile.offset(j) + instance.size[j] && pile.offset(j) < offset + instance.size[buffer])
          others.push_back(j);
      }
      return others;
    };
    for (int32_t i = 0; i < instance.buffers(); ++i) {
      std::optional<int64_t> least;
      for (int64_t offset = 0; offset + instance.size[i] <= kHeight; offset += instance.alignment[i]) {
        int64_t sum = 0;
        for (int32_t j : in_the_way(i, offset)) sum += cost[j];
        least = std::min(least.value_or(sum), sum);
      }
      const Pile::Spot spot = pile.Cheapest(i, kHeight);
      if (!least) {
        EXPECT_GE(spot.cost, Pile::kImmovable);
        continue;
      }
      ASSERT_EQ(spot.cost, *least) << round << ", " << i;
      ASSERT_EQ(spot.offset % instance.alignment[i], 0);
      const std::vector<int32_t> others = in_the_way(i, spot.offset);
      ASSERT_THAT(pile.InTheWay(i, spot.offset), testing::UnorderedElementsAreArray(others));
      for (int32_t j : others) pile.Take(j);
      costly += spot.cost > 0;
      cost[i] = 1 + random.Below(5);
      pile.Put(i, spot.offset, cost[i]);
    }
  }
  EXPECT_GT(costly, 1000);
}

}  // namespace
}  // namespace reprise::planner
