// What the benchmarks of an allocation and its free have in common: the sizes of a training step in miniature, and the time
// and the empty call that it is held against.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "tests/bench/empty_call.h"

constexpr int kLayers = 24;
constexpr int kIterations = 2000;
constexpr int kPairs = kIterations * kLayers * 2;  // of an activation and a gradient a layer
constexpr size_t kLarge = 65536;

inline size_t ActivationBytes(int layer) { return (1 + layer % 5) * kLarge + 512 * layer; }
inline size_t GradientBytes(int layer) { return (2 + layer % 3) * kLarge + 512 * layer; }

__attribute__((noipa)) inline void MeasureEmpty(int calls) {
  for (int i = 0; i < calls; ++i) reprise_bench_empty(nullptr);
}

// Nanoseconds for one of `count` in a call of `measured`, the best of so many rounds.
template <typename Measured>
double BestOf(int rounds, int count, Measured measured) {
  double best = 1e300;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    measured();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / count);
  }
  return best;
}
