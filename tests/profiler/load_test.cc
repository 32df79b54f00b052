// One loader for every command: it tells the formats by what is in the file, and says what it expected
// otherwise.
#include "profiler/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "profiler/trace_writer.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Load, ATraceByItsMagic) {
  TempFolder folder;
  auto writer = TraceWriter::Open(folder / "misnamed.csv", {.host = "here"});
  ASSERT_TRUE((*writer)->Append(Alloc(0, 4096)).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  const auto input = Load(folder / "misnamed.csv");
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->format, InputFormat::kTrace);
  EXPECT_EQ(input->trace.metadata.host, "here");
  EXPECT_EQ(input->trace.events.size(), 1u);
}

TEST(Load, AnEventCsvByItsHeader) {
  const auto input = Parse("event,id,bytes,stream\nalloc,0,8,0\n", "f");
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->format, InputFormat::kEventCsv);
  EXPECT_EQ(input->trace.events.size(), 1u);
  EXPECT_TRUE(input->trace.closed);
}

TEST(Load, ALifetimeCsvByItsHeader) {
  const auto input = Parse("buffer,start,end,size\n0,0,1,8\n", "f");
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->format, InputFormat::kLifetimeCsv);
  EXPECT_EQ(input->lifetimes.size(), 1u);
  EXPECT_TRUE(input->trace.closed);
}

TEST(Load, SaysWhatItExpected) {
  EXPECT_THAT(Text(Parse("", "f").status()), StartsWith("f: the file is empty; expected a Reprise trace"));
  for (const std::string contents : {"hello", "\n\n", "\x80\x01pickle"}) {
    EXPECT_THAT(Text(Parse(contents, "f").status()), HasSubstr("unknown format; expected a Reprise trace"))
        << contents;
  }
}

TEST(Load, AProfilersTraceByItsFirstCharacter) {
  const absl::StatusOr<Input> input =
      Parse(R"( {"traceEvents": [{"name": "[memory]", "ts": 1.5, "args": {"Bytes": 64, "Addr": 4096}}]})",
            "k.json");
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->format, InputFormat::kKineto);
  ASSERT_EQ(input->trace.events.size(), 1u);
  EXPECT_EQ(input->trace.events[0].bytes, Bytes(64));
  EXPECT_THAT(Text(Parse("{}", "k.json").status()),
              AllOf(HasSubstr("k.json: no \"[memory]\" event in it"), HasSubstr("no summary and no plans")));
}

TEST(Load, LeavesTheErrorToTheFormat) {
  EXPECT_THAT(Text(Parse("\x89REPRISE", "f").status()), HasSubstr("byte 8"));
  EXPECT_THAT(Text(Parse("\x80\x04pickle", "f").status()), HasSubstr("byte 2"));
  EXPECT_THAT(Text(Parse("event,id\n", "f").status()), HasSubstr("f:1: expected the header 'event"));
  EXPECT_THAT(Text(Parse("id,lower\n", "f").status()), HasSubstr("f:1: a column is missing"));
  EXPECT_EQ(Load("/nonexistent").status().code(), absl::StatusCode::kNotFound);
}

TEST(Parse, KnowsAPickleOfAnEarlierProtocol) {
  using namespace std::string_view_literals;
  for (const std::string_view begin : {"(dp0\n"sv, "(lp0\n"sv, "}q\0"sv, "]q\0"sv}) {
    const std::string pickle = std::string(begin) + "more.";
    EXPECT_THAT(Text(Parse(pickle, "f").status()),
                HasSubstr("f: a pickle of protocol 0 or 1; save it with protocol 2"))
        << pickle;
    EXPECT_THAT(Text(Parse(begin, "f").status()), HasSubstr("unknown format")) << "without its end";
  }
}

TEST(Parse, NamesWhatItIsCompressedBy) {
  EXPECT_THAT(Text(Parse("\x1f\x8b\x08", "trace.json.gz").status()), HasSubstr("compressed by gzip"));
  EXPECT_THAT(Text(Parse("\x28\xb5\x2f\xfd", "f").status()), HasSubstr("compressed by zstd"));
}

}  // namespace
}  // namespace reprise::profiler
