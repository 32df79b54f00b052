// Why this exists: ranks by the thousand may each hold sizes of their own. A table that has a place for every
// rank in every row ends in std::bad_alloc then, and the page on what went wrong is what is missing.
#include "cli/rank_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

// Of all that the program takes by `new`.
size_t taken = 0;
size_t most_taken = 0;
constexpr size_t kHeader = alignof(std::max_align_t);

}  // namespace

// Out of line, or GCC takes what lies in front of a block for a mistake.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* const at = std::malloc(bytes + kHeader);
  if (at == nullptr) throw std::bad_alloc();
  *static_cast<size_t*>(at) = bytes;
  taken += bytes;
  most_taken = std::max(most_taken, taken);
  return static_cast<char*>(at) + kHeader;
}

// A sanitizer has one of its own, which would not go by ours.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

[[gnu::noinline]] void operator delete(void* at) noexcept {
  if (at == nullptr) return;
  void* const begin = static_cast<char*>(at) - kHeader;
  taken -= *static_cast<size_t*>(begin);
  std::free(begin);
}

[[gnu::noinline]] void operator delete(void* at, size_t) noexcept { operator delete(at); }

namespace reprise::cli {
namespace {

using ::testing::ElementsAre;

RankTable::Rows TakenFrom(const std::vector<RankTable::Held>& ranks, size_t most_rows = 200) {
  RankTable table;
  for (size_t i = 0; i < ranks.size(); ++i) table.Add(i, ranks[i]);
  return std::move(table).Take(ranks.size(), most_rows);
}

RankTable::Row RowOf(const std::vector<int64_t>& held) {
  std::vector<RankTable::Held> ranks(held.size());
  for (size_t i = 0; i < held.size(); ++i) {
    if (held[i] > 0) ranks[i]["x"] = Bytes(held[i]);
  }
  const RankTable::Rows taken = TakenFrom(ranks);
  EXPECT_EQ(taken.rows.size(), 1U);
  return taken.rows.front();
}

TEST(RankTable, WhoHasNothingCounts) {
  const RankTable::Row row = RowOf({0, 5, 0, 0, 9});
  EXPECT_THAT(row.bytes, ElementsAre(Bytes(0), Bytes(5), Bytes(0), Bytes(0), Bytes(9)));
  EXPECT_EQ(row.least, Bytes(0));
  EXPECT_EQ(row.median, Bytes(0));
  EXPECT_EQ(row.most, Bytes(9));
  EXPECT_EQ(row.most_column, 4U);
}

// Of an even number the mean of the two in the middle.
TEST(RankTable, Medians) {
  EXPECT_EQ(RowOf({0, 5, 9}).median, Bytes(5));
  EXPECT_EQ(RowOf({9, 0, 0}).median, Bytes(0));
  EXPECT_EQ(RowOf({8, 6, 2, 1}).median, Bytes(4));
  EXPECT_EQ(RowOf({8, 6, 0, 0}).median, Bytes(3));
  EXPECT_EQ(RowOf({8, 0, 0, 0}).median, Bytes(0));
  EXPECT_EQ(RowOf({7}).median, Bytes(7));
  EXPECT_EQ(RowOf({4, 3, 2}).least, Bytes(2));
}

TEST(RankTable, OfEqualsTheFirstHasTheMost) { EXPECT_EQ(RowOf({0, 8, 8, 3}).most_column, 1U); }

TEST(RankTable, TheFurthestAboveTheMedianComesFirstAndTheRestIsCounted) {
  const std::vector<RankTable::Held> ranks = {{{"all", Bytes(90)}, {"b", Bytes(7)}, {"a", Bytes(7)}},
                                              {{"all", Bytes(90)}, {"one", Bytes(8)}},
                                              {{"all", Bytes(91)}}};
  const RankTable::Rows taken = TakenFrom(ranks, 3);
  ASSERT_EQ(taken.rows.size(), 3U);
  EXPECT_EQ(taken.rows[0].label + taken.rows[1].label + taken.rows[2].label, "oneab");
  EXPECT_EQ(taken.left, 1U);
}

TEST(RankTable, NothingAtAll) {
  EXPECT_TRUE(TakenFrom({}).rows.empty());
  EXPECT_TRUE(TakenFrom({{}, {}}).rows.empty());
}

// A place for every rank in every row would be 128 MiB here; what was added is 8000 cells.
TEST(RankTable, MemoryIsThatOfWhatWasAdded) {
  constexpr int kRanks = 4000;
  RankTable table;
  const size_t before = taken;
  most_taken = before;
  for (int rank = 0; rank < kRanks; ++rank) {
    table.Add(rank, {{"own " + std::to_string(rank), Bytes(rank + 1)}, {"shared", Bytes(1)}});
  }
  const RankTable::Rows rows = std::move(table).Take(kRanks, 10);
  EXPECT_LT(most_taken - before, size_t{8} << 20);
  EXPECT_EQ(rows.left, size_t{kRanks} + 1 - 10);
  EXPECT_EQ(rows.rows.front().label, "own 3999");
  EXPECT_EQ(rows.rows.front().bytes.size(), size_t{kRanks});
}

}  // namespace
}  // namespace reprise::cli
