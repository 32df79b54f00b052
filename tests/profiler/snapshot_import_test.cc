// Why: a snapshot is a window on a job that began earlier. What was live before has to be put back, and what
// does not fit has to be said rather than believed.
#include "profiler/snapshot_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/exports.h"
#include "profiler/load.h"
#include "profiler/shared_stacks.h"
#include "tests/profiler/pickle_script.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Event Block(uint64_t id, int64_t bytes, uint64_t stream = 0) {
  Event event = Alloc(id, bytes, stream);
  event.alignment = kDeviceAlignment;
  return event;
}

std::string Entry(const std::string& action, int64_t addr, int64_t size, int64_t stream = 0,
                  int64_t time_us = 1000) {
  return PickledDict({{"action", PickledString(action)},
                      {"addr", PickledInt(addr)},
                      {"size", PickledInt(size)},
                      {"stream", PickledInt(stream)},
                      {"time_us", PickledInt(time_us)}});
}

std::string BlockAt(int64_t address, int64_t size, int64_t requested, const std::string& state) {
  return PickledDict({{"address", PickledInt(address)},
                      {"size", PickledInt(size)},
                      {"requested_size", PickledInt(requested)},
                      {"state", PickledString(state)}});
}

std::string Segment(int64_t address, int64_t size, const std::vector<std::string>& blocks,
                    int64_t device = 0) {
  return PickledDict({{"device", PickledInt(device)},
                      {"address", PickledInt(address)},
                      {"total_size", PickledInt(size)},
                      {"stream", PickledInt(0)},
                      {"segment_type", PickledString(size == 2 << 20 ? "small" : "large")},
                      {"blocks", PickledList(blocks)}});
}

std::string SnapshotOf(const std::vector<std::string>& segments,
                       const std::vector<std::vector<std::string>>& traces) {
  std::vector<std::string> lists;
  for (const auto& trace : traces) lists.push_back(PickledList(trace));
  return Pickled(PickledDict({{"segments", PickledList(segments)}, {"device_traces", PickledList(lists)}}));
}

Snapshot Read(const std::string& contents) {
  auto snapshot = ParseSnapshot(contents, "s.pickle");
  EXPECT_TRUE(snapshot.ok()) << snapshot.status();
  return snapshot.ok() ? *std::move(snapshot) : Snapshot{};
}

std::string SnapshotError(const std::string& contents) {
  const auto snapshot = ParseSnapshot(contents, "s.pickle");
  return snapshot.ok() ? "no error" : Text(snapshot.status());
}

TEST(SnapshotImport, AWholeHistory) {
  const Snapshot snapshot = Read(
      SnapshotOf({Segment(4096, 20 << 20,
                          {BlockAt(4096, 512, 100, "active_allocated"), BlockAt(4608, 1000, 0, "inactive")})},
                 {{Entry("segment_alloc", 4096, 20 << 20), Entry("alloc", 4096, 100),
                   Entry("alloc", 8192, 200, 3, 1500), Entry("free_requested", 8192, 200, 3, 1600),
                   Entry("free_completed", 8192, 200, 3, 1700), Entry("snapshot", 0, 0)}}));
  Event second = Block(1, 200, 3), free = Free(1, 3);
  second.time_ns = 500'000;
  free.time_ns = 700'000;
  EXPECT_THAT(snapshot.events, ElementsAre(Block(0, 100), second, free));
  EXPECT_THAT(snapshot.addresses, ElementsAre(Offset(4096), Offset(8192), Offset(8192)));
  EXPECT_EQ(snapshot.live_at_begin, 0u);
  EXPECT_EQ(snapshot.reserved_at_begin, Bytes(0));
  EXPECT_EQ(snapshot.reserved_peak, kMiB * 20);
  EXPECT_EQ(snapshot.reserved_at_end, kMiB * 20);
  EXPECT_THAT(snapshot.notes, IsEmpty());
  ASSERT_EQ(snapshot.segments.size(), 1u);
  EXPECT_FALSE(snapshot.segments[0].small);
  ASSERT_EQ(snapshot.segments[0].live.size(), 1u);
  EXPECT_EQ(snapshot.segments[0].live[0].size, Bytes(512));
}

