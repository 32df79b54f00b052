// The fuzzers' little sister, the same in every run: damages good files at random, also behind right
// checksums, where only the reader's own care is left. Nothing may crash, and what is accepted must be
// consistent.
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "profiler/csv_export.h"
#include "profiler/csv_import.h"
#include "profiler/event_check.h"
#include "profiler/load.h"
#include "profiler/shared_stacks.h"
#include "profiler/trace_activities.h"
#include "profiler/trace_format.h"
#include "profiler/trace_stacks.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

constexpr int kRounds = 20'000;

// One to four changes: a byte, a piece cut out, a piece doubled, the end cut off.
std::string Damaged(std::string bytes, std::mt19937* random) {
  const auto below = [&](size_t n) { return (*random)() % n; };
  for (size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = below(bytes.size()), length = 1 + below(16);
    switch (below(4)) {
      case 0:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      default:
        bytes.erase(bytes.size() - std::min(bytes.size(), length));
        break;
    }
  }
  return bytes;
}

void ExpectConsistent(const std::vector<Event>& events) {
  EventChecker checker;
  for (const Event& event : events) ASSERT_TRUE(checker.Add(event).ok());
}

TEST(Mutation, OfABlockBehindItsChecksum) {
  std::mt19937 random(1);
  BlockEncoder encoder;
  for (Event event : RandomEvents(1, 100)) {
    if (event.kind == EventKind::kAlloc) event.stack = StackId(random() % 200);
    encoder.Add(event);
  }
  const std::string good(encoder.Take(0));
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string bytes = Damaged(good, &random);
    std::vector<Event> events;
    const auto head = DecodeEvents(bytes, &events);
    if (!head.ok()) continue;
    ++accepted;
    ASSERT_EQ(events.size(), head->events);
  }
  // Both ends of the decoder must have been reached.
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kRounds);
}

TEST(Mutation, OfAStacksBlockBehindItsChecksum) {
  std::mt19937 random(5);
  SharedStacks stacks;
  std::vector<FrameId> frames;
  for (int i = 0; i < 40; ++i) {
    frames.push_back(stacks.Intern(
        {.function = absl::StrCat("f", i), .line = i, .module = "m", .address = random() % 5000}));
    if (i % 3 == 0) stacks.Intern(frames);
  }
  stacks.AddModule({"m", "00ff"});
  StacksWritten written;
  const std::string good =
      stacks.Read([&](const StackTable& table) { return EncodeStacks(table, &written); });
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    StackTable table;
    if (!DecodeStacks(Damaged(good, &random), &table).ok()) continue;
    ++accepted;
    for (uint32_t stack = 1; stack <= table.stacks(); ++stack) {
      for (const FrameId frame : table.stack(StackId(stack))) ASSERT_TRUE(table.has(frame));
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kRounds);
}

TEST(Mutation, OfAnActivitiesBlockBehindItsChecksum) {
  std::mt19937 random(6);
  ActivityEncoder encoder;
  for (int i = 0; i < 100; ++i) {
    encoder.Add({.kind = static_cast<ActivityKind>(i % 4),
                 .track = static_cast<uint32_t>(random() % 5),
                 .name = FrameId(static_cast<uint32_t>(random() % 40)),
                 .bytes = Bytes(i % 4 == 1 || i % 4 == 2 ? static_cast<int64_t>(random()) : 0),
                 .begin_ns = 1000 * i,
                 .duration_ns = static_cast<int64_t>(random() % 3000)});
  }
  const std::string good(encoder.Take(0));
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    std::vector<Activity> activities;
    const auto head = DecodeActivities(Damaged(good, &random), &activities);
    if (!head.ok()) continue;
    ++accepted;
    ASSERT_EQ(activities.size(), head->activities);
    for (const Activity& activity : activities) {
      ASSERT_GE(activity.duration_ns, 0);
      ASSERT_GE(activity.bytes, Bytes(0));
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kRounds);
}

TEST(Mutation, OfMetadataAndFooter) {
  std::mt19937 random(2);
  const std::string metadata = EncodeMetadata({.command = {"python3", "train.py"}, .host = "here", .pid = 1});
  const std::string footer = EncodeFooter({.events = 5, .dropped = 6});
  for (int i = 0; i < kRounds; ++i) {
    DecodeMetadata(Damaged(metadata, &random)).IgnoreError();
    DecodeFooter(Damaged(footer, &random)).IgnoreError();
  }
}

TEST(Mutation, OfAnEventCsv) {
  std::mt19937 random(3);
  const std::string good = ToEventCsv(RandomEvents(2, 20));
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    const auto input = Parse(Damaged(good, &random), "f");
    if (!input.ok()) continue;
    ++accepted;
    ExpectConsistent(input->trace.events);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kRounds);
}

TEST(Mutation, OfALifetimeCsv) {
  std::mt19937 random(4);
  const std::string good = "id,lower,upper,size,alignment\na,0,10,4096,64\nb,5,12,100,1\nc,11,40,7,8\n";
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    const auto rows = ParseLifetimeCsv(Damaged(good, &random), "f");
    if (!rows.ok()) continue;
    ++accepted;
    for (const Lifetime& row : *rows) {
      ASSERT_GE(row.lower, Tick(0));
      ASSERT_LT(row.lower, row.upper);
      ASSERT_GT(row.size, Bytes(0));
      ASSERT_GT(row.alignment, Bytes(0));
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kRounds);
}

}  // namespace
}  // namespace reprise::profiler
