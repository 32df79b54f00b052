// A part must have exactly the overlaps that its buffers have in the whole.
#include "planner/part.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

bool ShareASlot(const Instance& instance, int32_t a, int32_t b) {
  for (const Range& x : instance.ranges(a)) {
    for (const Range& y : instance.ranges(b)) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

TEST(PartOf, JoinsSlotsThatOnlyOthersTellApart) {
  const Instance whole = Compress({{Block(0, 9, 5), Block(1, 2, 1), Block(3, 4, 1), Block(5, 9, 7)}});
  EXPECT_EQ(whole.slots, 3);
  const std::vector<int32_t> buffers = {0, 3};
  const Part part = PartOf(whole, buffers, std::vector<int64_t>{Instance::kFree, 11});
  EXPECT_EQ(part.buffers, buffers);
  EXPECT_EQ(part.instance.slots, 1);
  EXPECT_EQ(part.instance.size, (std::vector<int64_t>{5, 7}));
  EXPECT_TRUE(part.instance.is_free(0));
  EXPECT_EQ(part.instance.pinned[1], 11);
}

TEST(PartOf, NoBuffers) {
  EXPECT_EQ(PartOf(Compress({}), {}, {}).instance.buffers(), 0);
  EXPECT_EQ(PartOf(Compress({{Block(0, 1, 1)}}), {}, {}).instance.buffers(), 0);
}

TEST(PartOf, KeepsAllOverlapsAndMakesNone) {
  RandomProblems random(5);
  for (int round = 0; round < 400; ++round) {
    const Instance whole = Compress(random.Make({.buffers = 1 + static_cast<int>(random.Below(20)),
                                                 .ticks = 1 + random.Below(20),
                                                 .cyclic = (round & 1) != 0,
                                                 .gaps = (round & 2) != 0}));
    std::vector<int32_t> buffers;
    for (int32_t i = 0; i < whole.buffers(); ++i) {
      if (random.Below(2) == 0) buffers.push_back(i);
    }
    const Part part = PartOf(whole, buffers, std::vector<int64_t>(buffers.size(), Instance::kFree));
    ASSERT_LE(part.instance.slots, std::max(whole.slots, 1));
    for (int32_t i = 0; i < part.instance.buffers(); ++i) {
      ASSERT_GT(part.instance.length(i), 0);
      ASSERT_LE(part.instance.end[i] - part.instance.slots, part.instance.begin[i]) << "laps itself";
      for (int32_t k = 0; k < i; ++k) {
        ASSERT_EQ(ShareASlot(part.instance, i, k), ShareASlot(whole, buffers[i], buffers[k])) << round;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::planner
