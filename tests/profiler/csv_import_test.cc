// People hand us files that other tools wrote: each fault is refused by file and line with what to do about
// it, and what is right is read as it is meant.
#include "profiler/csv_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "profiler/event_check.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kHeader = "event,id,bytes,stream\n";
const std::string kAlignedHeader = "event,id,bytes,stream,alignment\n";

std::string EventError(const std::string& contents) {
  return Text(ParseEventCsv(contents, "e.csv").status());
}
std::string LifetimeError(const std::string& contents) {
  return Text(ParseLifetimeCsv(contents, "l.csv").status());
}

TEST(EventCsv, ReadsAllocationsFreesAndMarks) {
  const auto events = ParseEventCsv(kHeader + "alloc,0,1008,0\nmark,3,,\nfree,0,,2\n", "e.csv");
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_THAT(*events, ElementsAre(Alloc(0, 1008), Mark(3), Free(0, 2)));
}

TEST(EventCsv, NumbersBlocksAnewSoThatAnIdMayComeBack) {
  const auto events =
      ParseEventCsv(kHeader + "alloc,77,8,0\nfree,77,,0\nalloc,77,9,0\nalloc,5,1,0\nfree,77,,0\n", "e");
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_THAT(*events, ElementsAre(Alloc(0, 8), Free(0), Alloc(1, 9), Alloc(2, 1), Free(1)));
}

TEST(EventCsv, ReadsAlignmentsWhereThereIsAColumnForThem) {
  const auto events =
      ParseEventCsv(kAlignedHeader + "alloc,0,8,0,64\nmark,3,,,\nalloc,1,8,0,\nfree,0,,0,\n", "e.csv");
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_THAT(*events, ElementsAre(Aligned(0, 8, 64), Mark(3), Alloc(1, 8), Free(0)));
}

TEST(EventCsv, RefusesAlignmentsThatAreNone) {
  for (const std::string alignment : {"-8", "0", "9223372036854775808", "8.5", "eight"}) {
    EXPECT_THAT(EventError(kAlignedHeader + "alloc,0,8,0," + alignment + "\n"),
                StartsWith("e.csv:2: alignment is '" + alignment + "'"));
  }
  EXPECT_THAT(EventError(kAlignedHeader + "alloc,0,8,0,1\nfree,0,,0,x\n"),
              StartsWith("e.csv:3: alignment is 'x'"));
  EXPECT_EQ(EventError(kAlignedHeader + "alloc,0,8,0\n"),
            "e.csv:2: 4 fields in place of event,id,bytes,stream,alignment; the row is truncated");
  EXPECT_THAT(EventError(kAlignedHeader + "mark,3,,,,\n"), HasSubstr("6 fields"));
  const std::string most = std::to_string((int64_t{1} << 61) - 2);
  EXPECT_THAT(EventError(kAlignedHeader + "alloc,0,8,0," + most + "\n"),
              StartsWith("e.csv:2: all blocks on top of each other"));
}

TEST(EventCsv, AcceptsAHeaderAlone) { EXPECT_TRUE(ParseEventCsv(kHeader, "e")->empty()); }

TEST(EventCsv, AcceptsAByteOrderMarkCrlfAndNoLastLineEnd) {
  const auto events = ParseEventCsv(
      "\xEF\xBB\xBF"
      "event,id,bytes,stream\r\nalloc,0,8,0\r\nfree,0,,0",
      "e");
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_EQ(events->size(), 2u);
}

TEST(EventCsv, RefusesAWrongOrMissingHeader) {
  for (const std::string header :
       {"", "\n\n", "alloc,0,8,0\n", "event,id,bytes\n", "event,bytes,id,stream\n",
        "event,id,bytes,stream,time\n", "event,id,bytes,stream,alignment,alignment\n"}) {
    EXPECT_THAT(EventError(header), HasSubstr("expected the header 'event,id,bytes,stream'")) << header;
  }
}

TEST(EventCsv, RefusesARowCutShort) {
  EXPECT_EQ(EventError(kHeader + "alloc,0,8,0\nalloc,1,40"),
            "e.csv:3: 3 fields in place of event,id,bytes,stream; the row is truncated");
  EXPECT_THAT(EventError(kHeader + "alloc,0,8,"), StartsWith("e.csv:2: stream is ''"));
  EXPECT_THAT(EventError(kHeader + "alloc,0,8,0,5\n"), HasSubstr("5 fields"));
}

TEST(EventCsv, RefusesAnUnknownEvent) {
  EXPECT_EQ(EventError(kHeader + "realloc,0,8,0\n"),
            "e.csv:2: unknown event 'realloc'; it must be alloc, free or mark");
}

TEST(EventCsv, RefusesAFreeOfAnUnknownId) {
  EXPECT_THAT(EventError(kHeader + "free,4,,0\n"),
              StartsWith("e.csv:2: free of id 4, which no line before allocates"));
}

