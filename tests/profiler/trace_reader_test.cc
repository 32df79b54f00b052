// The reader judges files it did not write: cut anywhere they give a prefix, damaged anywhere they give an
// error that names the byte, and nothing they claim makes it allocate or loop.
#include "profiler/trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include "base/files.h"
#include "profiler/trace_writer.h"
#include "profiler/varint.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The bytes of a closed trace with a block after every `block` events, and where its blocks begin: metadata,
// then events, then footer.
struct File {
  std::string bytes;
  std::vector<size_t> blocks;
};

File Write(const std::vector<Event>& events, size_t block) {
  TempFolder folder;
  const std::string path = folder / "trace.reprise";
  File file;
  auto writer = TraceWriter::Open(path, {.host = "here"});
  file.blocks = {kPreambleBytes, static_cast<size_t>((*writer)->bytes_written())};
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_TRUE((*writer)->Append(events[i]).ok());
    if (i % block != block - 1) continue;
    EXPECT_TRUE((*writer)->Flush().ok());
    file.blocks.push_back(static_cast<size_t>((*writer)->bytes_written()));
  }
  EXPECT_TRUE((*writer)->Close().ok());
  file.bytes = *ReadFile(path);
  return file;
}

// A block around `raw`, with all checksums right.
std::string Block(const std::string& raw) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string block(kFramingBytes + ZSTD_compressBound(raw.size()), '\0');
  const size_t stored = ZSTD_compress2(context, block.data() + kFramingBytes, block.size() - kFramingBytes,
                                       raw.data(), raw.size());
  ZSTD_freeCCtx(context);
  PutFraming(static_cast<uint32_t>(stored), block.data());
  block.resize(kFramingBytes + stored);
  return block;
}

std::string Preamble() { return Write({}, 1).bytes.substr(0, kPreambleBytes); }

std::string TraceError(const std::string& bytes) { return Text(ParseTrace(bytes, "t.reprise").status()); }

TEST(TraceReader, CutAtAnyByteGivesAPrefix) {
  const std::vector<Event> events = RandomEvents(1, 60);
  const File file = Write(events, 20);
  for (size_t size = 0; size < file.bytes.size(); ++size) {
    const auto trace = ParseTrace(std::string_view(file.bytes).substr(0, size), "t");
    if (size < file.blocks[1]) {
      EXPECT_THAT(Text(trace.status()), HasSubstr("nothing was recorded")) << size;
      continue;
    }
    ASSERT_TRUE(trace.ok()) << size << trace.status();
    EXPECT_FALSE(trace->closed);
    EXPECT_EQ(trace->events.size() % 20, 0u);
    EXPECT_TRUE(IsPrefix(trace->events, events));
    const bool whole = std::find(file.blocks.begin(), file.blocks.end(), size) != file.blocks.end();
    EXPECT_EQ(trace->notes.size(), whole ? 1u : 2u) << size;
    if (whole) continue;
    EXPECT_THAT(trace->notes[0], HasSubstr("bytes after the last complete block ignored"));
  }
}

TEST(TraceReader, SaysHowMuchOfATornBlockItIgnored) {
  const File file = Write(RandomEvents(1, 60), 20);
  const auto trace = ParseTrace(std::string_view(file.bytes).substr(0, file.blocks[3] + 33), "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->events.size(), 40u);
  EXPECT_THAT(trace->notes, Contains(HasSubstr("33 bytes after the last complete block ignored")));
}

TEST(TraceReader, ADamagedByteIsNeverReadAsOtherEvents) {
  const std::vector<Event> events = RandomEvents(1, 60);
  const File file = Write(events, 20);
  for (size_t at = 0; at < file.bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = file.bytes;
      damaged[at] ^= static_cast<char>(1 << bit);
      const auto trace = ParseTrace(damaged, "t.reprise");
      if (trace.ok()) {
        // A bit that zstd does not use: what was read is right all the same.
        EXPECT_EQ(trace->events, events) << at;
        EXPECT_TRUE(trace->closed) << at;
      } else {
        EXPECT_THAT(Text(trace.status()), HasSubstr("t.reprise: byte ")) << at;
      }
    }
  }
}

