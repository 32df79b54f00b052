// What a served cuMemAllocAsync and cuMemFreeAsync cost the job, through the preloaded functions.
//
//   LD_PRELOAD=.../libreprise.so cuda_pair_bench [ROUNDS [served|threads]]
//
// Replays a training step in miniature over a driver that does nothing, so that what is measured is our code
// and the call. Prints the best of several rounds of one pair, on one stream alone and on eight threads with
// a stream each, of an empty function called the same way, and their difference, in nanoseconds. Without the
// preload it measures the empty driver. A second argument runs that part alone, for callgrind.
#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "replay/abi.h"
#include "tests/bench/pairs.h"

extern "C" {
int cuInit(unsigned flags);
int cuStreamCreate(cu_stream* stream, unsigned flags);
int cuMemAllocAsync(cu_address* out, size_t bytes, cu_stream stream);
int cuMemFreeAsync(cu_address block, cu_stream stream);
}

namespace {

constexpr int kThreads = 8;

cu_address Take(size_t bytes, cu_stream stream) {
  cu_address block = 0;
  if (cuMemAllocAsync(&block, bytes, stream) != 0) std::abort();
  return block;
}

cu_stream NewStream() {
  cu_stream stream = nullptr;
  if (cuStreamCreate(&stream, 1) != 0) std::abort();
  return stream;
}

}  // namespace

// These have plain names for callgrind: it counts what happens inside the function that it is told.
extern "C" {

// kLayers * 2 pairs an iteration.
__attribute__((noipa)) void MeasureServed(int iterations, cu_stream stream) {
  for (int i = 0; i < iterations; ++i) {
    cu_address activation[kLayers];
    for (int layer = 0; layer < kLayers; ++layer) activation[layer] = Take(ActivationBytes(layer), stream);
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      const cu_address gradient = Take(GradientBytes(layer), stream);
      cuMemFreeAsync(activation[layer], stream);
      cuMemFreeAsync(gradient, stream);
    }
  }
}

}  // extern "C"

namespace {

// Nanoseconds for one pair of threads that go on allocating, each on a stream of its own: like the one of a
// single thread, after a first round that is not counted.
double BestOfThreads(int rounds) {
  std::barrier round(kThreads + 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&round, rounds, stream = NewStream()] {
      for (int r = 0; r <= rounds; ++r) {
        round.arrive_and_wait();
        MeasureServed(kIterations, stream);
        round.arrive_and_wait();
      }
    });
  }
  const auto measured = [&round] {
    round.arrive_and_wait();
    round.arrive_and_wait();
  };
  measured();
  const double best = BestOf(rounds, kThreads * kPairs, measured);
  for (std::thread& thread : threads) thread.join();
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;
  const std::string part = argc > 2 ? argv[2] : "";
  cuInit(0);
  double served = 0;
  double threads = 0;
  if (part != "threads") {
    const cu_stream stream = NewStream();
    MeasureServed(kIterations, stream);  // finds the iteration, and gives the planner time
    served = BestOf(rounds, kPairs, [stream] { MeasureServed(kIterations, stream); });
  }
  if (part != "served") threads = BestOfThreads(std::min(rounds, 5));
  const double empty = BestOf(rounds, kPairs, [] { MeasureEmpty(kPairs); });
  std::printf(
      "{\"served_pair_ns\": %.1f, \"pair_of_eight_threads_ns\": %.1f, \"empty_call_ns\": %.1f, "
      "\"beyond_ns\": "
      "%.1f}\n",
      served, threads, empty, served - empty);
  return 0;
}
