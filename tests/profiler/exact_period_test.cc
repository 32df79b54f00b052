// A plan of a round with a stray allocation in it lacks another one in every round: what does not repeat exactly has to be
// told from what does, and that at a price which the job can wait for.
#include "profiler/exact_period.h"

#include <gtest/gtest.h>

namespace reprise::profiler {
namespace {

constexpr int64_t kRound = 40;
constexpr Bytes kRise{int64_t{1} << 20};

class ExactPeriodTest : public testing::Test {
 protected:
  // One token, `kind` of its round, at a level that goes with it, or so much above that.
  void Take(int64_t kind, Bytes above = Bytes(0)) {
    history_.OnAlloc(Bytes(4096 * (1 + kind)), Bytes(0), Stream{}, Level(kind) + above);
  }
  static Bytes Level(int64_t kind) { return kRise * (1 + kind % kRound); }
  void TakeRounds(int64_t rounds) {
    for (int64_t i = 0; i < rounds * kRound; ++i) Take(i % kRound);
  }

  History history_;
};

TEST_F(ExactPeriodTest, ARoundThatCameTwiceRepeats) {
  TakeRounds(2);
  EXPECT_FALSE(RepeatsExactly(history_, kRound)) << "over a round alone a stray before it would belong to it";
  for (int64_t kind = 0; kind < 8; ++kind) Take(kind);
  EXPECT_TRUE(RepeatsExactly(history_, kRound));
  EXPECT_EQ(ExactPeriod(history_, kRound), kRound);
  EXPECT_FALSE(RepeatsExactly(history_, kRound + 1));
}

TEST_F(ExactPeriodTest, ShorterIsFoundLongerIsNot) {
  TakeRounds(4);
  EXPECT_EQ(ExactPeriod(history_, kRound + 1), kRound) << "found with a stray in it";
  EXPECT_EQ(ExactPeriod(history_, kRound - 1), 0);
}

TEST_F(ExactPeriodTest, AStrayAnotherStreamAndAnotherLevelAreNoRepetition) {
  TakeRounds(3);
  Take(1000);
  TakeRounds(1);
  EXPECT_EQ(ExactPeriod(history_, kRound), 0);
  TakeRounds(1);
  EXPECT_EQ(ExactPeriod(history_, kRound), 0) << "the stray is one of the tokens before the round";
  TakeRounds(1);
  EXPECT_EQ(ExactPeriod(history_, kRound), kRound);

  history_.OnAlloc(Bytes(4096), Bytes(0), Stream{1}, kRise);
  EXPECT_EQ(ExactPeriod(history_, kRound), 0);

  TakeRounds(3);
  for (int64_t kind = 0; kind < kRound; ++kind) Take(kind, kRise);
  EXPECT_EQ(ExactPeriod(history_, kRound), 0) << "it climbs";
}

TEST_F(ExactPeriodTest, LevelsMayDifferByALittle) {
  TakeRounds(2);
  for (int64_t kind = 0; kind < kRound; ++kind) Take(kind, Bytes(Level(kind).count() / 65));
  EXPECT_TRUE(RepeatsExactly(history_, kRound));
  for (int64_t kind = 0; kind < kRound; ++kind) Take(kind, Bytes(Level(kind).count() / 16));
  EXPECT_FALSE(RepeatsExactly(history_, kRound));
}

TEST_F(ExactPeriodTest, TheFirstRoundBeganWhereTokensCameAgain) {
  for (int64_t kind = 1000; kind < 1010; ++kind) Take(kind);
  TakeRounds(3);
  EXPECT_EQ(FirstRound(history_, kRound), Tick(10));
  EXPECT_EQ(FirstRound(history_, 3 * kRound), Tick(10)) << "a period that came once began with it";
}

// Where each shorter distance matches for most of the row and then fails.
TEST(ExactPeriod, ALongRowOfOneSizeIsGivenUp) {
  constexpr int64_t kLong = 4096;
  History history({.initial_tokens = 4 * kLong});
  for (int64_t i = 0; i < 3 * kLong; ++i)
    history.OnAlloc(Bytes(i % kLong == 0 ? 8192 : 4096), Bytes(0), Stream{}, kRise);
  EXPECT_EQ(ExactPeriod(history, kLong), kLong);
  EXPECT_EQ(ExactPeriod(history, kLong + 1), 0) << "it would be found, after thousands of looks a token";
}

TEST(ExactPeriod, WhatIsForgottenIsNotKnownToRepeat) {
  History history({.initial_tokens = 64, .max_tokens = 64});
  for (int64_t i = 0; i < 4 * kRound; ++i)
    history.OnAlloc(Bytes(4096 * (1 + i % kRound)), Bytes(0), Stream{}, kRise);
  EXPECT_FALSE(RepeatsExactly(history, kRound));
  EXPECT_EQ(FirstRound(history, 20), history.now() - 20);
  EXPECT_EQ(FirstRound(history, kRound), history.oldest());
}

}  // namespace
}  // namespace reprise::profiler
