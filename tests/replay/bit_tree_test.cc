// Why: every placement asks this set for its nearest member, across words and levels; an answer off by one
// would be an overlap.
#include "replay/bit_tree.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace reprise::replay {
namespace {

TEST(BitTree, EmptySetHasNoMembers) {
  const BitTree tree(1000);
  EXPECT_FALSE(tree.Contains(0));
  EXPECT_EQ(tree.AtOrBefore(999), BitTree::kNone);
  EXPECT_EQ(tree.AtOrAfter(0), BitTree::kNone);
}

TEST(BitTree, FindsMembersAcrossWordsAndLevels) {
  BitTree tree(300'000);
  tree.Insert(5);
  tree.Insert(64 * 64 * 64 + 1);
  EXPECT_EQ(tree.AtOrBefore(4), BitTree::kNone);
  EXPECT_EQ(tree.AtOrBefore(5), 5u);
  EXPECT_EQ(tree.AtOrBefore(262'144), 5u);
  EXPECT_EQ(tree.AtOrAfter(6), 262'145u);
  EXPECT_EQ(tree.AtOrAfter(262'146), BitTree::kNone);
  tree.Erase(5);
  EXPECT_EQ(tree.AtOrBefore(262'144), BitTree::kNone);
}

TEST(BitTree, AsksPastTheEndOfTheUniverse) {
  BitTree tree(64);
  tree.Insert(63);
  EXPECT_EQ(tree.AtOrAfter(63), 63u);
  EXPECT_EQ(tree.AtOrAfter(64), BitTree::kNone);
}

TEST(BitTree, AgreesWithAnOrderedSet) {
  std::mt19937_64 random(1);
  for (const uint64_t universe : {1u, 63u, 64u, 65u, 4096u, 4097u, 299'999u, 300'000u}) {
    BitTree tree(universe);
    std::set<uint64_t> model;
    if (universe % 2 == 1) {
      tree.InsertAll();
      for (uint64_t i = 0; i < universe; ++i) model.insert(model.end(), i);
    }
    for (int step = 0; step < 20'000; ++step) {
      const uint64_t i = random() % universe;
      if (random() % 2 == 0) {
        tree.Insert(i);
        model.insert(i);
      } else {
        tree.Erase(i);
        model.erase(i);
      }
      const uint64_t q = random() % universe;
      const auto after = model.lower_bound(q);
      ASSERT_EQ(tree.AtOrAfter(q), after == model.end() ? BitTree::kNone : *after);
      const auto past = model.upper_bound(q);
      ASSERT_EQ(tree.AtOrBefore(q), past == model.begin() ? BitTree::kNone : *std::prev(past));
      ASSERT_EQ(tree.Contains(q), model.contains(q));
    }
  }
}

}  // namespace
}  // namespace reprise::replay
