// Why this exists: people decide by these figures whether a job fits. Each is worked out here by hand.
#include "profiler/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using testing::ElementsAre;

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

TEST(StatsOf, SmallBlocksCountInThePeakOfAnIteration) {
  std::vector<Event> events;
  uint64_t next = 0;
  for (int round = 0; round < 8; ++round) {
    const uint64_t first = next;
    for (int64_t pages = 1; pages <= 12; ++pages) events.push_back(Alloc(next++, pages * 4096));
    for (int i = 0; i < 10; ++i) events.push_back(Alloc(next++, 1000));
    for (uint64_t id = first; id < next; ++id) events.push_back(Free(id));
  }
  const Stats stats = StatsOf(events);
  ASSERT_TRUE(stats.iteration.has_value());
  EXPECT_EQ(stats.iteration->peak, Bytes(78 * 4096 + 10 * 1000));
  ASSERT_TRUE(stats.peaks.has_value());
  EXPECT_EQ(stats.peaks->most, stats.iteration->peak);
}

TEST(StatsOf, SmallBlocksMakeNoIteration) { EXPECT_FALSE(StatsOf(Job(8, 16)).iteration.has_value()); }

// Rounds of eight blocks that are freed at the end of each; every round also leaves `left` bytes behind, by a
// block too small to be a token.
std::vector<Event> Rounds(int rounds, int64_t left) {
  std::vector<Event> events;
  uint64_t id = 0;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t first = id;
    for (int k = 1; k <= 8; ++k) events.push_back(Alloc(id++, 4096 * k));
    for (uint64_t k = first; k < first + 8; ++k) events.push_back(Free(k));
    if (left > 0) events.push_back(Alloc(id++, left));
  }
  return events;
}

TEST(StatsOf, WhatEachRoundLeavesIsTheSlope) {
  const Stats stats = StatsOf(Rounds(40, 100));
  ASSERT_TRUE(stats.leak.has_value());
  EXPECT_DOUBLE_EQ(stats.leak->bytes_per_iteration, 100);
  EXPECT_GE(stats.leak->cuts, kLeastCuts);
}

TEST(StatsOf, ASteadyJobLeaksNothing) {
  const Stats stats = StatsOf(Rounds(40, 0));
  ASSERT_TRUE(stats.leak.has_value());
  EXPECT_DOUBLE_EQ(stats.leak->bytes_per_iteration, 0);
}

TEST(StatsOf, ThePeaksOfIterations) {
  const Stats steady = StatsOf(Rounds(40, 0));
  ASSERT_TRUE(steady.peaks.has_value());
  EXPECT_EQ(steady.peaks->least, Bytes(4096 * 36));
  EXPECT_EQ(steady.peaks->most, Bytes(4096 * 36));
  EXPECT_EQ(steady.peaks->rounds, steady.leak->cuts - 1);
  const Stats growing = StatsOf(Rounds(40, 100));
  EXPECT_EQ(growing.peaks->most - growing.peaks->least, Bytes(100 * (growing.peaks->rounds - 1)));
  EXPECT_FALSE(StatsOf(Rounds(1, 0)).peaks.has_value());
}

TEST(StatsOf, WithoutIterationsThereIsNoSlope) { EXPECT_FALSE(StatsOf(Rounds(1, 100)).leak.has_value()); }

TEST(StatsOf, LifetimesInEventsByPowersOfTwo) {
  // 0 lives for 1 event, 1 for 3, 2 for 2; 3 is never freed.
  const Stats stats =
      StatsOf({Alloc(0, 10), Free(0), Alloc(1, 20), Alloc(2, 30), Mark(0), Free(1), Free(2), Alloc(3, 5)});
  EXPECT_FALSE(stats.lifetimes_in_us);
  ASSERT_EQ(stats.lifetimes.size(), 2u);
  EXPECT_EQ(stats.lifetimes[0].from, 1);
  EXPECT_EQ(stats.lifetimes[0].blocks, 1);
  EXPECT_EQ(stats.lifetimes[1].from, 2);
  EXPECT_EQ(stats.lifetimes[1].blocks, 2);
  EXPECT_EQ(stats.lifetimes[1].bytes, Bytes(50));
}

TEST(StatsOf, LifetimesInMicrosecondsWhereThereAreTimes) {
  std::vector<Event> events = {Alloc(0, 10), Free(0)};
  events[1].time_ns = 9'000;
  const Stats stats = StatsOf(events);
  EXPECT_TRUE(stats.lifetimes_in_us);
  ASSERT_EQ(stats.lifetimes.size(), 1u);
  EXPECT_EQ(stats.lifetimes[0].from, 8);
}

TEST(StatsOf, TheFoundIterationNamesAnEventForEachSlot) {
  const std::vector<Event> events = Rounds(40, 0);
  FoundIteration found;
  const Stats stats = StatsOf(events, &found);
  ASSERT_TRUE(stats.iteration.has_value());
  ASSERT_EQ(found.event_of_slot.size(), found.iteration.slots.size());
  for (size_t i = 0; i < found.event_of_slot.size(); ++i) {
    EXPECT_EQ(events[static_cast<size_t>(found.event_of_slot[i])].bytes, found.iteration.slots[i].bytes);
  }
}

TEST(CountLifetime, ClassesStayAscending) {
  std::vector<LifetimeClass> classes;
  for (const int64_t length : {9, 0, 1, 8, 3}) CountLifetime(length, Bytes(1), classes);
  std::vector<int64_t> from;
  for (const LifetimeClass& c : classes) from.push_back(c.from);
  EXPECT_THAT(from, ElementsAre(0, 1, 2, 8));
  EXPECT_EQ(classes[3].blocks, 2);
}

}  // namespace
}  // namespace reprise::profiler
