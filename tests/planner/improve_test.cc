// The improvement must find what no static order finds, never lose what was found, and repeat itself for a
// seed.
#include "planner/improve.h"

#include <atomic>

#include "gtest/gtest.h"
#include "planner/bound.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

TEST(Improve, ReachesTheBoundWhereFirstFitBySizeDoesNot) {
  // By size 0 lies on the floor, and 1 and 2 on top of it; at the bound, 1 and 2 lie at different ends.
  const Problem problem{
      {Block(0, 2, 4), Block(1, 3, 3), Block(2, 4, 3), Block(3, 5, 4), Block(0, 1, 3), Block(4, 5, 3)}};
  const Instance instance = Compress(problem);
  Search search(instance, LowerBound(instance).count(), {.seconds = 60});
  BeginImprove(search, "improve")();
  EXPECT_EQ(search.best_slab(), 7);
}

TEST(Improve, IsDeterministicForASeed) {
  RandomProblems random(3);
  const Instance instance = Compress(random.Make({.buffers = 40, .ticks = 30, .max_size = 100}));
  std::vector<std::vector<int64_t>> runs;
  for (int run = 0; run < 2; ++run) {
    Search search(instance, 0, {.seconds = 3600, .seed = 5});
    BeginImprove(search, "improve")();
    runs.push_back(search.best());
  }
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(Improve, KeepsABetterPlacementThatIsThere) {
  const Instance instance = Compress({{Block(0, 2, 4), Block(1, 3, 3)}});
  Search search(instance, 0, {.seconds = 3600});
  search.Offer(std::vector<int64_t>{3, 0}, "given", std::vector<int32_t>{1, 0});
  BeginImprove(search, "improve")();
  EXPECT_EQ(search.best_solver(), "given");
}

TEST(Improve, OffersNothingWhenCancelledBeforeTheFirstPlacement) {
  RandomProblems random(3);
  const Instance instance = Compress(random.Make({.buffers = 400, .ticks = 30}));
  const std::atomic<bool> cancel = true;
  Search search(instance, 0, {.cancel = &cancel});
  BeginImprove(search, "improve")();
  EXPECT_EQ(search.best_slab(), Search::kNothing);
}

}  // namespace
}  // namespace reprise::planner
