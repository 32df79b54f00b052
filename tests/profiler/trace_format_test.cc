// The encoding in memory: what goes in comes out, each block by itself, and bytes that no encoder wrote are
// refused by what is wrong with them, never believed.
#include "profiler/trace_format.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "profiler/varint.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::HasSubstr;

std::string Encode(const std::vector<Event>& events, uint64_t dropped = 0) {
  BlockEncoder encoder;
  for (const Event& event : events) encoder.Add(event);
  return std::string(encoder.Take(dropped));
}

std::vector<Event> Decode(std::string_view raw) {
  std::vector<Event> events;
  const auto head = DecodeEvents(raw, &events);
  EXPECT_TRUE(head.ok()) << head.status();
  return events;
}

// A block of one column after another, as an encoder would lay it out.
std::string Block(uint64_t events, const std::string& codes, const std::string& distances = "",
                  const std::string& arguments = "", const std::string& times = "") {
  std::string raw(1, static_cast<char>(BlockType::kEvents));
  for (const uint64_t number : {uint64_t{0}, uint64_t{0}, events, uint64_t{0}}) PutVarint(number, &raw);
  for (const std::string& column : {codes, distances, arguments, times}) {
    PutVarint(column.size(), &raw);
    raw += column;
  }
  return raw;
}

std::string EventsError(std::string_view raw) {
  std::vector<Event> events;
  return Text(DecodeEvents(raw, &events).status());
}

TEST(Events, RandomOnesComeBack) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Event> events = RandomEvents(seed, 500 * seed);
    EXPECT_EQ(Decode(Encode(events)), events) << "seed " << seed;
  }
}

TEST(Events, AMarkComesBack) {
  const std::vector<Event> events{Alloc(0, 4096), Mark(7), Free(0)};
  EXPECT_EQ(Decode(Encode(events)), events);
}

TEST(Events, TheEndsOfEveryRangeComeBack) {
  Event alloc =
      Alloc(std::numeric_limits<uint64_t>::max(), std::numeric_limits<int64_t>::max(), ~uint64_t{0});
  alloc.alignment = alloc.bytes;
  alloc.thread = std::numeric_limits<uint32_t>::max();
  alloc.time_ns = std::numeric_limits<int64_t>::max() / 1000 * 1000;
  const std::vector<Event> events{alloc, Free(~uint64_t{0}), Alloc(0, 1), Mark(~uint64_t{0})};
  EXPECT_EQ(Decode(Encode(events)), events);
}

TEST(Events, TimesAreKeptToTheMicrosecond) {
  Event event = Alloc(0, 1);
  event.time_ns = 1'234'567;
  EXPECT_EQ(Decode(Encode({event}))[0].time_ns, 1'234'000);
}

TEST(Events, ABlockIsDecodedWithoutThoseBeforeIt) {
  const std::vector<Event> events = RandomEvents(5, 2000);
  BlockEncoder encoder;
  for (size_t i = 0; i < 1000; ++i) encoder.Add(events[i]);
  encoder.Take(0);
  for (size_t i = 1000; i < 2000; ++i) encoder.Add(events[i]);
  std::vector<Event> second;
  const auto head = DecodeEvents(encoder.Take(42), &second);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->first_event, 1000u);
  EXPECT_EQ(head->events, 1000u);
  EXPECT_EQ(head->dropped, 42u);
  EXPECT_EQ(second, std::vector<Event>(events.begin() + 1000, events.end()));
}

TEST(Events, ARepeatedAllocationAndItsFreeTakeThreeBytes) {
  std::vector<Event> events;
  for (uint64_t i = 0; i < 1000; ++i) {
    events.push_back(Alloc(i, 4096));
    events.push_back(Free(i));
  }
  EXPECT_LT(Encode(events).size(), 3 * 1000 + 30u);
}

