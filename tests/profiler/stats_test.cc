// Why this exists: people decide by these figures whether a job fits. Each is worked out here by hand.
#include "profiler/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace reprise::profiler {
namespace {

using testing::ElementsAre;

Event Alloc(uint64_t id, int64_t bytes) {
  Event event;
  event.kind = EventKind::kAlloc;
  event.id = BlockId{id};
  event.bytes = Bytes(bytes);
  return event;
}

Event Free(uint64_t id) {
  Event event;
  event.kind = EventKind::kFree;
  event.id = BlockId{id};
  return event;
}

Event Mark(uint64_t number) {
  Event event;
  event.kind = EventKind::kMark;
  event.id = BlockId{number};
  return event;
}

TEST(StatsOf, NothingIsNothing) {
  const Stats stats = StatsOf({});
  EXPECT_EQ(stats.events, 0);
  EXPECT_EQ(stats.live_peak, Bytes(0));
  EXPECT_TRUE(stats.histogram.empty());
  EXPECT_TRUE(stats.at_peak.empty());
  EXPECT_FALSE(stats.iteration.has_value());
}

TEST(StatsOf, CountsEventsByKind) {
  const Stats stats = StatsOf({Mark(0), Alloc(0, 10), Alloc(1, 20), Free(0), Mark(1)});
  EXPECT_EQ(stats.events, 5);
  EXPECT_EQ(stats.allocs, 2);
  EXPECT_EQ(stats.frees, 1);
  EXPECT_EQ(stats.marks, 2);
  EXPECT_EQ(stats.allocated, Bytes(30));
  EXPECT_EQ(stats.live_at_end, Bytes(20));
}

TEST(StatsOf, PeakIsWhereItWasReachedFirst) {
  const Stats stats = StatsOf({Alloc(0, 10), Mark(0), Alloc(1, 20), Free(0), Alloc(2, 10), Free(1), Free(2)});
  EXPECT_EQ(stats.live_peak, Bytes(30));
  EXPECT_EQ(stats.peak_at, 2);
}

TEST(StatsOf, SizesAtThePeakMostBytesFirst) {
  const Stats stats =
      StatsOf({Alloc(0, 30), Alloc(1, 7), Free(1), Alloc(2, 20), Alloc(3, 20), Free(0), Free(2)});
  EXPECT_THAT(stats.at_peak, ElementsAre(SizeCount{Bytes(20), 2}, SizeCount{Bytes(30), 1}));
}

TEST(StatsOf, HistogramHasOneClassAPowerOfTwo) {
  const Stats stats = StatsOf({Alloc(0, 1), Alloc(1, 63), Alloc(2, 64), Alloc(3, 127), Alloc(4, 128)});
  ASSERT_EQ(stats.histogram.size(), 4u);
  EXPECT_EQ(stats.histogram[0].from, Bytes(1));
  EXPECT_EQ(stats.histogram[1].from, Bytes(32));
  EXPECT_EQ(stats.histogram[2].from, Bytes(64));
  EXPECT_EQ(stats.histogram[2].blocks, 2);
  EXPECT_EQ(stats.histogram[2].bytes, Bytes(191));
  EXPECT_EQ(stats.histogram[3].from, Bytes(128));
}

// A weight that stays, and rounds of twelve blocks of 1 to 12 pages that are all freed at the end of the
// round.
std::vector<Event> Job(int rounds, int64_t page) {
  std::vector<Event> events = {Alloc(0, 100 * page)};
  uint64_t next = 1;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t first = next;
    for (int64_t pages = 1; pages <= 12; ++pages) events.push_back(Alloc(next++, pages * page));
    for (uint64_t id = first; id < next; ++id) events.push_back(Free(id));
  }
  return events;
}

TEST(StatsOf, FindsTheIterationAndWhatStays) {
  const Stats stats = StatsOf(Job(8, 4096));
  ASSERT_TRUE(stats.iteration.has_value());
  EXPECT_EQ(stats.iteration->tokens, 12);
  EXPECT_EQ(stats.iteration->persistent, Bytes(100 * 4096));
  EXPECT_EQ(stats.iteration->peak, Bytes(178 * 4096));
  EXPECT_EQ(stats.iteration->allocated, Bytes(78 * 4096));
  EXPECT_GT(stats.iterations, 0);
  EXPECT_GT(stats.iteration->first, 0);
}

TEST(StatsOf, SmallBlocksMakeNoIteration) { EXPECT_FALSE(StatsOf(Job(8, 16)).iteration.has_value()); }

}  // namespace
}  // namespace reprise::profiler
