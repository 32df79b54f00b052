// Event streams of training jobs that vary, made from a seed, with known truth.
//
// A job is built as real ones are: weights first; each step a batch, activations forward, their gradients and
// those of the weights backward, the optimizer's temporaries, and in the first step its state, which stays;
// the gradients of the weights are freed when the next step begins (or, in one kind, later). What varies is the stream's kind. A mark
// stands where each step begins. The seed draws the model's shape as well as what varies, so that a rule
// which fits one model alone shows.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "profiler/types.h"

namespace reprise::replay {

enum class Variation : uint8_t {
  kNone,            // every step alike
  kSevenLengths,    // 7 sequence lengths in random order
  kTwentyLengths,   //
  kFiftyLengths,    //
  kUnrolledRnn,     // a recurrent net unrolled over a random length
  kEvaluation,      // a few forward passes with nothing kept, every k-th step
  kMicroBatches,    // gradients accumulated over several batches, then one optimizer step
  kSkippedSteps,    // the optimizer skips a step now and then (a loss scale that overflowed)
  kShortLastBatch,  // the last batch of each epoch is smaller
  kTwoJobs,         // two models take turns, step by step
  kTwoJobsAtWill,   // two models take turns of random length
  kExperts,         // a mixture of experts, whose shares of the tokens differ in every step
  kGrowth,          // sequences become longer every few steps
  kLeak,            // each step leaves something behind
  kSmallNoise,      // one allocation in a hundred is joined by a stray one of 512 B to 64 KiB
  kLargeNoise,      // the same, 1 to 32 MiB
  kFunctional,      // weights and state are made anew in each step, and the old ones go a step or two later
  kKeptGradients,   // a step's gradients go when the next one's forward pass is over
  kPhases,          // sequences become twice as long for good, twice
  kGeneration,      // each step generates answers of random length, key by key, and trains on them
};

inline constexpr Variation kVariations[] = {
    Variation::kNone,         Variation::kSevenLengths,  Variation::kTwentyLengths,
    Variation::kFiftyLengths, Variation::kUnrolledRnn,   Variation::kEvaluation,
    Variation::kMicroBatches, Variation::kSkippedSteps,  Variation::kShortLastBatch,
    Variation::kTwoJobs,      Variation::kTwoJobsAtWill, Variation::kExperts,
    Variation::kGrowth,       Variation::kLeak,          Variation::kSmallNoise,
    Variation::kLargeNoise,   Variation::kFunctional,    Variation::kKeptGradients,
    Variation::kPhases,       Variation::kGeneration,
};

std::string_view NameOf(Variation variation);

struct VaryingStream {
  std::vector<profiler::Event> events;
  // True periods in tokens (allocations of at least 4 KiB), the shortest first: of one step and, where
  // several make a round that repeats, of the round. Empty: nothing repeats.
  std::vector<int64_t> periods;
  bool apart = false;  // they are of jobs that take turns, and each is to be found
};

// The same stream for the same seed, with every standard library.
VaryingStream MakeVaryingStream(Variation variation, uint64_t seed);

// Rules and constants are chosen on the first seeds; figures are told of the second, which no choice has
// seen.
inline constexpr uint64_t kTuningSeeds = 1;
inline constexpr uint64_t kFinalSeeds = 1001;

}  // namespace reprise::replay