TEST(SnapshotImport, WhatWasLiveBeforeComesFirstInOrderOfAddress) {
  const Snapshot snapshot = Read(SnapshotOf(
      {Segment(0, 2 << 20,
               {BlockAt(0, 512, 7, "active_allocated"), BlockAt(512, 512, 8, "active_pending_free")})},
      {{Entry("free_requested", 300, 30), Entry("free_completed", 300, 30), Entry("free_completed", 200, 20),
        Entry("alloc", 200, 25)}}));
  Event free_30 = Free(2), free_20 = Free(1), alloc = Block(4, 25);
  EXPECT_THAT(snapshot.events,
              ElementsAre(Block(0, 7), Block(1, 20), Block(2, 30), Block(3, 8), free_30, free_20, alloc));
  EXPECT_EQ(snapshot.live_at_begin, 4u);
  EXPECT_THAT(snapshot.notes, testing::Contains(HasSubstr("4 blocks were live before")));
}

TEST(SnapshotImport, AFreeThatIsOnlyAskedForDoesNotFree) {
  const Snapshot snapshot = Read(SnapshotOf(
      {}, {{Entry("alloc", 100, 10), Entry("free_requested", 100, 10), Entry("free_requested", 900, 10),
            Entry("alloc", 500, 20), Entry("free_requested", 500, 20), Entry("free_completed", 500, 20)}}));
  EXPECT_THAT(snapshot.events, ElementsAre(Block(0, 10), Block(1, 10), Block(2, 20), Free(2)));
  // Nor where it is the history's only one, and the segments hold the block.
  const Snapshot awaited =
      Read(SnapshotOf({Segment(0, 2 << 20, {BlockAt(0, 512, 10, "active_pending_free")})},
                      {{Entry("alloc", 0, 10), Entry("free_requested", 0, 10)}}));
  EXPECT_THAT(awaited.events, ElementsAre(Block(0, 10)));
  EXPECT_THAT(awaited.notes, testing::Not(testing::Contains(HasSubstr("free_completed"))));
}

TEST(SnapshotImport, WhereNoCompletionIsRecordedARequestFrees) {
  // As with skip_actions=["free_completed"]: a block from before the history, one within it, one that still awaits its
  // completion.
  const Snapshot snapshot = Read(
      SnapshotOf({Segment(0, 2 << 20, {BlockAt(0, 512, 7, "active_pending_free")})},
                 {{Entry("free_requested", 900, 5), Entry("alloc", 100, 10), Entry("free_requested", 100, 10),
                   Entry("alloc", 200, 10), Entry("free_requested", 200, 10), Entry("alloc", 0, 7),
                   Entry("free_requested", 0, 7)}}));
  EXPECT_THAT(snapshot.events, ElementsAre(Block(0, 5), Free(0), Block(1, 10), Free(1), Block(2, 10), Free(2),
                                           Block(3, 7), Free(3)));
  EXPECT_THAT(snapshot.notes, testing::Contains(HasSubstr("no free_completed in its history")));
  EXPECT_THAT(snapshot.notes, testing::Not(testing::Contains(HasSubstr("do not fit"))));
}

TEST(SnapshotImport, OfSeveralDevicesTheFullestWithoutCompletionsToo) {
  const std::vector<std::string> steps = {Entry("alloc", 100, 10), Entry("free_requested", 100, 10),
                                          Entry("alloc", 200, 10), Entry("free_requested", 200, 10)};
  const Snapshot snapshot = Read(SnapshotOf({}, {steps, {Entry("alloc", 100, 15)}}));
  EXPECT_EQ(snapshot.device, 1);
  EXPECT_THAT(snapshot.notes, testing::Contains(HasSubstr("not device 0 (up to 10 B live)")));
}

TEST(SnapshotImport, SegmentsThatComeAndGo) {
  const Snapshot snapshot =
      Read(SnapshotOf({Segment(0, 30, {})}, {{Entry("segment_free", 0, 10), Entry("segment_map", 0, 25),
                                              Entry("segment_unmap", 0, 5), Entry("alloc", 1, 1)}}));
  EXPECT_EQ(snapshot.reserved_at_begin, Bytes(20));
  EXPECT_EQ(snapshot.reserved_peak, Bytes(35));
  EXPECT_EQ(snapshot.reserved_at_end, Bytes(30));
  EXPECT_EQ(snapshot.segment_changes, 3);
}

