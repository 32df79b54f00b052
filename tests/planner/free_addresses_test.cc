// What is free below a height, against a byte for each address.
#include "planner/free_addresses.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

constexpr int64_t kNowhere = FreeAddresses::kNowhere;

TEST(FreeAddresses, TheLowestFromAnAddressOn) {
  FreeAddresses free(100);
  EXPECT_EQ(free.Lowest(0, 100, 1), 0);
  EXPECT_EQ(free.Lowest(0, 101, 1), kNowhere);
  EXPECT_EQ(free.Lowest(33, 50, 16), 48);
  EXPECT_EQ(free.Lowest(33, 53, 16), kNowhere);
  EXPECT_EQ(free.Lowest(99, 1, 1), 99);
  EXPECT_EQ(free.Lowest(100, 1, 1), kNowhere);
  free.Take(10, 20);
  free.Take(40, 50);
  EXPECT_EQ(free.Lowest(0, 11, 1), 20);
  EXPECT_EQ(free.Lowest(15, 1, 1), 20);
  EXPECT_EQ(free.Lowest(0, 15, 16), 64) << "from 32 on there are 8";
}

TEST(FreeAddresses, NothingIsFreeBelowNoHeight) {
  FreeAddresses free(0);
  EXPECT_EQ(free.Lowest(0, 1, 1), kNowhere);
  free.Take(0, 10);
  EXPECT_EQ(free.Lowest(0, 1, 1), kNowhere);
}

TEST(FreeAddresses, WhatIsInUseStaysSoAndSoDoesWhatIsAboveTheHeight) {
  FreeAddresses free(100);
  free.Take(20, 40);
  free.Take(30, 60);
  free.Take(10, 70);
  free.Take(90, 1000);
  EXPECT_EQ(free.Lowest(0, 11, 1), 70);
  EXPECT_EQ(free.Lowest(70, 20, 1), 70);
  EXPECT_EQ(free.Lowest(71, 20, 1), kNowhere);
}

TEST(FreeAddresses, WhatIsGivenBackIsOneWithItsNeighbours) {
  FreeAddresses free(100);
  free.Take(0, 100);
  free.Give(20, 30);
  free.Give(40, 50);
  EXPECT_EQ(free.Lowest(0, 11, 1), kNowhere);
  free.Give(30, 40);
  EXPECT_EQ(free.Lowest(0, 30, 1), 20);
  free.Give(90, 100);
  free.Give(0, 20);
  EXPECT_EQ(free.Lowest(0, 50, 1), 0);
  const int64_t looks = free.looks();
  EXPECT_EQ(free.Lowest(10, 10, 1), 10);
  EXPECT_EQ(free.looks(), looks + 1);
}

TEST(FreeAddresses, AgreesWithAByteForEachAddress) {
  RandomProblems random(75);
  for (int round = 0; round < 200; ++round) {
    const int64_t height = 1 + random.Below(60);
    FreeAddresses free(height);
    std::string is_free(height, 'f');
    const auto lowest = [&](int64_t from, int64_t bytes, int64_t alignment) {
      for (int64_t at = (from + alignment - 1) / alignment * alignment; at + bytes <= height;
           at += alignment) {
        if (is_free.substr(at, bytes).find('-') == std::string::npos) return at;
      }
      return kNowhere;
    };
    for (int step = 0; step < 100; ++step) {
      const int64_t begin = random.Below(height), end = begin + 1 + random.Below(height - begin);
      const bool all_in_use = is_free.substr(begin, end - begin).find('f') == std::string::npos;
      if (all_in_use) {
        free.Give(begin, end);
      } else {
        free.Take(begin, end);
      }
      is_free.replace(begin, end - begin, end - begin, all_in_use ? 'f' : '-');
      const int64_t from = random.Below(height), bytes = 1 + random.Below(8), alignment = 1 + random.Below(7);
      ASSERT_EQ(free.Lowest(from, bytes, alignment), lowest(from, bytes, alignment))
          << is_free << ": " << bytes << " of " << alignment << " from " << from;
    }
  }
}

}  // namespace
}  // namespace reprise::planner
