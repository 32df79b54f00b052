// What recording costs the job, and what it costs the recorder's thread. The first is the part under the
// engine's lock; both together are bounded by 300 ns an event.
//
// recorder_bench                            Google Benchmark
// recorder_bench --count [APPENDS]          appends only, for instruction counts:
//   valgrind --tool=callgrind --toggle-collect='reprise::profiler::Recorder::Append*' recorder_bench --count
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "profiler/recorder.h"
#include "profiler/trace_writer.h"

namespace reprise::profiler {
namespace {

// An iteration as training has it: allocations of a few hundred sizes, freed in the reverse order, with
// times.
std::vector<Event> Iteration(uint64_t first_id, int64_t first_ns) {
  constexpr uint64_t kBlocks = 1000;
  std::vector<Event> events;
  int64_t now_ns = first_ns;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    events.push_back({.id = BlockId(first_id + i),
                      .bytes = Bytes(static_cast<int64_t>(4096 * (1 + i * i % 307))),
                      .alignment = Bytes(64),
                      .time_ns = now_ns += 3000 + static_cast<int64_t>(i * 7919 % 20000)});
  }
  for (uint64_t i = kBlocks; i-- > 0;) {
    events.push_back({.kind = EventKind::kFree, .id = BlockId(first_id + i), .time_ns = now_ns += 5000});
  }
  return events;
}

std::string TracePath() {
  return (std::filesystem::temp_directory_path() /
          ("recorder_bench." + std::to_string(getpid()) + ".reprise"))
      .string();
}

// The job's side: the ring is large enough that nothing is dropped between two pauses.
void BM_Append(benchmark::State& state) {
  constexpr size_t kRing = size_t{1} << 17;
  auto recorder = Recorder::Start({.path = TracePath(), .ring_events = kRing});
  uint64_t id = 0;
  int64_t appended = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<Event> events = Iteration(id, appended * 1000);
    id += events.size();
    if (appended % static_cast<int64_t>(kRing / 4) < static_cast<int64_t>(events.size())) {
      (*recorder)->Flush(std::chrono::seconds(60)).IgnoreError();
    }
    state.ResumeTiming();
    for (const Event& event : events) (*recorder)->Append(event);
    appended += static_cast<int64_t>(events.size());
  }
  state.SetItemsProcessed(appended);
  state.counters["dropped"] = static_cast<double>((*recorder)->counters().dropped);
  recorder->reset();
  std::filesystem::remove(TracePath());
}
BENCHMARK(BM_Append);

// The thread's side: encoding, compression, the write.
void BM_Write(benchmark::State& state) {
  auto writer = TraceWriter::Open(TracePath(), {});
  uint64_t id = 0;
  int64_t written = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<Event> events = Iteration(id, written * 1000);
    id += events.size();
    state.ResumeTiming();
    for (const Event& event : events) (*writer)->Append(event).IgnoreError();
    written += static_cast<int64_t>(events.size());
  }
  (*writer)->Close().IgnoreError();
  state.SetItemsProcessed(written);
  state.counters["bytes_an_event"] =
      static_cast<double>((*writer)->bytes_written()) / static_cast<double>(std::max<int64_t>(written, 1));
  std::filesystem::remove(TracePath());
}
BENCHMARK(BM_Write);

int Count(uint64_t appends) {
  auto recorder = Recorder::Start({.path = TracePath()});
  if (!recorder.ok()) return 1;
  uint64_t appended = 0;
  for (uint64_t id = 0; appended < appends; id += 2000) {
    for (const Event& event : Iteration(id, static_cast<int64_t>(appended) * 1000)) {
      if (appended == appends) break;
      (*recorder)->Append(event);
      ++appended;
    }
  }
  const RecorderCounters counters = (*recorder)->counters();
  std::printf("appended %llu dropped %llu\n", static_cast<unsigned long long>(counters.recorded),
              static_cast<unsigned long long>(counters.dropped));
  recorder->reset();
  std::filesystem::remove(TracePath());
  return 0;
}

}  // namespace
}  // namespace reprise::profiler

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--count") {
    return reprise::profiler::Count(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20'000);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
