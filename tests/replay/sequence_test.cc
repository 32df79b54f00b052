// Why: a sequence decides under the engine's lock what to plan, and the job waits meanwhile.
#include "replay/sequence.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace reprise::replay {
namespace {

constexpr Stream kStream{0};

// Allocates and frees in a sequence. What it is to plan is planned at once, or goes on being planned.
class Job {
 public:
  Tick Alloc(int64_t bytes) {
    Sequence::Step step;
    sequence.OnAlloc(Bytes(bytes), Bytes(512), kStream, live_, step);
    live_ += Bytes(bytes);
    if (step.at_cut) sequence.Adopt();
    if (!step.wants_plan) return step.token;
    const std::optional<profiler::Iteration> iteration = sequence.IterationToPlan();
    if (!iteration.has_value()) return step.token;
    periods.push_back(iteration->period);
    const std::shared_ptr<Candidate> candidate = sequence.BeginPlanning();
    if (at_once) Plan(MakeRequest(*iteration, {}), 0.01, *candidate);
    return step.token;
  }
  void Free(Tick block, int64_t bytes) {
    sequence.OnFree(block, kStream);
    live_ -= Bytes(bytes);
  }

  Sequence sequence{{}, {}};
  bool at_once = true;
  std::vector<int64_t> periods;  // to plan

 private:
  Bytes live_;
};

// A plan of eight slots asks after every eight allocations, all the time that a long cycle is being planned.
TEST(Sequence, ALongCycleIsLookedThroughAFewTimesHoweverShortThePlanInUse) {
  constexpr int64_t kShort = 8, kLong = 3000;
  Job job;
  for (int round = 0; round < 100; ++round) {
    std::vector<Tick> blocks;
    for (int64_t i = 1; i <= kShort; ++i) blocks.push_back(job.Alloc(i << 20));
    for (int64_t i = 1; i <= kShort; ++i) job.Free(blocks[static_cast<size_t>(i - 1)], i << 20);
  }
  ASSERT_EQ(job.periods, std::vector({kShort}));
  ASSERT_NE(job.sequence.plan(), nullptr);
  job.at_once = false;
  const int64_t before = job.sequence.counters().looks;
  // Activations and, as these go, gradients that stay until the next round has others.
  std::mt19937 random(1);
  std::vector<int64_t> bytes(kLong / 2);
  for (int64_t& size : bytes) size = 65536 + static_cast<int64_t>(random() % 1000) * 512;
  std::vector<Tick> gradients(bytes.size());
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Tick> activations;
    for (const int64_t size : bytes) activations.push_back(job.Alloc(size));
    for (size_t i = bytes.size(); i-- > 0;) {
      job.Free(activations[i], bytes[i]);
      if (round > 0) job.Free(gradients[i], 4096 + bytes[i] / 64);
      gradients[i] = job.Alloc(4096 + bytes[i] / 64);
    }
  }
  EXPECT_EQ(job.periods, std::vector({kShort, kLong}));
  EXPECT_LE(job.sequence.counters().looks - before, 8 * kRounds);
}

}  // namespace
}  // namespace reprise::replay
