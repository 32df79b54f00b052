// Why: this is the occupancy check (law 1). Whatever order blocks come and go in, live blocks must tile with
// free ranges, and a range that is taken must not be handed out.
#include "replay/ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace reprise::replay {
namespace {

constexpr bool kBelow = true;
constexpr bool kAbove = true;

TEST(Ranges, TakesWhereAskedOnlyIfFree) {
  Ranges ranges(0, 100);
  const Ranges::Index block = ranges.TakeAt(10, 20);
  ASSERT_NE(block, Ranges::kNone);
  EXPECT_EQ(ranges[block].begin, 10u);
  EXPECT_EQ(ranges.TakeAt(10, 20), Ranges::kNone);
  EXPECT_EQ(ranges.TakeAt(5, 6), Ranges::kNone) << "reaches into the block";
  EXPECT_EQ(ranges.TakeAt(29, 1), Ranges::kNone) << "the block's last unit";
  EXPECT_NE(ranges.TakeAt(5, 5), Ranges::kNone);
  EXPECT_NE(ranges.TakeAt(30, 70), Ranges::kNone);
  EXPECT_TRUE(ranges.Consistent());
}

TEST(Ranges, RefusesPastTheEnd) {
  Ranges ranges(0, 100);
  EXPECT_EQ(ranges.TakeAt(90, 11), Ranges::kNone);
  EXPECT_EQ(ranges.TakeBest(101, 1, kBelow, kAbove), Ranges::kNone);
}

TEST(Ranges, BestFitTakesTheSmallestHole) {
  Ranges ranges(0, 1000);
  const auto a = ranges.TakeAt(0, 100);
  ranges.TakeAt(100, 1);
  const auto b = ranges.TakeAt(101, 40);
  ranges.TakeAt(141, 1);
  ranges.Release(a);
  ranges.Release(b);
  EXPECT_EQ(ranges[ranges.TakeBest(39, 1, kBelow, kAbove)].begin, 101u);
  EXPECT_EQ(ranges[ranges.TakeBest(41, 1, kBelow, kAbove)].begin, 0u);
}

TEST(Ranges, MergesWithBothNeighbours) {
  Ranges ranges(0, 100);
  const auto a = ranges.TakeAt(0, 30);
  const auto b = ranges.TakeAt(30, 30);
  const auto c = ranges.TakeAt(60, 40);
  ranges.Release(a);
  ranges.Release(c);
  ranges.Release(b);
  EXPECT_TRUE(ranges.Consistent());
  EXPECT_NE(ranges.TakeBest(100, 1, kBelow, kAbove), Ranges::kNone);
}

TEST(Ranges, TellsWhatLiesBelow) {
  for (const bool tracked : {false, true}) {
    Ranges ranges(10, 1000);
    ranges.SetBarrier(500);
    ranges.TakeAt(100, 50);
    ranges.TakeAt(150, 50);
    if (tracked)
      ranges.TakeBest(400, 1, kBelow, kAbove);  // above, but the free ranges below are on record now
    const auto below = [&](uint32_t unit) {
      const Ranges::Run run = ranges.RunBelow(unit);
      return std::pair(run.begin, run.free);
    };
    EXPECT_EQ(below(500), std::pair(200u, true));
    EXPECT_EQ(below(300), std::pair(200u, true));
    EXPECT_EQ(below(200), std::pair(150u, false));
    EXPECT_EQ(below(151), std::pair(150u, false)) << "in a block";
    EXPECT_EQ(below(150), std::pair(100u, false));
    EXPECT_EQ(below(100), std::pair(10u, true));
    EXPECT_EQ(below(11), std::pair(10u, true));
  }
}

TEST(Ranges, AlignsWithinAHole) {
  Ranges ranges(0, 1000);
  ranges.TakeAt(0, 3);
  EXPECT_EQ(ranges[ranges.TakeBest(8, 16, kBelow, kAbove)].begin, 16u);
  EXPECT_TRUE(ranges.Consistent());
}

TEST(Ranges, FindsOnlyTheBeginOfALiveBlock) {
  Ranges ranges(0, 100);
  const auto block = ranges.TakeAt(10, 20);
  EXPECT_EQ(ranges.FindLive(10), block);
  EXPECT_EQ(ranges.FindLive(11), Ranges::kNone);
  EXPECT_EQ(ranges.FindLive(0), Ranges::kNone) << "a free range";
  ranges.Release(block);
  EXPECT_EQ(ranges.FindLive(10), Ranges::kNone);
}

TEST(Ranges, BarrierSeparatesTheGroups) {
  Ranges ranges(0, 100);
  ranges.SetBarrier(50);
  EXPECT_EQ(ranges[ranges.TakeBest(10, 1, false, kAbove)].begin, 50u);
  EXPECT_EQ(ranges[ranges.TakeBest(10, 1, kBelow, false)].begin, 0u);
  EXPECT_EQ(ranges.TakeBest(50, 1, kBelow, kAbove), Ranges::kNone) << "no free range spans the barrier";
  EXPECT_TRUE(ranges.Consistent());
  ranges.SetBarrier(0);
  EXPECT_TRUE(ranges.Consistent());
}

TEST(Ranges, TheBarrierMovesUpToTheEndOfABlockThatSpansIt) {
  Ranges ranges(0, 100);
  const auto block = ranges.TakeAt(40, 20);
  ranges.SetBarrier(50);
  EXPECT_EQ(ranges.barrier(), 60u);
  ranges.Release(block);
  EXPECT_TRUE(ranges.Consistent());
  EXPECT_NE(ranges.TakeAt(40, 20), Ranges::kNone);
}

TEST(Ranges, BelowTheBarrierOccupancyHoldsWithoutFreeRangesOnRecord) {
  Ranges ranges(0, 200);
  const auto old = ranges.TakeAt(10, 20);
  ranges.SetBarrier(100);
  EXPECT_EQ(ranges.TakeAt(29, 5), Ranges::kNone) << "the last unit of a block from before";
  EXPECT_EQ(ranges.TakeAt(5, 6), Ranges::kNone) << "its first";
  EXPECT_EQ(ranges.TakeAt(0, 50), Ranges::kNone) << "around it";
  EXPECT_EQ(ranges.TakeAt(95, 6), Ranges::kNone) << "across the barrier";
  EXPECT_NE(ranges.TakeAt(30, 70), Ranges::kNone);
  ranges.Release(old);
  EXPECT_NE(ranges.TakeAt(0, 30), Ranges::kNone);
  EXPECT_TRUE(ranges.Consistent());
}

TEST(Ranges, BestFitBelowTheBarrierSeesTheGapsAndPlannedPlacesStayRight) {
  Ranges ranges(0, 200);
  ranges.SetBarrier(100);
  ranges.TakeAt(20, 30);
  EXPECT_EQ(ranges[ranges.TakeBest(15, 1, kBelow, false)].begin, 0u);
  EXPECT_EQ(ranges.TakeAt(10, 10), Ranges::kNone);
  EXPECT_NE(ranges.TakeAt(15, 5), Ranges::kNone);
  EXPECT_TRUE(ranges.Consistent());
}

TEST(Ranges, RandomTakesAndReleasesNeverOverlap) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    std::mt19937_64 random(seed);
    constexpr uint32_t kUnits = 5000;
    Ranges ranges(0, kUnits);
    std::vector<bool> used(kUnits, false);
    std::vector<Ranges::Index> live;
    for (int step = 0; step < 20'000; ++step) {
      const auto draw = random() % 100;
      Ranges::Index block = Ranges::kNone;
      if (draw < 25) {
        block = ranges.TakeAt(random() % kUnits, 1 + random() % 200);
      } else if (draw < 50) {
        const uint32_t align = 1u << (random() % 6);
        block = ranges.TakeBest(1 + random() % 200, align, random() % 2 == 0, random() % 2 == 0);
        if (block != Ranges::kNone) {
          ASSERT_EQ(ranges[block].begin % align, 0u);
        }
      } else if (draw < 99) {
        if (live.empty()) continue;
        std::swap(live[random() % live.size()], live.back());
        const Ranges::Range gone = ranges[live.back()];
        for (uint32_t u = gone.begin; u < gone.end(); ++u) used[u] = false;
        ranges.Release(live.back());
        live.pop_back();
      } else {
        ranges.SetBarrier(random() % kUnits);
      }
      if (block != Ranges::kNone) {
        for (uint32_t u = ranges[block].begin; u < ranges[block].end(); ++u) {
          ASSERT_FALSE(used[u]);
          used[u] = true;
        }
        live.push_back(block);
      }
      if (step % 100 == 0) {
        ASSERT_TRUE(ranges.Consistent());
      }
    }
  }
}

}  // namespace
}  // namespace reprise::replay
