// What the device did, in a trace: it comes back as it was beside the events, has a limit of its own that
// costs the events nothing, and no bytes of a stranger's can name what is not there or claim more than they
// hold.
#include "profiler/trace_activities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "profiler/recorder.h"
#include "profiler/trace_reader.h"
#include "profiler/trace_writer.h"
#include "profiler/varint.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr uint32_t kNames = 50;

std::vector<Activity> RandomActivities(uint32_t seed, size_t count) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return random() % n; };
  std::vector<Activity> activities;
  int64_t now = -5'000;
  for (size_t i = 0; i < count; ++i) {
    Activity a{.kind = static_cast<ActivityKind>(below(kActivityKinds)),
               .track = static_cast<uint32_t>(below(10) == 0 ? below(uint64_t{1} << 32) : below(4)),
               .name = FrameId(static_cast<uint32_t>(below(kNames + 1)))};
    if (a.kind == ActivityKind::kCopy || a.kind == ActivityKind::kSet) {
      a.bytes = Bytes(static_cast<int64_t>(below(uint64_t{1} << 40)));
    }
    now += static_cast<int64_t>(below(2000)) - 200;
    a.begin_ns = now;
    a.duration_ns = static_cast<int64_t>(below(50) == 0 ? below(uint64_t{1} << 40) : below(100'000));
    activities.push_back(a);
  }
  return activities;
}

void InternNames(SharedStacks* names) {
  for (uint32_t i = 0; i < kNames; ++i) {
    names->Intern(Frame{.kind = FrameKind::kDevice, .function = absl::StrCat("kernel", i)});
  }
}

TEST(TraceActivities, ComeBackAsTheyWere) {
  const std::vector<Activity> activities = RandomActivities(1, 40'000);
  ActivityEncoder encoder;
  std::vector<Activity> read;
  const auto take = [&] {
    const std::string raw(encoder.Take(7));
    EXPECT_LE(raw.size(), kMostRawBytes);
    EXPECT_EQ(TypeOfBlock(raw).value(), BlockType::kActivities);
    const size_t before = read.size();
    const auto head = DecodeActivities(raw, &read);
    ASSERT_TRUE(head.ok()) << head.status();
    EXPECT_EQ(head->first_activity, before);
    EXPECT_EQ(head->dropped, 7u);
    EXPECT_EQ(head->activities, read.size() - before);
  };
  for (const Activity& activity : activities) {
    encoder.Add(activity);
    if (encoder.full()) take();
  }
  take();
  EXPECT_EQ(read, activities);
}

TEST(TraceActivities, TakeFewBytesOnABusyStream) {
  TempFolder folder;
  auto writer = TraceWriter::Open(folder / "t", {}, {});
  std::mt19937 random(1);
  int64_t now = 0;
  constexpr int kCount = 50'000;
  for (int i = 0; i < kCount; ++i) {  // a step of 500 kernels whose times waver a little
    const int64_t duration = 2'000 + 1'000 * (i % 500 % 37) + static_cast<int64_t>(random() % 64);
    ASSERT_TRUE((*writer)->Append(Activity{.track = 7, .begin_ns = now, .duration_ns = duration}).ok());
    now += duration + 900 + static_cast<int64_t>(random() % 64);
  }
  ASSERT_TRUE((*writer)->Close().ok());
  EXPECT_LT((*writer)->bytes_written() / kCount, 5);
}

TEST(TraceActivities, LieBesideTheEvents) {
  TempFolder folder;
  SharedStacks names;
  InternNames(&names);
  const std::vector<Event> events = RandomEvents(1, 70'000);
  const std::vector<Activity> activities = RandomActivities(2, 40'000);
  auto writer = TraceWriter::Open(folder / "t", {}, {.stacks = &names});
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_TRUE((*writer)->Append(events[i]).ok());
    if (i < activities.size()) {
      ASSERT_TRUE((*writer)->Append(activities[i]).ok());
    }
    if (i % 9973 == 0) {
      ASSERT_TRUE((*writer)->Flush().ok());
    }
  }
  ASSERT_TRUE((*writer)->Close().ok());
  const auto trace = ReadTrace(folder / "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->events, events);
  EXPECT_EQ(trace->activities, activities);
  EXPECT_EQ(trace->stacks.frame(FrameId(kNames)).function, absl::StrCat("kernel", kNames - 1));
  EXPECT_THAT(trace->notes, IsEmpty());
  EXPECT_TRUE(trace->closed);
}

TEST(TraceActivities, EndAtTheirLimitAndNothingElseDoes) {
  TempFolder folder;
  SharedStacks names;
  InternNames(&names);
  const std::vector<Event> events = RandomEvents(1, 40'000);
  const std::vector<Activity> activities = RandomActivities(2, 200'000);
  auto writer = TraceWriter::Open(folder / "t", {}, {.most_activity_bytes = 500'000, .stacks = &names});
  for (const Activity& activity : activities) ASSERT_TRUE((*writer)->Append(activity).ok());
  EXPECT_TRUE((*writer)->activities_full());
  for (const Event& event : events) ASSERT_TRUE((*writer)->Append(event).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  EXPECT_EQ((*writer)->activities_written() + (*writer)->activities_lost(), activities.size());
  const auto trace = ReadTrace(folder / "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->events, events);
  ASSERT_GT(trace->activities.size(), 0u);
  ASSERT_LT(trace->activities.size(), activities.size());
  EXPECT_TRUE(std::equal(trace->activities.begin(), trace->activities.end(), activities.begin()));
  EXPECT_THAT(trace->notes, Contains(HasSubstr("the time line stopped at its size limit")));
  EXPECT_THAT(trace->notes, Contains(HasSubstr(absl::StrCat(activities.size() - trace->activities.size()))));
}

// What they take is none of the events' limit.
TEST(TraceActivities, LeaveTheEventsTheirLimit) {
  TempFolder folder;
  SharedStacks names;
  InternNames(&names);
  const std::vector<Event> events = RandomEvents(1, 20'000);
  const auto written = [&](const std::string& path, const std::vector<Activity>& activities) {
    auto writer = TraceWriter::Open(path, {}, {.most_bytes = 60'000, .stacks = &names});
    for (const Activity& activity : activities) EXPECT_TRUE((*writer)->Append(activity).ok());
    EXPECT_TRUE((*writer)->Flush().ok());
    for (size_t i = 0; i < events.size(); ++i) {
      (*writer)->Append(events[i]).IgnoreError();
      if (i % 1000 == 999) (*writer)->Flush().IgnoreError();
    }
    EXPECT_TRUE(absl::IsResourceExhausted((*writer)->status()));
    return (*writer)->events_written();
  };
  const uint64_t alone = written(folder / "a", RandomActivities(2, 1));
  EXPECT_GT(alone, 0u);
  EXPECT_EQ(written(folder / "b", RandomActivities(2, 30'000)), alone);
  const auto trace = ReadTrace(folder / "b");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->activities.size(), 30'000u);
}

TEST(TraceActivities, GoThroughTheRecorderFromAnyThread) {
  TempFolder folder;
  SharedStacks names;
  InternNames(&names);
  auto recorder = Recorder::Start({.path = folder / "t", .stacks = &names});
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  EXPECT_TRUE((*recorder)->takes_activities());
  const std::vector<Activity> activities = RandomActivities(3, 1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) (*recorder)->Append(activities);
    });
  }
  for (const Event& event : RandomEvents(1, 1000)) (*recorder)->Append(event);
  for (std::thread& thread : threads) thread.join();
  (*recorder)->AddDroppedActivities(5);
  ASSERT_TRUE((*recorder)->Finish(60s).ok());
  EXPECT_FALSE((*recorder)->takes_activities());
  (*recorder)->Append(activities);  // too late
  const RecorderCounters counters = (*recorder)->counters();
  EXPECT_EQ(counters.activities, 40'000u);
  EXPECT_EQ(counters.activities_dropped, 1005u);
  const auto trace = ReadTrace(folder / "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->activities.size(), 40'000u);
  EXPECT_EQ(trace->events.size(), 1000u);
  EXPECT_EQ(trace->activities_dropped, 5u);
}

TEST(TraceActivities, ThatNameAFrameThatIsNotThereAreRefused) {
  TempFolder folder;
  auto writer = TraceWriter::Open(folder / "t", {}, {});
  ASSERT_TRUE((*writer)->Append(Activity{.name = FrameId(1)}).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  EXPECT_THAT(Text(ReadTrace(folder / "t").status()), HasSubstr("it names frame 1, and there are 0"));
}

TEST(TraceActivities, CountAsWhatAReaderWillHold) {
  TempFolder folder;
  auto writer = TraceWriter::Open(folder / "t", {}, {});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE((*writer)->Append(Activity{}).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  const std::string bytes = *ReadFile(folder / "t");
  EXPECT_EQ(ParseTrace(bytes, "t", 10)->activities.size(), 10u);
  const auto full = ParseTrace(bytes, "t", 9);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_TRUE(full->activities.empty());
  EXPECT_THAT(full->notes, Contains(HasSubstr("reading stopped after 0 events")));
}

std::string Raw(const std::vector<uint64_t>& head, const std::vector<std::vector<uint64_t>>& columns) {
  std::string raw(1, static_cast<char>(BlockType::kActivities));
  for (const uint64_t number : head) PutVarint(number, &raw);
  for (const std::vector<uint64_t>& column : columns) {
    std::string bytes;
    for (const uint64_t number : column) PutVarint(number, &bytes);
    PutVarint(bytes.size(), &raw);
    raw += bytes;
  }
  return raw;
}

std::string ActivitiesError(const std::string& raw) {
  std::vector<Activity> activities;
  return Text(DecodeActivities(raw, &activities).status());
}

TEST(TraceActivities, NonsenseIsNamed) {
  constexpr uint64_t k63 = uint64_t{1} << 63;
  EXPECT_EQ(ActivitiesError(Raw({0, 0, 1}, {{0}, {2}, {3}, {4}, {0}, {}})), "");
  EXPECT_THAT(ActivitiesError(""), HasSubstr("no type"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0}, {})), HasSubstr("the head ends early"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0, 2}, {{0}, {2}, {3}, {4}, {0}, {}})),
              HasSubstr("a column ends early"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0, 1}, {{1}, {2}, {3}, {4}, {0}, {}})),
              HasSubstr("a column ends early"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0, 1}, {{0}, {2}, {3}, {4}, {0}, {9}})),
              HasSubstr("longer than its activities"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0, 1}, {{4}, {2}, {3}, {4}, {0}, {}})), HasSubstr("an unknown kind"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0, 1}, {{0}, {2}, {3}, {uint64_t{1} << 32}, {0}, {}})),
              HasSubstr("above 32 bits"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0, 1}, {{1}, {2}, {3}, {4}, {0}, {k63}})), HasSubstr("above 63 bits"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0, 1}, {{0}, {k63}, {3}, {4}, {0}, {}})),
              HasSubstr("a time out of range"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0, 1}, {{0}, {2}, {k63}, {4}, {0}, {}})),
              HasSubstr("a time out of range"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0, kMostBlockActivities + 1}, {{}, {}, {}, {}, {}, {}})),
              HasSubstr("too many"));
  EXPECT_THAT(ActivitiesError(Raw({0, 0, 0}, {{}, {}, {}, {}, {}, {}}) + "x"),
              HasSubstr("after the last column"));
}

}  // namespace
}  // namespace reprise::profiler
