// The period finder decides when a plan can be made at all: it must find the true iteration of a job early,
// never take a part of one for it, and find nothing where nothing repeats. Judged on made-up jobs with known
// truth, and on recorded ones when REPRISE_BENCH names the directory of the bench data.
#include "profiler/period_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/profiler/streams.h"

namespace reprise::profiler {
namespace {

using streams::Feed;
using streams::Job;
using streams::Model;
using streams::Outcome;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;

constexpr Model kTwelveLayers{.layers = 12, .kinds = 4};
constexpr int64_t kStep =
    97;  // tokens of one of its steps: a batch, 12 times 4 forward, 2 backward, 2 to optimize
constexpr int64_t kMicroBatch = 73;  // the same without the optimizer
constexpr int64_t kEvaluationBatch = 49;

std::vector<int64_t> Lengths(const Outcome& outcome) {
  std::vector<int64_t> lengths;
  for (const streams::Finding& finding : outcome.findings) lengths.push_back(finding.period.length);
  return lengths;
}

// The share of the tokens after the first finding that were in step.
double InStepAfterwards(const Outcome& outcome) {
  const auto found = outcome.in_step.begin() + outcome.findings.at(0).period.found_at.count();
  return static_cast<double>(std::count(found, outcome.in_step.end(), true)) /
         static_cast<double>(outcome.in_step.end() - found);
}

Job Steps(int steps, Model model = kTwelveLayers) {
  Job job(model);
  for (int i = 0; i < steps; ++i) job.Train();
  return job;
}

TEST(PeriodFinder, FixedStepsAreFoundInTheThirdStepAndFollowed) {
  const Outcome outcome = Feed(Steps(30).events());
  ASSERT_THAT(Lengths(outcome), ElementsAre(kStep));
  EXPECT_EQ(outcome.findings[0].step, 2);
  EXPECT_LE(outcome.findings[0].into_step, kStep * 6 / 10);
  EXPECT_EQ(InStepAfterwards(outcome), 1.0);
  EXPECT_EQ(outcome.iterations, 28);
}

TEST(PeriodFinder, StepsWithoutOptimizerStateAreFoundInTheSecond) {
  const Outcome outcome = Feed(Steps(10, {.layers = 12, .kinds = 4, .optimizer_state = false}).events());
  ASSERT_THAT(Lengths(outcome), ElementsAre(kMicroBatch));
  EXPECT_EQ(outcome.findings[0].step, 1);
}

// The order of many tutorials. It looks like a micro-batch that accumulates, but frees all of it at once.
TEST(PeriodFinder, GradientsFreedAfterTheForwardPassAreNotTakenForAccumulation) {
  const Outcome outcome =
      Feed(Steps(10, {.layers = 12, .kinds = 4, .optimizer_state = false, .late_zero_grad = true}).events());
  ASSERT_THAT(Lengths(outcome), ElementsAre(kMicroBatch));
  EXPECT_LE(outcome.findings[0].step, 2);
}

TEST(PeriodFinder, TinyStepsAreFoundAfterMoreOfThem) {
  const Outcome outcome = Feed(Steps(10, {.layers = 2}).events());
  ASSERT_THAT(Lengths(outcome), ElementsAre(17));
  EXPECT_LE(outcome.findings[0].step, 4);
}

TEST(PeriodFinder, OneShortRoundWithSomethingInItDoesNotMakeTwoRoundsOneFromThenOn) {
  for (int extra = 0; extra <= 6; ++extra) {
    PeriodFinder finder;
    const auto play = [&](int rounds, int in_between) {
      for (int round = 0; round < rounds; ++round) {
        Bytes live;
        for (int i = 0; i < 10; ++i) {
          finder.OnAlloc(Bytes(1 << 20) * (i + 1), Stream{}, live);
          live += Bytes(1 << 20) * (i + 1);
          for (int k = 0; i == 4 && k < in_between; ++k)
            finder.OnAlloc(Bytes(50'000 + 4096 * k), Stream{}, live);
        }
      }
    };
    play(100, 0);
    play(1, extra);
    play(10, 0);
    const int64_t before = finder.iterations();
    play(500, 0);
    EXPECT_EQ(finder.iterations() - before, 500) << extra << " in between";
  }
}

TEST(PeriodFinder, LayersAreNoPeriod) {
  for (const int kinds : {1, 2, 4, 96}) {
    const Outcome outcome = Feed(Steps(4, {.layers = 96, .kinds = kinds}).events());
    EXPECT_THAT(Lengths(outcome), ElementsAre(769)) << kinds << " kinds of layers";
  }
}

TEST(PeriodFinder, AStepLongerThanTheFirstRingIsFound) {
  const Outcome outcome = Feed(Steps(4, {.layers = 700, .kinds = 7}).events());
  EXPECT_THAT(Lengths(outcome), ElementsAre(5601));
  EXPECT_GE(outcome.capacity, 2 * 5601);
}

TEST(PeriodFinder, ARingThatMayNotGrowFindsNoLongStep) {
  const Outcome outcome = Feed(Steps(4, {.layers = 700, .kinds = 7}).events(), {.max_tokens = 1 << 12});
  EXPECT_THAT(outcome.findings, IsEmpty());
  EXPECT_EQ(outcome.capacity, 1 << 12);
}

TEST(PeriodFinder, MemoryDoesNotGrowWhileInStep) { EXPECT_EQ(Feed(Steps(200).events()).capacity, 1 << 12); }

// Each of many short jobs is found and left before it has gone round often. (The count would overflow, which a sanitizer
// tells.)
TEST(PeriodFinder, FalseAlarmsDoNotDoubleTheEvidenceForEver) {
  constexpr int kTokens = 24;
  constexpr int kRounds = 10;  // those of evidence, and a few
  PeriodFinder finder;
  std::mt19937 random(1);
  int64_t found = 0;
  for (int job = 0; job < 200; ++job) {
    std::vector<int64_t> sizes(kTokens);
    for (int64_t& bytes : sizes) bytes = 4096 * (1 + static_cast<int64_t>(random() % 100'000));
    for (int round = 0; round < kRounds; ++round) {
      Bytes live(1 << 20);
      for (int i = 0; i < kTokens; ++i) {
        found += finder.OnAlloc(Bytes(sizes[i]), Stream{}, live);
        live += Bytes(i < kTokens / 2 ? sizes[i] : -sizes[kTokens - 1 - i]);
      }
    }
  }
  EXPECT_GE(found, 100);
}

TEST(PeriodFinder, SmallBlocksDoNotDisturb) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Job job(kTwelveLayers, seed);
    job.SetNoise(0.01, Bytes(16), Bytes(4000));
    for (int i = 0; i < 20; ++i) job.Train();
    const Outcome outcome = Feed(job.events());
    EXPECT_THAT(Lengths(outcome), ElementsAre(kStep)) << seed;
    EXPECT_EQ(outcome.findings.at(0).step, 2) << seed;
    EXPECT_EQ(InStepAfterwards(outcome), 1.0) << seed;
  }
}

TEST(PeriodFinder, OnePercentOfLargeBlocksIsSteppedOver) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Job job(kTwelveLayers, seed);
    job.SetNoise(0.01, Bytes(4096), Bytes(400'000));
    for (int i = 0; i < 40; ++i) job.Train();
    const Outcome outcome = Feed(job.events());
    ASSERT_THAT(outcome.findings, SizeIs(Ge(1u))) << seed;
    EXPECT_LE(outcome.findings[0].step, 4) << seed;
    EXPECT_THAT(Lengths(outcome), Each(testing::AllOf(Ge(kStep - 3), Le(kStep + 3)))) << seed;
    EXPECT_GE(InStepAfterwards(outcome), 0.8) << seed;
  }
}

TEST(PeriodFinder, MicroBatchesAreHeldBackForTheirStep) {
  for (const int micro_batches : {2, 4, 8, 16, 32}) {
    Job job(kTwelveLayers);
    for (int i = 0; i < 6; ++i) job.Train(100, micro_batches);
    const Outcome outcome = Feed(job.events());
    ASSERT_THAT(Lengths(outcome), ElementsAre(kStep + (micro_batches - 1) * kMicroBatch)) << micro_batches;
    EXPECT_EQ(outcome.findings[0].step, 2) << micro_batches;
  }
}

// Steps of a few micro-batches that are all alike and an optimizer that allocates hardly anything: the tokens repeat with
// each micro-batch, the live level with each step alone. The gradients of a step are freed at its end, or where the first
// forward pass of the next one is over; the first micro-batch may have a few tokens more than the others.
struct AlikeMicroBatches {
  int layers = 24;
  int blocks = 1;
  int micro_batches = 4;
  int of_optimizer = 0;
  bool late = false;
  int more_in_first = 0;

  int64_t step() const { return micro_batches * 2 * layers * blocks + of_optimizer + more_in_first; }
};

std::vector<int64_t> PeriodsOf(const AlikeMicroBatches& job) {
  const auto& [layers, blocks, micro_batches, of_optimizer, late, more_in_first] = job;
  PeriodFinder finder;
  Bytes live;
  std::vector<int64_t> found;
  const auto alloc = [&](int64_t kib) {
    if (finder.OnAlloc(Bytes(kib << 10), Stream{}, live)) found.push_back(finder.confirmed()->length);
    live += Bytes(kib << 10);
  };
  const auto free = [&](int64_t kib) { live -= Bytes(kib << 10); };
  const auto activation = [](int layer, int block) { return 2000 + 64 * (layer * 7 % 11) + 8 * block; };
  const auto gradient = [](int layer, int block) { return 800 + 64 * (layer * 5 % 13) + 8 * block; };
  const auto free_gradients = [&, layers = layers, blocks = blocks] {
    for (int i = 0; i < layers * blocks; ++i) free(gradient(i / blocks, i % blocks));
  };
  for (int step = 0; step < 12; ++step) {
    for (int m = 0; m < micro_batches; ++m) {
      for (int i = 0; i < layers * blocks; ++i) alloc(activation(i / blocks, i % blocks));
      if (late && step > 0 && m == 0) free_gradients();
      for (int layer = layers; layer-- > 0;) {
        for (int block = 0; block < blocks; ++block) {
          alloc(gradient(layer, block));  // which in the first stays
          if (m > 0) free(gradient(layer, block));
        }
        if (m == 0 && layer < more_in_first) {
          alloc(300);
          free(300);
        }
        for (int block = 0; block < blocks; ++block) free(activation(layer, block));
      }
    }
    for (int i = 0; i < of_optimizer; ++i) {
      alloc(500 + i);
      free(500 + i);
    }
    if (!late) free_gradients();
  }
  return found;
}

TEST(PeriodFinder, MicroBatchesAreHeldBackThoughTheOptimizerAllocatesNothing) {
  for (const auto& [layers, blocks] :
       {std::pair(24, 1), std::pair(24, 2), std::pair(24, 4), std::pair(40, 4)}) {
    for (const int micro_batches : {2, 3, 4, 8, 16, 32}) {
      for (const int of_optimizer : {0, 1, 2, 3, 7, 12}) {
        const AlikeMicroBatches job = {layers, blocks, micro_batches, of_optimizer};
        EXPECT_THAT(PeriodsOf(job), ElementsAre(job.step()))
            << layers << " layers of " << blocks << ", " << of_optimizer << " of the optimizer";
      }
    }
  }
}

// Behind a step's first forward pass all that the step before has left is freed at once, as in a job without micro-batches.
// What tells them apart is that it comes again in the first backward pass, and has not in the one that the second is like.
TEST(PeriodFinder, MicroBatchesAreHeldBackThoughGradientsAreFreedAfterTheForwardPass) {
  for (const int layers : {24, 40}) {
    for (const int micro_batches : {2, 3, 4, 6, 8}) {
      for (const int more_in_first : {0, 1}) {
        AlikeMicroBatches job = {.layers = layers, .micro_batches = micro_batches};
        job.late = true;
        job.more_in_first = more_in_first;
        EXPECT_THAT(PeriodsOf(job), ElementsAre(job.step()))
            << layers << " layers, " << micro_batches << " micro-batches, " << more_in_first << " more";
      }
    }
  }
}

// Their step matches hardly better than they do.
TEST(PeriodFinder, VeryManyMicroBatchesAreThePeriodThemselves) {
  Job job(kTwelveLayers);
  for (int i = 0; i < 5; ++i) job.Train(100, 60);
  const Outcome outcome = Feed(job.events());
  EXPECT_THAT(Lengths(outcome), ElementsAre(kMicroBatch));
  EXPECT_GE(InStepAfterwards(outcome), 0.95);
}

TEST(PeriodFinder, AnEvaluationInterruptsAndIsNotMistakenForALongerStep) {
  Job job(kTwelveLayers);
  for (int i = 0; i < 20; ++i) {
    job.Train();
    if (i > 5 && i % 5 == 0) job.Evaluate(1 + i / 5);  // each longer than the one before
  }
  const Outcome outcome = Feed(job.events());
  EXPECT_THAT(Lengths(outcome), ElementsAre(kStep));
  EXPECT_EQ(outcome.iterations, 18);
  for (size_t i = 4; i < outcome.marks.size(); ++i) {
    EXPECT_TRUE(outcome.in_step[static_cast<size_t>(outcome.marks[i] + 8)])
        << "soon after the begin of step " << i;
  }
}

TEST(PeriodFinder, TwoAlternatingLengthsAreOnePeriod) {
  Job job(kTwelveLayers);
  for (int i = 0; i < 20; ++i) job.Train(i % 2 == 0 ? 140 : 100);
  const Outcome outcome = Feed(job.events());
  EXPECT_THAT(Lengths(outcome), ElementsAre(2 * kStep));
  EXPECT_EQ(InStepAfterwards(outcome), 1.0);
}

TEST(PeriodFinder, ANewPhaseReplacesThePeriod) {
  Job job = Steps(10);
  for (int i = 0; i < 10; ++i) job.Train(150);
  const Outcome outcome = Feed(job.events());
  ASSERT_THAT(Lengths(outcome), ElementsAre(kStep, kStep));
  EXPECT_LE(outcome.findings[1].step, 12);
}

// Half a round of turns comes again by chance; plans for it would crowd out those of the lengths.
TEST(PeriodFinder, TurnsTakenAtWillAreNoLongerPeriod) {
  Job job = Steps(4);
  const std::vector<int> turns = {4, 3, 4, 1, 2, 5, 3};
  for (size_t i = 0; i < turns.size(); ++i) {
    for (int step = 0; step < turns[i]; ++step) job.Train(i % 2 == 0 ? 150 : 100);
  }
  const Outcome outcome = Feed(job.events());
  EXPECT_THAT(Lengths(outcome), SizeIs(Ge(2)));
  EXPECT_THAT(Lengths(outcome), Each(kStep));
}

TEST(PeriodFinder, ALongerRoundReplacesTheStep) {
  Job job = Steps(6);
  for (int i = 0; i < 30; ++i) job.Train(std::vector<int64_t>{100, 140, 180}[static_cast<size_t>(i % 3)]);
  EXPECT_THAT(Lengths(Feed(job.events())), ElementsAre(kStep, 3 * kStep));
}

// Sharpness-aware minimisation, say: what is between the passes is little beside them, and too long to be stepped over.
TEST(PeriodFinder, TwoPassesThatAreAlikeButForAFewTokensAreOneStep) {
  const Model model{.layers = 60, .optimizer_state = false};
  Job job(model);
  for (int i = 0; i < 20; ++i) {
    job.Train();
    for (int64_t probe = 0; probe < 20; ++probe) job.Probe(Bytes(10'000 + 1'000 * probe));
    job.Train();
  }
  const Outcome outcome = Feed(job.events());
  EXPECT_EQ(Lengths(outcome).back(), 2 * (1 + 6 * model.layers) + 2 * 20);
  EXPECT_THAT(Lengths(outcome), SizeIs(Le(2)));
  EXPECT_LE(outcome.findings.back().step, 12) << "of forty passes";
}

// Neither lies at the level of the other, and the optimizer allocates nothing that would tell one step from the next.
TEST(PeriodFinder, TwoMicroBatchesThatAreAlikeAreOneStep) {
  Job job({.layers = 12, .kinds = 4, .optimizer_state = false});
  for (int i = 0; i < 8; ++i) job.Train(100, /*micro_batches=*/2);
  const Outcome outcome = Feed(job.events());
  EXPECT_THAT(Lengths(outcome), ElementsAre(2 * kMicroBatch));
  EXPECT_LE(outcome.findings.front().step, 4);
}

// What is behind the evaluation is in step at once, and tells nothing but the step's distance; that of one cut to the next
// that the tracker came back at is the longer one's.
TEST(PeriodFinder, StepsAndTheirEvaluationAreOnePeriod) {
  for (const int64_t steps : {3, 6, 9}) {
    for (const int64_t batches : {2, 8}) {
      Job job(kTwelveLayers);
      for (int i = 0; i < 15; ++i) {
        for (int64_t step = 0; step < steps; ++step) job.Train();
        job.Evaluate(static_cast<int>(batches));
      }
      const Outcome outcome = Feed(job.events());
      EXPECT_EQ(Lengths(outcome).back(), steps * kStep + batches * kEvaluationBatch)
          << steps << ", " << batches;
      EXPECT_GE(InStepAfterwards(outcome), 0.85) << steps << ", " << batches;
    }
  }
}

// Two steps of micro-batches do not tell how far apart they are before the evaluation comes.
TEST(PeriodFinder, TwoStepsOfMicroBatchesAndTheirEvaluationAreOnePeriod) {
  for (const int micro_batches : {2, 4}) {
    Job job({.layers = 12, .kinds = 4, .optimizer_state = false});
    for (int i = 0; i < 8; ++i) {
      for (int step = 0; step < 2; ++step) job.Train(100, micro_batches);
      job.Evaluate(3);
    }
    const Outcome outcome = Feed(job.events());
    ASSERT_FALSE(outcome.findings.empty()) << micro_batches;
    EXPECT_EQ(Lengths(outcome).back(), 2 * micro_batches * kMicroBatch + 3 * kEvaluationBatch)
        << micro_batches;
    EXPECT_LE(outcome.findings.back().step, 8) << micro_batches;
  }
}

// So many passes, then a few tokens more, and so on.
Job Passes(const Model& model, const std::vector<int>& numbers, int64_t tokens_between) {
  Job job(model);
  for (const int passes : numbers) {
    for (int i = 0; i < passes; ++i) job.Train();
    for (int64_t probe = 0; probe < tokens_between; ++probe) job.Probe(Bytes(10'000 + 1'000 * probe));
  }
  return job;
}

TEST(PeriodFinder, TheSameNumberOfPassesTwiceIsChance) {
  const Job job =
      Passes({.layers = 200, .optimizer_state = false}, {4, 3, 3, 2, 4, 4, 2, 3, 3, 4, 2, 2, 3}, 7);
  EXPECT_THAT(Lengths(Feed(job.events())), ElementsAre(1201));
}

TEST(PeriodFinder, WhatCanBeSteppedOverDoesNotMakeThePeriodGoToAndFro) {
  const Job job =
      Passes({.layers = 100, .optimizer_state = false}, {5, 1, 5, 4, 1, 1, 4, 5, 1, 1, 1, 3, 4}, 12);
  EXPECT_THAT(Lengths(Feed(job.events())), SizeIs(Le(2)));
}

TEST(PeriodFinder, RandomLengthsHaveNoPeriod) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::mt19937_64 random(seed);
    Job job(kTwelveLayers);
    for (int i = 0; i < 60; ++i) job.Train(std::uniform_int_distribution(50, 5'000)(random));
    EXPECT_THAT(Feed(job.events()).findings, IsEmpty()) << seed;
  }
}

TEST(PeriodFinder, GrowingLengthsHaveNoPeriod) {
  Job job(kTwelveLayers);
  for (int i = 0; i < 40; ++i) job.Train(100 + i);
  EXPECT_THAT(Feed(job.events()).findings, IsEmpty());
}

TEST(PeriodFinder, ASlowLeakDoesNotHideThePeriod) {
  Job job(kTwelveLayers);
  for (int i = 0; i < 20; ++i) {
    job.Train();
    job.Leak(Bytes(50'000));
  }
  EXPECT_THAT(Lengths(Feed(job.events())), ElementsAre(kStep + 1));
}

TEST(PeriodFinder, OneGiantBlockAtTheBeginDoesNotHideThePeriod) {
  Job job(kTwelveLayers);
  job.Probe(Bytes(100'000'000'000));
  for (int i = 0; i < 10; ++i) job.Train();
  EXPECT_THAT(Lengths(Feed(job.events())), ElementsAre(kStep));
}

TEST(PeriodFinder, TheSameSizesOnAnotherStreamAreOtherTokens) {
  PeriodFinder finder;
  std::mt19937_64 random(1);
  for (int i = 0; i < 4'000; ++i) {
    EXPECT_FALSE(finder.OnAlloc(Bytes(8192 * (i % 40)), Stream{random() % 7}, Bytes(1'000'000 * (i % 40))));
  }
  bool found = false;
  for (int i = 0; i < 400; ++i) {
    found |= finder.OnAlloc(Bytes(8192 * (i % 40)), Stream{uint64_t(i % 3)}, Bytes(1'000'000 * (i % 40)));
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(finder.confirmed()->length, 120);
}

// ---- what each rule is for: without it, this goes wrong

Outcome Without(const Job& job, PeriodFinder::Rules rules) { return Feed(job.events(), {.rules = rules}); }

TEST(PeriodFinderAblation, WithoutTheLevelTestTheFirstStepWithItsOptimizerStateIsThePeriod) {
  const Job job = Steps(6);  // holding back would wait as well, for another reason
  EXPECT_THAT(Lengths(Without(job, {.hold_back = false})), ElementsAre(kStep));
  EXPECT_EQ(Lengths(Without(job, {.level = false, .hold_back = false})).front(),
            kStep + kTwelveLayers.layers);
}

TEST(PeriodFinderAblation, WithoutTheSwingTestAnOptimizersLoopIsAPeriod) {
  const Job job = Steps(3, {.layers = 48, .kinds = 4});
  EXPECT_EQ(Lengths(Feed(job.events())).front(), 385);
  EXPECT_LE(Lengths(Without(job, {.swing = false})).front(), 16);
}

TEST(PeriodFinderAblation, WithoutHoldingBackAMicroBatchIsThePeriod) {
  Job job(kTwelveLayers);
  for (int i = 0; i < 4; ++i) job.Train(100, 8);
  EXPECT_EQ(Lengths(Feed(job.events())).front(), kStep + 7 * kMicroBatch);
  EXPECT_EQ(Lengths(Without(job, {.hold_back = false})).front(), kMicroBatch);
}

TEST(PeriodFinderAblation, WithoutTheChallengeNoiseReplacesThePeriodByItsMultiples) {
  int64_t longest = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Job job(kTwelveLayers, seed);
    job.SetNoise(0.01, Bytes(4096), Bytes(400'000));
    for (int i = 0; i < 40; ++i) job.Train();
    for (const int64_t length : Lengths(Without(job, {.challenge = false})))
      longest = std::max(longest, length);
  }
  EXPECT_GE(longest, 2 * kStep - 3);  // with it: PeriodFinder.OnePercentOfLargeBlocksIsSteppedOver
}

TEST(PeriodFinderAblation, WithoutDoubtLengthsInRandomOrderAreConfirmedAgainAndAgain) {
  size_t with = 0;
  size_t without = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::mt19937_64 random(seed);
    Job job(kTwelveLayers);
    for (int i = 0; i < 200; ++i) job.Train(50 * std::uniform_int_distribution(1, 7)(random));
    with += Feed(job.events()).findings.size();
    without += Without(job, {.doubt = false}).findings.size();
  }
  EXPECT_LE(with, 16u);
  EXPECT_GE(without, 2 * with);
}

TEST(PeriodFinderAblation, WithoutResynchronisingNoiseIsFatal) {
  constexpr uint64_t kSeeds = 12;
  double without = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Job job(kTwelveLayers, seed);
    job.SetNoise(0.01, Bytes(4096), Bytes(400'000));
    for (int i = 0; i < 20; ++i) job.Train();
    EXPECT_GE(InStepAfterwards(Feed(job.events())), 0.8) << seed;
    const Outcome outcome = Without(job, {.resynchronise = false});
    if (!outcome.findings.empty()) without += InStepAfterwards(outcome);
  }
  EXPECT_LT(without / kSeeds, 0.6);
}

// ---- recorded jobs

std::string Bench(const std::string& name) {
  const char* root = std::getenv("REPRISE_BENCH");
  return root == nullptr ? "" : std::string(root) + "/events/" + name + ".csv";
}

class RecordedJob : public testing::TestWithParam<const char*> {};

TEST_P(RecordedJob, TheTrueIterationIsFoundByTheMiddleOfTheThird) {
  if (Bench(GetParam()).empty()) GTEST_SKIP() << "REPRISE_BENCH is not set: no bench data";
  const Outcome outcome = Feed(streams::ReadBench(Bench(GetParam())));
  ASSERT_THAT(outcome.marks, SizeIs(Ge(4u)));
  const int64_t truth = outcome.marks[3] - outcome.marks[2];
  ASSERT_THAT(Lengths(outcome), ElementsAre(truth));
  EXPECT_EQ(outcome.findings[0].step, 2);
  EXPECT_LE(outcome.findings[0].into_step, truth * 6 / 10);
  EXPECT_EQ(InStepAfterwards(outcome), 1.0);
}

INSTANTIATE_TEST_SUITE_P(Bench, RecordedJob, testing::Values("alexnet", "resnet50", "googlenet", "gpt"),
                         [](const auto& info) { return std::string(info.param); });

TEST(RecordedJob, AccumulationAndEvaluation) {
  const std::string path = Bench("gpt_accum_eval");
  if (path.empty()) GTEST_SKIP() << "REPRISE_BENCH is not set: no bench data";
  const Outcome outcome = Feed(streams::ReadBench(path));
  for (const streams::Finding& finding : outcome.findings) {
    std::cout << "found " << finding.period.length << " after " << finding.into_step << " tokens of step "
              << finding.step << "\n";
  }
  // The step of four micro-batches. Three steps and their evaluation have not come again as a whole when the
  // recording ends.
  ASSERT_THAT(Lengths(outcome), ElementsAre(862));
  EXPECT_EQ(outcome.findings[0].step, 2);
  EXPECT_LE(outcome.findings[0].into_step, 862 * 6 / 10);
}

}  // namespace
}  // namespace reprise::profiler