TEST(Events, TheLargestOnesFillABlockBeforeItIsTooLarge) {
  BlockEncoder encoder;
  for (uint64_t i = 0; !encoder.full(); ++i) {
    Event event =
        Alloc(i % 2 == 0 ? i : ~i, std::numeric_limits<int64_t>::max() - static_cast<int64_t>(i), ~i);
    event.alignment = event.bytes;
    event.thread = ~static_cast<uint32_t>(i);
    event.time_ns = i % 2 == 0 ? 0 : std::numeric_limits<int64_t>::max();
    encoder.Add(event);
  }
  EXPECT_LE(encoder.Take(0).size(), kMostRawBytes);
}

TEST(Events, SmallOnesFillABlockByNumber) {
  BlockEncoder encoder;
  while (!encoder.full()) encoder.Add(Mark(0));
  EXPECT_EQ(encoder.events(), kMostBlockEvents);
}

TEST(Events, EveryTruncationIsRefused) {
  const std::string raw = Encode(RandomEvents(3, 200));
  for (size_t size = 0; size < raw.size(); ++size) {
    EXPECT_THAT(EventsError(std::string_view(raw).substr(0, size)), HasSubstr("malformed events")) << size;
  }
}

TEST(Events, BytesLeftOverAreRefused) {
  // A fifth column may be there, of stacks.
  EXPECT_THAT(EventsError(Encode({Alloc(0, 1)}) + std::string("\x01\x00\x00", 3)),
              HasSubstr("after the last column"));
  EXPECT_THAT(EventsError(Encode({Alloc(0, 1)}) + std::string("\x02\x00\x00", 3)),
              HasSubstr("longer than its events"));
  EXPECT_THAT(EventsError(Encode({Alloc(0, 1)}) + '\0'), HasSubstr("the stacks end early"));
  EXPECT_THAT(EventsError(Block(1, std::string("\x00\x00", 2), "\x01")), HasSubstr("longer than its events"));
  EXPECT_THAT(EventsError(Block(1, std::string("\x00", 1), "\x01\x01")), HasSubstr("longer than its events"));
}

TEST(Events, MoreEventsThanCodesAreRefusedBeforeAnythingIsAllocated) {
  EXPECT_THAT(EventsError(Block(uint64_t{1} << 60, "\x01", "", "\x05")), HasSubstr("too many events"));
  EXPECT_THAT(EventsError(Block(2, "\x01", "", "\x05")), HasSubstr("too many events"));
}

TEST(Events, AnUnknownClassIsRefused) {
  EXPECT_THAT(EventsError(Block(1, "\x05")), HasSubstr("unknown class"));
}

TEST(Events, AThreadAbove32BitsIsRefused) {
  std::string arguments(1, '\0');
  PutVarint(uint64_t{1} << 32, &arguments);
  EXPECT_THAT(EventsError(Block(1, "\x03\x01", "", arguments + '\0')), HasSubstr("thread"));
}

TEST(Events, ATimeOutOfRangeIsRefused) {
  std::string times;
  PutVarint(~uint64_t{0} - 1, &times);
  EXPECT_THAT(EventsError(Block(1, "\x01", "", std::string(1, '\0'), times)), HasSubstr("time out of range"));
}

TEST(Metadata, ComesBack) {
  const TraceMetadata metadata{.reprise_version = "0.1.0",
                               .command = {"python3", "train.py", "--name=a \"b\"\n"},
                               .host = "node7",
                               .run = "5eed",
                               .started = "2024-05-01T10:00:00Z",
                               .pid = 4711,
                               .threshold = Bytes(4096),
                               .granule = Bytes(2 << 20),
                               .device = 1,
                               .rank = 3,
                               .world_size = 8};
  const auto back = DecodeMetadata(EncodeMetadata(metadata));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, metadata);
}

TEST(Metadata, ACommandThatIsNotTextIsKeptAsFarAsItIs) {
  const auto back = DecodeMetadata(EncodeMetadata({.command = {"caf\xe9"}}));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->command, std::vector<std::string>{"caf\xef\xbf\xbd"});
}

TEST(Metadata, AnEndlessCommandIsCut) {
  const std::vector<std::string> command(1000, std::string(1000, 'x'));
  const std::string raw = EncodeMetadata({.command = command});
  EXPECT_LT(raw.size(), kMostRawBytes);
  EXPECT_EQ(DecodeMetadata(raw)->command.back(), "...");
}

