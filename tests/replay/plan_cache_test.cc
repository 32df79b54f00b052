// Ranks of one job meet in a folder, some of them on machines that die: each must find plans that are whole
// or none, and nobody may wait.
#include "replay/plan_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace reprise::replay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// One after the other, so that one place is enough for all.
std::vector<Sequence::Known> Learnt(int64_t bytes) {
  Sequence::Known known;
  for (int64_t i = 0; i < 4; ++i) {
    known.cycle.push_back({.bytes = Bytes(bytes), .alignment = Bytes(64), .begin = i, .length = 1});
  }
  known.from = Tick(3);
  return {known};
}

class PlanCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/plan_cache_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  PlanCache Rank(int rank) const {
    return {folder_, {.command = {"train"}, .device = "host", .world_size = 4}, rank};
  }
  std::set<std::string> FilesEndingIn(const std::string& end) const {
    std::set<std::string> names;
    for (const auto& each : fs::directory_iterator(folder_)) {
      if (each.path().string().ends_with(end)) names.insert(each.path().string());
    }
    return names;
  }
  // A lease whose holder has not come back.
  std::string Abandon(int64_t bytes) {
    const auto left = Rank(0).Leave(Learnt(bytes), 0.1);
    EXPECT_TRUE(left.ok());
    fs::remove(left->path);
    std::string lease =
        left->path.substr(0, left->path.size() - std::string(".plans.json").size()) + ".lease";
    std::ofstream(lease) << "";
    return lease;
  }

  std::string folder_;
};

TEST_F(PlanCacheTest, RanksWithOneSequenceShareOneFile) {
  std::set<std::string> paths;
  for (int rank = 0; rank < 4; ++rank) {
    const auto left = Rank(rank).Leave(Learnt(8192), 0.1);
    ASSERT_TRUE(left.ok()) << left.status();
    EXPECT_TRUE(ParseSavedPlan(left->text, "text").ok());
    paths.insert(left->path);
  }
  EXPECT_EQ(paths.size(), 1);
  EXPECT_EQ(FilesEndingIn(".plans.json"), paths);
  EXPECT_EQ(FilesEndingIn(".entry").size(), 4);
  EXPECT_EQ(FilesEndingIn("").size(), 5) << "no lease and no draft is left";
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(*Rank(rank).Find(), *paths.begin());
}

TEST_F(PlanCacheTest, RanksWithSequencesOfTheirOwnHavePlansOfTheirOwn) {
  const auto first = Rank(0).Leave(Learnt(8192), 0.1);
  const auto second = Rank(1).Leave(Learnt(4096), 0.1);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*Rank(0).Find(), first->path);
  EXPECT_EQ(*Rank(1).Find(), second->path);
  EXPECT_NE(first->path, second->path);
}

TEST_F(PlanCacheTest, NoEntryIsNoError) { EXPECT_TRUE(absl::IsNotFound(Rank(0).Find().status())); }

TEST_F(PlanCacheTest, ADamagedEntryIsThatRanksAlone) {
  ASSERT_TRUE(Rank(0).Leave(Learnt(8192), 0.1).ok());
  ASSERT_TRUE(Rank(1).Leave(Learnt(8192), 0.1).ok());
  for (const char* text : {"", "reprise plans ", "reprise plans ../../../etc/shad 0000000000000000\n"}) {
    std::ofstream(Rank(1).EntryPath()) << text;
    EXPECT_THAT(Rank(1).Find().status().message(), HasSubstr("damaged")) << text;
    EXPECT_TRUE(Rank(0).Find().ok());
  }
  ASSERT_TRUE(Rank(1).Leave(Learnt(8192), 0.1).ok());
  EXPECT_TRUE(Rank(1).Find().ok()) << "mended";
}

TEST_F(PlanCacheTest, DamagedPlansAreLaidAgain) {
  const auto left = Rank(0).Leave(Learnt(8192), 0.1);
  ASSERT_TRUE(left.ok());
  std::ofstream(left->path) << left->text.substr(0, left->text.size() / 2);
  const auto again = Rank(1).Leave(Learnt(8192), 0.1);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->path, left->path);
  EXPECT_EQ(fs::file_size(left->path), again->text.size());
}

TEST_F(PlanCacheTest, WhoFindsALeaseLeavesTheLayingToItsHolder) {
  Abandon(8192);
  const auto left = Rank(1).Leave(Learnt(8192), 0.1);
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(left->text, "");
  EXPECT_EQ(*Rank(1).Find(), left->path) << "where they will be";
  EXPECT_FALSE(fs::exists(left->path));
}

TEST_F(PlanCacheTest, ALeaseRunsOut) {
  const std::string lease = Abandon(8192);
  for (const int64_t away : {-2 * PlanCache::kLeaseSeconds, 2 * PlanCache::kLeaseSeconds}) {
    std::ofstream(lease) << "";
    const timespec then = {time(nullptr) + away, 0};
    const timespec times[2] = {then, then};
    ASSERT_EQ(utimensat(AT_FDCWD, lease.c_str(), times, 0), 0);
    const auto left = Rank(1).Leave(Learnt(8192), 0.1);
    ASSERT_TRUE(left.ok());
    EXPECT_TRUE(fs::exists(left->path));
    EXPECT_FALSE(fs::exists(lease));
    fs::remove(left->path);
  }
}

TEST_F(PlanCacheTest, AFolderThatCannotBeWrittenIsNamed) {
  std::ofstream(folder_ + "/file") << "";
  const PlanCache cache(folder_ + "/file", {.command = {"train"}, .device = "host"}, 0);
  EXPECT_THAT(cache.Leave(Learnt(8192), 0.1).status().message(), HasSubstr(folder_ + "/file"));
}

}  // namespace
}  // namespace reprise::replay
