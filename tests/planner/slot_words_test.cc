// An entry that is missed puts two buffers on the same bytes. Compared with a set of addresses for each slot.
#include "planner/slot_words.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/random_problem.h"

namespace reprise::planner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Part = SlotWords::Part;

auto IsPart(int32_t word, uint64_t slots) {
  return testing::AllOf(testing::Field(&Part::word, word), testing::Field(&Part::slots, slots));
}

// One block a slot, and so `slots` slots.
Instance OneAfterTheOther(int64_t slots) {
  Problem problem;
  for (int64_t slot = 0; slot < slots; ++slot) problem.buffers.push_back(Block(slot, slot + 1, 1));
  return Compress(problem);
}

TEST(SlotWords, SplitsRangesIntoWordsAndParts) {
  const SlotWords words(OneAfterTheOther(200));
  ASSERT_EQ(words.count(), 4);
  const auto split = [&](Range range, std::vector<Part>& parts) { return words.Split(range, parts); };
  std::vector<Part> parts;
  EXPECT_EQ(split({64, 192}, parts), (Range{1, 3}));
  EXPECT_EQ(split({0, 200}, parts), (Range{0, 4}));
  EXPECT_EQ(split({192, 200}, parts), (Range{3, 4})) << "all there is of the last word";
  EXPECT_THAT(parts, IsEmpty());
  Range covered = split({62, 130}, parts);
  EXPECT_EQ(covered, (Range{1, 2}));
  EXPECT_THAT(parts, ElementsAre(IsPart(0, uint64_t{3} << 62), IsPart(2, 3)));
  parts.clear();
  covered = split({62, 65}, parts);
  EXPECT_EQ(covered.begin, covered.end);
  EXPECT_THAT(parts, ElementsAre(IsPart(0, uint64_t{3} << 62), IsPart(1, 1)));
  parts.clear();
  split({3, 5}, parts);
  split({7, 8}, parts);
  EXPECT_THAT(parts, ElementsAre(IsPart(0, 0b10011000))) << "of one buffer, one part";
}

TEST(SlotWords, EndWhereManyBeginOrEnd) {
  Problem problem;
  for (int64_t tick = 0; tick < 10; ++tick) {
    for (int copy = 0; copy < 1000; ++copy) problem.buffers.push_back(Block(tick, tick + 1, 1));
  }
  const SlotWords words(Compress(problem));
  EXPECT_EQ(words.count(), 10);
  std::vector<Part> parts;
  EXPECT_EQ(words.Split({3, 4}, parts), (Range{3, 4}));
  EXPECT_THAT(parts, IsEmpty()) << "one slot is covered or not";
}

TEST(SlotWords, NoSlotsOneWord) { EXPECT_EQ(SlotWords(Compress({})).count(), 1); }

// Of gaps, cycles, and few ticks with many buffers, for words that end early.
Problem AnyProblem(RandomProblems& random, int round) {
  return random.Make({.buffers = 20 + 60 * (round % 7),
                      .ticks = 2 + random.Below(400),
                      .cyclic = round % 2 == 1,
                      .gaps = round % 3 == 1});
}

TEST(SlotWords, PartsAndCoveredWordsAreTheRanges) {
  RandomProblems random(7);
  for (int round = 0; round < 21; ++round) {
    const Instance instance = Compress(AnyProblem(random, round));
    const SlotWords words(instance);
    // By word, its slots; a slot's bit is its place there.
    std::vector<std::vector<int32_t>> slots_of(words.count());
    for (int32_t slot = 0; slot < instance.slots; ++slot) {
      std::vector<Part> parts;
      const Range covered = words.Split({slot, slot + 1}, parts);
      slots_of[parts.empty() ? covered.begin : parts.front().word].push_back(slot);
    }
    for (int32_t i = 0; i < instance.buffers(); ++i) {
      std::vector<int32_t> expected, found;
      std::vector<Part> parts;
      for (const Range& range : instance.ranges(i)) {
        for (int32_t slot = range.begin; slot < range.end; ++slot) expected.push_back(slot);
        const Range covered = words.Split(range, parts);
        for (int32_t word = covered.begin; word < covered.end; ++word)
          found.insert(found.end(), slots_of[word].begin(), slots_of[word].end());
      }
      for (const Part& part : parts) {
        for (size_t bit = 0; bit < slots_of[part.word].size(); ++bit) {
          if ((part.slots >> bit & 1) != 0) found.push_back(slots_of[part.word][bit]);
        }
      }
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found, expected) << round << " " << i;
    }
  }
}

TEST(SlotWords, AgreeWithSetsOfAddresses) {
  RandomProblems random(5);
  int64_t leaps = 0;
  for (int round = 0; round < 7; ++round) {
    const Instance instance = Compress(AnyProblem(random, round));
    SlotWords words(instance);
    for (int pass = 0; pass < 2; ++pass) {
      words.Clear();
      std::map<std::pair<int32_t, int>, std::set<int64_t>> taken;  // by word and bit
      for (int32_t i = 0; i < instance.buffers(); ++i) {
        std::vector<Part> parts;
        for (const Range& range : instance.ranges(i)) words.Split(range, parts);
        const int64_t at = random.Below(200);
        for (const Part& part : parts) {
          const int64_t size = 1 + random.Below(8);
          const int64_t alignment = int64_t{1} << random.Below(3);
          const int64_t from = random.Below(25) * alignment;
          std::set<int64_t> all;
          for (int bit = 0; bit < 64; ++bit) {
            if ((part.slots >> bit & 1) == 0) continue;
            std::set<int64_t>& slot = taken[{part.word, bit}];
            all.insert(slot.begin(), slot.end());
            for (int64_t address = at; address < at + instance.size[i]; ++address) slot.insert(address);
          }
          int64_t expected = from;
          for (auto next = all.lower_bound(expected); next != all.end() && *next < expected + size;
               next = all.lower_bound(expected)) {
            expected += alignment;
          }
          SlotWords::Cursor cursor = words.Begin(part);
          ASSERT_EQ(SlotWords::Leap(cursor, from, size, alignment), expected) << round << " " << i;
          const int64_t later = expected + random.Below(9) * alignment;
          SlotWords::Cursor fresh = words.Begin(part);
          ASSERT_EQ(SlotWords::Leap(cursor, later, 1, alignment), SlotWords::Leap(fresh, later, 1, alignment))
              << "a walk goes on where it is";
          leaps += expected != from;
          words.Insert(part, at, at + instance.size[i]);
        }
      }
    }
  }
  EXPECT_GT(leaps, 500);
}

}  // namespace
}  // namespace reprise::planner
