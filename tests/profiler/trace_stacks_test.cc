// Stacks in a trace: what was interned comes back under the same numbers whatever the blocks are cut into,
// and no bytes of a stranger's can name what is not there or claim more than they hold.
#include "profiler/trace_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "profiler/recorder.h"
#include "profiler/shared_stacks.h"
#include "profiler/trace_reader.h"
#include "profiler/trace_writer.h"
#include "profiler/varint.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

StackId Intern(SharedStacks* stacks, const std::vector<Frame>& frames) {
  std::vector<FrameId> ids;
  for (const Frame& frame : frames) ids.push_back(stacks->Intern(frame));
  return stacks->Intern(ids);
}

void ExpectEqual(const StackTable& a, const StackTable& b) {
  ASSERT_EQ(a.frames(), b.frames());
  ASSERT_EQ(a.stacks(), b.stacks());
  EXPECT_EQ(a.modules(), b.modules());
  for (uint32_t i = 1; i <= a.frames(); ++i) EXPECT_EQ(a.frame(FrameId(i)), b.frame(FrameId(i)));
  for (uint32_t i = 1; i <= a.stacks(); ++i) {
    EXPECT_TRUE(std::ranges::equal(a.stack(StackId(i)), b.stack(StackId(i))));
  }
}

StackTable ThroughBlocks(SharedStacks* stacks, int* blocks) {
  StackTable copy;
  StacksWritten written;
  for (*blocks = 0;; ++*blocks) {
    const std::string raw = stacks->Read([&](const StackTable& t) { return EncodeStacks(t, &written); });
    if (raw.empty()) return copy;
    EXPECT_LE(raw.size(), kMostRawBytes);
    EXPECT_EQ(TypeOfBlock(raw).value(), BlockType::kStacks);
    EXPECT_TRUE(DecodeStacks(raw, &copy).ok()) << DecodeStacks(raw, &copy);
  }
}

TEST(TraceStacks, ComeBackAsTheyWere) {
  SharedStacks stacks;
  Intern(&stacks, {Python("step", 3), Python("main", 9), Python("", -1, "")});
  Intern(&stacks, {Native("/lib/libfoo.so", 0xffffffffffffffff), Python("main", 9)});
  stacks.AddModule({"/lib/libfoo.so", "00ff"});
  stacks.AddModule({"/lib/without.so", ""});
  int blocks = 0;
  const StackTable copy = ThroughBlocks(&stacks, &blocks);
  EXPECT_EQ(blocks, 1);
  stacks.Read([&](const StackTable& table) { ExpectEqual(table, copy); });
}

TEST(TraceStacks, ManyTakeSeveralBlocks) {
  SharedStacks stacks;
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<Frame> frames;
    for (int j = 0; j < 12; ++j) {
      frames.push_back(
          Python(absl::StrCat("function", random() % 3000), static_cast<int64_t>(random() % 20)));
    }
    Intern(&stacks, frames);
  }
  int blocks = 0;
  const StackTable copy = ThroughBlocks(&stacks, &blocks);
  EXPECT_GT(blocks, 5);
  stacks.Read([&](const StackTable& table) { ExpectEqual(table, copy); });
}

TEST(TraceStacks, AFullTableGivesNoStack) {
  SharedStacks stacks;
  for (size_t i = 0; i < kMostFrames; ++i) stacks.Intern(Python("f", static_cast<int64_t>(i)));
  EXPECT_EQ(stacks.Intern(Python("one too many", 1)), FrameId(0));
}

