#include "tests/bench/lifetimes_generator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

namespace reprise::planner {
namespace {

// The distributions of <random> differ from library to library; these do not.
class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  double Share() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits_() % static_cast<uint64_t>(high - low + 1));
  }
  Bytes Jittered(Bytes size, double jitter) {
    const double factor = 1 + jitter * (2 * Share() - 1);
    return Bytes(std::max<int64_t>(1, std::llround(static_cast<double>(size.count()) * factor)));
  }

 private:
  std::mt19937_64 bits_;
};

Buffer Block(int64_t lower, int64_t upper, int64_t size) {
  return {.lower = Tick(lower), .upper = Tick(upper), .size = Bytes(size)};
}

void SortByStart(Problem& problem) {
  std::stable_sort(problem.buffers.begin(), problem.buffers.end(),
                   [](const Buffer& a, const Buffer& b) { return a.lower < b.lower; });
}

}  // namespace

Problem SyntheticIteration(int32_t layers, uint64_t seed) {
  constexpr int64_t kTicks = 16;   // of a layer, on each way
  constexpr int64_t kUnit = 4096;  // bytes; a row of activations, say
  Random random(seed);
  Problem problem;
  const int64_t down = layers * kTicks;  // where the way down begins
  const int64_t step = 2 * down;         // where the optimizer's step does
  const int64_t end = step + layers;
  const auto add = [&](int64_t lower, int64_t upper, int64_t units) {
    problem.buffers.push_back(Block(lower, upper, units * kUnit + 512 * random.Between(0, 7)));
  };
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t up = layer * kTicks;
    const int64_t back = step - (layer + 1) * kTicks;
    const int64_t width = 64 << (layer % 3);
    for (int copy = 0; copy < 3; ++copy) add(0, end, width);  // a weight and its two moments
    for (int64_t k = 0; k < 6; ++k) {
      add(up + 2 * k, back + kTicks - 2 * k, random.Between(1, 4) * width);  // an activation
      add(up + 2 * k, up + 2 * k + random.Between(1, 5), random.Between(1, 8) * width / 4);
      add(back + 2 * k, back + 2 * k + random.Between(1, 5), random.Between(1, 8) * width / 4);
    }
    add(back + kTicks / 2, step + layer + 1, width);  // the weight's gradient
    add(back + kTicks - 1, back + kTicks + 3, 4 * width);
  }
  SortByStart(problem);
  return problem;
}

Problem Crowded(int32_t buffers, uint64_t seed) {
  Random random(seed);
  Problem problem;
  for (int32_t i = 0; i < buffers; ++i) {
    const int64_t lower = random.Between(0, buffers);
    problem.buffers.push_back(Block(lower, lower + random.Between(1, buffers), random.Between(1, 1'000'000)));
  }
  SortByStart(problem);
  return problem;
}

Problem Repeated(const Problem& iteration, const Repetition& repetition) {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
  for (const Buffer& buffer : iteration.buffers) {
    begin = std::min(begin, buffer.lower.count());
    end = std::max(end, buffer.upper.count());
  }
  const auto stride = static_cast<int64_t>(repetition.stride * static_cast<double>(end - begin));
  const auto lasts = [&](const Buffer& buffer) {
    return static_cast<double>(buffer.upper - buffer.lower) >=
           repetition.lasting_share * static_cast<double>(end - begin);
  };
  std::vector<Buffer> lasting, passing;
  for (const Buffer& buffer : iteration.buffers) (lasts(buffer) ? lasting : passing).push_back(buffer);
  Random random(repetition.seed);
  Problem problem;
  problem.buffers.reserve(repetition.buffers);
  const auto full = [&] { return static_cast<int64_t>(problem.buffers.size()) >= repetition.buffers; };
  const auto add = [&](Buffer buffer) {
    buffer.size = random.Jittered(buffer.size, repetition.jitter);
    problem.buffers.push_back(std::move(buffer));
  };
  for (const Buffer& buffer : lasting) {
    if (!full()) add(buffer);
  }
  int64_t later = 0;
  for (; !full() && !passing.empty(); later += stride) {
    for (Buffer buffer : passing) {
      buffer.lower = buffer.lower + later;
      buffer.upper = buffer.upper + later;
      if (!full()) add(std::move(buffer));
    }
  }
  for (size_t i = 0; i < std::min(lasting.size(), problem.buffers.size()); ++i) {
    problem.buffers[i].upper = problem.buffers[i].upper + std::max<int64_t>(0, later - stride);
  }
  if (repetition.stride != 1 || !lasting.empty()) SortByStart(problem);
  return problem;
}

}  // namespace reprise::planner
