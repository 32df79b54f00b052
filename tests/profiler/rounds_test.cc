// The peak of an iteration, its leak and the events that name its slots come from here: each round's bounds are
// worked out by hand, with what lies before, between and after the tokens.
#include "profiler/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kPage = 4096;

// Two tokens a round, the cut of one page.
Iteration OfTwo(int64_t origin) {
  return {
      .period = 2, .slots = {{.bytes = Bytes(kPage)}, {.bytes = Bytes(2 * kPage)}}, .origin = Tick(origin)};
}

// A round of two tokens, of which the second is freed with a small block beside it.
void AddRound(uint64_t first, std::vector<Event>& events) {
  events.push_back(Alloc(first, kPage));
  events.push_back(Alloc(first + 1, 2 * kPage));
  events.push_back(Alloc(first + 2, 100));
  for (uint64_t id = first; id < first + 3; ++id) events.push_back(Free(id));
}

TEST(RoundsOf, EachHasItsPeakAndWhatWasLiveBefore) {
  std::vector<Event> events = {Alloc(0, 50), Alloc(1, 3 * kPage), Free(0)};
  AddRound(2, events);
  AddRound(5, events);
  events.push_back(Alloc(8, kPage));
  const Rounds seen = RoundsOf(events, OfTwo(5));
  ASSERT_EQ(seen.rounds.size(), 4u);
  EXPECT_EQ(seen.rounds[0].peak, Bytes(50 + 3 * kPage)) << "of the token before the first whole round";
  for (const size_t round : {1, 2}) {
    EXPECT_TRUE(seen.rounds[round].cut);
    EXPECT_EQ(seen.rounds[round].live_before, Bytes(3 * kPage));
    EXPECT_EQ(seen.rounds[round].peak, Bytes(6 * kPage + 100)) << "small blocks count";
  }
  EXPECT_TRUE(seen.rounds[3].cut);
  EXPECT_THAT(seen.event_of_slot, ElementsAre(9, 10)) << "of the round before the origin";
}

TEST(RoundsOf, WhatIsLiveBeforeTheFirstTokenIsOfNoRound) {
  std::vector<Event> events = {Alloc(0, 3000), Alloc(1, 3000), Alloc(2, 3000), Free(0), Free(1), Free(2)};
  AddRound(3, events);
  const Rounds seen = RoundsOf(events, OfTwo(0));
  ASSERT_EQ(seen.rounds.size(), 2u);
  EXPECT_EQ(seen.rounds[0].peak, Bytes(0));
  EXPECT_THAT(seen.event_of_slot, ElementsAre(6, 7)) << "no round before the origin was seen whole";
}

TEST(RoundsOf, ARoundThatBeginsWithAnotherTokenSaysSo) {
  std::vector<Event> events = {Alloc(0, 2 * kPage), Alloc(1, kPage)};
  AddRound(2, events);
  const Rounds seen = RoundsOf(events, OfTwo(2));
  ASSERT_EQ(seen.rounds.size(), 3u);
  EXPECT_FALSE(seen.rounds[1].cut);
  EXPECT_TRUE(seen.rounds[2].cut);
}

}  // namespace
}  // namespace reprise::profiler