TEST(EventCsv, RefusesASecondFree) {
  EXPECT_THAT(EventError(kHeader + "alloc,4,8,0\nfree,4,,0\nfree,4,,0\n"),
              StartsWith("e.csv:4: id 4 was already freed on line 3"));
}

TEST(EventCsv, ASecondFreeIsToldFromThoseOfOthersAndOfItsIdBefore) {
  EXPECT_THAT(
      EventError(kHeader +
                 "alloc,4,8,0\nalloc,5,8,0\nfree,4,,0\nalloc,4,9,0\n\nfree, 04,,0\nfree,5,,0\nfree,4,,0\n"),
      StartsWith("e.csv:9: id 4 was already freed on line 7"));
}

TEST(EventCsv, RefusesAnIdThatIsStillLive) {
  EXPECT_THAT(EventError(kHeader + "alloc,4,8,0\nalloc,4,8,0\n"),
              StartsWith("e.csv:3: id 4 is live since line 2"));
}

TEST(EventCsv, RefusesSizesThatAreNone) {
  for (const std::string bytes :
       {"-8", "0", "9223372036854775808", "99999999999999999999", "8.5", "", "eight"}) {
    EXPECT_THAT(EventError(kHeader + "alloc,0," + bytes + ",0\n"),
                StartsWith("e.csv:2: bytes is '" + bytes + "'"));
  }
}

TEST(EventCsv, RefusesNumbersThatAreNoneAnywhere) {
  EXPECT_THAT(EventError(kHeader + "alloc,-1,8,0\n"), StartsWith("e.csv:2: id is '-1'"));
  EXPECT_THAT(EventError(kHeader + "alloc,0,8,x\n"), StartsWith("e.csv:2: stream is 'x'"));
  EXPECT_THAT(EventError(kHeader + "mark,x,,\n"), StartsWith("e.csv:2: the mark's number is 'x'"));
  EXPECT_THAT(EventError(kHeader + "alloc,0,8,0\nfree,0,x,0\n"), StartsWith("e.csv:3: bytes is 'x'"));
}

TEST(EventCsv, RefusesWhatEndsAboveTheLargestOffset) {
  const std::string most = std::to_string((int64_t{1} << 61) - 2);  // and an alignment of 1
  EXPECT_TRUE(ParseEventCsv(kHeader + "alloc,0," + most + ",0\nfree,0,,0\n", "e").ok());
  EXPECT_THAT(EventError(kHeader + "alloc,0," + most + ",0\nfree,0,,0\nalloc,1,1,0\n"),
              StartsWith("e.csv:4: all blocks on top of each other"));
}

TEST(EventCsv, RefusesWhatIsNoText) {
  EXPECT_THAT(EventError(kHeader + std::string("alloc,0\0,8,0\n", 13)), StartsWith("e.csv:2: a NUL byte"));
  EXPECT_THAT(EventError(kHeader + std::string(1 << 20, '9')),
              StartsWith("e.csv:2: a line of 1048576 bytes"));
}

TEST(LifetimeCsv, ReadsRowsInOrder) {
  const auto rows = ParseLifetimeCsv("id,lower,upper,size\nb1,0,3,4\nb2,3,9,8\n", "l.csv");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].id, "b1");
  EXPECT_EQ((*rows)[1].id, "b2");
  EXPECT_EQ((*rows)[1].lower, Tick(3));
  EXPECT_EQ((*rows)[1].upper, Tick(9));
  EXPECT_EQ((*rows)[1].size, Bytes(8));
  EXPECT_EQ((*rows)[1].alignment, Bytes(1));
}

TEST(LifetimeCsv, ReadsEveryNameOfAColumnInAnyOrder) {
  for (const std::string id : {"id", "buffer", "buffer_id"}) {
    for (const std::string lower : {"lower", "start", "begin"}) {
      const auto rows =
          ParseLifetimeCsv("alignment,size," + lower + ",upper," + id + "\n64,100,5,7,x\n", "l");
      ASSERT_TRUE(rows.ok()) << rows.status();
      const Lifetime& row = rows->at(0);
      EXPECT_EQ(row.id, "x");
      EXPECT_EQ(row.lower, Tick(5));
      EXPECT_EQ(row.upper, Tick(7));
      EXPECT_EQ(row.size, Bytes(100));
      EXPECT_EQ(row.alignment, Bytes(64));
    }
  }
}

TEST(LifetimeCsv, AnEndIsIncluded) {
  const auto rows = ParseLifetimeCsv("buffer,start,end,size\n0,5,5,1\n", "l");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->at(0).upper, Tick(6));
  EXPECT_THAT(LifetimeError("buffer,start,end,size\n0,5,4,1\n"), HasSubstr("end must be at least lower"));
}

