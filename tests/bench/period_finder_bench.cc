// What a token costs the period finder: in step with a period, and while it searches.
//
//   period_finder_bench                    times, by Google Benchmark
//   period_finder_bench --plain KIND N     feeds N tokens of KIND (steady, searching) and nothing else, to
//                                          count instructions: the difference of two N is the cost a token
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/period_finder.h"
#include "tests/profiler/streams.h"

namespace reprise::profiler {
namespace {

struct Token {
  Bytes bytes;
  Bytes live_before;
};

struct Tokens {
  std::vector<Token> all;
  int64_t second_step = 0;  // the first token of it
};

Tokens TokensOf(const std::vector<Event>& events) {
  Tokens tokens;
  std::unordered_map<uint64_t, Bytes> blocks;
  Bytes live;
  int marks = 0;
  for (const Event& event : events) {
    const auto id = static_cast<uint64_t>(event.id);
    if (event.kind == EventKind::kAlloc) {
      if (event.bytes >= Bytes(4096)) tokens.all.push_back({event.bytes, live});
      blocks[id] = event.bytes;
      live += event.bytes;
    } else if (event.kind == EventKind::kFree) {
      live -= blocks[id];
    } else if (++marks == 2) {
      tokens.second_step = static_cast<int64_t>(tokens.all.size());
    }
  }
  return tokens;
}

// `steady`: one job of equal steps. `searching`: lengths drawn from seven at random, so that there is always
// something to follow and little to find.
Tokens Stream(const std::string& kind) {
  std::mt19937 random(1);
  streams::Job job({.layers = 48, .kinds = 48});
  for (int step = 0; step < 250; ++step) {
    job.Train(kind == "steady" ? 100 : std::uniform_int_distribution(1, 7)(random) * 50);
  }
  return TokensOf(job.events());
}

// Feeds `count` tokens from the finder's present place in the stream on; at its end, from its second step
// again.
int64_t Feed(PeriodFinder& finder, const Tokens& tokens, int64_t count) {
  const auto size = static_cast<int64_t>(tokens.all.size());
  int64_t at = finder.now().count();
  if (at >= size) at = tokens.second_step + (at - size) % (size - tokens.second_step);
  for (int64_t i = 0; i < count; ++i) {
    finder.OnAlloc(tokens.all[at].bytes, reprise::Stream{0}, tokens.all[at].live_before);
    if (++at == size) at = tokens.second_step;
  }
  return finder.iterations();
}

void BM_Token(benchmark::State& state, const std::string& kind) {
  const Tokens tokens = Stream(kind);
  PeriodFinder finder;
  const auto batch = static_cast<int64_t>(tokens.all.size());
  Feed(finder, tokens, batch);
  for (auto _ : state) benchmark::DoNotOptimize(Feed(finder, tokens, batch));
  state.SetItemsProcessed(state.iterations() * batch);
}

}  // namespace
}  // namespace reprise::profiler

int main(int argc, char** argv) {
  using reprise::profiler::Stream;
  if (argc == 4 && std::strcmp(argv[1], "--plain") == 0) {
    reprise::profiler::PeriodFinder finder;
    const int64_t iterations = reprise::profiler::Feed(finder, Stream(argv[2]), std::atoll(argv[3]));
    std::printf("%ld iterations, %s\n", static_cast<long>(iterations),
                finder.in_step() ? "in step" : "not in step");
    return 0;
  }
  benchmark::RegisterBenchmark("token/steady", reprise::profiler::BM_Token, std::string("steady"));
  benchmark::RegisterBenchmark("token/searching", reprise::profiler::BM_Token, std::string("searching"));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
