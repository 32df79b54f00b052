// When to stop, and what to keep: every solver relies on it to be anytime and cancellable.
#include "planner/search.h"

#include <atomic>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/first_fit.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;

TEST(SlabOf, IsTheHighestEndOfAFreeBuffer) {
  const Instance instance = Compress({{Block(0, 1, 5), Pinned(0, 1, 5, 90), Block(1, 2, 9)}});
  EXPECT_EQ(SlabOf(instance, std::vector<int64_t>{6, 90, 1}), 11);
}

TEST(Search, KeepsTheBest) {
  const Instance instance = Compress({{Block(0, 1, 5), Block(0, 1, 3)}});
  Search search(instance, 8, {});
  const std::vector<int32_t> order = {1, 0};
  EXPECT_EQ(search.best_slab(), Search::kNothing);
  search.Offer(std::vector<int64_t>{4, 0}, "first", order);
  search.Offer(std::vector<int64_t>{0, 6}, "equal", order);
  EXPECT_EQ(search.best_slab(), 9);
  EXPECT_EQ(search.best_solver(), "first");
  EXPECT_THAT(search.best(), ElementsAre(4, 0));
  EXPECT_THAT(search.best_order(), ElementsAre(1, 0));
  EXPECT_FALSE(search.Stop());
  search.Offer(std::vector<int64_t>{3, 0}, "better", order);
  EXPECT_TRUE(search.Stop()) << "at the target";
}

TEST(Search, TimeAloneStopsOnlyOnceThereIsAPlacement) {
  const Instance instance = Compress({{Block(0, 1, 5)}});
  Search search(instance, 5, {.seconds = 0});
  EXPECT_FALSE(search.Stop());
  search.Offer(std::vector<int64_t>{1}, "one", std::vector<int32_t>{0});
  EXPECT_TRUE(search.Stop());
}

TEST(Search, CancelStopsAtOnce) {
  const Instance instance = Compress({{Block(0, 1, 5)}});
  std::atomic<bool> cancel = false;
  Search search(instance, 5, {.cancel = &cancel});
  EXPECT_FALSE(search.Stop());
  cancel = true;
  EXPECT_TRUE(search.Stop());
}

TEST(Search, APartSpendsTheStepsOfTheWhole) {
  const Instance instance = Compress({{Block(0, 1, 5), Block(1, 2, 3)}});
  const Instance half = Compress({{Block(0, 1, 5)}});
  Search whole(instance, 1, {.seconds = 3600, .steps = 100});
  Search part(half, 1, whole);
  EXPECT_FALSE(part.Stop(200)) << "neither has a placement";
  EXPECT_EQ(whole.steps(), 200);
  part.Offer(std::vector<int64_t>{7}, "part");
  EXPECT_TRUE(part.Stop());
  EXPECT_FALSE(whole.Stop()) << "what the part found is not the whole's";
  whole.Offer(std::vector<int64_t>{7, 0}, "whole");
  EXPECT_TRUE(Search(half, 1, whole).Stop()) << "nothing waits for this part";
}

TEST(Search, APartStopsWithWhatTheWholeWasGranted) {
  const Instance instance = Compress({{Block(0, 1, 5)}});
  Search whole(instance, 1, {.seconds = 3600});
  whole.Offer(std::vector<int64_t>{7}, "whole");
  whole.Grant(10);
  Search part(instance, 1, whole);
  EXPECT_FALSE(part.Stop(5));
  EXPECT_TRUE(part.Stop(5));
  EXPECT_FALSE(whole.Over());
}

TEST(Search, TheOrderOfOffsetsStandsInForNone) {
  const Instance instance = Compress({{Block(0, 1, 5), Block(0, 1, 3)}});
  Search search(instance, 0, {});
  search.Offer(std::vector<int64_t>{3, 0}, "one");
  EXPECT_THAT(search.best_order(), ElementsAre(1, 0));
}

TEST(InOrderOfOffsets, FirstFitInThisOrderGoesNoHigher) {
  RandomProblems random(23);
  for (int round = 0; round < 200; ++round) {
    const Problem problem = random.Make(
        {.buffers = 12, .cyclic = round % 2 == 1, .aligned = round % 3 == 1, .pinned = round % 4});
    const Instance instance = Compress(problem);
    Search search(instance, 0, {});
    FirstFit first_fit(instance);
    std::vector<int32_t> order = InOrderOfOffsets(instance, instance.pinned);
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(random.Below(static_cast<int64_t>(i)))]);
    }
    std::vector<int64_t> before, after;
    first_fit.Place(order, Search::kNothing, search, before);
    first_fit.Place(InOrderOfOffsets(instance, before), Search::kNothing, search, after);
    for (int i = 0; i < instance.buffers(); ++i) ASSERT_LE(after[i], before[i]);
  }
}

}  // namespace
}  // namespace reprise::planner