TEST(SnapshotImport, WhatDoesNotFitIsSetRightAndSaid) {
  // An alloc where a block is live, for one from within the window and one from before it; a second free.
  const Snapshot snapshot = Read(SnapshotOf(
      {}, {{Entry("alloc", 100, 10), Entry("alloc", 100, 11), Entry("free_completed", 100, 11),
            Entry("free_completed", 100, 11), Entry("free_requested", 500, 5), Entry("alloc", 500, 6)}}));
  EXPECT_THAT(snapshot.events,
              ElementsAre(Block(0, 5), Block(1, 10), Free(1), Block(2, 11), Free(2), Free(0), Block(3, 6)));
  EXPECT_THAT(snapshot.notes, testing::Contains(HasSubstr("3 entries do not fit")));
}

TEST(SnapshotImport, OutOfMemoryAndUnknownEntriesAreCounted) {
  const Snapshot snapshot =
      Read(SnapshotOf({}, {{Entry("alloc", 100, 10), Entry("oom", 0, 99), Entry("dance", 0, 0)}}));
  EXPECT_EQ(snapshot.ooms, 1);
  EXPECT_THAT(snapshot.notes,
              ElementsAre(HasSubstr("1 entries of unknown kinds"), HasSubstr("out of memory 1 times")));
}

TEST(SnapshotImport, EntriesThatAreAboutNoMemoryAreNoneOfUnknownKinds) {
  const Snapshot snapshot = Read(SnapshotOf({}, {{Entry("alloc", 100, 10), Entry("annotate", 100, 0),
                                                  Entry("user_defined", 0, 0), Entry("snapshot", 0, 0)}}));
  EXPECT_THAT(snapshot.events, ElementsAre(Block(0, 10)));
  EXPECT_THAT(snapshot.notes, IsEmpty());
}

TEST(SnapshotImport, OfSeveralDevicesTheFullest) {
  // Device 0 has the most entries, device 2 the most that is live at the end.
  const std::string alloc = Entry("alloc", 100, 10), free = Entry("free_completed", 100, 10);
  const std::string large = Entry("alloc", 100, 70), freed = Entry("free_completed", 100, 70);
  const Snapshot snapshot =
      Read(SnapshotOf({Segment(0, 100, {}, 0), Segment(0, 200, {BlockAt(0, 30, 30, "active_allocated")}, 1),
                       Segment(0, 300, {BlockAt(0, 90, 90, "active_allocated")}, 2)},
                      {{alloc, free, alloc, free}, {large, freed}, {}}));
  EXPECT_EQ(snapshot.device, 1);
  EXPECT_EQ(snapshot.events.size(), 3u);
  EXPECT_EQ(snapshot.reserved_at_end, Bytes(200));
  EXPECT_THAT(snapshot.notes,
              testing::Contains(AllOf(HasSubstr("3 devices in it; only device 1"),
                                      HasSubstr("not devices 2 (up to 90 B live), 0 (up to 10 B live)"))));
}

TEST(SnapshotImport, WhatADeviceHeldBeforeItsHistoryCountsToo) {
  const Snapshot snapshot =
      Read(SnapshotOf({Segment(0, 100, {}, 0)},
                      {{Entry("free_completed", 100, 50), Entry("free_completed", 200, 50)},
                       {Entry("alloc", 100, 90), Entry("free_completed", 100, 90), Entry("oom", 0, 1)}}));
  EXPECT_EQ(snapshot.device, 0);
}

TEST(SnapshotImport, WithoutAHistoryWhatIsLive) {
  const Snapshot snapshot =
      Read(SnapshotOf({Segment(0, 2 << 20, {BlockAt(0, 512, 7, "active_allocated")})}, {{}}));
  EXPECT_THAT(snapshot.events, ElementsAre(Block(0, 7)));
  EXPECT_THAT(snapshot.notes, testing::Contains(HasSubstr("no history")));
  EXPECT_EQ(snapshot.unseen, std::nullopt);
}

