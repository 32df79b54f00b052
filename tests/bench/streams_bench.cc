// What it costs a job that keeps several streams busy that memory goes from one to another, what is held so that it
// does not, and what other allocators would hold: a table.
//
//   streams_bench [--seeds N] [--layers N] [--transfer PART]
//
// Time is that of a step, over the same with memory that nobody waits for; what is reserved, over the live peak; moved are granules
// a step. Plans are made in as many steps as a second has.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "replay/models/models.h"
#include "replay/models/run_model.h"
#include "replay/simulator.h"
#include "tests/replay/stream_jobs.h"
#include "tests/replay/streams_at_work.h"

namespace reprise::replay {
namespace {

std::vector<profiler::Event> EventsOf(const StreamJob& job) {
  std::vector<profiler::Event> events;
  for (const StreamOperation& operation : job.operations()) {
    const bool alloc = operation.kind == StreamOperation::Kind::kAlloc;
    if (!alloc && operation.kind != StreamOperation::Kind::kFree) continue;
    events.push_back({.kind = alloc ? profiler::EventKind::kAlloc : profiler::EventKind::kFree,
                      .id = BlockId{static_cast<uint64_t>(operation.id)},
                      .bytes = operation.bytes,
                      .alignment = Bytes(512),
                      .stream = operation.stream});
  }
  return events;
}

std::string Cells(const StreamOutcome& outcome, const StreamOutcome& alone) {
  return fmt::format("{:.3f} | {:.3f} | {}", outcome.step / alone.step,
                     Share(outcome.counters.reserved_peak.count(), alone.live_peak.count()),
                     outcome.moved_a_step);
}

void PrintHead() {
  std::string head = "| job | live, GiB | step, ms | arena: time | reserved | moved ";
  head += "| plan without lag: time | reserved | moved | plan: time | reserved | moved | by plan |";
  for (const ModelInfo& info : Models()) head += fmt::format(" {} |", info.name);
  std::string line = "|";
  for (size_t i = 0; i < 13 + Models().size(); ++i) line += "---|";
  fmt::print("{}\n{}\n", head, line);
}

void PrintRow(const StreamJobOptions& options) {
  const StreamJob job = MakeStreamJob(options);
  const StreamOutcome alone = PlayWithoutWaits(job);
  Engine::Options engine;
  engine.solve = SolveByWork;
  const StreamOutcome planned = PlayServed(job, engine);
  engine.sequence_rules.lag = false;
  const StreamOutcome without = PlayServed(job, engine);
  engine.plan = false;
  const StreamOutcome arena = PlayServed(job, engine);
  const Counters& counters = planned.counters;
  fmt::print("| {}{}, {} | {:.2f} | {:.1f} | {} | {} | {} | {:.2f} |", NameOf(options.use),
             options.recompute ? ", recomputed" : "", options.seed,
             static_cast<double>(alone.live_peak.count()) / (1 << 30), alone.step / 1000, Cells(arena, alone),
             Cells(without, alone), Cells(planned, alone),
             Share(counters.planned_bytes_after_plan.count(), counters.bytes_after_plan.count()));
  const std::vector<profiler::Event> events = EventsOf(job);
  for (const ModelInfo& info : Models()) {
    const std::unique_ptr<AllocatorModel> model = info.make(Bytes(0));
    fmt::print(" {:.3f} |", Share(RunModel(events, *model).reserved_peak.count(), alone.live_peak.count()));
  }
  fmt::print("\n");
  if (planned.overlaps + without.overlaps + arena.overlaps > 0) fmt::print("BLOCKS OVERLAP\n");
}

}  // namespace
}  // namespace reprise::replay

int main(int argc, char** argv) {
  using namespace reprise::replay;
  CLI::App app("What streams wait for one another");
  StreamJobOptions options;
  uint64_t seeds = 2;
  app.add_option("--seeds", seeds,
                 "Of each job so many whose layers differ in width, and one whose layers are alike");
  app.add_option("--layers", options.layers)->check(CLI::Range(2, 1000));
  app.add_option("--transfer", options.transfer, "Time of a layer's transfer, over that of its forward pass")
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  PrintHead();
  for (const StreamUse use : kStreamUses) {
    for (uint64_t seed = 0; seed <= seeds; ++seed) {
      for (const bool recompute : {false, true}) {
        if (recompute && use == StreamUse::kOffload) continue;  // there is nothing to send away
        options.use = use;
        options.seed = seed;
        options.recompute = recompute;
        PrintRow(options);
      }
    }
  }
}
