// Why: a plan that is adopted out of step costs most of an iteration, and one that is never adopted all that it would bring.
#include "replay/pending_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace reprise::replay {
namespace {

constexpr int64_t kRoundOfSlots = 32;

// A job of rounds of thirty-two sizes, none twice, and a plan of it that is on its way.
class PendingPlanTest : public testing::Test {
 protected:
  std::shared_ptr<Candidate> Begin() {
    return pending.Begin({.period = {.length = kRoundOfSlots}, .origin = Tick(0)});
  }
  static void Solve(Candidate& candidate) {
    for (int64_t i = 0; i < kRoundOfSlots; ++i) candidate.plan.slots.push_back({.bytes = SizeOf(i)});
    candidate.matcher = std::make_unique<Matcher>(candidate.plan);
    candidate.ready.store(true, std::memory_order_release);
  }
  static Bytes SizeOf(int64_t i) { return Bytes(4096 * (i + 1)); }
  // The slot that is the cut, if this allocation is.
  std::optional<uint32_t> Alloc(Bytes bytes) {
    history.OnAlloc(bytes, Bytes(512), Stream{}, Bytes(0));
    if (!pending.exists()) return std::nullopt;
    uint32_t slot = Matcher::kNoSlot;
    return pending.AtCut(bytes, Stream{}, history, slot) ? std::optional(slot) : std::nullopt;
  }
  // One round, with another size each time in place of the first one if it is to miss the cut; the last slot that was it.
  std::optional<uint32_t> Round(bool meets_cut) {
    std::optional<uint32_t> cut;
    for (int64_t i = 0; i < kRoundOfSlots; ++i) {
      const Bytes bytes = i == 0 && !meets_cut ? Bytes(9000 + 8 * history.now().count()) : SizeOf(i);
      if (const std::optional<uint32_t> slot = Alloc(bytes)) cut = slot;
    }
    return cut;
  }
  // Rounds until it is at the cut.
  int RoundsThatMiss() {
    for (int rounds = 0; rounds < 20; ++rounds) {
      if (Round(false)) return rounds;
    }
    return -1;
  }

  PendingPlan pending;
  profiler::History history;
};

TEST_F(PendingPlanTest, IsAtTheCutInStepOnceItIsSolved) {
  const std::shared_ptr<Candidate> candidate = Begin();
  EXPECT_EQ(Round(true), std::nullopt) << "it is not";
  EXPECT_TRUE(pending.Awaits(history.now()));
  Solve(*candidate);
  EXPECT_EQ(Alloc(SizeOf(0)), 0u) << "by what came before it was";
}

TEST_F(PendingPlanTest, IsNotAtTheCutOutOfStep) {
  Solve(*Begin());
  EXPECT_EQ(Alloc(SizeOf(3)), std::nullopt);
  EXPECT_EQ(Alloc(SizeOf(0)), std::nullopt);
}

TEST_F(PendingPlanTest, HasFailedWhereNothingCameOfIt) {
  const std::shared_ptr<Candidate> candidate = Begin();
  candidate->status = absl::InternalError("none");
  EXPECT_FALSE(pending.failed()) << "it is still being solved";
  candidate->ready.store(true, std::memory_order_release);
  EXPECT_TRUE(pending.failed());
}

TEST_F(PendingPlanTest, OneThatIsAskedForMeanwhileStopsTheOneBefore) {
  const std::shared_ptr<Candidate> before = Begin();
  const std::shared_ptr<Candidate> after = Begin();
  EXPECT_TRUE(before->cancel);
  EXPECT_FALSE(after->cancel);
}

TEST_F(PendingPlanTest, ACutThatIsMissedAFewTimesInARowIsMetALittleLater) {
  for (int i = 0; i < 5; ++i) Round(true);
  Solve(*Begin());
  const int rounds = RoundsThatMiss();
  EXPECT_GE(rounds, 3);
  EXPECT_LE(rounds, 4);
}

TEST_F(PendingPlanTest, AfterSomethingElseCutsAreCountedAnew) {
  for (int i = 0; i < 5; ++i) Round(true);
  Solve(*Begin());
  const int rounds = RoundsThatMiss();
  Solve(*Begin());
  for (int i = 0; i < rounds; ++i) EXPECT_EQ(Round(false), std::nullopt) << i << ": the next has its own";
  EXPECT_NE(Round(false), std::nullopt);
}

TEST_F(PendingPlanTest, IsNotAwaitedForEver) {
  Solve(*Begin());
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(pending.Awaits(history.now())) << i;
    for (int64_t k = 0; k < kRoundOfSlots; ++k) Alloc(SizeOf(kRoundOfSlots + k));
  }
  Alloc(SizeOf(kRoundOfSlots));
  EXPECT_FALSE(pending.Awaits(history.now()));
}

TEST_F(PendingPlanTest, IsFollowedAsItWasPlanned) {
  Round(true);
  Solve(*Begin());
  ASSERT_EQ(Alloc(SizeOf(0)), 0u);
  const std::unique_ptr<FollowedPlan> followed = pending.Take();
  EXPECT_FALSE(pending.exists());
  EXPECT_EQ(followed->plan.slots.size(), static_cast<size_t>(kRoundOfSlots));
  EXPECT_EQ(followed->cycle.period.length, kRoundOfSlots);
  EXPECT_EQ(followed->matcher->Step(SizeOf(1), Stream{}), 1u);
}

}  // namespace
}  // namespace reprise::replay
