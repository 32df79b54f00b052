// Why: the variables and the options speak of sizes alike, and what is printed as a size is read as one.
#include "base/sizes.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(ParseWholeSize, SuffixesAreBinary) {
  EXPECT_EQ(ParseWholeSize("0"), Bytes(0));
  EXPECT_EQ(ParseWholeSize("4096"), Bytes(4096));
  EXPECT_EQ(ParseWholeSize("4096B"), Bytes(4096));
  for (const char* text : {"64K", "64k", "64KB", "64KiB", "64kiB"})
    EXPECT_EQ(ParseWholeSize(text), kKiB * 64) << text;
  EXPECT_EQ(ParseWholeSize("3MiB"), kMiB * 3);
  EXPECT_EQ(ParseWholeSize("2T"), kGiB * 2048);
  EXPECT_EQ(ParseWholeSize("3PiB"), kGiB * (int64_t{3} << 20));
  EXPECT_EQ(ParseWholeSize("7EB"), kGiB * (int64_t{7} << 30));
  EXPECT_EQ(ParseWholeSize("9223372036854775807"), Bytes(9223372036854775807));
}

TEST(ParseWholeSize, RefusesWhatIsNoSize) {
  for (const char* text : {"", "K", "-1", "+1", "1.5G", " 1", "1 K", "1Ki", "1KiBs", "1Q",
                           "9223372036854775808", "8388608T", "99999999999999999999"}) {
    EXPECT_EQ(ParseWholeSize(text), std::nullopt) << text;
  }
}

TEST(ParseWholeSize, TellsWhatIsTooLargeFromWhatIsNoSize) {
  for (const char* text : {"9223372036854775808", "8388608T", "8EiB", "99999999999999999999"})
    EXPECT_TRUE(IsMoreThanFits(text)) << text;
  for (const char* text : {"", "K", "-1", "1.5G", "1Q", "9Q", "0", "7E"})
    EXPECT_FALSE(IsMoreThanFits(text)) << text;
}

TEST(FormatSize, ForPeople) {
  EXPECT_EQ(FormatSize(Bytes(0)), "0 B");
  EXPECT_EQ(FormatSize(Bytes(1023)), "1023 B");
  EXPECT_EQ(FormatSize(kKiB), "1.00 KiB");
  EXPECT_EQ(FormatSize(kMiB * 1536), "1.50 GiB");
  EXPECT_EQ(FormatSize(kMiB - Bytes(1)), "1.00 MiB") << "not 1024.00 KiB";
  EXPECT_EQ(FormatSize(kGiB - Bytes(1)), "1.00 GiB");
  EXPECT_EQ(FormatSize(kMiB - Bytes(6)), "1023.99 KiB");
  EXPECT_EQ(FormatSize(kGiB * 61 + kMiB * 205), "61.20 GiB");
  EXPECT_EQ(FormatSize(kGiB * 1024 * 5000), "5000.00 TiB");
}

}  // namespace
}  // namespace reprise
