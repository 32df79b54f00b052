// Lines and fields as people's tools write them: with a byte-order mark, CRLF, no last line end. What is no
// text is refused by its line, and so are numbers that are none.
#include "profiler/csv_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CsvRows, SplitsAndTrims) {
  CsvRows rows("a, b ,\tc\n,,\n", "f");
  ASSERT_TRUE(rows.Next());
  EXPECT_THAT(rows.fields(), ElementsAre("a", "b", "c"));
  ASSERT_TRUE(rows.Next());
  EXPECT_THAT(rows.fields(), ElementsAre("", "", ""));
  EXPECT_FALSE(rows.Next());
  EXPECT_TRUE(rows.status().ok());
}

TEST(CsvRows, AcceptsAByteOrderMarkCrlfAndNoLastLineEnd) {
  CsvRows rows(
      "\xEF\xBB\xBF"
      "a,b\r\n1,2",
      "f");
  ASSERT_TRUE(rows.Next());
  EXPECT_THAT(rows.fields(), ElementsAre("a", "b"));
  ASSERT_TRUE(rows.Next());
  EXPECT_THAT(rows.fields(), ElementsAre("1", "2"));
  EXPECT_FALSE(rows.Next());
}

TEST(CsvRows, SkipsBlankLinesButCountsThem) {
  CsvRows rows("\n \r\na\n\n", "f");
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.line(), 3);
  EXPECT_FALSE(rows.Next());
}

TEST(CsvRows, RefusesANul) {
  CsvRows rows(std::string_view("a\nb\0c\n", 6), "f");
  ASSERT_TRUE(rows.Next());
  EXPECT_FALSE(rows.Next());
  EXPECT_EQ(Text(rows.status()), "f:2: a NUL byte; this is not a text file");
}

TEST(CsvRows, RefusesALineLongerThanAnyRow) {
  const std::string text = "a\n" + std::string(1 << 20, ',');
  CsvRows rows(text, "f");
  ASSERT_TRUE(rows.Next());
  EXPECT_FALSE(rows.Next());
  EXPECT_THAT(Text(rows.status()), HasSubstr("f:2: a line of 1048576 bytes"));
}

TEST(CsvRows, ReadsNumbersInTheirRangeOnly) {
  CsvRows rows("7,-1,9223372036854775808,18446744073709551616,1.5,,0x10,+3,1 2", "f");
  ASSERT_TRUE(rows.Next());
  int64_t value;
  EXPECT_TRUE(rows.Number(0, "n", 0, 7, &value).ok());
  EXPECT_EQ(value, 7);
  EXPECT_FALSE(rows.Number(0, "n", 8, 9, &value).ok());
  EXPECT_EQ(Text(rows.Number(1, "n", 0, 9, &value)), "f:1: n is '-1'; it must be a whole number from 0 to 9");
  for (size_t i = 2; i < 9; ++i) EXPECT_FALSE(rows.Number(i, "n", 0, kMostCsvNumber, &value).ok()) << i;
  uint64_t wide;
  EXPECT_TRUE(rows.Number(2, "n", &wide).ok());
  EXPECT_EQ(wide, uint64_t{1} << 63);
  for (const size_t i : {1, 3, 4, 5, 6, 7, 8}) EXPECT_FALSE(rows.Number(i, "n", &wide).ok()) << i;
}

TEST(Quoted, EscapesAndShortens) {
  EXPECT_EQ(Quoted("a\x1b[0m"), "'a\\x1b[0m'");
  EXPECT_EQ(Quoted(std::string(100, 'x')), "'" + std::string(40, 'x') + "...'");
}

}  // namespace
}  // namespace reprise::profiler
