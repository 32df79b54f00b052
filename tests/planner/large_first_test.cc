// The large buffers decide; the small ones must find room around them, whatever features a problem has.
#include "planner/large_first.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "planner/eject.h"
#include "planner/first_fit.h"
#include "planner/orders.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

Budget Steps(int64_t steps) {
  Budget budget{.seconds = 3600, .steps = steps};
  budget.rules.SwitchOff(kEjectLargeFirst);  // once is enough
  return budget;
}

Placement PlacementOf(const Search& search) {
  Placement placement;
  for (int64_t offset : search.best()) placement.offsets.emplace_back(offset);
  placement.slab = Bytes(search.best_slab());
  return placement;
}

// Of a solver that finds nothing: how often it was asked, and about which sizes.
int turns;
std::vector<int64_t> sizes;

Turn CountTurns(Search& search, std::string_view) {
  sizes = search.instance().size;
  return [] {
    ++turns;
    return false;
  };
}

// Of a solver that finds nothing: the best slab when it is asked.
int64_t known;

Turn AskWhatIsKnown(Search& search, std::string_view) {
  return [&search] {
    known = search.best_slab();
    return false;
  };
}

TEST(LargeFirst, TheLargeOnesAreFourFifthsOfTheArea) {
  Problem problem{.period = 10};
  for (int i = 0; i < 4; ++i) problem.buffers.push_back(Block(5, 15, 20));
  for (int i = 0; i < 8; ++i) problem.buffers.push_back(Block(i, i + 5, 3));
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), Steps(1000));
  turns = 0;
  EXPECT_FALSE(BeginLargeFirst(search, "tested", CountTurns)());
  EXPECT_EQ(turns, 1);
  EXPECT_EQ(sizes, (std::vector<int64_t>{20, 20, 20, 20}));
  EXPECT_EQ(search.best_slab(), Search::kNothing) << "nobody placed the large ones";
}

TEST(LargeFirst, HasNothingToOfferWhereAllAreAlike) {
  Problem problem{.period = 10};
  for (int i = 0; i < 9; ++i) problem.buffers.push_back(Block(i, i + 5, 5));
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), Steps(1000));
  turns = 0;
  EXPECT_FALSE(BeginLargeFirst(search, "tested", CountTurns)());
  EXPECT_EQ(turns, 0);
}

TEST(LargeFirst, PlacesProblemsOfEveryKind) {
  RandomProblems random(41);
  for (int round = 0; round < 100; ++round) {
    Problem problem = random.Make({.buffers = 60,
                                   .ticks = 40,
                                   .max_size = 8,
                                   .cyclic = true,
                                   .aligned = (round & 1) != 0,
                                   .pinned = (round & 2) != 0 ? 5 : 0,
                                   .gaps = (round & 4) != 0,
                                   .outside = (round & 8) != 0});
    for (int i = 0; i < 5; ++i) {
      const int64_t lower = random.Below(40);
      problem.buffers.push_back(Block(lower, lower + 10 + random.Below(20), 400));
    }
    const Instance instance = Compress(problem);
    Search search(instance, LowerBound(instance).count(), Steps(20'000));
    const Turn turn = BeginLargeFirst(search, "tested", BeginEject);
    while (!search.Over() && turn()) {
    }
    ASSERT_NE(search.best_slab(), Search::kNothing) << round;
    ASSERT_TRUE(CheckPlacement(problem, PlacementOf(search)).ok())
        << round << CheckPlacement(problem, PlacementOf(search));
  }
}

Problem FewLargeManySmall(uint64_t seed, int large = 150) {
  RandomProblems random(seed);
  Problem problem = random.Make({.buffers = 400, .ticks = 100, .max_size = 30, .cyclic = true});
  for (int i = 0; i < large; ++i) {
    const int64_t lower = random.Below(100);
    problem.buffers.push_back(Block(lower, lower + 10 + random.Below(30), 300 + random.Below(300)));
  }
  return problem;
}

TEST(LargeFirst, BeginsFromNothingWhateverIsBest) {
  const Instance instance = Compress(FewLargeManySmall(47));
  Search search(instance, LowerBound(instance).count(), Steps(1'000'000));
  std::vector<int64_t> offsets;
  FirstFit(instance).Place(SortedBy(Order::kLifetime, instance), Search::kNothing, search, offsets);
  search.Offer(offsets, "first");
  known = 0;
  BeginLargeFirst(search, "tested", AskWhatIsKnown)();
  EXPECT_EQ(known, Search::kNothing);
}

// Ejection that tells how high the large ones came out, turn by turn.
std::vector<int64_t> slabs;

Turn EjectAndTell(Search& search, std::string_view name) {
  return [&search, turn = BeginEject(search, name)] {
    const bool more = turn();
    slabs.push_back(search.best_slab());
    return more;
  };
}

TEST(LargeFirst, LowersTheLargeOnes) {
  const Problem problem = FewLargeManySmall(47, 600);
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), Steps(1'000'000));
  slabs.clear();
  const Turn turn = BeginLargeFirst(search, "tested", EjectAndTell);
  while (!search.Over() && turn()) {
  }
  ASSERT_GT(slabs.size(), 1U);
  EXPECT_LT(slabs.back(), slabs.front() * 99 / 100);
  EXPECT_TRUE(CheckPlacement(problem, PlacementOf(search)).ok());
}

// First-fit that takes all that it was granted.
Turn PlaceAndTakeAll(Search& search, std::string_view name) {
  return [&search, name] {
    std::vector<int64_t> offsets;
    FirstFit(search.instance())
        .Place(SortedBy(Order::kSize, search.instance()), Search::kNothing, search, offsets);
    search.Offer(offsets, name);
    search.Stop(search.granted());
    return false;
  };
}

TEST(LargeFirst, ATurnThatEndsBeforeTheSmallOnesLieIsGoneOnWith) {
  const Instance instance = Compress(FewLargeManySmall(47));
  Search search(instance, 1, Steps(Search::kNothing));
  std::vector<int64_t> offsets;
  FirstFit(instance).Place(SortedBy(Order::kLifetime, instance), Search::kNothing, search, offsets);
  search.Offer(offsets, "first");  // from here on a search may stop
  const Turn turn = BeginLargeFirst(search, "tested", PlaceAndTakeAll);
  search.Grant(1000);
  EXPECT_TRUE(turn());
  EXPECT_EQ(search.best_solver(), "first");
  search.Grant(Search::kNothing);
  EXPECT_FALSE(turn());
  EXPECT_EQ(search.best_solver(), "tested");
}

TEST(LargeFirst, LeavesAfterAFewMovesOfEachLargeOne) {
  const Instance instance = Compress(FewLargeManySmall(43));
  Search search(instance, 1, Steps(Search::kNothing));  // out of reach
  const Turn turn = BeginLargeFirst(search, "tested", BeginEject);
  while (turn()) {
  }
  EXPECT_NE(search.best_slab(), Search::kNothing);
  EXPECT_LT(search.steps(), 200'000);
}

}  // namespace
}  // namespace reprise::planner