// What was reserved when the history begins bounds all that was live before.
TEST(SnapshotImport, HowMuchHigherThePeakMayHaveBeenBefore) {
  const auto of = [](const std::vector<std::string>& history) {
    return Read(SnapshotOf({Segment(0, 1000, {BlockAt(0, 100, 100, "active_allocated")})}, {history}));
  };
  const std::string alloc = Entry("alloc", 200, 300), free = Entry("free_completed", 200, 300);
  const Snapshot late = of({alloc, free});
  EXPECT_EQ(late.unseen, Bytes(600));
  EXPECT_THAT(late.notes, testing::Contains(HasSubstr("up to 600 B higher")));
  const Snapshot whole = of({Entry("segment_alloc", 200, 600), alloc, free});
  EXPECT_EQ(whole.unseen, Bytes(0)) << "400 of the bytes were there before, and 400 are live at its peak";
  EXPECT_THAT(whole.notes, ElementsAre(HasSubstr("1 blocks were live before")));
}

TEST(SnapshotImport, OlderSnapshotsDoNotSayWhereABlockIsNorWhatWasAskedFor) {
  const auto block = [](int64_t size, const char* state) {
    return PickledDict({{"size", PickledInt(size)}, {"state", PickledString(state)}});
  };
  const Snapshot snapshot =
      Read(SnapshotOf({Segment(1000, 2048, {block(512, "inactive"), block(1024, "active_allocated")})}, {}));
  EXPECT_THAT(snapshot.events, ElementsAre(Block(0, 1024)));
  EXPECT_THAT(snapshot.addresses, ElementsAre(Offset(1512)));
}

// As memory_snapshot() returns them.
TEST(SnapshotImport, AListOfSegmentsAlone) {
  const Snapshot snapshot = Read(Pickled(
      PickledList({Segment(0, 512, {BlockAt(0, 512, 100, "active_allocated")}),
                   Segment(1024, 2048, {BlockAt(1024, 1024, 1000, "active_allocated")}, /*device=*/1)})));
  EXPECT_EQ(snapshot.device, 1);
  EXPECT_THAT(snapshot.events, ElementsAre(Block(0, 1000)));
  EXPECT_THAT(snapshot.WhyNotWhole(), HasSubstr("no history"));
}

TEST(SnapshotImport, ErrorsNameTheEntry) {
  EXPECT_THAT(SnapshotError(Pickled("]")), HasSubstr("s.pickle: the snapshot: not a dict"));
  EXPECT_THAT(SnapshotError(Pickled(PickledList({"N"}))), HasSubstr("s.pickle: segments[0]: not a dict"));
  EXPECT_THAT(SnapshotError(Pickled("}")), HasSubstr("no list 'segments'"));
  EXPECT_THAT(SnapshotError(SnapshotOf({}, {{Entry("alloc", 1, 1), Entry("alloc", 2, 0)}})),
              HasSubstr("device_traces[0][1]: 'size' is 0"));
  EXPECT_THAT(SnapshotError(SnapshotOf({}, {{Entry("alloc", -1, 1)}})),
              HasSubstr("device_traces[0][0]: 'addr' is -1"));
  EXPECT_THAT(SnapshotError(SnapshotOf({}, {{PickledDict({{"addr", PickledInt(1)}})}})),
              HasSubstr("'action' is missing"));
  EXPECT_THAT(SnapshotError(SnapshotOf({}, {{"K\x01"}})), HasSubstr("device_traces[0][0]: not a dict"));
  EXPECT_THAT(SnapshotError(SnapshotOf({Segment(0, 100, {BlockAt(0, 101, 1, "inactive")})}, {})),
              HasSubstr("segments[0].blocks[0]: 'size' is 101"));
  EXPECT_THAT(SnapshotError(SnapshotOf({Segment(50, 100, {BlockAt(40, 1, 1, "inactive")})}, {})),
              HasSubstr("outside the segment"));
  EXPECT_THAT(
      SnapshotError(SnapshotOf({}, {{Entry("alloc", 1, int64_t{1} << 61), Entry("alloc", 2, int64_t{1} << 61),
                                     Entry("alloc", 3, int64_t{1} << 61)}})),
      HasSubstr("2^62"));
}

