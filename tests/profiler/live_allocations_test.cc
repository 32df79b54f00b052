// Why: peaks, and whose the bytes are, are sums of these changes; a free that took another block's bytes, or was counted though
// nothing goes, would shift all that comes after it.
#include "profiler/live_allocations.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

// What each event does, and what is live after the last.
struct Followed {
  explicit Followed(const std::vector<Event>& events) {
    for (const Event& event : events) changes.push_back(live.Add(event));
  }
  LiveAllocations live;
  std::vector<LiveAllocations::Change> changes;
};

TEST(LiveAllocations, AFreeTakesAwayWhatItsAllocationBrought) {
  const std::vector<Event> events = {Alloc(0, 6, 3), Alloc(1, 4), Free(0), Alloc(2, 5)};
  const Followed followed(events);
  EXPECT_EQ(followed.changes[1].alloc, &events[1]);
  EXPECT_EQ(followed.changes[1].bytes, Bytes(4));
  EXPECT_EQ(followed.changes[2].alloc, &events[0]);
  EXPECT_EQ(followed.changes[2].bytes, Bytes(-6));
  EXPECT_EQ(followed.live.bytes(), Bytes(9));
}

TEST(LiveAllocations, AMarkAndAFreeOfWhatIsNotLiveChangeNothing) {
  const std::vector<Event> events = {Alloc(0, 6), Mark(0), Free(1), Free(0), Free(0)};
  const Followed followed(events);
  for (const size_t i : {1, 2, 4}) {
    EXPECT_EQ(followed.changes[i].alloc, nullptr) << i;
    EXPECT_EQ(followed.changes[i].bytes, Bytes(0)) << i;
  }
  EXPECT_EQ(followed.live.bytes(), Bytes(0));
}

TEST(LiveAllocations, OfAnIdThatComesAgainTheLatestIsMeant) {
  const std::vector<Event> events = {Alloc(0, 6), Free(0), Alloc(0, 4), Free(0)};
  EXPECT_EQ(Followed(events).changes[3].alloc, &events[2]);
  EXPECT_EQ(Followed(events).changes[3].bytes, Bytes(-4));
}

}  // namespace
}  // namespace reprise::profiler
