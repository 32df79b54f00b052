// First-fit reads its blockers from these lists; a hole that is lost costs height, one that is not there
// costs correctness. Compared with a plain set of addresses.
#include "planner/interval_lists.h"

#include <random>
#include <set>

#include "gtest/gtest.h"

namespace reprise::planner {
namespace {

int64_t Leap(const IntervalLists& lists, int32_t list, int64_t address, int64_t size, int64_t alignment) {
  IntervalLists::Cursor cursor = lists.Begin(list);
  return IntervalLists::Leap(cursor, address, size, alignment);
}

TEST(IntervalLists, LeapsOverWhatIsTaken) {
  IntervalLists lists(1);
  lists.Insert(0, 10, 20);
  lists.Insert(0, 25, 30);
  EXPECT_EQ(Leap(lists, 0, 0, 10, 1), 0);
  EXPECT_EQ(Leap(lists, 0, 0, 11, 1), 30);
  EXPECT_EQ(Leap(lists, 0, 1, 10, 1), 30);
  EXPECT_EQ(Leap(lists, 0, 1, 5, 1), 1);
  EXPECT_EQ(Leap(lists, 0, 12, 5, 1), 20);
  EXPECT_EQ(Leap(lists, 0, 12, 4, 8), 32) << "24 is aligned, but not free for 4 bytes";
  EXPECT_EQ(Leap(lists, 0, 100, 5, 1), 100);
}

TEST(IntervalLists, JoinsWhatTouches) {
  IntervalLists lists(2);
  lists.Insert(0, 10, 20);
  lists.Insert(0, 30, 40);
  lists.Insert(0, 20, 30);
  EXPECT_EQ(Leap(lists, 0, 10, 1, 1), 40);
  EXPECT_TRUE(lists.Empty(1));
  lists.Clear();
  EXPECT_TRUE(lists.Empty(0));
  EXPECT_EQ(Leap(lists, 0, 10, 1, 1), 10);
}

TEST(IntervalLists, ACursorWalksToEverHigherAddresses) {
  IntervalLists lists(1);
  for (int64_t i = 0; i < 100; ++i) lists.Insert(0, 10 * i, 10 * i + 6 + i % 4);
  IntervalLists::Cursor cursor = lists.Begin(0);
  int64_t address = 0;
  for (int64_t step = 0; address < 1100; ++step) {
    const int64_t size = 1 + step % 4;
    const int64_t leapt = IntervalLists::Leap(cursor, address, size, 1);
    ASSERT_EQ(leapt, Leap(lists, 0, address, size, 1)) << address << " " << size;
    address = leapt + step % 13;
  }
}

TEST(IntervalLists, AgreeWithSetsOfAddresses) {
  std::mt19937_64 random(3);
  IntervalLists lists(3);
  for (int round = 0; round < 50; ++round) {
    lists.Clear();
    std::set<int64_t> taken[3];
    for (int step = 0; step < 60; ++step) {
      const int list = static_cast<int>(random() % 3);
      const int64_t begin = static_cast<int64_t>(random() % 200);
      const int64_t end = begin + 1 + static_cast<int64_t>(random() % 6);
      lists.Insert(list, begin, end);
      for (int64_t a = begin; a < end; ++a) taken[list].insert(a);
      const int64_t size = 1 + static_cast<int64_t>(random() % 8);
      const int64_t alignment = int64_t{1} << (random() % 3);
      int64_t expected = static_cast<int64_t>(random() % 25) * alignment;
      const int64_t from = expected;
      for (auto next = taken[list].lower_bound(expected);
           next != taken[list].end() && *next < expected + size; next = taken[list].lower_bound(expected)) {
        expected += alignment;
      }
      ASSERT_EQ(Leap(lists, list, from, size, alignment), expected);
    }
  }
}

TEST(IntervalLists, LooksAtNoMoreThanItMay) {
  IntervalLists lists(1);
  for (int64_t begin = 0; begin < 100; begin += 10) lists.Insert(0, begin, begin + 8);
  IntervalLists::Cursor cursor = lists.Begin(0);
  int64_t looks = 4;
  EXPECT_EQ(IntervalLists::Leap(cursor, 0, 3, 1, looks), 38);
  EXPECT_EQ(looks, 0);
  looks = 7;
  EXPECT_EQ(IntervalLists::Leap(cursor, 38, 3, 1, looks), 98) << "goes on where it was";
  EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace reprise::planner