// One entry, remembered, a thousand times over for two bytes each: no honest file does that.
TEST(SnapshotImport, EntriesThatTheFileDoesNotPayForAreRefused) {
  std::string trace = "](" + Entry("alloc", 1, 1) + "\x94";
  for (int i = 0; i < 1000; ++i) trace += std::string("h\0", 2);
  trace += "e\x94";  // the list is number 1
  std::string segment_blocks;
  const std::string contents = Pickled("}(" + PickledString("device_traces") + "](" + trace + "e" +
                                       PickledString("segments") + "]" + "u");
  EXPECT_EQ(SnapshotError(contents), "no error") << "a few bytes each are paid for";
  std::string blocks = "](" + BlockAt(0, 0, 0, "inactive") + "\x94";
  for (int i = 0; i < 1000; ++i) blocks += std::string("h\0", 2);
  blocks += "e";
  std::string segment =
      PickledDict({{"address", PickledInt(0)}, {"total_size", PickledInt(0)}, {"blocks", blocks}}) + "\x94";
  for (int i = 0; i < 100; ++i) segment += std::string("h\1", 2);
  EXPECT_THAT(
      SnapshotError(Pickled(PickledDict({{"segments", "](" + segment + "e"}, {"device_traces", "]"}}))),
      HasSubstr("more entries than bytes"));
}

TEST(SnapshotImport, IsToldByContent) {
  const auto input = Parse(SnapshotOf({}, {{Entry("alloc", 1, 5)}}), "x.csv");
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->format, InputFormat::kSnapshot);
  EXPECT_THAT(input->trace.events, ElementsAre(Block(0, 5)));
  EXPECT_TRUE(input->trace.closed);
}

std::string FrameOf(const std::string& name, const std::string& file, int64_t line) {
  return PickledDict(
      {{"name", PickledString(name)}, {"filename", PickledString(file)}, {"line", PickledInt(line)}});
}

TEST(SnapshotImport, StacksOfEntriesAndOfBlocksFromBefore) {
  const std::string frames = PickledList(
      {FrameOf("malloc", "??", 0), FrameOf("set", "Engine.cpp", 3), FrameOf("step", "/job/train.py", 7)});
  const std::string alloc = PickledDict({{"action", PickledString("alloc")},
                                         {"addr", PickledInt(8192)},
                                         {"size", PickledInt(200)},
                                         {"frames", frames}});
  const std::string block = PickledDict({{"address", PickledInt(4096)},
                                         {"size", PickledInt(512)},
                                         {"state", PickledString("active_allocated")},
                                         {"frames", frames}});
  const Snapshot snapshot = Read(SnapshotOf({Segment(4096, 1 << 20, {block})}, {{alloc}}));
  ASSERT_EQ(snapshot.events.size(), 2u);
  EXPECT_EQ(snapshot.events[0].stack, snapshot.events[1].stack);
  const auto stack = snapshot.stacks.stack(snapshot.events[0].stack);
  ASSERT_EQ(stack.size(), 3u);
  EXPECT_EQ(snapshot.stacks.frame(stack[0]).kind, FrameKind::kNative);
  EXPECT_EQ(snapshot.stacks.frame(stack[0]).file, "");
  EXPECT_EQ(snapshot.stacks.frame(stack[1]).kind, FrameKind::kNative);
  EXPECT_EQ(snapshot.stacks.frame(stack[2]),
            (Frame{.kind = FrameKind::kPython, .function = "step", .file = "/job/train.py", .line = 7}));
}

// Up to PyTorch 2.0 an entry for each allocation at a block's place, the newest first.
TEST(SnapshotImport, WhatOlderSnapshotsSayOfABlocksAllocation) {
  const auto entry = [](int64_t bytes, const std::string& name) {
    return PickledDict({{"addr", PickledInt(0)},
                        {"real_size", PickledInt(bytes)},
                        {"frames", PickledList({FrameOf(name, "/job/train.py", 7)})}});
  };
  const std::string newest = entry(1000, "newest"), oldest = entry(50, "oldest");
  const std::string block = PickledDict({{"size", PickledInt(1024)},
                                         {"state", PickledString("active_allocated")},
                                         {"history", PickledList({newest, oldest})}});
  const Snapshot snapshot = Read(SnapshotOf({Segment(0, 2048, {block})}, {}));
  ASSERT_EQ(snapshot.events.size(), 1u);
  EXPECT_EQ(snapshot.events[0].bytes, Bytes(1000));
  const auto stack = snapshot.stacks.stack(snapshot.events[0].stack);
  ASSERT_EQ(stack.size(), 1u);
  EXPECT_EQ(snapshot.stacks.frame(stack[0]).function, "newest");
  const std::string torn = PickledDict({{"size", PickledInt(1024)},
                                        {"state", PickledString("active_allocated")},
                                        {"history", PickledList({"N"})}});
  EXPECT_THAT(SnapshotError(SnapshotOf({Segment(0, 2048, {torn})}, {})),
              HasSubstr("segments[0].blocks[0].history[0]: not a dict"));
}

