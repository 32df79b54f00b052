// Many processes may be told to leave their files in one folder: none may overwrite another's, and a folder
// that cannot be had must be a message, not a failure.
#include "replay/core/output_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/files.h"
#include "tests/temp_folder.h"

namespace reprise::replay {
namespace {

using ::testing::HasSubstr;

class OutputDirTest : public ::testing::Test {
 protected:
  TempFolder folder_;
};

TEST_F(OutputDirTest, FirstProcessGetsThePlainNames) {
  const auto out = OutputDir::Open(folder_ / "a/b/", 4711);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->trace_path(), folder_ / "a/b/trace.reprise");
  EXPECT_EQ(out->summary_path(), folder_ / "a/b/summary.json");
  EXPECT_EQ(out->PathOf("gpt", ".plan.json"), folder_ / "a/b/gpt.plan.json");
  EXPECT_TRUE(std::filesystem::exists(out->trace_path()));
}

TEST_F(OutputDirTest, OthersGetNamesOfTheirOwn) {
  const auto first = OutputDir::Open(folder_.path(), 1);
  const auto second = OutputDir::Open(folder_.path(), 4711);
  const auto after_exec = OutputDir::Open(folder_.path(), 4711);
  ASSERT_TRUE(first.ok() && second.ok() && after_exec.ok());
  EXPECT_EQ(second->trace_path(), folder_ / "trace.4711.reprise");
  EXPECT_EQ(second->summary_path(), folder_ / "summary.4711.json");
  EXPECT_EQ(after_exec->trace_path(), folder_ / "trace.4711.2.reprise");
}

TEST_F(OutputDirTest, WhatIsThereIsNobodysToClaim) {
  const std::string file = folder_ / "trace-device1.reprise";
  EXPECT_TRUE(OutputDir::Claim(file).ok());
  EXPECT_EQ(OutputDir::Claim(file).code(), absl::StatusCode::kAlreadyExists);
  const std::string link = folder_ / "trace-device2.reprise";
  std::filesystem::create_symlink(folder_ / "precious", link);
  EXPECT_EQ(OutputDir::Claim(link).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "precious"));
}

TEST_F(OutputDirTest, RanksOfOneFolderAreToldApartByLabel) {
  const auto rank = OutputDir::Open(folder_.path(), 7, "rank3");
  const auto worker = OutputDir::Open(folder_.path(), 8, "rank3");
  ASSERT_TRUE(rank.ok() && worker.ok());
  EXPECT_EQ(rank->summary_path(), folder_ / "summary.rank3.json");
  EXPECT_EQ(worker->trace_path(), folder_ / "trace.rank3.8.reprise");
}

TEST_F(OutputDirTest, AForeignSummaryIsNotOurs) {
  std::ofstream(folder_ / "summary.json") << "somebody's";
  const auto out = OutputDir::Open(folder_.path(), 4711);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->summary_path(), folder_ / "summary.4711.json");
  EXPECT_EQ(*ReadFile(folder_ / "summary.json"), "somebody's");
}

// Kept for the next run, where the trace took too much room to keep.
TEST_F(OutputDirTest, PlansThatSomebodyHasKeptAreNotOurs) {
  std::ofstream(folder_ / "plans.json") << "kept";
  const auto out = OutputDir::Open(folder_.path(), 4711);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->PathOf("plans", ".json"), folder_ / "plans.4711.json");
}

TEST_F(OutputDirTest, AFolderThatCannotBeHadIsNamed) {
  std::ofstream(folder_ / "file") << "x";
  const auto under_a_file = OutputDir::Open(folder_ / "file/out", 1);
  ASSERT_FALSE(under_a_file.ok());
  EXPECT_THAT(std::string(under_a_file.status().message()), HasSubstr(folder_ / "file/out"));
  const auto is_a_file = OutputDir::Open(folder_ / "file", 1);
  EXPECT_FALSE(is_a_file.ok());
  EXPECT_FALSE(OutputDir::Open("/proc/reprise", 1).ok());
}

}  // namespace
}  // namespace reprise::replay
