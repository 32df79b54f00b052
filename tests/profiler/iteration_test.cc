// A plan is as good as the lifetimes it is made for: they are taken from a history that is incomplete (the
// latest round is still alive), circular, and sometimes noisy. Judged by hand on small cycles, and against
// what then really happened on made-up and recorded jobs.
#include "profiler/iteration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/profiler/streams.h"

namespace reprise::profiler {
namespace {

using streams::Feed;
using streams::Job;
using streams::Model;
using streams::Outcome;
using testing::IsEmpty;
using testing::SizeIs;

// ---- the history

TEST(History, RemembersWhatATokenWasAndWhenItWasFreed) {
  History history;
  EXPECT_EQ(history.OnAlloc(Bytes(4096), Bytes(64), Stream{3}, Bytes(10)), Tick(0));
  EXPECT_EQ(history.OnAlloc(Bytes(8192), Bytes(0), Stream{0}, Bytes(4106)), Tick(1));
  history.OnFree(Tick(0));
  EXPECT_EQ(history.at(Tick(0)).bytes, Bytes(4096));
  EXPECT_EQ(history.at(Tick(0)).alignment, Bytes(64));
  EXPECT_EQ(history.at(Tick(0)).stream, Stream{3});
  EXPECT_EQ(history.at(Tick(0)).freed_at, Tick(2));
  EXPECT_EQ(history.at(Tick(1)).live_before, Bytes(4106));
  EXPECT_EQ(history.at(Tick(1)).freed_at, History::kAlive);
}

TEST(History, ForgetsTheOldestAndIgnoresTheirFrees) {
  History history({.initial_tokens = 4, .max_tokens = 4});
  for (int i = 0; i < 6; ++i) history.OnAlloc(Bytes(4096 + i), Bytes(0), Stream{}, Bytes(0));
  EXPECT_EQ(history.oldest(), Tick(2));
  history.OnFree(Tick(1));   // forgotten: its place belongs to tick 5 now
  history.OnFree(Tick(6));   // not yet
  history.OnFree(Tick(-1));  // never
  for (int i = 2; i < 6; ++i) {
    EXPECT_EQ(history.at(Tick(i)).bytes, Bytes(4096 + i));
    EXPECT_EQ(history.at(Tick(i)).freed_at, History::kAlive);
  }
}

TEST(History, GrowsWhenToldAndNotBeyondItsBound) {
  History history({.initial_tokens = 4, .max_tokens = 16});
  for (int i = 0; i < 6; ++i) history.OnAlloc(Bytes(i), Bytes(0), Stream{}, Bytes(0));
  history.Reserve(3);
  EXPECT_EQ(history.capacity(), 4);
  history.Reserve(7);
  EXPECT_EQ(history.capacity(), 8);
  for (int i = 6; i < 9; ++i) history.OnAlloc(Bytes(i), Bytes(0), Stream{}, Bytes(0));
  for (int i = 2; i < 9; ++i) EXPECT_EQ(history.at(Tick(i)).bytes, Bytes(i));
  history.Reserve(1'000);
  EXPECT_EQ(history.capacity(), 16);
}

// ---- small cycles by hand

// A history written as rounds: each token has a size, the live bytes before it, and when it is freed.
class Rounds {
 public:
  struct Token {
    int64_t bytes;
    int64_t live_before;
    int64_t lifetime;  // in tokens; 0: alive for ever
  };

  // Plays `tokens` tokens of the cycle from its first.
  void Play(const std::vector<Token>& cycle, size_t tokens) {
    for (size_t i = 0; i < tokens; ++i) Play(cycle[i % cycle.size()]);
  }
  void Play(const Token& token) {
    for (const auto& [tick, end] : ends_) {
      if (end == history.now()) history.OnFree(tick);
    }
    const Tick tick = history.OnAlloc(Bytes(token.bytes), Bytes(64), Stream{}, Bytes(token.live_before));
    if (token.lifetime > 0) ends_.emplace_back(tick, tick + token.lifetime);
  }

  History history;

 private:
  std::vector<std::pair<Tick, Tick>> ends_;
};

// Ten tokens. The least is alive before the one of 3000 bytes; the last wraps into the next round; the block
// of 5000 lives longer than a round.
const std::vector<Rounds::Token> kCycle = {
    {1000, 900, 1}, {2000, 800, 2}, {3000, 100, 6}, {4000, 400, 5}, {5000, 800, 0},
    {6000, 900, 1}, {7000, 900, 2}, {8000, 900, 1}, {9000, 900, 3}, {9900, 900, 4},
};
const Period kTen{.length = 10, .found_at = Tick(25)};

TEST(ExtractIteration, BeginsAtTheCut) {
  Rounds rounds;
  rounds.Play(kCycle, 40);
  const Iteration iteration = ExtractIteration(rounds.history, kTen);
  ASSERT_THAT(iteration.slots, SizeIs(10));
  EXPECT_EQ(iteration.period, 10);
  EXPECT_EQ(iteration.origin, Tick(32));
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(iteration.slots[i].begin, static_cast<int64_t>(i));
    EXPECT_EQ(iteration.slots[i].bytes, Bytes(kCycle[(i + 2) % 10].bytes));
    EXPECT_EQ(iteration.slots[i].alignment, Bytes(64));
  }
}

TEST(ExtractIteration, TakesLifetimesFromAnyPlaceOfTheRoundTheSame) {
  for (size_t extra = 0; extra < 10; ++extra) {
    Rounds rounds;
    rounds.Play(kCycle, 30 + extra);
    const Iteration iteration = ExtractIteration(rounds.history, kTen);
    EXPECT_EQ(iteration.unsettled, 0) << extra;
    for (const Slot& slot : iteration.slots) {
      const Rounds::Token& token = kCycle[static_cast<size_t>(slot.begin + 2) % 10];
      EXPECT_EQ(slot.persistent, token.lifetime == 0) << slot.begin << " after " << extra;
      EXPECT_EQ(slot.length, token.lifetime == 0 ? 10 : token.lifetime) << slot.begin << " after " << extra;
    }
  }
}

TEST(ExtractIteration, TakesTheLongestOfDifferingLifetimes) {
  Rounds rounds;
  std::vector<Rounds::Token> longer = kCycle;
  longer[3].lifetime = 8;
  rounds.Play(kCycle, 10);
  rounds.Play(longer, 10);
  rounds.Play(kCycle, 10);
  EXPECT_EQ(ExtractIteration(rounds.history, kTen).slots[1].length, 8);
}

TEST(ExtractIteration, ABlockThatHasOutlivedItsEarlierInstancesLivesAtLeastUntilNow) {
  Rounds rounds;
  std::vector<Rounds::Token> alive = kCycle;
  alive[2].lifetime = 0;
  rounds.Play(kCycle, 20);
  rounds.Play(alive, 9);
  EXPECT_EQ(ExtractIteration(rounds.history, kTen).slots[0].length, 7);
}

TEST(ExtractIteration, WhatIsAliveInItsOnlyInstanceIsUnsettled) {
  Rounds rounds;
  rounds.Play(kCycle, 10);
  const Iteration iteration = ExtractIteration(rounds.history, kTen);
  EXPECT_EQ(iteration.unsettled,
            3);  // 5000, which never ends, and 9000 and 9900, which end in the next round
  EXPECT_EQ(iteration.slots[2].length, 10);
  EXPECT_FALSE(iteration.slots[2].persistent);
}

// Five equal sizes in a row are met by chance.
TEST(ExtractIteration, ABlockMayLiveForSomeRounds) {
  for (const int64_t lifetime : {11, 20, 30, 31}) {
    std::vector<Rounds::Token> cycle = kCycle;
    cycle[3].lifetime = lifetime;
    Rounds rounds;
    rounds.Play(cycle, 75);
    const Slot slot = ExtractIteration(rounds.history, kTen).slots[1];
    EXPECT_EQ(slot.persistent, lifetime > kMostRounds * 10) << lifetime;
    EXPECT_EQ(slot.length, slot.persistent ? 10 : lifetime);
  }
}

TEST(ExtractIteration, OneInstanceThatWasKeptDoesNotMakeTheLifetimeLonger) {
  Rounds rounds;
  rounds.Play(kCycle, 20);
  std::vector<Rounds::Token> kept = kCycle;
  kept[3].lifetime = 14;
  rounds.Play(kept, 10);
  rounds.Play(kCycle, 25);
  EXPECT_EQ(ExtractIteration(rounds.history, kTen).slots[1].length, 5);
}

TEST(ExtractIteration, AnotherSequenceBeforeIsNotAsked) {
  Rounds rounds;
  std::vector<Rounds::Token> other = kCycle;
  for (size_t i = 0; i < 10; ++i) {
    other[i].lifetime = 3;
    if (i < 2 || i >= 7) other[i].bytes = 77;
  }
  rounds.Play(other, 10);
  rounds.Play(kCycle, 10);
  EXPECT_EQ(ExtractIteration(rounds.history, kTen).slots[2].bytes, Bytes(5000));
  EXPECT_EQ(ExtractIteration(rounds.history, kTen).slots[2].length, 10);  // not the 3 of the other block
}

TEST(ExtractIteration, NoiseIsSteppedOver) {
  Rounds rounds;
  std::vector<Rounds::Token> cycle = kCycle;
  cycle.insert(cycle.end(), kCycle.begin(), kCycle.end());
  for (size_t i = 10; i < 20; ++i) cycle[i].bytes += 1;  // twenty different tokens
  rounds.Play(cycle, 40);
  rounds.Play({.bytes = 123456, .live_before = 900, .lifetime = 1});
  rounds.Play(cycle, 15);
  const Iteration iteration = ExtractIteration(rounds.history, {.length = 20, .found_at = Tick(56)});
  EXPECT_EQ(iteration.unsettled, 0);
}

TEST(ExtractIteration, IsEmptyWhenTheHistoryIsTooShort) {
  Rounds rounds;
  rounds.Play(kCycle, 9);
  EXPECT_THAT(ExtractIteration(rounds.history, kTen).slots, IsEmpty());
  EXPECT_THAT(ExtractIteration(rounds.history, Period{}).slots, IsEmpty());
}

// ---- against what then happened

// How many slots of the first finding had another size or lifetime when the same place of the cycle came
// next.
int64_t Surprises(const Outcome& outcome) {
  const Iteration& iteration = outcome.findings.at(0).iteration;
  int64_t surprises = 0;
  for (const Slot& slot : iteration.slots) {
    const Tick next = iteration.origin + iteration.period + slot.begin;
    const History::Entry& entry = outcome.history.at(next);
    if (entry.bytes != slot.bytes) {
      ++surprises;
    } else if (entry.freed_at == History::kAlive) {
      surprises += !slot.persistent;
    } else {
      surprises += slot.persistent || entry.freed_at - next != slot.length;
    }
  }
  return surprises;
}

TEST(ExtractIteration, PredictsTheNextRound) {
  for (const int micro_batches : {1, 4}) {
    Job job({.layers = 12, .kinds = 4});
    for (int i = 0; i < 6; ++i) job.Train(100, micro_batches);
    EXPECT_EQ(Surprises(Feed(job.events())), 0) << micro_batches;
  }
}

TEST(ExtractIteration, GradientsFreedLateAreUnsettledUntilTheyAreFreed) {
  Job job({.layers = 12, .kinds = 4, .late_zero_grad = true});
  for (int i = 0; i < 6; ++i) job.Train();
  const Outcome outcome = Feed(job.events());
  EXPECT_EQ(outcome.findings.at(0).iteration.unsettled, 12);
  const Iteration later = ExtractIteration(outcome.history, outcome.findings[0].period);
  EXPECT_EQ(later.unsettled, 0);
  for (const Slot& slot : later.slots) EXPECT_FALSE(slot.persistent);
}

TEST(ExtractIteration, ALeakIsPersistent) {
  Job job({.layers = 12, .kinds = 4});
  for (int i = 0; i < 6; ++i) {
    job.Train();
    job.Leak(Bytes(50'000));
  }
  const Outcome outcome = Feed(job.events());
  int persistent = 0;
  for (const Slot& slot : ExtractIteration(outcome.history, outcome.findings.at(0).period).slots) {
    if (!slot.persistent) continue;
    ++persistent;
    EXPECT_EQ(slot.bytes, Bytes(50'000));
  }
  EXPECT_EQ(persistent, 1);
}

class RecordedIteration : public testing::TestWithParam<const char*> {};

TEST_P(RecordedIteration, IsWhatComesNext) {
  const char* root = std::getenv("REPRISE_BENCH");
  if (root == nullptr) GTEST_SKIP() << "REPRISE_BENCH is not set: no bench data";
  const Outcome outcome = Feed(streams::ReadBench(std::string(root) + "/events/" + GetParam() + ".csv"));
  ASSERT_THAT(outcome.findings, testing::Not(IsEmpty()));
  const Iteration& iteration = outcome.findings[0].iteration;
  EXPECT_EQ(iteration.unsettled, 0);
  EXPECT_EQ(iteration.origin, Tick(outcome.marks.at(2)));  // the cut is where the steps begin
  EXPECT_EQ(Surprises(outcome), 0);
}

INSTANTIATE_TEST_SUITE_P(Bench, RecordedIteration, testing::Values("alexnet", "resnet50", "googlenet", "gpt"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace reprise::profiler
