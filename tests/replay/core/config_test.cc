// The environment is the interface for people who have no command to run: what it accepts, and that nothing
// in it can do worse than a default and one line.
#include "replay/core/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace reprise::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Environment = std::map<std::string, std::string>;

Lookup In(const Environment& environment) {
  return [&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
}

Config Read(const Environment& environment) {
  return ReadConfig(
      In(environment),
      {.host = "node 1",
       .pid = 42,
       .launched = {.launcher = "Slurm", .rank = 3, .world_size = 4, .job = "../77", .step = "2"}});
}

TEST(CoreConfig, ATimeLineIsAskedFor) {
  const auto with = [](const char* value) {
    return Read({{"REPRISE_TIMELINE", value}, {"REPRISE_OUT", "/out"}});
  };
  EXPECT_FALSE(Read({}).timeline);
  EXPECT_FALSE(with("0").timeline);
  EXPECT_TRUE(with("1").timeline);
  EXPECT_FALSE(with("yes").timeline);
  EXPECT_THAT(with("yes").complaints, ElementsAre(HasSubstr("REPRISE_TIMELINE='yes' is not one of 0, 1")));
  EXPECT_TRUE(Read({{"REPRISE_TIMELINE", "1"}, {"REPRISE_MODE", "record"}}).timeline);
  const Config nowhere = Read({{"REPRISE_TIMELINE", "1"}});
  EXPECT_FALSE(nowhere.timeline);
  EXPECT_THAT(nowhere.complaints, ElementsAre(HasSubstr("needs REPRISE_OUT")));
}

TEST(CoreConfig, WhatHasNoTraceToGoIntoIsLeftOut) {
  const Config nowhere = Read({{"REPRISE_STACKS", "native"}});
  EXPECT_EQ(nowhere.stacks, Stacks::kOff);
  EXPECT_THAT(nowhere.complaints, ElementsAre(HasSubstr("REPRISE_STACKS='native' needs REPRISE_OUT")));
  EXPECT_EQ(Read({{"REPRISE_STACKS", "native"}, {"REPRISE_OUT", "/out"}}).stacks, Stacks::kNative);
}

TEST(CoreConfig, APlanIsNotFollowedWhileRecording) {
  EXPECT_EQ(Read({{"REPRISE_PLAN", "/plans.json"}}).plan, "/plans.json");
  const Config config = Read({{"REPRISE_PLAN", "/plans.json"}, {"REPRISE_MODE", "record"}});
  EXPECT_EQ(config.plan, "");
  EXPECT_THAT(config.complaints, ElementsAre(HasSubstr("REPRISE_PLAN='/plans.json' is not followed")));
}

TEST(CoreConfig, OversubscriptionIsAskedFor) {
  EXPECT_FALSE(Read({}).oversubscribe);
  EXPECT_TRUE(Read({{"REPRISE_OVERSUBSCRIBE", "1"}}).oversubscribe);
  const Config wrong = Read({{"REPRISE_OVERSUBSCRIBE", "on"}});
  EXPECT_FALSE(wrong.oversubscribe);
  EXPECT_THAT(wrong.complaints, ElementsAre(HasSubstr("REPRISE_OVERSUBSCRIBE='on' is not one of 0, 1")));
}

TEST(CoreConfig, NothingSetMeansServeWithoutFiles) {
  const Config config = Read({});
  EXPECT_EQ(config.mode, Mode::kServe);
  EXPECT_EQ(config.out, "");
  EXPECT_EQ(config.capacity, Bytes(0));
  EXPECT_EQ(config.trace_limit, kMiB * 256);
  EXPECT_EQ(config.log, LogLevel::kWarn);
  EXPECT_THAT(config.complaints, IsEmpty());
}

TEST(CoreConfig, ReadsEveryVariable) {
  const Config config = Read({{"REPRISE_MODE", "record"},
                              {"REPRISE_OUT", "/data/run"},
                              {"REPRISE_CAPACITY", "2GiB"},
                              {"REPRISE_TRACE_LIMIT", "1M"},
                              {"REPRISE_STACKS", "python"},
                              {"REPRISE_THRESHOLD", "64KiB"},
                              {"REPRISE_LOG", "info"}});
  EXPECT_EQ(config.mode, Mode::kRecord);
  EXPECT_EQ(config.out, "/data/run");
  EXPECT_EQ(config.capacity, kGiB * 2);
  EXPECT_EQ(config.trace_limit, kMiB);
  EXPECT_EQ(config.log, LogLevel::kInfo);
  EXPECT_EQ(config.stacks, Stacks::kPython);
  EXPECT_THAT(config.complaints, IsEmpty());
}

TEST(CoreConfig, RecordingHasAFolder) {
  EXPECT_EQ(Read({{"REPRISE_MODE", "record"}}).out, "reprise-out");
  EXPECT_EQ(Read({{"REPRISE_MODE", "record"}, {"REPRISE_OUT", ""}}).out, "reprise-out");
}

TEST(CoreConfig, ExpandsNamesInTheFolder) {
  EXPECT_EQ(Read({{"REPRISE_OUT", "o/%h.%p.%r.%j%%"}}).out, "o/node_1.42.3..._77%");
  EXPECT_EQ(Read({{"REPRISE_OUT", "o/%j.%s"}}).out, "o/.._77.2");
  EXPECT_EQ(ExpandOut("o/%h/%j", {.host = "..", .launched = {.job = "."}}), "o/__/_") << "no other folder";
}

TEST(CoreConfig, ABadValueIsItsDefaultAndOneLine) {
  EXPECT_THAT(Read({{"REPRISE_MODE", "fast"}}).complaints,
              ElementsAre("REPRISE_MODE='fast' is not one of serve, record, off; using serve"));
  EXPECT_THAT(Read({{"REPRISE_LOG", "all"}}).complaints,
              ElementsAre("REPRISE_LOG='all' is not one of quiet, warn, info; using warn"));
  EXPECT_THAT(Read({{"REPRISE_CAPACITY", "-1"}}).complaints,
              ElementsAre("REPRISE_CAPACITY='-1' is not a whole size above 0 such as 64KiB; using no limit"));
  EXPECT_THAT(
      Read({{"REPRISE_CAPACITY", "1.5GiB"}}).complaints,
      ElementsAre("REPRISE_CAPACITY='1.5GiB' is not a whole size above 0 such as 64KiB; using no limit"));
  EXPECT_THAT(Read({{"REPRISE_TRACE_LIMIT", "0"}}).complaints, ElementsAre(HasSubstr("using 256MiB")));
  EXPECT_THAT(Read({{"REPRISE_THRESHOLD", "big"}}).complaints, ElementsAre(HasSubstr("using 4KiB")));
  EXPECT_THAT(Read({{"REPRISE_STACKS", "all"}}).complaints,
              ElementsAre("REPRISE_STACKS='all' is not one of off, native, python; using off"));
  EXPECT_THAT(Read({{"REPRISE_OUT", "o/%x"}}).complaints, ElementsAre(HasSubstr("using no files")));
  EXPECT_THAT(Read({{"REPRISE_OUT", "o%"}}).complaints, ElementsAre(HasSubstr("%h, %p, %r, %j")));
}

TEST(NamesOfThisProcess, ComeFromTheLauncher) {
  const ProcessNames alone = NamesOfThisProcess(In({}));
  EXPECT_EQ(alone.launched.launcher, "");
  EXPECT_GT(alone.pid, 0);
  const Environment two = {{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  EXPECT_EQ(NamesOfThisProcess(In(two)).launched.rank, 1);
}

TEST(CoreConfig, RanksAreToldApartByLabelWhereTheyShareAFolder) {
  EXPECT_EQ(Read({{"REPRISE_OUT", "out/%j"}}).label, "rank3");
  EXPECT_EQ(Read({{"REPRISE_OUT", "out/%j/%r"}}).label, "");
  EXPECT_EQ(Read({{"REPRISE_OUT", "a%%run/%j"}}).label,
            "rank3");  // a folder whose own name has a percent sign
  EXPECT_EQ(ReadConfig(In({}), {.host = "node"}).label, "");
}

TEST(CoreConfig, TheRunsOfAJobThatWasPutBackAreToldApart) {
  ProcessNames names = {.host = "node",
                        .launched = {.launcher = "Slurm", .rank = 3, .world_size = 8, .restart = 2}};
  EXPECT_EQ(ReadConfig(In({}), names).label, "rank3.restart2");
  EXPECT_EQ(ReadConfig(In({{"REPRISE_OUT", "out/%r"}}), names).label, "restart2");
  names.launched.launcher.clear();
  EXPECT_EQ(ReadConfig(In({}), names).label, "restart2");
}

TEST(CoreConfig, ANameOfTheRunIsOneThatFilesCanCarry) {
  EXPECT_EQ(Read({{"REPRISE_RUN", "sweep 7"}}).run, "sweep 7");
  EXPECT_EQ(Read({}).run, "");
  const std::string endless(100'000, 'x');
  EXPECT_EQ(Read({{"REPRISE_RUN", endless.c_str()}}).run, std::string(128, 'x'));
  EXPECT_EQ(Read({{"REPRISE_RUN", "caf\xc3\xa9\n"}}).run, "caf___");
}

TEST(CoreConfig, OneRankSpeaksForAll) {
  EXPECT_TRUE(Read({}).quiet_rank);
  const ProcessNames first = {.launched = {.launcher = "Slurm", .rank = 0, .world_size = 4}};
  EXPECT_FALSE(ReadConfig(In({}), first).quiet_rank);
  EXPECT_TRUE(ReadConfig(In({{"REPRISE_RUN", "a"}}), first).quiet_rank);
  EXPECT_FALSE(ReadConfig(In({{"REPRISE_RUN", "a"}}), {}).quiet_rank) << "alone";
}

}  // namespace
}  // namespace reprise::replay
