// Why this exists: "which line needs the memory" and "what would I save without it" are what people act on.
#include "profiler/site_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

StackId StackOf(StackTable& stacks, const std::string& file, int64_t line) {
  const FrameId frame =
      stacks.Intern({.kind = FrameKind::kPython, .function = "step", .file = file, .line = line});
  return stacks.Intern(std::vector<FrameId>{frame});
}

Event AllocAt(StackId stack, uint64_t id, int64_t bytes) {
  Event event = Alloc(id, bytes);
  event.stack = stack;
  return event;
}

TEST(SiteStats, WhatIsLiveByStackMostFirst) {
  StackTable stacks;
  const StackId a = StackOf(stacks, "/job/a.py", 1), b = StackOf(stacks, "/job/b.py", 2);
  const std::vector<Event> events = {AllocAt(a, 0, 10), AllocAt(b, 1, 30), AllocAt(a, 2, 15), Free(0)};
  const std::vector<StackBytes> at_peak = StacksLiveAt(events, 2);
  ASSERT_EQ(at_peak.size(), 2u);
  EXPECT_EQ(at_peak[0].stack, b);
  EXPECT_EQ(at_peak[1].bytes, Bytes(25));
  EXPECT_EQ(at_peak[1].blocks, 2);
  EXPECT_EQ(StacksLiveAt(events, 3)[1].bytes, Bytes(15));
}

TEST(SiteStats, StacksWithOneNameAreOneSite) {
  StackTable stacks;
  const StackId a = StackOf(stacks, "/job/a.py", 1);
  const FrameId inner = stacks.Intern({.kind = FrameKind::kNative, .function = "empty"});
  const FrameId own = stacks.stack(a)[0];
  const StackId deeper = stacks.Intern(std::vector<FrameId>{inner, own});
  const SiteTable table = SitesOf(stacks);
  EXPECT_EQ(table.site_of_stack[static_cast<size_t>(a)], table.site_of_stack[static_cast<size_t>(deeper)]);
  const std::vector<StackBytes> both = StacksLiveAt({AllocAt(a, 0, 1), AllocAt(deeper, 1, 2)}, 1);
  const std::vector<SiteBytes> sites = BySite(table, both);
  ASSERT_EQ(sites.size(), 1u);
  EXPECT_EQ(sites[0].bytes, Bytes(3));
}

TEST(SiteStats, ThePeakWithoutASiteMayLieElsewhere) {
  StackTable stacks;
  const StackId a = StackOf(stacks, "/job/a.py", 1), b = StackOf(stacks, "/job/b.py", 2);
  const SiteTable table = SitesOf(stacks);
  // First a alone has 100; then b has 80 and a 10.
  const std::vector<Event> events = {AllocAt(a, 0, 100), Free(0), AllocAt(b, 1, 80), AllocAt(a, 2, 10)};
  const uint32_t sites[] = {table.site_of_stack[static_cast<size_t>(a)],
                            table.site_of_stack[static_cast<size_t>(b)]};
  EXPECT_THAT(PeaksWithout(events, table, sites), testing::ElementsAre(Bytes(80), Bytes(100)));
}

}  // namespace
}  // namespace reprise::profiler
