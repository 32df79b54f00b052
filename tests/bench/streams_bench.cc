// What it costs a job that keeps several streams busy that memory goes from one to another, what is held so that it
// does not, and what other allocators would hold: a table.
//
//   streams_bench [--seeds N] [--layers N] [--steps N] [--transfer PART] [--memory PART]
//
// Time is that of a step, over the same with memory that nobody waits for; what is reserved, over the live peak; moved are granules
// a step. "Sharing" is without what is held so that streams need not wait. Plans are made in as many steps as a second has.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>
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
  const std::string cells = fmt::format(
      "{:.3f} | {:.3f} | {}", outcome.step / alone.step,
      Share(outcome.counters.reserved_peak.count(), alone.live_peak.count()), outcome.moved_a_step);
  return outcome.left_to_driver == 0 ? cells
                                     : fmt::format("{}, {} by the driver", cells, outcome.left_to_driver);
}

void PrintHead() {
  std::string head = "| job | live, GiB | step, ms | arena, sharing: time | reserved | moved ";
  head += "| arena: time | reserved | moved | plan, sharing: time | reserved | moved ";
  head += "| plan: time | reserved | moved | by plan |";
  for (const ModelInfo& info : Models()) head += fmt::format(" {} |", info.name);
  std::string line = "|";
  for (size_t i = 0; i < 16 + Models().size(); ++i) line += "---|";
  fmt::print("{}\n{}\n", head, line);
}

// On a device that has `memory` times the job's live peak; 0: any.
void PrintRow(const StreamJobOptions& options, double memory) {
  const StreamJob job = MakeStreamJob(options);
  const StreamOutcome alone = PlayWithoutWaits(job);
  const Bytes all(static_cast<int64_t>(memory * static_cast<double>(alone.live_peak.count())));
  const auto play = [&](bool plan, bool apart) {
    Engine::Options engine;
    engine.solve = SolveByWork;
    engine.plan = plan;
    engine.sequence_rules.lag = apart;
    engine.arena_rules.for_streams = apart;
    return PlayServed(job, engine, all);
  };
  fmt::print("| {}{}, {} | {:.2f} | {:.1f} |", NameOf(options.use), options.recompute ? ", recomputed" : "",
             options.seed, static_cast<double>(alone.live_peak.count()) / (1 << 30), alone.step / 1000);
  int64_t overlaps = 0;
  StreamOutcome planned;
  for (const bool plan : {false, true}) {
    for (const bool apart : {false, true}) {
      try {
        planned = play(plan, apart);
        overlaps += planned.overlaps;
        fmt::print(" {} |", Cells(planned, alone));
      } catch (const std::runtime_error& error) {
        fmt::print(" {} | | |", error.what());
      }
    }
  }
  fmt::print(" {:.2f} |", Share(planned.counters.planned_bytes_after_plan.count(),
                                planned.counters.bytes_after_plan.count()));
  const std::vector<profiler::Event> events = EventsOf(job);
  for (const ModelInfo& info : Models()) {
    const std::unique_ptr<AllocatorModel> model = info.make(Bytes(0));
    fmt::print(" {:.3f} |", Share(RunModel(events, *model).reserved_peak.count(), alone.live_peak.count()));
  }
  fmt::print("\n");
  if (overlaps > 0) fmt::print("BLOCKS OVERLAP\n");
}

}  // namespace
}  // namespace reprise::replay

int main(int argc, char** argv) {
  using namespace reprise::replay;
  CLI::App app("What streams wait for one another");
  StreamJobOptions options;
  uint64_t seeds = 2;
  double memory = 0;
  app.add_option("--seeds", seeds,
                 "Of each job so many whose layers differ in width, and one whose layers are alike");
  app.add_option("--layers", options.layers)->check(CLI::Range(2, 1000));
  app.add_option("--transfer", options.transfer, "Time of a layer's transfer, over that of its forward pass")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--steps", options.steps, "Of which the second half is looked at")
      ->check(CLI::Range(2, 10000));
  app.add_option("--memory", memory,
                 "What the device has, over the job's live peak; 0: as much as is asked for")
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  PrintHead();
  for (const StreamUse use : kStreamUses) {
    for (uint64_t seed = 0; seed <= seeds; ++seed) {
      for (const bool recompute : {false, true}) {
        if (recompute && (use == StreamUse::kOffload || use == StreamUse::kWorkers))
          continue;  // nothing is kept
        options.use = use;
        options.seed = seed;
        options.recompute = recompute;
        PrintRow(options, memory);
      }
    }
  }
}
