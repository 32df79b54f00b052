// Problems as large as one likes that look like training: an iteration, repeated in time, no two times alike.
#pragma once

#include <cstdint>

#include "planner/types.h"

namespace reprise::planner {

// A training iteration of a network of `layers` layers: weights and optimizer state that are always there,
// activations that live from the way up until the way down, gradients until the step, temporaries around each
// layer. About 20 buffers a layer; sizes and small lifetimes vary from layer to layer.
Problem SyntheticIteration(int32_t layers, uint64_t seed);

// No training: `buffers` of all sizes that begin at any time and live for up to all of it, so that two fifths are
// in use at a time and nothing separates what came before from what comes after.
Problem Crowded(int32_t buffers, uint64_t seed);

struct Repetition {
  int64_t buffers = 0;  // how many there are to be; the last repetition is cut short
  double jitter = 0;    // each size times a factor drawn from [1 - jitter, 1 + jitter]
  uint64_t seed = 1;
  // Buffers that live for at least this share of the iteration become one each that lives through all
  // repetitions, so that time does not fall apart into independent pieces. Above 1: none does.
  double lasting_share = 2;
  // From one repetition's start to the next one's, as a share of the iteration: below 1, they overlap.
  double stride = 1;
};

// `iteration`, which is not cyclic, over and over. Buffers are in the order of their starts.
Problem Repeated(const Problem& iteration, const Repetition& repetition);

}  // namespace reprise::planner
