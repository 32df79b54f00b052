// All that the search for a period knows lies here: what is forgotten too early or mistaken for something else cannot be
// found, and what is remembered costs memory.
#include "profiler/recent_tokens.h"

#include <gtest/gtest.h>

namespace reprise::profiler {
namespace {

constexpr int64_t kFew = 4096;  // so many that no two grams of these tests share a place
constexpr int64_t kMany = 4 * kFew;
constexpr int64_t kPageBytes = 4096;

// Token `i` of a round of `length` tokens. Returns the lag that it tells.
int64_t TakeOne(RecentTokens& tokens, int64_t i, int64_t length, bool grow = false) {
  const RecentTokens::Taken taken =
      tokens.Take(Bytes(kPageBytes * (1 + i % length)), Stream(0), Bytes(kPageBytes * (i % length)));
  const int64_t lag = tokens.Lag(taken);
  if (tokens.at_checkpoint()) tokens.Checkpoint(grow);
  return lag;
}

void TakeLevel(RecentTokens& tokens, int64_t pages) {
  tokens.Take(Bytes(kPageBytes), Stream(0), Bytes(kPageBytes * pages));
  if (tokens.at_checkpoint()) tokens.Checkpoint(false);
}

TEST(RecentTokens, AGramTellsHowLongAgoItWasThere) {
  RecentTokens tokens(kFew, kFew, {});
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(TakeOne(tokens, i, 40), i < 40 + RecentTokens::kGram - 1 ? 0 : 40) << i;
  }
  EXPECT_EQ(tokens.now(), 100);
  EXPECT_TRUE(tokens.Same(99, 59));
  EXPECT_FALSE(tokens.Same(99, 60));
  EXPECT_EQ(tokens.latest().level, 19u);
}

TEST(RecentTokens, TheStreamIsAPartOfTheToken) {
  RecentTokens tokens(kFew, kFew, {});
  for (const uint64_t stream : {0, 1, 0}) tokens.Take(Bytes(kPageBytes), Stream(stream), Bytes(0));
  EXPECT_FALSE(tokens.Same(0, 1));
  EXPECT_TRUE(tokens.Same(0, 2));
}

TEST(RecentTokens, GrowsWhenToldToAndForgetsNothingByIt) {
  RecentTokens tokens(kFew, kMany, {});
  EXPECT_EQ(tokens.capacity(), kFew);
  for (int64_t i = 0; i < 100; ++i) TakeOne(tokens, i, 40);
  tokens.Reserve(kFew + 1);
  EXPECT_EQ(tokens.capacity(), 2 * kFew);
  for (int64_t i = 60; i < 100; ++i) EXPECT_TRUE(tokens.Same(i, i - 40)) << i;
  EXPECT_EQ(TakeOne(tokens, 100, 40), 40) << "grams are moved";
  tokens.Reserve(100 * kMany);
  EXPECT_EQ(tokens.capacity(), kMany) << "no more than it may";
}

// 64 bytes a token, so 8192 tokens take as much as 128 pages, and 16384 as much as 256.
TEST(RecentTokens, GrowsWhereItIsFullIfThatIsOfUseAndNoMoreThanWasLive) {
  const auto capacity = [](int64_t pages, bool grow) {
    RecentTokens tokens(kFew, kMany, {});
    for (int64_t i = 0; i < 10 * kMany; ++i) TakeOne(tokens, i, pages + 1, grow);
    return tokens.capacity();
  };
  EXPECT_EQ(capacity(1000, false), kFew);
  EXPECT_EQ(capacity(127, true), kFew);
  EXPECT_EQ(capacity(128, true), 2 * kFew);
  EXPECT_EQ(capacity(255, true), 2 * kFew);
  EXPECT_EQ(capacity(256, true), kMany);
  EXPECT_EQ(capacity(1000, true), kMany) << "no more than it may";
}

TEST(RecentTokens, WhatWasLiveBeforeAnEpochEndedCounts) {
  RecentTokens tokens(kFew, kMany, {});
  TakeLevel(tokens, 1000);
  for (int64_t i = 0; i < 10 * kMany; ++i) TakeOne(tokens, i, 40, true);
  EXPECT_EQ(tokens.capacity(), kMany);
}

TEST(RecentTokens, AGramIsRememberedLongerThanItsTokens) {
  RecentTokens tokens(kFew, kFew, {});
  int64_t told = 0;
  for (int64_t i = 0; i < 8 * kFew; ++i) {
    const int64_t lag = TakeOne(tokens, i, 2 * kFew);
    EXPECT_TRUE(lag == 0 || lag == 2 * kFew) << lag;
    told += lag != 0 ? 1 : 0;
  }
  EXPECT_GT(told, 0) << "who asks has to look at capacity()";
}

TEST(RecentTokens, LevelsAreTheSameWithinAPartOfTheLargestFall) {
  RecentTokens tokens(kFew, kFew, {});
  EXPECT_TRUE(tokens.SameLevel(100, 116)) << "64 KiB, whatever the swing";
  EXPECT_FALSE(tokens.SameLevel(100, 117));
  TakeLevel(tokens, 0);
  TakeLevel(tokens, 6400);
  EXPECT_EQ(tokens.Swing(), 0u) << "a rise is no fall";
  TakeLevel(tokens, 0);
  EXPECT_EQ(tokens.Swing(), 6400u);
  EXPECT_TRUE(tokens.SameLevel(1100, 1000));
  EXPECT_FALSE(tokens.SameLevel(1101, 1000));
  EXPECT_TRUE(RecentTokens(kFew, kFew, {.level = false}).SameLevel(0, 1'000'000));
}

TEST(RecentTokens, AFallIsForgottenWhenThereWereManyMoreTokens) {
  RecentTokens tokens(kFew, kFew, {});
  TakeLevel(tokens, 6400);
  for (int i = 0; i < 100; ++i) TakeLevel(tokens, 10 * (i % 2));
  EXPECT_EQ(tokens.Swing(), 6400u);
  for (int i = 0; i < 100; ++i) TakeLevel(tokens, 10 * (i % 2));
  EXPECT_EQ(tokens.Swing(), 10u);
}

}  // namespace
}  // namespace reprise::profiler
