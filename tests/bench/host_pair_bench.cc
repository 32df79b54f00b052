// What a served allocate-and-free pair costs the job, through the preloaded function.
//
//   LD_PRELOAD=.../libreprise-host.so host_pair_bench [ROUNDS [served|small]]
//
// Replays a training step in miniature without touching its memory: what is measured is the allocator, called
// through the loader's name as a framework calls it. Prints the best of several rounds of one pair, of an
// empty function called the same way, and their difference, in nanoseconds. Without the preload it measures
// the C library. Memory below the threshold is measured too: what is not ours must cost nothing. A second
// argument runs that part alone, for callgrind.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/bench/pairs.h"

namespace {

void* Take(size_t bytes) {
  void* block = nullptr;
  if (posix_memalign(&block, 64, bytes) != 0) std::abort();
  return block;
}

}  // namespace

// These have plain names for callgrind: it counts what happens inside the function that it is told.
extern "C" {

// kLayers * 2 pairs an iteration.
__attribute__((noipa)) void MeasureServed(int iterations) {
  for (int i = 0; i < iterations; ++i) {
    void* activation[kLayers];
    for (int layer = 0; layer < kLayers; ++layer) activation[layer] = Take(ActivationBytes(layer));
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      void* const gradient = Take(GradientBytes(layer));
      free(activation[layer]);
      free(gradient);
    }
  }
}

__attribute__((noipa)) void MeasureSmall(int pairs) {
  for (int i = 0; i < pairs; ++i) free(Take(64));
}

}  // extern "C"

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;
  const std::string part = argc > 2 ? argv[2] : "";
  double served = 0;
  double small = 0;
  if (part != "small") {
    MeasureServed(kIterations);  // finds the iteration, and gives the planner time
    served = BestOf(rounds, kPairs, [] { MeasureServed(kIterations); });
  }
  if (part != "served") small = BestOf(rounds, kPairs, [] { MeasureSmall(kPairs); });
  const double empty = BestOf(rounds, kPairs, [] { MeasureEmpty(kPairs); });
  std::printf(
      "{\"served_pair_ns\": %.1f, \"small_pair_ns\": %.1f, \"empty_call_ns\": %.1f, \"beyond_ns\": %.1f}\n",
      served, small, empty, served - empty);
  return 0;
}
