// Why this exists: a size that is read wrong becomes a limit that is wrong by a factor of a thousand.
#include "cli/quantity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

namespace reprise::cli {
namespace {

std::optional<int64_t> Size(std::string_view text) {
  const std::optional<Bytes> bytes = ParseSize(text);
  return bytes ? std::optional(bytes->count()) : std::nullopt;
}

TEST(ParseSize, PlainNumbersAreBytes) {
  EXPECT_EQ(Size("1"), 1);
  EXPECT_EQ(Size("1048576"), 1048576);
  EXPECT_EQ(Size("12B"), 12);
}

TEST(ParseSize, UnitsAreBinaryHoweverTheyAreSpelt) {
  for (const char* text : {"64K", "64KB", "64KiB", "64k", "64kB"}) EXPECT_EQ(Size(text), 65536) << text;
  EXPECT_EQ(Size("3M"), 3 << 20);
  EXPECT_EQ(Size("10GB"), int64_t{10} << 30);
  EXPECT_EQ(Size("2T"), int64_t{2} << 40);
  EXPECT_EQ(Size("1.5PiB"), int64_t{3} << 49);
  EXPECT_EQ(Size("7E"), int64_t{7} << 60);
}

TEST(ParseSize, Fractions) {
  EXPECT_EQ(Size("1.5GiB"), int64_t{3} << 29);
  EXPECT_EQ(Size("0.5K"), 512);
}

TEST(ParseSize, LargeWholeNumbersAreExact) {
  EXPECT_EQ(Size("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(Size("9007199254740993"), 9007199254740993);  // a double would make it even
}

TEST(ParseSize, WhatIsNone) {
  for (const char* text : {"", "0", "-1", "K", "1X", "1KX", "1 K", " 1", "1e3", "0.1", "nan", "inf", "0x10",
                           "9223372036854775808", "9000000T", "1KiBB"}) {
    EXPECT_EQ(Size(text), std::nullopt) << text;
  }
}

TEST(ParseDuration, Units) {
  EXPECT_EQ(ParseDuration("10"), 10);
  EXPECT_EQ(ParseDuration("10s"), 10);
  EXPECT_EQ(ParseDuration("500ms"), 0.5);
  EXPECT_EQ(ParseDuration("2m"), 120);
  EXPECT_EQ(ParseDuration("1.5h"), 5400);
  EXPECT_EQ(ParseDuration("99999999999999999999h"), kForEver);
}

TEST(ParseDuration, WhatIsNone) {
  for (const char* text : {"", "0s", "-1s", "s", "1 s", "1d", "soon"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(ParsePercent, Percentages) {
  EXPECT_EQ(ParsePercent("5%"), 5);
  EXPECT_EQ(ParsePercent("0.5%"), 0.5);
  EXPECT_EQ(ParsePercent("0%"), 0);
}

TEST(ParsePercent, WhatIsNone) {
  for (const char* text :
       {"", "%", "5", "-1%", "-0%", "+5%", " 5%", "5 %", "5%%", "0x10%", "1e2%", "nan%", "inf%"}) {
    EXPECT_EQ(ParsePercent(text), std::nullopt) << text;
  }
}

TEST(FormatSignedSize, ASignInFront) {
  EXPECT_EQ(FormatSignedSize(Bytes(-1536)), "-1.50 KiB");
  EXPECT_EQ(FormatSignedSize(Bytes(1536)), "1.50 KiB");
  EXPECT_EQ(FormatSignedSize(Bytes(1536), "+"), "+1.50 KiB");
  EXPECT_EQ(FormatSignedSize(Bytes(0), "+"), "+0 B");
  EXPECT_EQ(FormatSignedSize(Bytes(std::numeric_limits<int64_t>::min())), "-8388608.00 TiB")
      << "it has no opposite";
}

TEST(FormatDuration, ShortOnesInMilliseconds) {
  EXPECT_EQ(FormatDuration(0.0123), "12.3 ms");
  EXPECT_EQ(FormatDuration(1e-7), "0.0001 ms") << "not 0.0 ms, which no limit can be";
  EXPECT_EQ(FormatDuration(0), "0.0 ms");
  EXPECT_EQ(FormatDuration(1.239), "1.24 s");
}

TEST(FormatShare, Percent) { EXPECT_EQ(FormatShare(0.98765), "98.77 %"); }

}  // namespace
}  // namespace reprise::cli
