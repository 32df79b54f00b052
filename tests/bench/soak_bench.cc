// One engine through many jobs that vary, for as long as asked: does it stay as fast, and its own memory
// bounded?
//
//   soak_bench [--minutes N] [--seed N] [--plan-seconds S]
//
// Every job is of another kind and seed; when it ends, all of its blocks are freed, and the engine goes on.
// After every 32 jobs the same job again, the probe: what it costs is comparable over the whole run. A row a
// minute, with the median of its probes. Costs are the processor time of this thread without planning, so
// that other processes weigh little. Status 1 if a block overlapped another or was passed.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "replay/host_memory.h"
#include "replay/overlap_checker.h"
#include "replay/simulator.h"
#include "tests/process.h"
#include "tests/replay/varying_streams.h"

namespace reprise::replay {
namespace {

constexpr int kJobsBetweenProbes = 32;
constexpr uint64_t kFirstSeed = 100'000;  // beyond those of the tables

// Plans at once, and takes the time.
class TimedRunner : public PlanRunner {
 public:
  void Run(std::function<void()> job) override {
    const double begin = ThreadSeconds();
    job();
    seconds_ += ThreadSeconds() - begin;
  }
  double seconds() const { return seconds_; }

 private:
  double seconds_ = 0;
};

class Soak {
 public:
  static std::optional<Soak> Begin(double plan_seconds, Bytes granule) {
    Soak soak;
    Engine::Options options;
    options.plan_seconds = plan_seconds;
    auto engine =
        Engine::Create(options, std::make_unique<CountedMemory>(granule, kLargestRange), soak.runner_.get());
    if (!engine.ok()) return std::nullopt;
    soak.engine_ = *std::move(engine);
    return soak;
  }

  // Nanoseconds a request, its free included.
  double Run(const VaryingStream& job) {
    const double planning = runner_->seconds();
    const double begin = ThreadSeconds();
    int64_t requests = 0;
    {
      const Engine::Guard guard = engine_->Lock();
      for (const profiler::Event& event : job.events) {
        if (event.kind == profiler::EventKind::kAlloc) {
          ++requests;
          const auto at = engine_->Allocate(guard, event.bytes, event.alignment, event.stream);
          if (!at) continue;
          checker_.OnPlaced(*at, event.bytes);
          placed_[event.id] = *at;
        } else if (event.kind == profiler::EventKind::kFree) {
          if (const auto it = placed_.find(event.id); it != placed_.end()) Free(guard, it->second);
          placed_.erase(event.id);
        }
      }
      for (const auto& [id, at] : placed_) Free(guard, at);
      placed_.clear();
    }
    requests_ += requests;
    const double seconds = ThreadSeconds() - begin - (runner_->seconds() - planning);
    return 1e9 * seconds / static_cast<double>(requests);
  }

  Counters counters() { return engine_->counters(engine_->Lock()); }
  int64_t overlaps() const { return checker_.overlaps(); }
  int64_t requests() const { return requests_; }

 private:
  Soak() : runner_(std::make_unique<TimedRunner>()) {}
  void Free(const Engine::Guard& guard, Offset at) {
    checker_.OnFreed(at);
    engine_->Free(guard, at, Stream{});
  }

  std::unique_ptr<TimedRunner> runner_;
  std::unique_ptr<Engine> engine_;
  OverlapChecker checker_;
  absl::flat_hash_map<BlockId, Offset> placed_;
  int64_t requests_ = 0;
};

int Run(double minutes, uint64_t seed, double plan_seconds, Bytes granule) {
  std::optional<Soak> soak = Soak::Begin(plan_seconds, granule);
  if (!soak) return 1;
  std::mt19937_64 random(seed);
  const VaryingStream probe = MakeVaryingStream(Variation::kNone, kFirstSeed);
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 60;
  };
  fmt::print("| minute | jobs | requests | probe, ns a request | resident | plans | passed | overlaps |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  std::vector<double> probes;
  double next_row = 1;
  for (int64_t jobs = 0; passed() < minutes;) {
    for (int i = 0; i < kJobsBetweenProbes; ++i, ++jobs) {
      const Variation variation = kVariations[random() % std::size(kVariations)];
      soak->Run(MakeVaryingStream(variation, kFirstSeed + random() % kFirstSeed));
    }
    probes.push_back(soak->Run(probe));
    if (passed() < std::min(next_row, minutes)) continue;
    next_row += 1;
    const auto middle = probes.begin() + static_cast<int64_t>(probes.size() / 2);
    std::nth_element(probes.begin(), middle, probes.end());
    const double probed = *middle;
    probes.clear();
    malloc_trim(0);
    const Counters c = soak->counters();
    fmt::print("| {:.1f} | {} | {} | {:.1f} | {:.1f} MiB | {} | {} | {} |\n", passed(), jobs,
               soak->requests(), probed, static_cast<double>(ResidentBytes().count()) / (1 << 20), c.plans,
               c.passed, soak->overlaps());
    std::fflush(stdout);
  }
  return soak->overlaps() == 0 && soak->counters().passed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace reprise::replay

int main(int argc, char** argv) {
  CLI::App app("One engine through many jobs that vary");
  double minutes = 30;
  uint64_t seed = 1;
  double plan_seconds = 0.05;
  app.add_option("--minutes", minutes, "For how long");
  app.add_option("--seed", seed, "Of the order of the jobs");
  app.add_option("--plan-seconds", plan_seconds, "Budget of one planning");
  bool host = false;
  app.add_flag("--host", host, "Memory in granules as in host mode, not as on a GPU");
  CLI11_PARSE(app, argc, argv);
  return reprise::replay::Run(minutes, seed, plan_seconds,
                              host ? reprise::replay::HostMemory::kGranule : reprise::replay::kDeviceGranule);
}
