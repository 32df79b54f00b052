#include "tests/replay/varying_streams.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/replay/varying_jobs.h"

namespace reprise::replay {
namespace {

using varying::Dice;
using varying::DrawShape;
using varying::FunctionalJob;
using varying::RecurrentNet;
using varying::Shape;
using varying::Transformer;
using varying::Writer;

constexpr int kSteps = 48;

// Calls step(i) for each step, marked, and returns the tokens of the last.
template <typename Step>
int64_t Run(Writer& out, int steps, Step step) {
  int64_t begin = 0;
  for (int i = 0; i < steps; ++i) {
    out.Mark();
    begin = out.tokens();
    step(i);
  }
  return out.tokens() - begin;
}

void RunLengths(Writer& out, Dice& dice, int64_t lengths) {
  Transformer job(&out, &dice, DrawShape(dice));
  const int64_t longest = job.shape().length;
  Run(out, 2 * kSteps,
      [&](int) { job.Step(job.shape().batch, longest * dice.Between(1, lengths) / lengths + 1); });
}

int64_t RunEvaluations(Writer& out, Dice& dice, std::vector<int64_t>& periods) {
  Transformer job(&out, &dice, DrawShape(dice));
  const int64_t every = dice.Between(4, 9);
  const auto batches = static_cast<int>(dice.Between(1, 5));
  int64_t step = 0;
  int64_t round_begin = 0;
  Run(out, 2 * kSteps, [&](int i) {
    if (i % every == 0) {
      if (i > 0) periods = {step, out.tokens() - round_begin};
      round_begin = out.tokens();
    }
    const int64_t begin = out.tokens();
    job.Step();
    step = out.tokens() - begin;
    if (i % every == every - 1) job.Evaluate(batches);
  });
  return step;
}

void RunPhases(Writer& out, Dice& dice, std::vector<int64_t>& periods) {
  Transformer job(&out, &dice, DrawShape(dice));
  const Shape& s = job.shape();
  periods = {Run(out, kSteps, [&](int i) { job.Step(s.batch, (s.length / 4) << (3 * i / kSteps)); })};
}

void RunGeneration(Writer& out, Dice& dice) {
  Transformer job(&out, &dice, DrawShape(dice));
  const Shape& s = job.shape();
  constexpr int64_t kMostTokens = 24;
  Run(out, kSteps, [&](int) {
    const int64_t tokens = dice.Between(kMostTokens / 3, kMostTokens);
    job.Generate(s.batch, s.length - kMostTokens, tokens);
    job.Step(s.batch, s.length - kMostTokens + tokens);
  });
}

void RunTwoJobs(Writer& out, Dice& dice, bool at_will, std::vector<int64_t>& periods) {
  Transformer a(&out, &dice, DrawShape(dice));
  Transformer b(&out, &dice, DrawShape(dice));
  if (!at_will) {
    periods = {Run(out, kSteps, [&](int) {
      a.Step();
      b.Step();
    })};
    return;
  }
  const auto tokens = [&](Transformer& job) {
    const int64_t begin = out.tokens();
    job.Step();
    return out.tokens() - begin;
  };
  periods = {0, 0};
  Run(out, kSteps / 2, [&](int) {
    for (int64_t n = dice.Between(1, 6); n > 0; --n) periods[0] = tokens(a);
    for (int64_t n = dice.Between(1, 6); n > 0; --n) periods[1] = tokens(b);
  });
}

}  // namespace

std::string_view NameOf(Variation variation) {
  switch (variation) {
    case Variation::kNone:
      return "none";
    case Variation::kSevenLengths:
      return "lengths-7";
    case Variation::kTwentyLengths:
      return "lengths-20";
    case Variation::kFiftyLengths:
      return "lengths-50";
    case Variation::kUnrolledRnn:
      return "rnn";
    case Variation::kEvaluation:
      return "evaluation";
    case Variation::kMicroBatches:
      return "micro-batches";
    case Variation::kSkippedSteps:
      return "skipped-steps";
    case Variation::kShortLastBatch:
      return "short-last-batch";
    case Variation::kTwoJobs:
      return "two-jobs";
    case Variation::kTwoJobsAtWill:
      return "two-jobs-at-will";
    case Variation::kExperts:
      return "experts";
    case Variation::kGrowth:
      return "growth";
    case Variation::kLeak:
      return "leak";
    case Variation::kSmallNoise:
      return "small-noise";
    case Variation::kLargeNoise:
      return "large-noise";
    case Variation::kFunctional:
      return "functional";
    case Variation::kKeptGradients:
      return "kept-gradients";
    case Variation::kPhases:
      return "phases";
    case Variation::kGeneration:
      return "generation";
  }
  return "";
}

VaryingStream MakeVaryingStream(Variation variation, uint64_t seed) {
  Dice dice(seed * 64 + static_cast<uint64_t>(variation));
  Writer out(&dice);
  VaryingStream stream;
  switch (variation) {
    case Variation::kSevenLengths:
      RunLengths(out, dice, 7);
      break;
    case Variation::kTwentyLengths:
      RunLengths(out, dice, 20);
      break;
    case Variation::kFiftyLengths:
      RunLengths(out, dice, 50);
      break;
    case Variation::kUnrolledRnn: {
      RecurrentNet job(&out, 64 * dice.Between(8, 20), dice.Between(32, 96));
      const int64_t longest = dice.Between(60, 160);
      Run(out, 2 * kSteps, [&](int) { job.Step(dice.Between(longest / 8, longest)); });
      break;
    }
    case Variation::kEvaluation:
      RunEvaluations(out, dice, stream.periods);
      break;
    case Variation::kPhases:
      RunPhases(out, dice, stream.periods);
      break;
    case Variation::kGeneration:
      RunGeneration(out, dice);
      break;
    case Variation::kTwoJobs:
    case Variation::kTwoJobsAtWill:
      stream.apart = variation == Variation::kTwoJobsAtWill;
      RunTwoJobs(out, dice, stream.apart, stream.periods);
      break;
    case Variation::kFunctional: {
      const Shape shape = DrawShape(dice);
      const int64_t ahead = dice.Between(0, 1);
      FunctionalJob job(&out, shape, ahead, /*two_functions=*/dice.Chance(500));
      stream.periods = {Run(out, kSteps, [&](int) { job.Step(); })};
      break;
    }
    case Variation::kExperts: {
      Shape shape = DrawShape(dice);
      shape.experts = dice.Between(4, 8);
      Transformer job(&out, &dice, shape);
      Run(out, kSteps, [&](int) { job.Step(); });
      break;
    }
    default: {
      Shape shape = DrawShape(dice);
      shape.keeps_gradients = variation == Variation::kKeptGradients;
      Transformer job(&out, &dice, shape);
      const Shape& s = job.shape();
      const auto micro_batches =
          static_cast<int>(variation == Variation::kMicroBatches ? dice.Between(2, 16) : 1);
      const int64_t epoch = dice.Between(6, 14);
      if (variation == Variation::kSmallNoise) out.SetNoise({10, 512, 64 << 10});
      if (variation == Variation::kLargeNoise) out.SetNoise({10, 1 << 20, 32 << 20});
      const int64_t leak = dice.Between(8, 1024) << 10;
      const int64_t tokens = Run(out, kSteps, [&](int i) {
        int64_t batch = s.batch;
        int64_t length = s.length;
        bool optimize = true;
        if (variation == Variation::kShortLastBatch && i % epoch == epoch - 1) batch = 1 + batch / 3;
        if (variation == Variation::kGrowth) length = length / 2 + 8 * (i / epoch);
        if (variation == Variation::kSkippedSteps && i > 0 && i < kSteps - 1) optimize = !dice.Chance(80);
        job.Step(batch, length, micro_batches, optimize);
        if (variation == Variation::kLeak) out.Alloc(leak);
      });
      stream.periods = {tokens};
      if (variation == Variation::kShortLastBatch) stream.periods.push_back(epoch * tokens);
      break;
    }
  }
  stream.events = out.TakeEvents();
  return stream;
}

}  // namespace reprise::replay
