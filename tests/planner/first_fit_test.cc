// First-fit must give each buffer the lowest offset there is, in the order it was told; the tree is only
// there to find it fast. Compared with a search through all earlier buffers.
#include "planner/first_fit.h"

#include <algorithm>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/orders.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;

std::vector<int64_t> PlaceAll(const Problem& problem, const std::vector<int32_t>& order) {
  const Instance instance = Compress(problem);
  Search search(instance, 0, {});
  std::vector<int64_t> offsets;
  EXPECT_EQ(FirstFit(instance).Place(order, Search::kNothing, search, offsets), FirstFit::Outcome::kComplete);
  return offsets;
}

TEST(FirstFit, TakesTheLowestHoleThatIsFreeAllTheTime) {
  const Problem problem{{Block(0, 2, 4), Block(1, 4, 2), Block(3, 6, 3), Block(0, 6, 1), Block(2, 3, 4)}};
  EXPECT_THAT(PlaceAll(problem, {0, 1, 2, 3, 4}), ElementsAre(0, 4, 0, 6, 0));
}

TEST(FirstFit, OneBufferAndNone) {
  EXPECT_THAT(PlaceAll({{Block(5, 6, 7)}}, {0}), ElementsAre(0));
  EXPECT_THAT(PlaceAll({}, {}), ElementsAre());
}

TEST(FirstFit, AlignsAndLeapsPinnedBuffers) {
  const Problem problem{{Pinned(0, 9, 3, 5), Block(0, 2, 4, 8), Block(0, 2, 5), Block(8, 9, 6, 4)}};
  EXPECT_THAT(PlaceAll(problem, {1, 2, 3}), ElementsAre(5, 0, 8, 8));
}

TEST(FirstFit, WrappedLifetimesMeetBothEndsOfTheCycle) {
  const Problem problem{{Block(8, 12, 4), Block(1, 3, 4), Block(7, 9, 4), Block(4, 6, 4), Block(4, 14, 1)},
                        10};
  EXPECT_THAT(PlaceAll(problem, {0, 1, 2, 3, 4}), ElementsAre(0, 4, 4, 0, 8));
}

TEST(FirstFit, SaysWhichBufferWentAboveTheLimit) {
  const Instance instance = Compress({{Block(0, 2, 4), Block(1, 3, 4), Block(2, 4, 5)}});
  Search search(instance, 0, {});
  FirstFit first_fit(instance);
  std::vector<int64_t> offsets;
  const std::vector<int32_t> order = {0, 1, 2};
  EXPECT_EQ(first_fit.Place(order, 7, search, offsets), FirstFit::Outcome::kTooHigh);
  EXPECT_EQ(first_fit.too_high(), 1);
  EXPECT_EQ(first_fit.Place(order, 9, search, offsets), FirstFit::Outcome::kTooHigh)
      << "the tree starts anew";
  EXPECT_EQ(first_fit.too_high(), 2);
}

std::vector<int64_t> PlacePlainly(const Problem& problem, const std::vector<int32_t>& order) {
  std::vector<int64_t> offsets(problem.buffers.size(), -1);
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (problem.buffers[i].pinned) offsets[i] = problem.buffers[i].pinned->count();
  }
  for (int32_t i : order) {
    const Buffer& buffer = problem.buffers[i];
    const auto blocked = [&](int64_t offset) {
      for (size_t k = 0; k < offsets.size(); ++k) {
        const Buffer& other = problem.buffers[k];
        if (offsets[k] >= 0 && ShareTick(problem, buffer, other) &&
            ShareBytes(buffer, Offset(offset), other, Offset(offsets[k]))) {
          return true;
        }
      }
      return false;
    };
    int64_t offset = 0;
    while (blocked(offset)) offset += buffer.alignment.count();
    offsets[i] = offset;
  }
  return offsets;
}

TEST(FirstFit, AgreesWithASearchThroughAllEarlierBuffers) {
  RandomProblems random(11);
  for (int round = 0; round < 400; ++round) {
    const Problem problem = random.Make({.buffers = 25,
                                         .ticks = 1 + random.Below(30),
                                         .cyclic = round % 2 == 1,
                                         .aligned = round % 3 == 1,
                                         .pinned = round % 5});
    const Instance instance = Compress(problem);
    for (Order order : {Order::kSize, Order::kLifetime, Order::kCrowdSize}) {
      const std::vector<int32_t> sorted = SortedBy(order, instance);
      ASSERT_EQ(PlaceAll(problem, sorted), PlacePlainly(problem, sorted)) << round;
    }
  }
}

}  // namespace
}  // namespace reprise::planner
