// Numbers come from variables and files of others: what is not one as a whole must not be taken for one.
#include "base/numbers.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace reprise {
namespace {

TEST(ParseNumber, ReadsWhatIsANumberAsAWhole) {
  EXPECT_EQ(ParseNumber<int>("0"), 0);
  EXPECT_EQ(ParseNumber<int>("-12"), -12);
  EXPECT_EQ(ParseNumber<uint64_t>("18446744073709551615"), UINT64_MAX);
  for (const char* const text : {"", " 1", "1 ", "+1", "0x1", "1.0", "1k", "-"})
    EXPECT_FALSE(ParseNumber<int>(text).has_value()) << '"' << text << '"';
}

TEST(ParseNumber, RefusesWhatDoesNotFit) {
  EXPECT_FALSE(ParseNumber<int>("2147483648").has_value());
  EXPECT_FALSE(ParseNumber<uint64_t>("-1").has_value());
  EXPECT_FALSE(ParseNumber<int64_t>("9223372036854775808").has_value());
}

}  // namespace
}  // namespace reprise