TEST(Metadata, SoIsOneOfEmptyArguments) {
  const std::string raw = EncodeMetadata({.command = std::vector<std::string>(400'000)});
  EXPECT_LT(raw.size(), kMostRawBytes);
  EXPECT_EQ(DecodeMetadata(raw)->command.back(), "...");
}

TEST(Metadata, UnknownKeysAndWrongTypesAreIgnored) {
  const auto back = DecodeMetadata("\x01{\"host\":[1],\"pid\":\"x\",\"colour\":{},\"started\":\"now\"}");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, TraceMetadata{.started = "now"});
}

TEST(Metadata, NumbersThatCannotBeAreDropped) {
  for (const char* key : {"pid", "threshold", "granule", "device", "rank", "world_size"}) {
    for (const char* number : {"-1", "9223372036854775807", "9223372036854775808", "18446744073709551615",
                               "1e300", "1.5", "true"}) {
      const auto back = DecodeMetadata(fmt::format("\x01{{\"{}\":{}}}", key, number));
      ASSERT_TRUE(back.ok());
      EXPECT_EQ(*back, TraceMetadata{}) << key << " " << number;
    }
  }
  const auto outside = DecodeMetadata("\x01{\"rank\":2,\"world_size\":2}");
  EXPECT_EQ(*outside, TraceMetadata{.world_size = 2});
}

TEST(Metadata, WhatIsNoObjectIsRefused) {
  for (const std::string raw : {"\x01", "\x01[]", "\x01{\"host\":"})
    EXPECT_FALSE(DecodeMetadata(raw).ok()) << raw;
  for (const std::string raw : {"\x03", "\x03null", "\x03{"}) EXPECT_FALSE(DecodeFooter(raw).ok()) << raw;
}

TEST(Footer, ComesBack) {
  for (const TraceEnd end : {TraceEnd::kClosed, TraceEnd::kFirstPlan, TraceEnd::kSizeLimit,
                             TraceEnd::kOverrun, TraceEnd::kUnknown}) {
    const TraceFooter footer{.events = 12,
                             .dropped = 3,
                             .end = end,
                             .activities = 5,
                             .activities_dropped = 1,
                             .passed = Bytes(4096)};
    EXPECT_EQ(*DecodeFooter(EncodeFooter(footer)), footer);
    const TraceFooter other{.events = 12, .activities = 5, .activities_end = end};
    EXPECT_EQ(*DecodeFooter(EncodeFooter(other)), other);
  }
}

// What a later version ends by must not pass for all of the job; earlier ones say nothing of activities.
TEST(Footer, AnEndThatIsNotKnown) {
  EXPECT_EQ(DecodeFooter("\x03{\"end\":\"eclipse\"}")->end, TraceEnd::kUnknown);
  EXPECT_EQ(DecodeFooter("\x03{\"end\":1}")->end, TraceEnd::kUnknown);
  EXPECT_EQ(DecodeFooter("\x03{\"end\":\"closed\"}")->activities_end, TraceEnd::kClosed);
}

TEST(Framing, KeepsTheLengthAndKnowsDamage) {
  char bytes[kFramingBytes];
  PutFraming(12345, bytes);
  EXPECT_EQ(*ParseFraming(bytes), 12345u);
  for (char& byte : bytes) {
    byte ^= 0x10;
    EXPECT_FALSE(ParseFraming(bytes).ok());
    byte ^= 0x10;
  }
  PutFraming(static_cast<uint32_t>(MostStoredBytes()) + 1, bytes);
  EXPECT_THAT(Text(ParseFraming(bytes).status()), HasSubstr("longer than any"));
}

TEST(Block, HasAType) {
  EXPECT_FALSE(TypeOfBlock("").ok());
  EXPECT_FALSE(TypeOfBlock(std::string_view("\0", 1)).ok());
  EXPECT_TRUE(TypeOfBlock("\x09").ok()) << "of a later version, for its reader to skip";
  EXPECT_EQ(*TypeOfBlock("\x02"), BlockType::kEvents);
}

}  // namespace
}  // namespace reprise::profiler
