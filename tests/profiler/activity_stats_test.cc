// Where the device's time went is what people look for first: the sums must be those of the activities, and
// what was under way at a moment exactly what had begun and not ended.
#include "profiler/activity_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace reprise::profiler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr FrameId kGemm{1}, kCopyIn{2}, kRange{3}, kAdd{4};

const Activity kFirst = {.track = 7, .name = kGemm, .begin_ns = -50, .duration_ns = 150};
const Activity kSecond = {.track = 7, .name = kGemm, .begin_ns = 100, .duration_ns = 50};
const Activity kOther = {.track = 8, .name = kAdd, .begin_ns = 90, .duration_ns = 20};
const Activity kCopy = {.kind = ActivityKind::kCopy,
                        .track = 8,
                        .name = kCopyIn,
                        .bytes = Bytes(4096),
                        .begin_ns = 120,
                        .duration_ns = 500};
const Activity kMarked = {
    .kind = ActivityKind::kMarker, .track = 1234, .name = kRange, .begin_ns = 0, .duration_ns = 1000};
const std::vector<Activity> kAll = {kMarked, kFirst, kCopy, kSecond, kOther};

TEST(ActivityStats, SumsByKindAndByName) {
  const ActivityStats stats = StatsOf(kAll, 0);
  EXPECT_EQ(stats.by_kind[0], (ActivityTotal{ActivityKind::kKernel, {}, 3, 220, Bytes(0)}));
  EXPECT_EQ(stats.by_kind[1], (ActivityTotal{ActivityKind::kCopy, {}, 1, 500, Bytes(4096)}));
  EXPECT_EQ(stats.by_kind[2].count, 0);
  EXPECT_EQ(stats.by_kind[3].count, 1);
  EXPECT_THAT(stats.by_name, ElementsAre(ActivityTotal{ActivityKind::kCopy, kCopyIn, 1, 500, Bytes(4096)},
                                         ActivityTotal{ActivityKind::kKernel, kGemm, 2, 200, Bytes(0)},
                                         ActivityTotal{ActivityKind::kKernel, kAdd, 1, 20, Bytes(0)}))
      << "most time first, and what the job marked is no work of the device";
}

TEST(ActivityStats, SumsOfAStrangersNumbersEndAtTheLargest) {
  Activity longest = kCopy;
  longest.duration_ns = kMostActivityNs;
  longest.bytes = Bytes(std::numeric_limits<int64_t>::max());
  const ActivityStats stats = StatsOf({longest, longest, longest}, 0);
  EXPECT_EQ(stats.by_name.front().ns, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(stats.by_name.front().bytes, longest.bytes);
}

TEST(ActivityStats, WhatIsUnderWay) {
  EXPECT_THAT(StatsOf(kAll, -51).at, IsEmpty());
  EXPECT_THAT(StatsOf(kAll, -50).at, ElementsAre(kFirst));
  EXPECT_THAT(StatsOf(kAll, 99).at, ElementsAre(kFirst, kMarked, kOther));
  EXPECT_THAT(StatsOf(kAll, 100).at, ElementsAre(kMarked, kOther, kSecond)) << "half-open";
  EXPECT_THAT(StatsOf(kAll, 1000).at, IsEmpty());
  EXPECT_THAT(StatsOf({}, 0).by_name, IsEmpty());
}

}  // namespace
}  // namespace reprise::profiler
