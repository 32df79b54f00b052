// The sequences that the larger tests replay: those recorded from real training where REPRISE_BENCH names the
// folder that has them, and small made ones where it does not.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/load.h"
#include "profiler/types.h"
#include "tests/replay/training_job.h"

namespace reprise::replay {

// The recorded sequence of that name, or nothing where REPRISE_BENCH is not set.
inline std::optional<std::vector<profiler::Event>> RecordedStream(const std::string& name) {
  const char* folder = std::getenv("REPRISE_BENCH");
  if (folder == nullptr) return std::nullopt;
  auto input = profiler::Load(std::string(folder) + "/events/" + name + ".csv");
  EXPECT_TRUE(input.ok()) << input.status();
  if (!input.ok()) return std::nullopt;
  return std::move(input->trace.events);
}

inline std::vector<std::vector<profiler::Event>> BaseStreams() {
  std::vector<std::vector<profiler::Event>> streams;
  for (const char* name : {"alexnet", "gpt", "gpt_accum_eval", "resnet50", "googlenet"}) {
    if (auto stream = RecordedStream(name)) streams.push_back(std::move(*stream));
  }
  if (!streams.empty()) return streams;
  for (const int layers : {9, 24, 60}) {
    EventScript script;
    AppendTraining(script, 6, {.layers = layers});
    streams.push_back(script.events());
  }
  return streams;
}

}  // namespace reprise::replay
