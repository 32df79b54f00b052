// Why: a block that is taken to stay, and does not, keeps the slots of a plan's first cycle out of where it lies; one that is
// taken to go, and does not, is in their way.
#include "replay/residents.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace reprise::replay {
namespace {

constexpr Bytes kSmall{8192};
constexpr Bytes kLarge{65536};

profiler::Slot SlotOf(Bytes bytes, int64_t length) { return {.bytes = bytes, .length = length}; }

// Behind its last slot 0, 2 and 4 are live, for 3, 1 and 2 slots more.
ServingPlan Plan() {
  ServingPlan plan;
  plan.cycle = {SlotOf(kSmall, 9), SlotOf(kLarge, 2), SlotOf(kSmall, 5),
                SlotOf(kSmall, 1), SlotOf(kLarge, 4), SlotOf(kSmall, 6)};
  plan.cycle[5].persistent = true;
  for (const profiler::Slot& slot : plan.cycle) plan.slots.push_back({.bytes = slot.bytes});
  return plan;
}

LiveBlock Block(int64_t token, Bytes bytes) {
  return {.offset = Offset(token * 65536), .bytes = bytes, .requested = bytes, .token = Tick(token)};
}

std::vector<int64_t> Untils(const std::vector<LiveBlock>& blocks, const ServingPlan& plan = Plan()) {
  std::vector<int64_t> untils;
  for (const Resident& resident : ResidentsOf(plan, /*from=*/0, Tick(100), blocks))
    untils.push_back(resident.until);
  return untils;
}

constexpr int64_t kStays = Resident::kStays;

TEST(Residents, LieWhereTheyLie) {
  LiveBlock block = Block(7, kSmall);
  block.bytes = kLarge;
  const std::vector<Resident> residents = ResidentsOf(Plan(), 0, Tick(100), std::vector{block});
  ASSERT_EQ(residents.size(), 1u);
  EXPECT_EQ(residents[0].offset, block.offset);
  EXPECT_EQ(residents[0].bytes, kLarge);
}

TEST(Residents, OfWhichTheSlotIsKnownGoWhenTheCycleFreesThem) {
  LiveBlock block = Block(98, kLarge);
  block.slot = 4;
  EXPECT_EQ(Untils({block}), std::vector<int64_t>({2}));
}

TEST(Residents, SeenInTheStartAreOfTheLatestRound) {
  LiveBlock block = Block(3, kSmall);
  block.slot_in_start = 2;
  EXPECT_EQ(Untils({block}), std::vector<int64_t>({1}));
  block.slot_in_start = 3;  // which is over by now, and the block is there: it was another one
  EXPECT_EQ(Untils({block}), std::vector<int64_t>({1})) << "as if nothing had been seen";
}

TEST(Residents, SeenInTheStartAsASlotOfAnotherSizeAreNot) {
  LiveBlock block = Block(3, kLarge);
  block.slot_in_start = 2;
  EXPECT_EQ(Untils({block}), std::vector<int64_t>({2})) << "the only large one that is live then";
}

TEST(Residents, OfWhichNothingIsKnownAreWhatTheCycleHasLive) {
  EXPECT_EQ(Untils({Block(1, kLarge)}), std::vector<int64_t>({2}));
  EXPECT_EQ(Untils({Block(1, kSmall), Block(2, kSmall)}), std::vector<int64_t>({3, 1}))
      << "the youngest, slot 2";
  EXPECT_EQ(Untils({Block(2, kSmall), Block(3, kSmall), Block(1, kSmall)}),
            std::vector<int64_t>({3, 1, kStays}));
}

TEST(Residents, StayWhereTheyAreKnownToOrTheCycleHasNoSuchBlock) {
  LiveBlock weight = Block(1, kSmall);
  weight.stays = true;
  EXPECT_EQ(Untils({weight}), std::vector<int64_t>({kStays}));
  EXPECT_EQ(Untils({Block(1, Bytes(4096))}), std::vector<int64_t>({kStays}));
  LiveBlock elsewhere = Block(1, kLarge);
  elsewhere.stream = Stream{7};
  EXPECT_EQ(Untils({elsewhere}), std::vector<int64_t>({kStays}));
  EXPECT_EQ(Untils({Block(-1, kSmall)}), std::vector<int64_t>({kStays})) << "no token of the job's";
}

TEST(Residents, TakeNoSlotThatAnotherIsKnownToBe) {
  LiveBlock known = Block(96, kSmall);
  known.slot = 2;
  EXPECT_EQ(Untils({known, Block(1, kSmall), Block(0, kSmall)}), std::vector<int64_t>({1, 3, kStays}));
}

// Of two rounds alike it was in the second. By its size it would be the younger slot of that size, 26.
TEST(Residents, SeenInTheStartOfAPlanOfSeveralRoundsAreOfTheLatest) {
  ServingPlan plan;
  for (int64_t i = 0; i < 64; ++i) {
    const int64_t like = i % 32 == 26 ? 20 : i % 32;
    plan.cycle.push_back(SlotOf(Bytes(4096 + 512 * like), 33));
  }
  for (const profiler::Slot& slot : plan.cycle) plan.slots.push_back({.bytes = slot.bytes});
  ASSERT_EQ(RoundsOf(plan), 2);
  LiveBlock block = Block(3, Bytes(4096 + 512 * 20));
  block.slot_in_start = 20;
  EXPECT_EQ(Untils({block}, plan), std::vector<int64_t>({33 - 12}));
}

}  // namespace
}  // namespace reprise::replay