TEST(TraceReader, ADamagedBlockIsNamedByItsByte) {
  File file = Write(RandomEvents(1, 60), 20);
  file.bytes[file.blocks[2] + kFramingBytes + 40] ^= 1;
  const auto trace = ParseTrace(file.bytes, "t.reprise");
  EXPECT_EQ(trace.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(trace.status()),
              HasSubstr("t.reprise: byte " + std::to_string(file.blocks[2]) + ": a damaged block"));
}

TEST(TraceReader, AMissingADoubledAndAMovedBlockAreFound) {
  const File file = Write(RandomEvents(1, 60), 20);
  const auto part = [&](size_t block) {
    return file.bytes.substr(file.blocks[block], file.blocks[block + 1] - file.blocks[block]);
  };
  const std::string begin = file.bytes.substr(0, file.blocks[1]), footer = file.bytes.substr(file.blocks[4]);
  ASSERT_EQ(begin + part(1) + part(2) + part(3) + footer, file.bytes);
  EXPECT_THAT(TraceError(begin + part(1) + part(3) + footer), HasSubstr("missing or doubled"));
  EXPECT_THAT(TraceError(begin + part(1) + part(2) + part(2) + footer), HasSubstr("missing or doubled"));
  EXPECT_THAT(TraceError(begin + part(2) + part(1) + part(3) + footer), HasSubstr("missing or doubled"));
  EXPECT_THAT(TraceError(begin + part(1) + part(2) + footer),
              HasSubstr("the footer counts 60 events, and there are 40"));
  EXPECT_THAT(TraceError(file.bytes + part(1)), HasSubstr("after the footer"));
  EXPECT_THAT(TraceError(begin + begin.substr(kPreambleBytes) + part(1)),
              HasSubstr("metadata must be the first"));
  EXPECT_THAT(TraceError(Preamble() + part(1)), HasSubstr("metadata must be the first"));
}

TEST(TraceReader, WhatIsNoTraceIsRefused) {
  EXPECT_THAT(TraceError("event,id,bytes,stream\n"), HasSubstr("t.reprise: byte 0: not a Reprise trace"));
  EXPECT_THAT(TraceError(""), HasSubstr("nothing was recorded"));
  std::string converted = Write({}, 1).bytes;
  converted.erase(8, 1);  // a text mode took the carriage return
  EXPECT_THAT(TraceError(converted), HasSubstr("not a Reprise trace"));
}

TEST(TraceReader, AnotherVersionIsNamed) {
  std::string bytes = Write({}, 1).bytes;
  bytes[kTraceMagic.size()] = 9;
  EXPECT_THAT(TraceError(bytes),
              HasSubstr("byte 12: trace format version 9, and this Reprise reads version 1"));
}

TEST(TraceReader, EventsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(TraceError(Write({Alloc(0, 1), Free(1)}, 9).bytes),
              HasSubstr("event 1: free of 1, which is not live"));
  EXPECT_THAT(TraceError(Write({Alloc(3, 1), Alloc(2, 1)}, 9).bytes), HasSubstr("ids must rise"));
  EXPECT_THAT(TraceError(Write({Alloc(0, -4)}, 9).bytes), HasSubstr("of -4 bytes"));
}

TEST(TraceReader, EventsAreStoredWhereTheyStay) {
  const auto trace = ParseTrace(Write(RandomEvents(1, 1000), 16).bytes, "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->events.capacity(), 1000u) << "grew: a recording of hours is then in memory twice";
}

TEST(TraceReader, OfMoreEventsThanWantedTheFirstBlocksAreRead) {
  const std::vector<Event> events = RandomEvents(1, 64);
  const File file = Write(events, 16);
  const auto whole = ParseTrace(file.bytes, "t", 64);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(whole->closed);
  EXPECT_THAT(whole->notes, IsEmpty());
  for (const uint64_t most : {32, 47}) {
    const auto trace = ParseTrace(file.bytes, "t", most);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->events.size(), 32u);
    EXPECT_EQ(trace->events.capacity(), 32u) << "grew for events that it does not keep";
    EXPECT_TRUE(IsPrefix(trace->events, events));
    EXPECT_FALSE(trace->closed);
    EXPECT_EQ(trace->WhyNotWhole(), "more is in it than is read of a trace");
    EXPECT_THAT(trace->notes, ElementsAre(HasSubstr("reading stopped after 32 events")));
  }
}

