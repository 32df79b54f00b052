// Everything in a trace is made of these numbers: the ends of their range must survive, and bytes that are no
// number must be refused.
#include "profiler/varint.h"

#include <gtest/gtest.h>

#include <limits>

namespace reprise::profiler {
namespace {

TEST(Varint, KeepsNumbersOfEveryWidth) {
  for (int bits = 0; bits < 64; ++bits) {
    for (const uint64_t value : {uint64_t{1} << bits, (uint64_t{1} << bits) - 1, ~uint64_t{0} >> bits}) {
      std::string bytes;
      PutVarint(value, &bytes);
      std::string_view in = bytes;
      uint64_t back;
      ASSERT_TRUE(TakeVarint(&in, &back));
      EXPECT_EQ(back, value);
      EXPECT_TRUE(in.empty());
    }
  }
}

TEST(Varint, SmallNumbersTakeOneByte) {
  std::string bytes;
  PutVarint(127, &bytes);
  EXPECT_EQ(bytes.size(), 1u);
  PutVarint(128, &bytes);
  EXPECT_EQ(bytes.size(), 3u);
}

TEST(Varint, RefusesANumberThatEndsEarly) {
  for (std::string_view in : {"", "\x80", "\xff\xff"}) {
    uint64_t value;
    EXPECT_FALSE(TakeVarint(&in, &value));
  }
}

TEST(Varint, RefusesMoreThan64Bits) {
  std::string bytes(9, '\xff');
  uint64_t value;
  std::string largest = bytes + '\x01', beyond = bytes + '\x02', longer = bytes + "\x81\x01";
  std::string_view in = largest;
  EXPECT_TRUE(TakeVarint(&in, &value));
  EXPECT_EQ(value, ~uint64_t{0});
  in = beyond;
  EXPECT_FALSE(TakeVarint(&in, &value));
  in = longer;
  EXPECT_FALSE(TakeVarint(&in, &value));
}

TEST(ZigZag, KeepsSmallMagnitudesSmall) {
  EXPECT_EQ(ZigZag(0), 0u);
  EXPECT_EQ(ZigZag(-1), 1u);
  EXPECT_EQ(ZigZag(1), 2u);
  for (const int64_t value :
       {int64_t{-1}, int64_t{77}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(UnZigZag(ZigZag(value)), value);
  }
}

}  // namespace
}  // namespace reprise::profiler