TEST(SnapshotImport, FramesComeBackAsTheyWereWritten) {
  const std::vector<Frame> frames = {
      {.function = "at::empty", .module = "/lib/libtorch_cpu.so", .address = 0x1234},
      {.module = "/lib/libodd.so", .address = 0xffff'ffff'ffff'ff00},
      {.function = "f", .file = "f.py", .line = 3, .module = "/lib/libf.so", .address = 1},
      {.function = "main", .file = "main.cc", .line = 8},
      {.kind = FrameKind::kPython, .function = "step", .file = "/job/train.py", .line = 7},
      {.kind = FrameKind::kPython, .function = "<backward>"},
      {.kind = FrameKind::kPython, .function = "<thread worker 1>"}};
  StackTable stacks;
  std::vector<FrameId> ids;
  ids.reserve(frames.size());
  for (const Frame& frame : frames) ids.push_back(stacks.Intern(frame));
  Event alloc = Block(0, 512);
  alloc.stack = stacks.Intern(ids);
  const Snapshot snapshot = Read(ToSnapshot({alloc}, stacks, std::vector{Offset(0)}, /*whole=*/true));
  ASSERT_EQ(snapshot.events, std::vector{alloc});
  for (size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(snapshot.stacks.frame(ids[i]), frames[i]) << i;
}

// As PyTorch writes them: a job has few frames, and a stack of many for each of its lines.
TEST(SnapshotImport, AFrameOfManyStacksIsWrittenOnce) {
  StackTable stacks;
  std::vector<FrameId> ids;
  for (int i = 0; i < 20; ++i) {
    ids.push_back(
        stacks.Intern(Frame{.kind = FrameKind::kPython, .function = "f", .file = "f.py", .line = i}));
  }
  const auto bytes = [&](StackId stack) {
    Event first = Block(0, 512), second = Block(1, 512);
    first.stack = stacks.Intern(ids);
    second.stack = stack;
    return ToSnapshot({first, second}, stacks, std::vector{Offset(0), Offset(512)}, /*whole=*/true).size();
  };
  const StackId same = stacks.Intern(ids), reversed = stacks.Intern(std::vector(ids.rbegin(), ids.rend()));
  constexpr size_t kToNameOne = 5;
  EXPECT_LE(bytes(reversed), bytes(same) + (ids.size() + 2) * kToNameOne);
}

// A pickle keeps a string once, and each frame that names it gets a copy.
TEST(SnapshotImport, LongNamesOfFramesAreCut) {
  const std::string frames = PickledList({FrameOf(std::string(100'000, 'f'), std::string(100'000, 'p'), 7)});
  const std::string alloc = PickledDict({{"action", PickledString("alloc")},
                                         {"addr", PickledInt(8192)},
                                         {"size", PickledInt(200)},
                                         {"frames", frames}});
  const Snapshot snapshot = Read(SnapshotOf({}, {{alloc}}));
  ASSERT_EQ(snapshot.stacks.frames(), 1u);
  const Frame& frame = snapshot.stacks.frame(FrameId(1));
  EXPECT_EQ(frame.function, std::string(kMostStackText, 'f'));
  EXPECT_EQ(frame.file, std::string(kMostStackText, 'p'));
}

TEST(SnapshotImport, FramesThatAreNoneAreLeftOut) {
  const std::string frames = PickledList({PickledInt(3), PickledDict({}),
                                          PickledDict({{"name", PickledInt(1)}, {"line", PickledInt(-5)}}),
                                          FrameOf("step", "/job/train.py", -7)});
  for (const std::string& what : {frames, PickledInt(7), PickledList({})}) {
    const std::string alloc = PickledDict({{"action", PickledString("alloc")},
                                           {"addr", PickledInt(8192)},
                                           {"size", PickledInt(200)},
                                           {"frames", what}});
    const Snapshot snapshot = Read(SnapshotOf({}, {{alloc}}));
    ASSERT_EQ(snapshot.events.size(), 1u);
    EXPECT_LE(snapshot.stacks.frames(), 1u);
  }
}

}  // namespace
}  // namespace reprise::profiler