TEST(TraceStacks, LongNamesAreCut) {
  SharedStacks stacks;
  const FrameId id = stacks.Intern(Python(std::string(100'000, 'x'), 1));
  EXPECT_EQ(stacks.Intern(Python(std::string(200'000, 'x'), 1)), id);
  int blocks = 0;
  EXPECT_EQ(ThroughBlocks(&stacks, &blocks).frame(id).function.size(), kMostStackText);
}

TEST(TraceStacks, EventsKeepTheirs) {
  std::vector<Event> events = RandomEvents(3, 5000);
  BlockEncoder encoder;
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == EventKind::kAlloc) events[i].stack = StackId(static_cast<uint32_t>(i % 70'000));
    encoder.Add(events[i]);
  }
  std::vector<Event> copy;
  ASSERT_TRUE(DecodeEvents(encoder.Take(0), &copy).ok());
  EXPECT_EQ(copy, events);
}

TEST(TraceStacks, EventsWithoutAnyCostNothing) {
  const auto size_of = [](StackId stack) {
    BlockEncoder encoder;
    Event event = Alloc(0, 4096);
    event.stack = stack;
    encoder.Add(event);
    return encoder.Take(0).size();
  };
  EXPECT_EQ(size_of(StackId(1)), size_of(StackId(0)) + 2);
}

TEST(TraceStacks, ThroughARecordersFile) {
  const TempFolder folder;
  SharedStacks stacks;
  auto recorder = Recorder::Start({.path = folder / "t", .stacks = &stacks});
  ASSERT_TRUE(recorder.ok());
  for (uint64_t i = 0; i < 1000; ++i) {
    Event event = Alloc(i, 4096);
    event.stack = Intern(&stacks, {Python("step", static_cast<int64_t>(i % 10)), Python("main", 1)});
    (*recorder)->Append(event);
    if (i % 300 == 0) {
      ASSERT_TRUE((*recorder)->Flush(60s).ok());
    }
  }
  ASSERT_TRUE((*recorder)->Finish(60s).ok());
  const auto trace = ReadTrace(folder / "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->events.size(), 1000u);
  EXPECT_EQ(trace->stacks.stacks(), 10u);
  for (size_t i = 0; i < 1000; ++i) {
    const auto stack = trace->stacks.stack(trace->events[i].stack);
    ASSERT_EQ(stack.size(), 2u);
    EXPECT_EQ(trace->stacks.frame(stack[0]).line, static_cast<int64_t>(i % 10));
  }
}

// Written behind a good checksum, so that the reader's own check is what is left.
TEST(TraceStacks, AnEventMayNotNameAStackThatIsNotThere) {
  const TempFolder folder;
  auto writer = TraceWriter::Open(folder / "t", {});
  ASSERT_TRUE(writer.ok());
  Event event = Alloc(0, 4096);
  event.stack = StackId(1);
  ASSERT_TRUE((*writer)->Append(event).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  EXPECT_THAT(Text(ReadTrace(folder / "t").status()),
              HasSubstr("event 0: it names stack 1, and there are 0"));
}

std::string Block(std::initializer_list<uint64_t> head, std::initializer_list<std::string> columns) {
  std::string raw(1, static_cast<char>(BlockType::kStacks));
  for (const uint64_t number : head) PutVarint(number, &raw);
  for (const std::string& column : columns) {
    PutVarint(column.size(), &raw);
    raw += column;
  }
  return raw;
}

std::string Refusal(const std::string& raw) {
  StackTable table;
  return Text(DecodeStacks(raw, &table));
}

TEST(TraceStacks, HostileBlocks) {
  using namespace std::string_literals;
  const std::string frame("\1\0\0\2\0\0", 6);
  EXPECT_EQ(Refusal(Block({0, 1, 0, 1, 0, 0}, {"", frame, "\1\2", ""})), "");
  EXPECT_THAT(Refusal(""), HasSubstr("no type"));
  EXPECT_THAT(Refusal(Block({0, 1, 0}, {})), HasSubstr("the head ends early"));
  EXPECT_THAT(Refusal(Block({1, 1, 0, 0, 0, 0}, {"", frame, "", ""})), HasSubstr("do not follow"));
  EXPECT_THAT(Refusal(Block({0, ~uint64_t{0}, 0, 0, 0, 0}, {"", "", "", ""})), HasSubstr("more stacks than"));
  EXPECT_THAT(Refusal(Block({0, 0, 0, ~uint64_t{0}, 0, 0}, {"", "", "", ""})), HasSubstr("more stacks than"));
  EXPECT_THAT(Refusal(Block({0, 2, 0, 0, 0, 0}, {"", frame + frame, "", ""})), HasSubstr("twice"));
  EXPECT_THAT(Refusal(Block({0, 1, 0, 0, 0, 0}, {"", "\1\1\0\2\0\0"s, "", ""})),
              HasSubstr("a frame is damaged"));
  EXPECT_THAT(Refusal(Block({0, 1, 0, 0, 0, 0}, {"", "\3\0\0\2\0\0"s, "", ""})),
              HasSubstr("a frame is damaged"));
  EXPECT_THAT(Refusal(Block({0, 1, 0, 1, 0, 0}, {"", frame, "\1\4", ""})), HasSubstr("not there"));
  EXPECT_THAT(Refusal(Block({0, 1, 0, 1, 0, 0}, {"", frame, "\0"s, ""})),
              HasSubstr("no frames, or of too many"));
  EXPECT_THAT(Refusal(Block({0, 1, 0, 1, 0, 0}, {"", frame, "\x41\2", ""})), HasSubstr("or of too many"));
  EXPECT_THAT(Refusal(Block({0, 1, 0, 0, 0, 0}, {"\5ab", frame, "", ""})), HasSubstr("a string ends early"));
  EXPECT_THAT(Refusal(Block({0, 0, 0, 0, 0, 1}, {"", "", "", "\7\0"s})), HasSubstr("a module is damaged"));
  const std::string column = "\x81\x20" + std::string(4097, 'x');  // one string, its length before it
  EXPECT_THAT(Refusal(Block({0, 1, 0, 0, 0, 0}, {column, frame, "", ""})),
              HasSubstr("a string longer than any"));
  EXPECT_THAT(Refusal(Block({0, 0, 0, 0, 0, 0}, {"", frame, "", ""})),
              HasSubstr("longer than what it holds"));
  EXPECT_THAT(Refusal(Block({0, 0, 0, 0, 0, 0}, {"", "", "", ""}) + "x"), HasSubstr("bytes after the last"));
}

// Eight bytes a frame, and three copies of the longest name: 12 KiB.
TEST(TraceStacks, FramesThatAllHaveOneLongNameAreRefused) {
  std::string strings, frames;
  PutVarint(kMostStackText, &strings);
  strings += std::string(kMostStackText, 'x');
  const uint64_t count = kMostFrameText / (3 * kMostStackText) + 1;
  for (uint64_t i = 0; i < count; ++i) {
    for (const uint64_t number : {uint64_t{1}, uint64_t{1}, uint64_t{1}, ZigZag(1), uint64_t{1}, i}) {
      PutVarint(number, &frames);
    }
  }
  StackTable table;
  const absl::Status status = DecodeStacks(Block({0, count, 0, 0, 0, 0}, {strings, frames, "", ""}), &table);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

}  // namespace
}  // namespace reprise::profiler
