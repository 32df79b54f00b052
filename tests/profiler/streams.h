// Allocation streams of made-up training jobs, with known truth: a mark stands where each step begins.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "base/units.h"
#include "profiler/iteration.h"
#include "profiler/period_finder.h"
#include "profiler/types.h"

namespace reprise::profiler::streams {

// A stack of `layers` layers, each with a weight, two temporaries and two saved activations.
struct Model {
  int layers = 12;
  int kinds = 12;               // layers differ in their sizes, but for every so many; 1: all are equal
  bool optimizer_state = true;  // allocated in the first step
  bool late_zero_grad = false;  // gradients of the last step are freed after the forward pass, not before it
};

// Runs steps and writes down what they allocate and free.
class Job {
 public:
  explicit Job(Model model, uint64_t seed = 1);

  // Every allocation is preceded with this probability by one that does not belong there (alive for up to 20
  // more), or, when large, has its size changed.
  void SetNoise(double probability, Bytes least, Bytes most);
  // One training step on sequences of `length`, accumulated over `micro_batches`.
  void Train(int64_t length = 100, int micro_batches = 1);
  // `batches` forward passes that save nothing.
  void Evaluate(int batches, int64_t length = 100);
  // A block that is never freed.
  void Leak(Bytes bytes) { Alloc(bytes); }
  // A block that is freed at once.
  void Probe(Bytes bytes) { Free(Alloc(bytes)); }

  const std::vector<Event>& events() const { return events_; }

 private:
  BlockId Alloc(Bytes bytes);
  void Free(BlockId id);
  void FreeAll(std::vector<BlockId>& ids);
  void ExpireNoise();
  Bytes Weight(int layer) const;
  Bytes Activation(int layer, int64_t length) const;
  void Forward(int64_t length, std::vector<BlockId>* saved);
  void Backward(int64_t length, std::vector<BlockId>& saved);
  void Optimize();

  Model model_;
  std::mt19937_64 random_;
  double noise_ = 0;
  Bytes noise_least_, noise_most_;
  struct NoiseBlock {
    BlockId id;
    size_t until;
  };
  std::deque<NoiseBlock> noise_blocks_;
  size_t allocs_ = 0;
  int steps_ = 0;
  std::vector<BlockId> gradients_;
  std::vector<Event> events_;
};

// Reads `event,id,bytes,stream` rows; for trusted bench data only. Empty when the file cannot be read.
std::vector<Event> ReadBench(const std::string& path);

// What the finder made of a stream.
struct Finding {
  Period period;
  int64_t step = 0;       // marks seen before it, minus one: the step during which it was found
  int64_t into_step = 0;  // tokens since that mark
  Iteration iteration;    // extracted at that moment
};
struct Outcome {
  std::vector<Finding> findings;
  std::vector<int64_t> marks;  // tokens before each mark
  std::vector<bool> in_step;   // after each token
  int64_t iterations = 0;
  int64_t tokens = 0;
  int64_t capacity = 0;
  History history;  // at the end, every free in it
};
Outcome Feed(const std::vector<Event>& events, PeriodFinder::Options options = {});

}  // namespace reprise::profiler::streams
