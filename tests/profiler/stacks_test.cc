// Stacks are kept once: millions of allocations come from a few hundred places.
#include "profiler/stacks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

TEST(StackTable, EqualFramesAreOne) {
  StackTable table;
  const FrameId a = table.Intern(Python("step", 3));
  EXPECT_EQ(table.Intern(Python("step", 3)), a);
  EXPECT_NE(table.Intern(Python("step", 4)), a);
  EXPECT_EQ(table.frames(), 2u);
  EXPECT_EQ(table.frame(a).line, 3);
}

TEST(StackTable, EqualStacksAreOneAndOrderCounts) {
  StackTable table;
  const FrameId a = table.Intern(Python("step", 3)), b = table.Intern(Python("main", 9));
  const StackId inner_a = table.Intern(std::vector{a, b});
  EXPECT_EQ(table.Intern(std::vector{a, b}), inner_a);
  const StackId inner_b = table.Intern(std::vector{b, a});
  EXPECT_NE(inner_b, inner_a);
  EXPECT_EQ(table.stacks(), 2u);
  ASSERT_EQ(table.stack(inner_b).size(), 2u);
  EXPECT_EQ(table.stack(inner_b)[0], b);
}

TEST(StackTable, NamesOfAllFramesHaveABound) {
  StackTable table;
  const std::string name(kMostFrameText / 8, 'x');
  const auto frame = [&](int64_t line) { return Frame{.function = name, .line = line}; };
  for (int64_t line = 1; line <= 8; ++line) EXPECT_NE(table.Intern(frame(line)), FrameId(0));
  EXPECT_EQ(table.Intern(frame(9)), FrameId(0));
  EXPECT_EQ(table.Intern(frame(8)), FrameId(8)) << "what is in it is still found";
  EXPECT_EQ(table.Intern(Frame{.line = 1}), FrameId(9)) << "no name takes no room";
  EXPECT_EQ(table.frames(), 9u);
}

TEST(StackTable, AFrameThatThereWasNoRoomForIsLeftOut) {
  StackTable table;
  const FrameId a = table.Intern(Python("step", 3)), b = table.Intern(Python("main", 9));
  const StackId both = table.Intern(std::vector{a, b});
  EXPECT_EQ(table.Intern(std::vector{a, FrameId(0), b}), both);
  EXPECT_EQ(table.Intern(std::vector{FrameId(0)}), StackId(0));
}

TEST(StackTable, NoFramesAreNoStack) {
  StackTable table;
  EXPECT_EQ(table.Intern(std::vector<FrameId>{}), StackId(0));
  EXPECT_TRUE(table.stack(StackId(0)).empty());
  EXPECT_TRUE(table.has(StackId(0)));
  EXPECT_FALSE(table.has(StackId(1)));
  EXPECT_FALSE(table.has(FrameId(0)));
}

}  // namespace
}  // namespace reprise::profiler
