// Plans and statistics of a whole stream stand on these lifetimes: half-open, open at the end for what is
// never freed.
#include "profiler/lifetimes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(LifetimesOf, ABlockLivesFromItsAllocationToItsFree) {
  const std::vector<BlockLifetime> blocks =
      LifetimesOf({Alloc(0, 8, 3), Mark(0), Alloc(1, 4), Free(0), Free(1)});
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].alloc, Tick(0));
  EXPECT_EQ(blocks[0].free, Tick(3));
  EXPECT_EQ(blocks[1].alloc, Tick(2));
  EXPECT_EQ(blocks[1].free, Tick(4));
}

TEST(LifetimesOf, ABlockThatIsNeverFreedLivesToTheEnd) {
  EXPECT_EQ(LifetimesOf({Alloc(0, 8), Mark(1)})[0].free, Tick(2));
}

TEST(LivePeakOf, IsWhereItWasFirstReached) {
  const LivePeak peak =
      LivePeakOf({Alloc(0, 6), Alloc(1, 4), Free(1), Alloc(2, 4), Free(0), Alloc(3, 5), Free(2)});
  EXPECT_EQ(peak.bytes, Bytes(10));
  EXPECT_EQ(peak.at, 1);
}

TEST(LivePeakOf, NothingHasNone) {
  EXPECT_TRUE(LifetimesOf({}).empty());
  EXPECT_EQ(LivePeakOf({}).bytes, Bytes(0));
}

TEST(LiveAt, IsWhatWasAllocatedAndNotYetFreed) {
  const std::vector<Event> events = {Alloc(0, 6), Alloc(1, 4), Free(0), Alloc(2, 5)};
  EXPECT_THAT(LiveAt(events, 0), ElementsAre(&events[0]));
  EXPECT_THAT(LiveAt(events, 1), UnorderedElementsAre(&events[0], &events[1]));
  EXPECT_THAT(LiveAt(events, 2), ElementsAre(&events[1]));
  EXPECT_THAT(LiveAt(events, 100), UnorderedElementsAre(&events[1], &events[3]));
  EXPECT_THAT(LiveAt({}, 0), IsEmpty());
}

}  // namespace
}  // namespace reprise::profiler
