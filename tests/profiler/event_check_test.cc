// Everything behind the readers relies on consistent sequences: each way of not being one is refused.
#include "profiler/event_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::HasSubstr;

TEST(EventChecker, AcceptsAConsistentSequence) {
  EventChecker checker;
  for (const Event& event : RandomEvents(1, 10'000)) ASSERT_TRUE(checker.Add(event).ok());
}

TEST(EventChecker, RefusesAFreeOfWhatIsNotLive) {
  EventChecker checker;
  EXPECT_THAT(Text(checker.Add(Free(0))), HasSubstr("free of 0, which is not live"));
  ASSERT_TRUE(checker.Add(Alloc(0, 1)).ok());
  ASSERT_TRUE(checker.Add(Free(0)).ok());
  EXPECT_FALSE(checker.Add(Free(0)).ok());
}

TEST(EventChecker, RefusesAnIdThatDoesNotRise) {
  EventChecker checker;
  ASSERT_TRUE(checker.Add(Alloc(5, 1)).ok());
  EXPECT_THAT(Text(checker.Add(Alloc(5, 1))), HasSubstr("ids must rise"));
  EXPECT_FALSE(checker.Add(Alloc(4, 1)).ok());
  EXPECT_TRUE(checker.Add(Alloc(9, 1)).ok());
}

TEST(EventChecker, KnowsTheLastIdThereIs) {
  EventChecker checker;
  ASSERT_TRUE(checker.Add(Alloc(std::numeric_limits<uint64_t>::max(), 1)).ok());
  EXPECT_FALSE(checker.Add(Alloc(0, 1)).ok());
}

TEST(EventChecker, RefusesSizesThatAreNone) {
  EventChecker checker;
  EXPECT_FALSE(checker.Add(Alloc(0, 0)).ok());
  EXPECT_FALSE(checker.Add(Alloc(0, -1)).ok());
  Event event = Alloc(0, 1);
  event.alignment = Bytes(-8);
  EXPECT_THAT(Text(checker.Add(event)), HasSubstr("alignment -8"));
}

TEST(EventChecker, RefusesMoreLiveBytesThanCanBeCounted) {
  EventChecker checker;
  EXPECT_FALSE(checker.Add(Alloc(0, std::numeric_limits<int64_t>::max())).ok());
  ASSERT_TRUE(checker.Add(Alloc(0, int64_t{1} << 62)).ok());
  EXPECT_THAT(Text(checker.Add(Alloc(1, 1))), HasSubstr("2^62"));
  ASSERT_TRUE(checker.Add(Free(0)).ok());
  EXPECT_TRUE(checker.Add(Alloc(1, 1)).ok());
}

TEST(EventChecker, RefusesAKindThatIsNone) {
  Event event;
  event.kind = static_cast<EventKind>(9);
  EXPECT_FALSE(EventChecker().Add(event).ok());
}

TEST(NumberBlocks, NumbersThemInTheOrderOfTheirAllocations) {
  std::vector<Event> events = {Alloc(7, 1), Alloc(3, 1), Mark(40), Free(7), Alloc(5, 1), Free(3)};
  ASSERT_TRUE(NumberBlocks(events).ok());
  const uint64_t expected[] = {0, 1, 40, 0, 2, 1};
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].id, BlockId(expected[i])) << i;
}

TEST(NumberBlocks, NamesTheEventThatIsWrong) {
  for (const std::vector<Event>& wrong :
       {std::vector{Alloc(7, 1), Free(0)}, {Alloc(7, 1), Alloc(7, 1)}, {Alloc(7, 1), Alloc(3, 0)}}) {
    std::vector<Event> events = wrong;
    EXPECT_THAT(Text(NumberBlocks(events)), HasSubstr("event 1: "));
  }
  std::vector<Event> twice = {Alloc(7, 1), Free(7), Free(7)};
  EXPECT_THAT(Text(NumberBlocks(twice)), HasSubstr("event 2: free of 0, which is not live"));
}

}  // namespace
}  // namespace reprise::profiler
