// Ranks of one job meet in a folder, some of them on machines that die: each must find plans that are whole
// or none, and nobody may wait.
#include "replay/core/plan_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/fnv1a.h"
#include "tests/temp_folder.h"

namespace reprise::replay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// One after the other, so that one place is enough for all.
std::vector<Sequence::Known> Learnt(int64_t bytes) {
  Sequence::Known known;
  for (int64_t i = 0; i < 4; ++i) {
    known.cycle.push_back({.bytes = Bytes(bytes), .alignment = Bytes(64), .begin = i, .length = 1});
  }
  known.from = Tick(3);
  known.cut = Tick(3);
  return {known};
}

std::vector<Sequence::Known> LiveAtOnce() {
  std::vector<Sequence::Known> known = Learnt(8192);
  for (profiler::Slot& slot : known[0].cycle) slot.length = 2;
  return known;
}

class PlanCacheTest : public ::testing::Test {
 protected:
  PlanCache Rank(int rank) const {
    return {folder_.path(), {.command = {"train"}, .device = "host", .world_size = 4}, rank};
  }
  std::set<std::string> FilesEndingIn(const std::string& end) const {
    std::set<std::string> names;
    for (const auto& each : fs::directory_iterator(folder_.path())) {
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

  TempFolder folder_;
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

// A shard of the data, say, that each of them loads before its first step.
TEST_F(PlanCacheTest, RanksOfWhoseStartsAnotherBlockStaysHavePlansOfTheirOwn) {
  for (const int rank : {0, 1}) {
    std::vector<Sequence::Known> known = Learnt(8192);
    known[0].stays = {{Tick(1), Bytes(4096 * (rank + 1))}};
    ASSERT_TRUE(Rank(rank).Leave(known, 0.1).ok());
    const auto text = ReadFile(*Rank(rank).Find());
    ASSERT_TRUE(text.ok());
    const auto plan = ParseSavedPlan(*text, "plans");
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan->cycles[0].stays.size(), 1u);
    EXPECT_EQ(plan->cycles[0].stays[0].bytes, known[0].stays[0].bytes);
  }
}

TEST_F(PlanCacheTest, NoEntryIsNoError) { EXPECT_TRUE(absl::IsNotFound(Rank(0).Find().status())); }

TEST_F(PlanCacheTest, ADamagedEntryIsThatRanksAlone) {
  ASSERT_TRUE(Rank(0).Leave(Learnt(8192), 0.1).ok());
  ASSERT_TRUE(Rank(1).Leave(Learnt(8192), 0.1).ok());
  const std::string elsewhere = "../../../etc/pas";
  ASSERT_EQ(elsewhere.size(), 16u);
  for (const std::string& text :
       {std::string(), std::string("reprise plans "), "reprise plans " + elsewhere + " 0000000000000000\n",
        // With a checksum that is right.
        fmt::format("reprise plans {} {:016x}\n", elsewhere, Fnv1a(elsewhere))}) {
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

// Whole, of this job and with a checksum that is right, as another release might leave them.
TEST_F(PlanCacheTest, PlansThatCannotBeServedAreLaidAgain) {
  const auto left = Rank(0).Leave(LiveAtOnce(), 0.1);
  ASSERT_TRUE(left.ok());
  SavedPlan one_place = *ParseSavedPlan(left->text, "text");
  for (Offset& offset : one_place.cycles[0].offsets) offset = Offset(0);
  ASSERT_FALSE(ToServe(one_place.cycles[0]).ok());
  SavedPlan none = one_place;
  none.cycles.clear();
  for (const SavedPlan& useless : {one_place, none}) {
    std::ofstream(left->path) << FormatSavedPlan(useless);
    const auto again = Rank(1).Leave(LiveAtOnce(), 0.1);
    ASSERT_TRUE(again.ok());
    const auto plan = ParseSavedPlan(*ReadFile(left->path), left->path);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->cycles.size(), 1);
    EXPECT_TRUE(ToServe(plan->cycles[0]).ok());
  }
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

// Another user's, in a folder where only the owner may remove a file; here a folder, which no user may
// unlink.
TEST_F(PlanCacheTest, AnOldLeaseThatCannotBeRemovedIsNoReasonToWait) {
  const std::string lease = Abandon(8192);
  fs::remove(lease);
  fs::create_directory(lease);
  const timespec then = {time(nullptr) - 2 * PlanCache::kLeaseSeconds, 0};
  const timespec times[2] = {then, then};
  ASSERT_EQ(utimensat(AT_FDCWD, lease.c_str(), times, 0), 0);
  const auto left = Rank(1).Leave(Learnt(8192), 0.1);
  ASSERT_TRUE(left.ok());
  EXPECT_TRUE(fs::exists(left->path));
}

TEST_F(PlanCacheTest, AFolderThatCannotBeWrittenIsNamed) {
  std::ofstream(folder_ / "file") << "";
  const PlanCache cache(folder_ / "file", {.command = {"train"}, .device = "host"}, 0);
  EXPECT_THAT(cache.Leave(Learnt(8192), 0.1).status().message(), HasSubstr(folder_ / "file"));
}

TEST_F(PlanCacheTest, AFolderThatCannotBeMadeSaysWhy) {
  const std::string folder = "/sys/reprise/plans";  // a file system that takes no folders
  if (!fs::exists("/sys/kernel")) GTEST_SKIP() << "no /sys here";
  const PlanCache cache(folder, {.command = {"train"}, .device = "host"}, 0);
  const auto left = cache.Leave(Learnt(8192), 0.1);
  EXPECT_THAT(left.status().message(), HasSubstr("cannot make the folder " + folder));
  EXPECT_THAT(left.status().message(), Not(HasSubstr("No such file")));
}

// A pipe that says one thing, by being closed.
class Signal {
 public:
  Signal() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~Signal() {
    close(ends_[0]);
    Give();
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  // Every process that has the end to write to has to.
  void Give() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  void Wait() const {
    char none;
    EXPECT_EQ(read(ends_[0], &none, 1), 0);
  }
  bool Given() const {
    pollfd end = {.fd = ends_[0], .events = POLLIN, .revents = 0};
    return poll(&end, 1, 0) == 1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

constexpr int kRounds = 50;

// Files long enough to be met half written, if they ever were to be.
std::vector<Sequence::Known> LearntIn(int round) {
  std::vector<Sequence::Known> known = Learnt(4096 * (round + 1));
  for (int64_t i = 4; i < 400; ++i) known[0].cycle.push_back(known[0].cycle[0]);
  for (size_t i = 0; i < known[0].cycle.size(); ++i) known[0].cycle[i].begin = static_cast<int64_t>(i);
  return known;
}

// "": the file is whole, and the plans of some round; else what is wrong with it.
std::string WrongWith(const std::string& path, const JobSignature& job) {
  const absl::StatusOr<SavedPlan> plan = ParseSavedPlan(*ReadFile(path), path);
  if (!plan.ok()) return plan.status().ToString();
  if (const absl::Status fits = CheckIsFor(*plan, job); !fits.ok()) return fits.ToString();
  if (plan->cycles.size() != 1 || plan->cycles[0].slots.size() != LearntIn(0)[0].cycle.size())
    return path + " holds other plans";
  const int64_t bytes = plan->cycles[0].slots[0].bytes.count();
  return bytes % 4096 == 0 && bytes <= 4096 * kRounds ? "" : path + " holds other blocks";
}

TEST_F(PlanCacheTest, ProcessesThatSaveAtOnceLoseNothing) {
  const JobSignature job = {.command = {"train"}, .device = "host", .world_size = 4};
  Signal start;
  Signal saved;
  std::vector<pid_t> savers;
  std::vector<pid_t> readers;
  const auto fork_one = [&](std::vector<pid_t>& into, const std::function<std::string()>& work) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child != 0) return into.push_back(child);
    start.Give();
    saved.Give();
    start.Wait();
    const std::string wrong = work();
    if (!wrong.empty()) fprintf(stderr, "%s\n", wrong.c_str());
    _exit(wrong.empty() ? 0 : 1);
  };
  // Rank 0 twice: the same job has been started a second time.
  for (const int rank : {0, 0, 1, 2, 3}) {
    fork_one(savers, [this, rank] {
      for (int round = 0; round < kRounds; ++round) {
        const auto left = Rank(rank).Leave(LearntIn(round), 0.01);
        if (!left.ok()) return left.status().ToString();
      }
      return std::string();
    });
  }
  for (int reader = 0; reader < 2; ++reader) {
    fork_one(readers, [&] {
      for (int rank = 0; !saved.Given(); rank = (rank + 1) % 4) {
        const auto found = Rank(rank).Find();
        if (!found.ok() && !absl::IsNotFound(found.status())) return found.status().ToString();
        // An entry may be there before its plans are: while somebody lays them.
        if (!found.ok() || !fs::exists(*found)) continue;
        if (std::string wrong = WrongWith(*found, job); !wrong.empty()) return wrong;
      }
      return std::string();
    });
  }
  const auto all_fine = [](const std::vector<pid_t>& children) {
    for (const pid_t child : children) {
      int status = -1;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
  };
  start.Give();
  all_fine(savers);
  saved.Give();
  all_fine(readers);

  const std::set<std::string> plans = FilesEndingIn(".plans.json");
  EXPECT_EQ(plans.size(), kRounds) << "one file for each of the sequences";
  for (const std::string& path : plans) EXPECT_EQ(WrongWith(path, job), "");
  const auto found = Rank(0).Find();
  ASSERT_TRUE(found.ok()) << found.status();
  const auto last = Rank(0).Leave(LearntIn(kRounds - 1), 0.01);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(*found, last->path);
  for (int rank = 1; rank < 4; ++rank) EXPECT_EQ(*Rank(rank).Find(), last->path);
  EXPECT_EQ(FilesEndingIn(".entry").size(), 4);
  EXPECT_EQ(FilesEndingIn("").size(), kRounds + 4) << "no lease and no draft is left";
}

}  // namespace
}  // namespace reprise::replay
