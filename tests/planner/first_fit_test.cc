// First-fit must give each buffer the lowest offset there is, in the order it was told; the tree is only
// there to find it fast. Compared with a search through all earlier buffers.
#include "planner/first_fit.h"

#include <algorithm>
#include <bitset>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/orders.h"
#include "planner/validator.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;

std::vector<int64_t> PlaceFree(const Instance& instance, const std::vector<int32_t>& order) {
  Search search(instance, 0, {});
  std::vector<int64_t> offsets;
  EXPECT_EQ(FirstFit(instance).Place(order, Search::kNothing, search, offsets), FirstFit::Outcome::kComplete);
  return offsets;
}

std::vector<int64_t> PlaceAll(const Problem& problem, const std::vector<int32_t>& order) {
  return PlaceFree(Compress(problem), order);
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

// By what is taken in each slot, for problems too large for the search above.
std::vector<int64_t> PlaceBySlots(const Instance& instance, const std::vector<int32_t>& order) {
  constexpr size_t kHeight = 1 << 13;
  std::vector<int64_t> offsets = instance.pinned;
  std::vector<std::bitset<kHeight>> taken(instance.slots);
  const auto take = [&](int32_t i) {
    for (const Range& range : instance.ranges(i)) {
      for (int32_t slot = range.begin; slot < range.end; ++slot) {
        for (int64_t byte = 0; byte < instance.size[i]; ++byte) taken[slot].set(offsets[i] + byte);
      }
    }
  };
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_pinned(i)) take(i);
  }
  for (int32_t i : order) {
    std::bitset<kHeight> blocked;
    for (const Range& range : instance.ranges(i)) {
      for (int32_t slot = range.begin; slot < range.end; ++slot) blocked |= taken[slot];
    }
    const auto is_free = [&](int64_t offset) {
      for (int64_t byte = offset; byte < offset + instance.size[i]; ++byte) {
        if (blocked[byte]) return false;
      }
      return true;
    };
    int64_t offset = 0;
    while (!is_free(offset)) offset += instance.alignment[i];
    offsets[i] = offset;
    take(i);
  }
  return offsets;
}

// Most lifetimes short: many slots, without all of them being in use together.
Problem MostlyShort(RandomProblems& random, const RandomShape& shape) {
  Problem problem = random.Make(shape);
  for (Buffer& buffer : problem.buffers) {
    const Tick short_end = buffer.lower + 1 + random.Below(20);
    if (random.Below(20) != 0 && short_end < buffer.upper && buffer.gaps.empty()) buffer.upper = short_end;
  }
  return problem;
}

TEST(FirstFit, AgreesWithWhatIsTakenInEachSlot) {
  RandomProblems random(12);
  for (int round = 0; round < 10; ++round) {
    // Three levels of nodes, words that end early because many begin and end there, and anything between.
    const bool long_one = round % 5 == 0;
    const RandomShape shape{.buffers = long_one ? 6000 : 700,
                            .ticks = long_one ? 8000 : 1 + random.Below(round % 5 == 1 ? 20 : 1500),
                            .max_size = 5,
                            .cyclic = round % 2 == 1,
                            .aligned = round % 3 == 1,
                            .pinned = round % 5,
                            .gaps = round % 4 == 2 && !long_one};
    const Instance instance = Compress(MostlyShort(random, shape));
    const std::vector<int32_t> order =
        SortedBy(round % 2 == 0 ? Order::kLifetime : Order::kCrowdSize, instance);
    ASSERT_EQ(PlaceFree(instance, order), PlaceBySlots(instance, order)) << round;
  }
}

// `pinned` obstacles, told out of order, with holes of at most 2 * `hole` bytes, and as many larger buffers.
Problem AmongObstacles(RandomProblems& random, int pinned, int64_t hole) {
  Problem problem;
  for (int i = 0; i < pinned; ++i) {
    const int64_t k = int64_t{i} * 7 % pinned;
    problem.buffers.push_back(Pinned(0, 2 * pinned, 100 + random.Below(hole), k * (100 + 2 * hole)));
  }
  for (int i = 0; i < pinned; ++i) {
    const int64_t lower = random.Below(pinned);
    problem.buffers.push_back(
        Block(lower, lower + 1 + random.Below(pinned), 2 * hole + 1 + random.Below(hole)));
  }
  return problem;
}

// Walking through all of them for each buffer is quadratic.
TEST(FirstFit, GivesUpHolesThatAreTooManyAndTooSmall) {
  RandomProblems random(13);
  const Problem problem = AmongObstacles(random, 5000, 50);
  const Instance instance = Compress(problem);
  FirstFit first_fit(instance);
  first_fit.Clear();
  Placement placement;
  placement.offsets.resize(problem.buffers.size(), Offset(0));
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].pinned) placement.offsets[i] = *problem.buffers[i].pinned;
  }
  for (const int32_t buffer : SortedBy(Order::kSize, instance)) {
    const int64_t offset = first_fit.LowestFree(buffer);
    first_fit.Insert(buffer, offset);
    placement.offsets[buffer] = Offset(offset);
    placement.slab = std::max(placement.slab, Bytes(offset) + problem.buffers[buffer].size);
  }
  const absl::Status valid = CheckPlacement(problem, placement);
  EXPECT_TRUE(valid.ok()) << valid;
  EXPECT_GT(first_fit.resorts(), 2000) << "once what all may look at together is used up";
  EXPECT_LE(first_fit.resorts(), 2 * 5000);
}

// Above each other with room between that no offset is in: nothing is pinned here.
TEST(FirstFit, GivesUpHolesThatAreOutOfAlignment) {
  constexpr int kBuffers = 5000;
  Problem problem;
  for (int i = 0; i < kBuffers; ++i) problem.buffers.push_back(Block(i, 2 * kBuffers, i % 2 == 0 ? 6 : 3, 8));
  const Instance instance = Compress(problem);
  FirstFit first_fit(instance);
  first_fit.Clear();
  int64_t top = 0;
  for (const int32_t buffer : SortedBy(Order::kSize, instance)) {
    const int64_t offset = first_fit.LowestFree(buffer);
    EXPECT_EQ(offset, top) << "above all others, as the lowest is";
    first_fit.Insert(buffer, offset);
    top = offset + 8;
  }
  EXPECT_GT(first_fit.resorts(), 0);
}

// Each run puts the pinned buffers back: where nearly all are, that is nearly all of its work.
TEST(FirstFit, WhatIsPinnedIsWorkToo) {
  constexpr int kPinned = 1000;
  Problem problem{.buffers = {Block(0, 2, 8)}};
  for (int i = 0; i < kPinned; ++i) problem.buffers.push_back(Pinned(i % 2, 2, 4, 8 * i));
  const Instance instance = Compress(problem);
  Search search(instance, 0, {});
  FirstFit first_fit(instance);
  const std::vector<int32_t> order = {0};
  std::vector<int64_t> offsets;
  for (int run = 1; run <= 3; ++run) {
    ASSERT_EQ(first_fit.Place(order, Search::kNothing, search, offsets), FirstFit::Outcome::kComplete);
    EXPECT_GE(search.steps(), run * kPinned);
  }
}

}  // namespace
}  // namespace reprise::planner
