// Ranks are told apart by variables that every launcher names otherwise, and that scripts set in part: a
// wrong rank would mix up the files of two processes.
#include "replay/core/launcher.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace reprise::replay {
namespace {

using Environment = std::map<std::string, std::string>;

Launched StartedIn(const Environment& environment) {
  return LaunchedBy([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

void ExpectRank(const Environment& environment, const char* launcher, int rank, int local_rank,
                int world_size) {
  const Launched launched = StartedIn(environment);
  EXPECT_EQ(launched.launcher, launcher);
  EXPECT_EQ(launched.rank, rank) << launcher;
  EXPECT_EQ(launched.local_rank, local_rank) << launcher;
  EXPECT_EQ(launched.world_size, world_size) << launcher;
}

const Environment kStep = {{"SLURM_JOB_ID", "77"},
                           {"SLURM_STEP_ID", "2"},
                           {"SLURM_PROCID", "5"},
                           {"SLURM_STEP_NUM_TASKS", "16"},
                           {"SLURM_LOCALID", "1"}};

TEST(Launcher, None) {
  ExpectRank({}, "", 0, 0, 1);
  EXPECT_EQ(StartedIn({}).job, "0");
  EXPECT_EQ(StartedIn({}).step, "0");
  EXPECT_FALSE(StartedIn({}).OneOfMany());
}

TEST(Launcher, EachSaysItInItsOwnWay) {
  ExpectRank(kStep, "Slurm", 5, 1, 16);
  ExpectRank({{"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "3"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}},
             "torchrun", 3, 1, 4);
  ExpectRank(
      {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}},
      "Open MPI", 3, 1, 4);
  ExpectRank({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}}, "MPICH", 3, 1, 4);
  ExpectRank({{"RANK", "3"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}}, "RANK", 3, 1, 4);
  ExpectRank({{"JOB_COMPLETION_INDEX", "3"}, {"WORLD_SIZE", "4"}}, "Kubernetes", 3, 0, 4);
}

TEST(Launcher, HowOftenAJobWasPutBack) {
  EXPECT_EQ(StartedIn(kStep).restart, 0);
  Environment again = kStep;
  again.insert({"SLURM_RESTART_COUNT", "2"});
  EXPECT_EQ(StartedIn(again).restart, 2);
  again["SLURM_RESTART_COUNT"] = "x";
  EXPECT_EQ(StartedIn(again).restart, 0);
  again["TORCHELASTIC_RESTART_COUNT"] = "1";
  EXPECT_EQ(StartedIn(again).restart, 1) << "or its ranks by torchrun";
}

TEST(Launcher, TheInnermostCounts) {
  Environment both = kStep;
  both.insert({{"TORCHELASTIC_RUN_ID", "x"}, {"RANK", "9"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "32"}});
  ExpectRank(both, "torchrun", 9, 1, 32);
  EXPECT_EQ(StartedIn(both).job, "77");
  EXPECT_EQ(StartedIn(both).step, "2");
}

TEST(Launcher, OneThatHasStartedOneAloneDoesNotHideTheRanksAroundIt) {
  Environment each_alone = kStep;  // srun of 16 trainings, each of which believes to be alone
  each_alone.insert({{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "1"}});
  ExpectRank(each_alone, "Slurm", 5, 1, 16);
  each_alone["TORCHELASTIC_RUN_ID"] = "x";
  ExpectRank(each_alone, "Slurm", 5, 1, 16);
  each_alone["SLURM_PROCID"] = "0";
  each_alone["SLURM_STEP_NUM_TASKS"] = "1";
  ExpectRank(each_alone, "torchrun", 0, 0, 1);
  EXPECT_FALSE(StartedIn(each_alone).OneOfMany());
}

TEST(Launcher, WhereOneDoesNotSayTheRankOnTheHostOneThatSaysTheSameOtherwiseDoes) {
  Environment pmi2 = kStep;  // srun --mpi=pmi2
  pmi2.insert({{"PMI_RANK", "5"}, {"PMI_SIZE", "16"}});
  ExpectRank(pmi2, "Slurm", 5, 1, 16);
  pmi2["PMI_RANK"] = "6";
  ExpectRank(pmi2, "MPICH", 6, 0, 16);
  pmi2["PMI_RANK"] = "5";
  pmi2["PMI_SIZE"] = "8";
  ExpectRank(pmi2, "MPICH", 5, 0, 8);
}

TEST(Launcher, ABatchScriptIsNoRank) {
  ExpectRank({{"SLURM_JOB_ID", "77"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}, "", 0, 0, 1);
}

TEST(Launcher, ARowIsTakenWhole) {
  Environment step = kStep;
  step["WORLD_SIZE"] = "2";  // set in a batch script, without a rank
  ExpectRank(step, "Slurm", 5, 1, 16);
  step["RANK"] = "first";
  ExpectRank(step, "Slurm", 5, 1, 16);
}

TEST(Launcher, ARankAloneIsLeftFromSomethingElse) {
  ExpectRank({{"RANK", "0"}}, "", 0, 0, 1);
  Environment step = kStep;
  step["RANK"] = "0";
  ExpectRank(step, "Slurm", 5, 1, 16);
}

TEST(Launcher, AWorldThatIsNotSaidOrCannotBe) {
  ExpectRank({{"JOB_COMPLETION_INDEX", "0"}}, "Kubernetes", 0, 0, 0);
  EXPECT_TRUE(StartedIn({{"JOB_COMPLETION_INDEX", "0"}}).OneOfMany());
  ExpectRank({{"RANK", "4"}, {"WORLD_SIZE", "4"}}, "RANK", 4, 0, 0);
  ExpectRank({{"RANK", "0"}, {"WORLD_SIZE", "-3"}}, "RANK", 0, 0, 0);
}

TEST(Launcher, AJobIsTheSchedulersBeforeTheLaunchers) {
  EXPECT_EQ(StartedIn({{"PMIX_NAMESPACE", "42"}}).job, "42");
  EXPECT_EQ(StartedIn({{"TORCHELASTIC_RUN_ID", "none"}, {"PMIX_NAMESPACE", "42"}}).job, "42");
  EXPECT_EQ(StartedIn({{"TORCHELASTIC_RUN_ID", "mine"}}).job, "mine");
  EXPECT_EQ(StartedIn({{"PBS_JOBID", "7.host"}, {"TORCHELASTIC_RUN_ID", "mine"}}).job, "7.host");
}

}  // namespace
}  // namespace reprise::replay
