// Whoever is ejected must wait for a place, what cannot be ejected must stay, and the same one must not be ejected for ever.
#include "planner/ejector.h"

#include <set>

#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

double AreaBelow(int64_t height, const Instance& instance) {
  return static_cast<double>(height) * instance.slots;
}

TEST(Ejector, NobodyIsEjectedWhereThereIsRoom) {
  const Instance instance = Compress({{Block(0, 2, 4), Block(0, 2, 4)}});
  Ejector ejector(instance, 8, AreaBelow(8, instance));
  ejector.Put(0, 0);
  ejector.Wait(1);
  EXPECT_TRUE(ejector.Move(8));
  EXPECT_FALSE(ejector.anybody_waits());
  EXPECT_EQ(ejector.pile().offset(0), 0);
  EXPECT_EQ(ejector.pile().offset(1), 4);
}

// The small one, and it goes where the large one would not have fitted.
TEST(Ejector, TheOneThatIsWorthTheLeastMakesRoomAndFindsSomeElsewhere) {
  const Instance instance = Compress({{Block(0, 4, 6), Block(2, 4, 1), Block(0, 4, 3)}});
  Ejector ejector(instance, 10, AreaBelow(10, instance));
  ejector.Put(0, 0);
  ejector.Put(1, 8);
  ejector.Wait(2);
  EXPECT_TRUE(ejector.Move(10));
  EXPECT_EQ(ejector.pile().offset(2), 6);
  ASSERT_TRUE(ejector.anybody_waits());
  EXPECT_FALSE(ejector.pile().has(1));
  EXPECT_TRUE(ejector.Move(10));
  EXPECT_EQ(ejector.pile().offset(1), 9);
  EXPECT_FALSE(ejector.anybody_waits());
}

TEST(Ejector, WhatIsPinnedStays) {
  const Instance instance = Compress({{Pinned(0, 2, 4, 2), Block(0, 2, 4)}});
  Ejector ejector(instance, 8, AreaBelow(8, instance));
  ejector.Put(0, 2);
  ejector.Wait(1);
  EXPECT_FALSE(ejector.Move(8));
  EXPECT_TRUE(ejector.anybody_waits());
  EXPECT_TRUE(ejector.Move(10)) << "it has waited on";
  EXPECT_EQ(ejector.pile().offset(1), 6);
}

// There is room for two of the three.
TEST(Ejector, WhoFindsNoRoomBecomesTooDearToEject) {
  const Instance instance = Compress({{Block(0, 2, 5), Block(0, 2, 4), Block(0, 2, 3)}});
  Ejector ejector(instance, 9, AreaBelow(9, instance));
  for (const int32_t buffer : {0, 1, 2}) ejector.Wait(buffer);
  std::set<int32_t> out;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(ejector.Move(9));
    for (const int32_t buffer : {0, 1, 2}) {
      if (i > 2 && !ejector.pile().has(buffer)) out.insert(buffer);
    }
  }
  EXPECT_EQ(out.size(), 3u) << "each has been out";
  ejector.Clear();
  EXPECT_FALSE(ejector.anybody_waits());
  EXPECT_FALSE(ejector.pile().has(0));
}

}  // namespace
}  // namespace reprise::planner