TEST(TraceReader, MetadataIsReadWithoutTheEvents) {
  TempFolder folder;
  const std::string path = folder / "trace.reprise";
  // More than is read of the file, and damaged where nobody looks.
  std::string bytes = Write(RandomEvents(1, 200'000), 20'000).bytes;
  ASSERT_GT(bytes.size(), size_t{1} << 18);
  bytes[bytes.size() / 2 + (size_t{1} << 17)] ^= 1;
  WriteFile(path, bytes);
  EXPECT_FALSE(ReadTrace(path).ok());
  const auto metadata = ReadTraceMetadata(path);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_EQ(metadata->host, "here");
}

TEST(TraceReader, WhatHasNoMetadataIsNamed) {
  TempFolder folder;
  const std::string path = folder / "trace.reprise";
  EXPECT_THAT(Text(ReadTraceMetadata(path).status()), HasSubstr(path));
  WriteFile(path, "");
  EXPECT_THAT(Text(ReadTraceMetadata(path).status()), HasSubstr(path));
  EXPECT_FALSE(ReadTraceMetadata(folder / "").ok()) << "a folder";
}

TEST(TraceReader, ACountThatNoBlockHasIsNoFullTrace) {
  std::string raw(1, '\x02');
  for (const uint64_t number : {uint64_t{0}, uint64_t{0}, ~uint64_t{0}, uint64_t{0}}) PutVarint(number, &raw);
  raw += std::string(4, '\0');
  EXPECT_THAT(TraceError(Preamble() + Block("\x01{}") + Block(raw)), HasSubstr("too many events"));
}

TEST(TraceReader, ABlockThatUnpacksToMoreThanAnyBlockIsRefusedUnread) {
  EXPECT_THAT(TraceError(Preamble() + Block(std::string(size_t{1} << 28, '\0'))), HasSubstr("no block has"));
}

TEST(TraceReader, RightChecksumsDoNotMakeNonsenseRight) {
  EXPECT_THAT(TraceError(Preamble() + Block(std::string(1, '\0'))), HasSubstr("a block of type 0"));
  EXPECT_THAT(TraceError(Preamble() + Block("\x01{")), HasSubstr("malformed metadata"));
  EXPECT_THAT(TraceError(Preamble() + Block("\x01{}") + Block("\x03{")), HasSubstr("malformed footer"));
  EXPECT_THAT(TraceError(Preamble() + Block("\x01{}") + Block("\x02")), HasSubstr("malformed events"));
}

TEST(TraceReader, BlocksOfALaterVersionAreSkippedAndCounted) {
  const std::vector<Event> events = RandomEvents(1, 60);
  const File file = Write(events, 20);
  std::string bytes = file.bytes;
  for (const size_t at : {file.blocks[3], file.blocks[1]}) bytes.insert(at, Block("\x63 what it will be"));
  const auto trace = ParseTrace(bytes, "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->events, events);
  EXPECT_TRUE(trace->closed);
  EXPECT_THAT(trace->notes, Contains(HasSubstr("2 blocks of a kind that this version does not know")));
  EXPECT_THAT(TraceError(Preamble() + Block("\x63")), HasSubstr("metadata must be the first"));
}

TEST(TraceReader, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(Text(ReadTrace("/nonexistent/t.reprise").status()),
              HasSubstr("/nonexistent/t.reprise: cannot be opened"));
}

// What the whole format is for: the job is killed while it writes, and all that was flushed is there.
TEST(TraceReader, ReadsWhatAKilledWriterLeft) {
  TempFolder folder;
  const std::string path = folder / "trace.reprise";
  const std::vector<Event> events = RandomEvents(4, 200'000);
  KillOnceReady([&](auto ready) {
    auto writer = TraceWriter::Open(path, {});
    for (size_t i = 0; i < events.size(); ++i) {
      (*writer)->Append(events[i]).IgnoreError();
      if (i % 100 == 99) (*writer)->Flush().IgnoreError();
      if (i == 5000) ready();
    }
    pause();
  });
  const Trace trace = ReadGoodTrace(path);
  EXPECT_GE(trace.events.size(), 5000u);
  EXPECT_TRUE(IsPrefix(trace.events, events));
  EXPECT_FALSE(trace.closed);
  EXPECT_THAT(trace.notes, Contains(HasSubstr("not finished")));
}

}  // namespace
}  // namespace reprise::profiler
