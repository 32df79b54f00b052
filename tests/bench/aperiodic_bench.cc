// A job on two streams whose blocks have other sizes each time and never come back to their places: what the
// engine takes for itself until every address has been used, and what a pair costs when nothing is at hand.
//
//   aperiodic_bench [--live GIB] [--allocations N]
//
// Sizes from 4 KiB to 64 MiB, evenly by magnitude; what goes is drawn, and so is the stream of each call. No
// memory is behind the addresses. A row where the number of allocations has doubled.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "replay/counted_memory.h"
#include "replay/engine.h"
#include "tests/process.h"

namespace reprise::replay {
namespace {

constexpr int64_t kFirstRow = 1 << 17;
constexpr double kSmallest = 4096;
constexpr double kLargest = 64 << 20;

// A device that has done everything by the time that it is asked.
class DoneAtOnce : public StreamEvents {
 public:
  Event Record(Stream) override { return this; }
  bool Wait(Stream, Event) override { return true; }
  bool Complete(Event) override { return true; }
  void Recycle(Stream, Event) override {}
};

int Run(double live_gib, int64_t allocations) {
  DoneAtOnce events;
  InlineRunner runner;
  Engine::Options options;
  options.plan = false;
  auto made = Engine::Create(options, std::make_unique<CountedMemory>(Bytes(2 << 20), kLargestRange), &runner,
                             &events);
  if (!made.ok()) return 1;
  Engine& engine = **made;
  const auto guard = engine.Lock();
  std::mt19937_64 random(1);
  const auto stream = [&] { return Stream{random() % 2}; };
  std::vector<std::pair<Offset, Bytes>> live;
  Bytes held{0};
  const Bytes most(static_cast<int64_t>(live_gib * (int64_t{1} << 30)));
  const Bytes before = ResidentBytes();
  double begin = ThreadSeconds();
  fmt::print("| allocations | live blocks | the engine's own memory | ns a pair since the row before |\n");
  fmt::print("|---|---|---|---|\n");
  int64_t row = kFirstRow;
  int64_t last_row = 0;
  for (int64_t i = 1; i <= allocations; ++i) {
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;
    const Bytes bytes(static_cast<int64_t>(kSmallest * std::pow(kLargest / kSmallest, share)));
    while (held + bytes > most) {
      std::swap(live[random() % live.size()], live.back());
      engine.Free(guard, live.back().first, stream());
      held = held - live.back().second;
      live.pop_back();
    }
    const std::optional<Offset> at = engine.Allocate(guard, bytes, Bytes(1), stream());
    if (!at) return 1;
    live.emplace_back(*at, bytes);
    held = held + bytes;
    if (i != row && i != allocations) continue;
    const double seconds = ThreadSeconds() - begin;
    fmt::print("| {} | {} | {:.0f} MiB | {:.0f} |\n", i, live.size(),
               static_cast<double>((ResidentBytes() - before).count()) / (1 << 20),
               1e9 * seconds / static_cast<double>(i - last_row));
    last_row = i;
    row = 2 * i;
    begin = ThreadSeconds();
  }
  return 0;
}

}  // namespace
}  // namespace reprise::replay

int main(int argc, char** argv) {
  CLI::App app("One engine through a job that never repeats");
  double live = 70;
  int64_t allocations = 1 << 23;
  app.add_option("--live", live, "GiB that are live at a time")->check(CLI::Range(0.1, 500.0));
  app.add_option("--allocations", allocations, "How many")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return reprise::replay::Run(live, allocations);
}
