// Why: a run that says it has left plans, and has not, costs the next one its first iterations.
#include "replay/core/served_engine.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "replay/counted_memory.h"
#include "tests/replay/stderr_now.h"
#include "tests/temp_folder.h"

namespace reprise::replay {
namespace {

// A process from its begin to its end.
class ServedRun {
 public:
  explicit ServedRun(const TempFolder& cache) {
    setenv("REPRISE_CACHE", cache.path().c_str(), 1);
    session_ = CoreSession::Open(StderrNow(), nullptr);
    unsetenv("REPRISE_CACHE");
    EXPECT_TRUE(engine_
                    .Begin(*session_, {.kind = "host", .passed = [] { return Bytes(0); }},
                           std::make_unique<CountedMemory>(kMiB, kGiB), &runner_)
                    .ok());
  }
  void Iterate(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      std::array<std::optional<Offset>, 16> blocks;
      for (size_t k = 0; k < blocks.size(); ++k)
        blocks[k] =
            engine_->Allocate(engine_->Lock(), Bytes(8192 * static_cast<int64_t>(k + 1)), Bytes(64), {});
      for (const std::optional<Offset>& block : blocks) engine_->Free(engine_->Lock(), *block, {});
    }
  }
  // The file of plans that it says it has left.
  std::string Finish() {
    EngineSummary summary;
    engine_.Finish(/*inside=*/false, [](const Engine::Guard&) {}, summary);
    return summary.plans.written;
  }

 private:
  InlineRunner runner_;
  std::unique_ptr<CoreSession> session_;
  ServedEngine engine_;
};

class ServedEngineTest : public testing::Test {
 protected:
  TempFolder cache_;
};

TEST_F(ServedEngineTest, LeavesWhatItHasLearnt) {
  ServedRun run(cache_);
  run.Iterate(30);
  EXPECT_TRUE(std::filesystem::exists(run.Finish()));
}

TEST_F(ServedEngineTest, WithoutPlansLeavesNone) {
  ServedRun run(cache_);
  run.Iterate(1);
  EXPECT_EQ(run.Finish(), "");
}

// Another rank was at it and has died.
TEST_F(ServedEngineTest, WhatNobodyHasLaidMeanwhileIsLeftAtItsEnd) {
  ServedRun before(cache_);
  before.Iterate(30);
  const std::filesystem::path plans = before.Finish();
  for (const auto& each : std::filesystem::directory_iterator(cache_.path()))
    std::filesystem::remove(each.path());
  std::filesystem::path lease = plans;
  lease.replace_extension().replace_extension(".lease");
  std::ofstream(lease) << "";

  ServedRun run(cache_);
  run.Iterate(30);
  EXPECT_FALSE(std::filesystem::exists(plans)) << "the lease is not its own";
  std::filesystem::remove(lease);
  EXPECT_EQ(run.Finish(), plans);
  EXPECT_TRUE(std::filesystem::exists(plans));
}

}  // namespace
}  // namespace reprise::replay