TEST(LifetimeCsv, RefusesColumnsItWouldHaveToIgnore) {
  for (const std::string column : {"offsets", "colour", ""}) {
    EXPECT_THAT(LifetimeError("id,lower,upper,size," + column + "\n"),
                StartsWith("l.csv:1: column '" + column + "' is not supported"));
  }
}

TEST(LifetimeCsv, ReadsWhatFewFilesHave) {
  const auto rows =
      ParseLifetimeCsv("id,lower,upper,size,offset,gaps,lane\na,0,30,4,16,3-5 7-8,2\nb,0,3,4,,,0\n", "l");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->at(0).offset, Offset(16));
  EXPECT_EQ(rows->at(0).lane, 2);
  ASSERT_EQ(rows->at(0).gaps.size(), 2u);
  EXPECT_EQ(rows->at(0).gaps[0].lower, Tick(3));
  EXPECT_EQ(rows->at(0).gaps[0].upper, Tick(5));
  EXPECT_EQ(rows->at(0).gaps[1].upper, Tick(8));
  EXPECT_EQ(rows->at(1).offset, std::nullopt);
  EXPECT_TRUE(rows->at(1).gaps.empty());
}

TEST(LifetimeCsv, AGapsEndIsIncludedAsALifetimesIs) {
  const auto rows = ParseLifetimeCsv("id,start,end,size,gaps\na,0,30,4,3-5\n", "l");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->at(0).gaps.at(0).upper, Tick(6));
}

TEST(LifetimeCsv, RefusesGapsThatAreNone) {
  const auto error = [](const std::string& gaps) {
    return LifetimeError("id,lower,upper,size,gaps\na,0,10,1," + gaps + "\n");
  };
  EXPECT_EQ(error("3"), "l.csv:2: gap '3' is not of the form LOWER-UPPER");
  EXPECT_EQ(error("3-x"), "l.csv:2: gap '3-x' is not of the form LOWER-UPPER");
  EXPECT_THAT(error("3-3"), HasSubstr("gap '3-3' is empty"));
  EXPECT_THAT(error("0-3"), HasSubstr("not strictly within the lifetime [0, 10)"));
  EXPECT_THAT(error("7-10"), HasSubstr("not strictly within the lifetime [0, 10)"));
  EXPECT_THAT(error("2-4 4-5"), HasSubstr("gap '4-5' is empty, not after the one before"));
  EXPECT_THAT(error("2-4@0:1"), HasSubstr("keeps a window of the buffer in use"));
}

TEST(LifetimeCsv, RefusesAHeaderThatSaysTooLittleOrTwice) {
  for (const std::string header :
       {"", "id,lower,upper\n", "lower,upper,size\n", "id,upper,size\n", "id,lower,size\n"}) {
    EXPECT_THAT(LifetimeError(header), HasSubstr("expected the header 'id,lower,upper,size'")) << header;
  }
  EXPECT_THAT(LifetimeError("id,lower,start,upper,size\n"), HasSubstr("column 'start' says again"));
  EXPECT_THAT(LifetimeError("id,lower,upper,end,size\n"), HasSubstr("column 'end' says again"));
}

TEST(LifetimeCsv, RefusesAnEmptyLifetime) {
  EXPECT_EQ(LifetimeError("id,lower,upper,size\na,3,3,1\n"),
            "l.csv:2: the lifetime [3, 3) is empty; upper must be above lower");
  EXPECT_THAT(LifetimeError("id,lower,upper,size\na,4,3,1\n"),
              StartsWith("l.csv:2: the lifetime [4, 3) is empty"));
}

TEST(LifetimeCsv, RefusesARowCutShort) {
  EXPECT_EQ(LifetimeError("id,lower,upper,size\na,0,3,4\nb,0,3"),
            "l.csv:3: 3 fields where the header has 4; the row is truncated");
  EXPECT_THAT(LifetimeError("id,lower,upper,size\na,0,3,4,5\n"), HasSubstr("remove the rest"));
}

TEST(LifetimeCsv, RefusesNumbersThatAreNone) {
  for (const std::string bad : {"-1", "9223372036854775807", "99999999999999999999", "x", ""}) {
    EXPECT_THAT(LifetimeError("id,lower,upper,size\na," + bad + ",3,4\n"),
                StartsWith("l.csv:2: lower is '" + bad));
    EXPECT_THAT(LifetimeError("id,lower,upper,size\na,0," + bad + ",4\n"),
                StartsWith("l.csv:2: upper is '" + bad));
    EXPECT_THAT(LifetimeError("id,lower,upper,size\na,0,3," + bad + "\n"),
                StartsWith("l.csv:2: size is '" + bad));
  }
  EXPECT_THAT(LifetimeError("id,lower,upper,size\na,0,3,0\n"), StartsWith("l.csv:2: size is '0'"));
  EXPECT_THAT(LifetimeError("id,lower,upper,size,alignment\na,0,3,1,0\n"),
              StartsWith("l.csv:2: alignment is '0'"));
}

