// What an allocation and its free cost in the arena alone: by plan, and by best fit among other live blocks.
// One thread, no lock, no streams, memory there already; the engine's share is in host_pair_bench.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "replay/arena.h"
#include "replay/counted_memory.h"

namespace reprise::replay {
namespace {

constexpr Bytes kGranule{2 * kMiB.count()};
constexpr int64_t kSizes = 64;

// From 4 KiB to 1 MiB, each another number of KiB.
Bytes SizeOf(int64_t i) { return kKiB * (4 + (i % kSizes) * 16 + i % 3); }

// An arena with `live` blocks, between which as many free ranges lie.
struct Populated {
  explicit Populated(int64_t live) : memory(kGranule, kMiB * (int64_t{1} << 16)), arena(&memory, Bytes(0)) {
    std::vector<Arena::Block> between;
    for (int64_t i = 0; i < live; ++i) {
      between.push_back(arena.Place(SizeOf(i * 7), Bytes(1), Arena::Where::kAnywhere));
      arena.Place(SizeOf(i * 5), Bytes(1), Arena::Where::kAnywhere);
    }
    for (const Arena::Block block : between) arena.Remove(block);
  }

  CountedMemory memory;
  Arena arena;
};

void BestFit(benchmark::State& state) {
  Populated populated(state.range(0));
  Arena& arena = populated.arena;
  int64_t i = 0;
  for (auto _ : state) {
    Arena::Block block = arena.Place(SizeOf(i++), Bytes(1), Arena::Where::kAnywhere);
    benchmark::DoNotOptimize(block);
    arena.Remove(block);
  }
}
BENCHMARK(BestFit)->ArgName("live")->Arg(16)->Arg(1024);

// 64 slots of a plan, one after the other, each free again before the next.
void ByPlan(benchmark::State& state) {
  Populated populated(state.range(0));
  Arena& arena = populated.arena;
  std::vector<Offset> offsets;
  Offset end(0);
  arena.ForEachLive(
      [&](Offset offset, Bytes bytes, const BlockInfo&) { end = std::max(end, offset + bytes); });
  for (int64_t i = 0; i < kSizes; ++i) {
    offsets.push_back(end);
    end = end + SizeOf(i);
  }
  arena.SetPlanEnd(end);
  // All at once, as in an iteration's peak: what was never live together is not held together either.
  std::vector<Arena::Block> all;
  for (int64_t i = 0; i < kSizes; ++i)
    all.push_back(arena.PlaceAt(offsets[static_cast<size_t>(i)], SizeOf(i)));
  for (const Arena::Block block : all) arena.Remove(block);
  int64_t i = 0;
  for (auto _ : state) {
    const Arena::Block block = arena.PlaceAt(offsets[static_cast<size_t>(i)], SizeOf(i));
    if (!block) return state.SkipWithError("the planned place was taken");
    arena.Remove(block);
    i = (i + 1) % kSizes;
  }
}
BENCHMARK(ByPlan)->ArgName("live")->Arg(16)->Arg(1024);

}  // namespace
}  // namespace reprise::replay

BENCHMARK_MAIN();
