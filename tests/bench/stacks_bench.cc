// What taking a native call stack costs the thread that allocates, in time of the processor.
//
// usage: stacks_bench DEPTH TAKES
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "replay/stacks/stack_source.h"
#include "tests/process.h"

using reprise::replay::Stacks;
using reprise::replay::StackSource;

// Sums what was taken, so that nothing is left out by the compiler; noinline, so that each call is a frame.
__attribute__((noinline)) uint64_t MeasureTakes(StackSource& source, int takes) {
  uint64_t sum = 0;
  for (int i = 0; i < takes; ++i) {
    source.Take();
    sum += static_cast<uint64_t>(StackSource::taken());
  }
  return sum;
}

__attribute__((noinline)) uint64_t Recurse(StackSource& source, int depth, int takes) {
  const uint64_t sum = depth == 0 ? MeasureTakes(source, takes) : Recurse(source, depth - 1, takes);
  asm volatile("" : : "r"(&sum) : "memory");  // not a tail call
  return sum;
}

int main(int count, char** words) {
  const int depth = count > 1 ? atoi(words[1]) : 20;
  const int takes = count > 2 ? atoi(words[2]) : 100'000;
  constexpr int kRounds = 9;
  StackSource source(Stacks::kNative, nullptr);
  source.BeginListening();
  if (Recurse(source, depth, 1000) == 0) {  // learns the stack
    std::fputs("no stacks were taken\n", stderr);
    return 1;
  }
  std::vector<double> ns;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = reprise::ThreadSeconds();  // of the processor alone: others may want it too
    Recurse(source, depth, takes);
    ns.push_back(1e9 * (reprise::ThreadSeconds() - begin) / takes);
  }
  std::sort(ns.begin(), ns.end());
  std::printf("depth %d: %.0f ns a stack (median of %d rounds of %d; %.0f to %.0f)\n", depth, ns[kRounds / 2],
              kRounds, takes, ns.front(), ns.back());
  return 0;
}