TEST(LifetimeCsv, RefusesSizesThatCannotBeSummed) {
  std::string rows = "id,lower,upper,size,offset\n";  // pinned where one was before, each as far up as can be
  for (const std::string tick : {"0", "1", "2"}) {
    rows += tick + "," + tick + "," + tick + "9," + std::to_string((int64_t{1} << 61) - 2) + ",0\n";
  }
  EXPECT_THAT(LifetimeError(rows), StartsWith("l.csv:4: the sizes sum to more than 2^62"));
}

// The planner's limits are the reader's, who knows the line.
TEST(LifetimeCsv, RefusesWhatEndsBeyondTheLargestOffset) {
  const int64_t most = (int64_t{1} << 61) - 1;
  const auto rows = [](int64_t size, int64_t alignment, const std::string& pinned) {
    return "id,lower,upper,size,alignment,offset\np,0,1,7,1," + pinned + "\na,0,3," + std::to_string(size) +
           "," + std::to_string(alignment) + ",\n";
  };
  EXPECT_TRUE(ParseLifetimeCsv(rows(most - 8, 1, "0"), "l.csv").ok());
  const std::string fault =
      "l.csv:3: all blocks on top of each other, each with room to be aligned, end above the largest offset";
  EXPECT_THAT(LifetimeError(rows(most - 7, 1, "0")), StartsWith(fault));
  EXPECT_THAT(LifetimeError(rows(1, most - 7, "0")), StartsWith(fault));
  EXPECT_THAT(LifetimeError(rows(1, 1, std::to_string(most - 8))), StartsWith(fault));
  EXPECT_THAT(LifetimeError(rows(1, 1, std::to_string(int64_t{1} << 62))), StartsWith("l.csv:2: "));
}

TEST(LifetimeCsv, TheMostThatASizeCanBeIsTaken) {
  const std::string most = std::to_string((int64_t{1} << 61) - 2);
  const std::string more = std::to_string((int64_t{1} << 61) - 1);
  const auto rows = [](const std::string& size) { return "id,lower,upper,size\na,0,3," + size + "\n"; };
  EXPECT_TRUE(ParseLifetimeCsv(rows(most), "l.csv").ok());
  EXPECT_THAT(LifetimeError(rows(more)), HasSubstr("from 1 to " + most));
  const auto events = [](const std::string& bytes) {
    return "event,id,bytes,stream\nalloc,0," + bytes + ",0\nfree,0,,0\n";
  };
  EXPECT_TRUE(ParseEventCsv(events(most), "e.csv").ok());
  EXPECT_THAT(EventError(events(more)), HasSubstr("from 1 to " + most));
}

TEST(LifetimeCsv, RefusesAnIdTwiceOrNone) {
  EXPECT_THAT(LifetimeError("id,lower,upper,size\na,0,3,1\na,3,5,1\n"),
              StartsWith("l.csv:3: id 'a' was used on line 2"));
  EXPECT_THAT(LifetimeError("id,lower,upper,size\n,0,3,1\n"), StartsWith("l.csv:2: the id is empty"));
}

TEST(BothCsv, AreToldApartByTheirHeader) {
  EXPECT_TRUE(
      LooksLikeEventCsv("\xEF\xBB\xBF"
                        "event,id\r\n"));
  EXPECT_FALSE(LooksLikeEventCsv("id,lower,upper,size\n"));
  EXPECT_TRUE(LooksLikeLifetimeCsv("start,end\n"));
  EXPECT_FALSE(LooksLikeLifetimeCsv("{\"offsets\": []}"));
  EXPECT_FALSE(LooksLikeLifetimeCsv(""));
}

TEST(BothCsv, ReadTheBenchData) {
  const char* bench = std::getenv("REPRISE_BENCH");
  if (bench == nullptr) GTEST_SKIP() << "REPRISE_BENCH is not set: no real files to read";
  int files = 0;
  for (const std::string folder : {"events", "lifetimes", "minimalloc"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(bench) / folder)) {
      if (entry.path().extension() != ".csv") continue;
      ++files;
      const std::string contents = *ReadFile(entry.path());
      if (folder != "events") {
        const auto rows = ParseLifetimeCsv(contents, entry.path().string());
        EXPECT_TRUE(rows.ok()) << rows.status();
        continue;
      }
      const auto events = ParseEventCsv(contents, entry.path().string());
      ASSERT_TRUE(events.ok()) << events.status();
      EventChecker checker;
      for (const Event& event : *events) ASSERT_TRUE(checker.Add(event).ok());
    }
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace reprise::profiler
