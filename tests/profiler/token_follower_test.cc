// A follower decides what still counts as the same iteration: noise has to be stepped over at the price it says, and
// another sequence must not be.
#include "profiler/token_follower.h"

#include <gtest/gtest.h>

#include <vector>

namespace reprise::profiler {
namespace {

constexpr int64_t kRound = 100;
constexpr int64_t kPrice = 8;

// Two rounds of the same tokens, and what comes after them is followed beside the second.
class TokenFollowerTest : public testing::Test {
 protected:
  explicit TokenFollowerTest(PeriodRules rules = {}) : tokens_(1024, 1024, rules) {
    for (int64_t i = 0; i < 2 * kRound; ++i) Take(i % kRound);
    follower_ = {
        .begin = kRound, .end = 2 * kRound, .cap = TokenFollower::CreditCap(kRound), .price = kPrice};
    follower_.Restart(kRound, tokens_.now());
  }

  void Take(int64_t kind) { tokens_.Take(Bytes(4096 * (1 + kind)), Stream(0), Bytes(0)); }
  // Takes them one by one, and says how many of them have matched.
  int Follow(int64_t from, int64_t to) {
    int matched = 0;
    for (int64_t kind = from; kind < to; ++kind) {
      Take(kind);
      if (follower_.Follow(tokens_)) ++matched;
    }
    return matched;
  }
  bool in_step() const { return follower_.state == TokenFollower::State::kInStep; }
  bool lost() const { return follower_.state == TokenFollower::State::kLost; }

  RecentTokens tokens_;
  TokenFollower follower_;
};

TEST_F(TokenFollowerTest, GoesRound) {
  for (int round = 0; round < 3; ++round) EXPECT_EQ(Follow(0, kRound), kRound);
  EXPECT_EQ(follower_.ref, kRound);
  EXPECT_EQ(follower_.misses, 0);
}

TEST_F(TokenFollowerTest, AChangedTokenIsSteppedOver) {
  Follow(0, 20);
  Follow(1000, 1001);
  EXPECT_FALSE(in_step());
  EXPECT_EQ(Follow(21, 21 + TokenFollower::kResyncRun), 1) << "only the last of the run puts it back in step";
  EXPECT_TRUE(in_step());
  EXPECT_EQ(follower_.misses, 1);
  EXPECT_EQ(Follow(21 + TokenFollower::kResyncRun, kRound), kRound - 21 - TokenFollower::kResyncRun);
}

TEST_F(TokenFollowerTest, TokensTooManyAndTooFewShiftTheReference) {
  Follow(0, 20);
  Follow(1000, 1003);
  Follow(20, 50);
  EXPECT_TRUE(in_step());
  EXPECT_EQ(follower_.misses, 3);
  Follow(55, kRound);
  EXPECT_TRUE(in_step());
  EXPECT_EQ(follower_.misses, 3 + 5);
  EXPECT_EQ(follower_.ref, kRound) << "in step with the round's begin";
}

TEST_F(TokenFollowerTest, WhatItCannotAffordLosesIt) {
  // 100 of credit at 8 each are twelve misses; another comes for each eight tokens.
  Follow(0, 20);
  Follow(1000, 1012);
  EXPECT_FALSE(lost());
  Follow(20, 60);
  EXPECT_TRUE(in_step());
  Follow(1000, 1012);
  Follow(60, kRound);
  EXPECT_TRUE(lost());
  EXPECT_EQ(Follow(0, kRound), 0) << "for good, unless it is told where";
  follower_.Restart(kRound, tokens_.now());
  EXPECT_EQ(Follow(0, kRound), kRound);
}

TEST_F(TokenFollowerTest, ALayerMoreIsAnotherSequence) {
  follower_.price = 1;
  Follow(0, 20);
  Follow(1000, 1000 + TokenFollower::kMaxShift + 1);
  Follow(20, kRound);
  EXPECT_TRUE(lost()) << "farther than it searches, whatever it could afford";
}

class TokenFollowerWithoutNoiseTest : public TokenFollowerTest {
 protected:
  TokenFollowerWithoutNoiseTest() : TokenFollowerTest({.resynchronise = false}) {}
};

TEST_F(TokenFollowerWithoutNoiseTest, OneTokenLosesIt) {
  Follow(0, 20);
  Follow(1000, 1001);
  Follow(21, kRound);
  EXPECT_TRUE(lost());
}

TEST(TokenFollower, ShiftsComeNearestFirst) {
  const std::vector<int64_t> shifts = {0, 1, -1, 2, -2};
  for (size_t step = 0; step < shifts.size(); ++step) {
    EXPECT_EQ(TokenFollower::ShiftAt(static_cast<int64_t>(step)), shifts[step]);
  }
}

}  // namespace
}  // namespace reprise::profiler
