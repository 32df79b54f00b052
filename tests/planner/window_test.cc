// A window must say about its stretch of time exactly what the whole instance says; else what fits there does
// not fit here.
#include "planner/window.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/stretches.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;

std::vector<Range> RangesOf(const Instance& instance, int32_t buffer) {
  const std::span<const Range> ranges = instance.ranges(buffer);
  return {ranges.begin(), ranges.end()};
}

TEST(Window, NumbersItsSlotsAnew) {
  // Slots:        0      1      2      3      4
  const Problem problem{
      {Block(0, 1, 9), Block(1, 2, 8), Block(1, 4, 7), Block(2, 3, 6), Block(3, 4, 5), Block(4, 5, 4)}};
  const Instance whole = Compress(problem);
  ASSERT_EQ(whole.slots, 5);
  const std::vector<int32_t> free = {1, 3, 4}, pinned = {2};
  const std::vector<int64_t> offsets = {0, 0, 11, 0, 0, 0};
  const Window window = Extract(whole, {1, 4}, free, pinned, offsets);
  EXPECT_THAT(window.buffers, ElementsAre(1, 3, 4, 2));
  EXPECT_EQ(window.instance.slots, 3);
  EXPECT_THAT(window.instance.size, ElementsAre(8, 6, 5, 7));
  EXPECT_THAT(window.instance.pinned,
              ElementsAre(Instance::kFree, Instance::kFree, Instance::kFree, int64_t{11}));
  EXPECT_THAT(RangesOf(window.instance, 0), ElementsAre(Range{0, 1}));
  EXPECT_THAT(RangesOf(window.instance, 3), ElementsAre(Range{0, 3}));
}

TEST(Window, SlotsThatOnlyOthersTellApartAreOne) {
  const Problem problem{{Block(0, 4, 9), Block(0, 1, 1), Block(1, 2, 1), Block(2, 4, 1)}};
  const Instance whole = Compress(problem);
  const std::vector<int32_t> free = {0, 3};
  const Window window = Extract(whole, {0, whole.slots}, free, {}, whole.pinned);
  EXPECT_EQ(window.instance.slots, 1);
}

TEST(Window, CutsPinnedBuffersToItsTime) {
  const Problem problem{{Block(0, 6, 3), Block(1, 2, 4), Block(2, 3, 5), Block(5, 6, 1)}};
  const Instance whole = Compress(problem);
  const std::vector<int32_t> free = {2}, pinned = {0, 1};
  const std::vector<int64_t> offsets = {7, 0, 0, 0};
  const Window window = Extract(whole, {1, 2}, free, pinned, offsets);
  EXPECT_EQ(window.instance.slots, 1);
  EXPECT_THAT(RangesOf(window.instance, 1), ElementsAre(Range{0, 1}));
  EXPECT_TRUE(window.instance.ranges(2).empty()) << "buffer 1 is over when the window begins";
}

TEST(Window, KeepsWhoMeetsWhom) {
  RandomProblems random(41);
  for (int round = 0; round < 300; ++round) {
    const Instance whole = Compress(random.Make({.buffers = 14,
                                                 .ticks = 12,
                                                 .cyclic = round % 2 == 1,
                                                 .pinned = round % 5,
                                                 .gaps = round % 3 == 1,
                                                 .outside = round % 4 == 1}));
    const Stretches stretches(whole, CutWhereQuiet(whole, 2, 4));
    for (int32_t k = 0; k < stretches.count(); ++k) {
      const Window window =
          Extract(whole, stretches.time(k), stretches.inside(k), stretches.across(k), whole.pinned);
      const size_t free = stretches.inside(k).size();
      for (size_t a = 0; a < free; ++a) {
        for (size_t b = 0; b < window.buffers.size(); ++b) {
          ASSERT_EQ(ShareSlot(window.instance.ranges(static_cast<int32_t>(a)),
                              window.instance.ranges(static_cast<int32_t>(b))),
                    ShareSlot(whole.ranges(window.buffers[a]), whole.ranges(window.buffers[b])))
              << round;
        }
      }
    }
  }
}

}  // namespace
}  // namespace reprise::planner
