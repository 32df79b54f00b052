// A job's summaries are read when something went wrong: with ranks missing, with files cut short, with
// processes that are no ranks. What is there has to be told right all the same.
#include "replay/core/rank_summaries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "replay/core/summary.h"

namespace reprise::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ProcessSummary Rank(int rank, int64_t live_peak, int world_size = 4) {
  ProcessSummary process;
  process.launched = {.launcher = "Slurm", .rank = rank, .world_size = world_size, .job = "7", .step = "0"};
  process.live_peak = Bytes(live_peak);
  process.reserved_peak = Bytes(live_peak + 10);
  return process;
}

TEST(RankSummaries, ReadWhatAProcessLeaves) {
  Summary summary;
  summary.host = "n1";
  summary.run = "5eed";
  summary.launched = {.launcher = "Slurm",
                      .rank = 3,
                      .local_rank = 1,
                      .world_size = 8,
                      .job = "7",
                      .step = "2",
                      .restart = 4};
  summary.started = 1795000000.25;
  summary.ended = 1795000001.5;
  summary.running = true;
  summary.solves = {5, 6};
  summary.counters.live_peak = Bytes(1000);
  summary.counters.reserved_peak = Bytes(1200);
  summary.counters.unknown_frees = 2;
  summary.host_counters.errors = 1;
  summary.trace.counters.dropped = 4;
  summary.trace.counters.stopped = "at its limit";
  summary.trace.counters.full = true;
  summary.trace.counters.after_end = 100'000;
  summary.plans.refused = "damaged";
  const auto read = ParseSummary(SummaryJson(summary), "a.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->launched.rank, 3);
  EXPECT_EQ(read->launched.local_rank, 1);
  EXPECT_EQ(read->launched.world_size, 8);
  EXPECT_EQ(read->launched.job + "." + read->launched.step, "7.2");
  EXPECT_EQ(read->launched.restart, 4);
  EXPECT_EQ(read->started, 1795000000.25);
  EXPECT_EQ(read->ended, 1795000001.5);
  EXPECT_TRUE(read->running);
  EXPECT_EQ(read->plans_solved_for_ranks, 5);
  EXPECT_EQ(read->plans_taken_from_ranks, 6);
  EXPECT_EQ(read->host, "n1");
  EXPECT_EQ(read->run, "5eed");
  EXPECT_EQ(read->live_peak, Bytes(1000));
  EXPECT_EQ(read->faults, 7);
  EXPECT_EQ(read->refused, "damaged");
}

Counters Held(int64_t live_peak, int64_t unknown_frees) {
  Counters counters;
  counters.live_peak = Bytes(live_peak);
  counters.reserved_peak = Bytes(live_peak + 10);
  counters.slab = Bytes(live_peak - 10);
  counters.lower_bound = Bytes(live_peak - 20);
  counters.plans = 1;
  counters.plans_resumed = 1;
  counters.unknown_frees = unknown_frees;
  return counters;
}

// The core repeats the device with the largest live peak at the top.
TEST(RankSummaries, OfSeveralDevicesEveryOneCountsOnce) {
  Summary summary;
  summary.host_counters.errors = 1;
  summary.devices.resize(2);
  summary.devices[0].counters = summary.counters = Held(1000, 10);
  summary.devices[0].trace.counters.dropped = summary.trace.counters.dropped = 100;
  summary.devices[1].counters = Held(300, 20);
  summary.devices[1].trace.counters.dropped = 200;
  summary.devices[1].complete = false;
  summary.devices[0].plans.refused = "of another job";
  summary.devices[1].plans.refused = "damaged";
  summary.devices.emplace_back().not_served = "the device tells no size";
  const auto read = ParseSummary(SummaryJson(summary), "a.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->live_peak, Bytes(1300));
  EXPECT_EQ(read->reserved_peak, Bytes(1320));
  EXPECT_EQ(read->slab, Bytes(1280));
  EXPECT_EQ(read->lower_bound, Bytes(1260));
  EXPECT_EQ(read->plans, 2);
  EXPECT_EQ(read->plans_resumed, 2);
  EXPECT_EQ(read->faults, 1 + 10 + 100 + 20 + 200 + 1 + 1);
  EXPECT_FALSE(read->complete);
  EXPECT_EQ(read->refused, "of another job") << "the first";
}

TEST(RankSummaries, OfADeviceThatWasNotEnoughItIsKeptWhatTheNextAttemptNeeds) {
  Summary summary;
  summary.devices.resize(2);
  summary.devices[0].counters.live_peak = summary.counters.live_peak = kGiB * 4;
  summary.devices[1].ordinal = 3;
  summary.devices[1].counters.live_peak = kGiB * 3;
  summary.devices[1].counters.plan_needs = kGiB * 2;
  summary.devices[1].in_host_peak = kGiB;
  summary.devices[1].on_device_full = kGiB * 2;
  const auto read = ParseSummary(SummaryJson(summary), "a.json");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(read->oversubscribed, SizeIs(1));
  const Oversubscribed& device = read->oversubscribed[0];
  EXPECT_EQ(device.device, 3);
  EXPECT_EQ(device.in_host, kGiB);
  EXPECT_EQ(device.next.Needs(), kGiB * 3) << "what came after the plan comes again";
  EXPECT_EQ(device.next.Verdict(),
            "1.00 GiB more than the device gave: the next attempt does not fit either");
}

TEST(RankSummaries, WhatThePeaksLeaveOutIsCounted) {
  Summary summary;
  summary.counters.passed = 3;
  summary.host_counters.passed = 4;
  EXPECT_EQ(ParseSummary(SummaryJson(summary), "a.json")->not_in_peaks, 7);
  // What a device had no room for is live to the engine all the same.
  summary.devices.resize(2);
  summary.devices[0].counters.passed = 3;
  summary.devices[0].capture_passes = 5;
  summary.devices[1].capture_passes = 6;
  summary.devices[1].unrecorded = 7;
  EXPECT_EQ(ParseSummary(SummaryJson(summary), "a.json")->not_in_peaks, 18);
}

TEST(RankSummaries, ATraceThatCouldNotBeWrittenIsAFault) {
  Summary summary;
  summary.trace.counters.stopped = "the disk is full";
  EXPECT_EQ(ParseSummary(SummaryJson(summary), "a.json")->faults, 1);
  summary.trace.counters.full = true;
  EXPECT_EQ(ParseSummary(SummaryJson(summary), "a.json")->faults, 0);
}

TEST(RankSummaries, WhatIsNoneIsNamed) {
  for (const char* text : {"", "{", "[]", "{}", "7", R"({"live_peak":1,"reserved_peak":1,"rank":-1})",
                           R"({"live_peak":1,"reserved_peak":1,"world_size":2147483647})"}) {
    const auto read = ParseSummary(text, "a.json");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.status().message(), HasSubstr("a.json: "));
  }
}

// A sum over wrong numbers, or over those that a conversion made of them, would be told as measured.
TEST(RankSummaries, AFieldThatCannotBeIsNamed) {
  const std::pair<const char*, const char*> fields[] = {
      {"live_peak", "\"x\""},
      {"live_peak", "1e300"},
      {"live_peak", "-1"},
      {"live_peak", "9223372036854775807"},
      {"unknown_frees", "18446744073709551615"},
      {"planned_bytes_after_plan", "55"},
      {"planned_bytes_after_plan", "-3"},
      {"rank", "4294967296"},
      {"rank", "1.5"},
      {"world_size", "4294967299"},
      {"world_size", "-4"},
      {"restart", "-1"},
      {"pid", "-7"},
      {"host", "4"},
      {"complete", "1"},
      {"started", "-1"},
      {"started", "1e300"},
      {"started", "\"noon\""},
      {"devices", "3"},
      {"devices", "[3]"},
      {"devices", "[{\"slab\":-1}]"},
  };
  for (const auto& [name, value] : fields) {
    nlohmann::json summary = {{"live_peak", 1}, {"reserved_peak", 1}};
    summary[name] = nlohmann::json::parse(value);
    const auto read = ParseSummary(summary.dump(), "a.json");
    ASSERT_FALSE(read.ok()) << name << ": " << value;
    EXPECT_THAT(read.status().message(), HasSubstr("a.json: ")) << value;
    const std::string named = name == std::string("devices") ? "" : name;
    EXPECT_THAT(read.status().message(), HasSubstr(named)) << value;
  }
}

// The largest that is read, over and over.
TEST(RankSummaries, SumsEndWhereTheyWouldNotFit) {
  const std::string most = std::to_string(int64_t{1} << 60);
  const std::string device =
      fmt::format(R"({{"live_peak":{0},"reserved_peak":{0},"unknown_frees":{0},"trace_dropped":{0}}})", most);
  std::vector<std::string> devices(20, device);
  const auto read = ParseSummary(
      fmt::format(R"({{"live_peak":1,"reserved_peak":1,"devices":[{}]}})", fmt::join(devices, ",")),
      "a.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(std::to_string(read->live_peak.count()), most);
  EXPECT_EQ(std::to_string(read->faults), most);
  std::vector<ProcessSummary> ranks(20, *read);
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i].launched.rank = static_cast<int>(i);
  const auto jobs = ByJob(ranks);
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(std::to_string(jobs[0].live_peak.count()), most);
  EXPECT_EQ(std::to_string(jobs[0].faults), most);
}

TEST(RankSummaries, WhatIsNestedDeeperThanAnySummaryIsNone) {
  const auto nested = [](size_t depth) {
    return R"({"live_peak":1,"reserved_peak":1,"x":)" + std::string(depth, '[') + std::string(depth, ']') +
           "}";
  };
  EXPECT_TRUE(ParseSummary(nested(90), "a.json").ok());
  for (const size_t depth : {110, 1000000}) {
    const auto read = ParseSummary(nested(depth), "a.json");
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.status().message(), HasSubstr("a.json: is nested more than 100 deep"));
  }
}

// As a process leaves it that nobody has numbered: one job, not one without a name and one called 0.
TEST(RankSummaries, WhatSaysNoJobIsOfTheOneThatHasNoNumber) {
  const char* const kSilent =
      R"({"live_peak":1,"reserved_peak":1,"rank":1,"launcher":"torchrun","world_size":2})";
  const auto silent = ParseSummary(kSilent, "a.json");
  ASSERT_TRUE(silent.ok()) << silent.status();
  ProcessSummary other = Rank(0, 1, 2);
  other.launched.launcher = "torchrun";
  other.launched.job = other.launched.step = std::string("0");
  const auto jobs = ByJob({other, *silent});
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].job + "." + jobs[0].step, "0.0");
}

TEST(RankSummaries, TotalsMedianAndLargest) {
  const auto jobs = ByJob({Rank(2, 300), Rank(0, 100), Rank(1, 100), Rank(3, 120)});
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].live_peak, Bytes(620));
  EXPECT_EQ(jobs[0].reserved_peak, Bytes(660));
  EXPECT_EQ(jobs[0].ranks[jobs[0].largest].launched.rank, 2);
  EXPECT_EQ(jobs[0].median_live_peak, Bytes(110)) << "the mean of the two in the middle";
  EXPECT_DOUBLE_EQ(jobs[0].LargestOverMedian().value_or(0), 300.0 / 110);
  EXPECT_THAT(jobs[0].missing, IsEmpty());
}

TEST(RankSummaries, NoMultipleOfAMedianOfZero) {
  EXPECT_EQ(ByJob({Rank(0, 300), Rank(1, 0), Rank(2, 0)})[0].LargestOverMedian(), std::nullopt);
  EXPECT_EQ(ByJob({Rank(0, 0), Rank(1, 0), Rank(2, 0)})[0].LargestOverMedian(), 1);
}

TEST(RankSummaries, MissingRanks) {
  const auto jobs = ByJob({Rank(2, 1), Rank(0, 1)});
  EXPECT_THAT(jobs[0].missing, ElementsAre(1, 3));
  EXPECT_EQ(ByJob({Rank(0, 1, 5000)})[0].missing_count, 4999);
  EXPECT_THAT(ByJob({Rank(0, 1, 5000)})[0].missing, SizeIs(100)) << "no more are named";
}

TEST(RankSummaries, AFurtherProcessOfARankIsCountedAndNotShown) {
  ProcessSummary worker = Rank(0, 5);
  worker.faults = 1;
  const auto jobs = ByJob({worker, Rank(0, 100), Rank(1, 100)});
  EXPECT_THAT(jobs[0].ranks, SizeIs(2));
  EXPECT_THAT(jobs[0].further, SizeIs(1));
  EXPECT_EQ(jobs[0].live_peak, Bytes(200));
  EXPECT_EQ(jobs[0].faults, 1);
}

TEST(RankSummaries, AProcessThatBecomesAnotherProgramHasNotBeenKilled) {
  ProcessSummary first = Rank(0, 100);
  first.pid = 11;
  first.started = 1;
  first.ended = 2;
  first.running = true;
  ProcessSummary second = first;
  second.live_peak = Bytes(5);
  second.started = 3;
  second.ended = 4;
  EXPECT_FALSE(ByJob({first, second})[0].ranks[0].running);
  EXPECT_TRUE(ByJob({first, second})[0].further[0].running) << "so has the second";
  ProcessSummary another = second;
  another.launched.rank = 1;
  EXPECT_TRUE(ByJob({first, another})[0].ranks[0].running) << "in a container of its own";
}

TEST(RankSummaries, TheLauncherIsNoRank) {
  ProcessSummary agent = Rank(0, 5000);
  agent.launched.launcher = "";
  agent.launched.world_size = 1;
  const auto jobs = ByJob({agent, Rank(0, 100), Rank(1, 100)});
  EXPECT_EQ(jobs[0].live_peak, Bytes(200));
  EXPECT_THAT(jobs[0].further, SizeIs(1));
  EXPECT_THAT(ByJob({agent})[0].ranks, SizeIs(1)) << "alone it stands for the job";
}

// That of PyTorch 2 takes memory that is caught, and is told no number of the job.
TEST(RankSummaries, TheLauncherOfAJobWithANumberIsOfThatJob) {
  const auto at = [](ProcessSummary process, double started, double ended) {
    process.started = started;
    process.ended = ended;
    return process;
  };
  ProcessSummary launcher = Rank(0, 5000);
  launcher.launched = {.job = "0", .step = "0"};
  ProcessSummary elsewhere = launcher;
  elsewhere.host = "another";
  const ProcessSummary first = at(Rank(0, 100, 2), 11, 19), second = at(Rank(1, 100, 2), 11, 19);
  const auto jobs = ByJob({at(launcher, 10, 20), first, second});
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].job, "7");
  EXPECT_EQ(jobs[0].live_peak, Bytes(200));
  EXPECT_THAT(jobs[0].further, SizeIs(1));
  EXPECT_THAT(ByJob({at(launcher, 12, 20), first, second}), SizeIs(2)) << "began after the ranks";
  EXPECT_THAT(ByJob({at(launcher, 9, 10), first, second}), SizeIs(2)) << "ended before they began";
  EXPECT_THAT(ByJob({at(elsewhere, 10, 20), first, second}), SizeIs(2)) << "on another host";
}

TEST(RankSummaries, JobsAndStepsApart) {
  ProcessSummary next = Rank(0, 1);
  next.launched.step = "1";
  EXPECT_THAT(ByJob({Rank(0, 1), next}), SizeIs(2));
  ProcessSummary again = Rank(0, 2);
  again.launched.restart = 1;
  const auto jobs = ByJob({again, Rank(0, 1)});
  ASSERT_THAT(jobs, SizeIs(2)) << "a job that was put back and ran again";
  EXPECT_EQ(jobs[1].restart, 1);
  EXPECT_EQ(jobs[1].live_peak, Bytes(2));
  EXPECT_THAT(ByJob({}), IsEmpty());
  ProcessSummary tenth = next;
  tenth.launched.step = "10";
  next.launched.step = "2";
  EXPECT_EQ(ByJob({tenth, next})[0].step, "2") << "the first is the first by number";
}

// Nodes of two ranks each: on one a rank failed and torchrun counts that, on the other it starts its ranks again as well.
TEST(RankSummaries, RanksThatRanAtTheSameTimeAreOfOneStart) {
  const auto said = [](int rank, int restart, double started, double ended) {
    ProcessSummary process = Rank(rank, 10 * (restart + 1));
    process.launched.restart = restart;
    process.started = started;
    process.ended = ended;
    return process;
  };
  std::vector<ProcessSummary> processes = {said(0, 0, 10, 20), said(1, 0, 10, 20), said(2, 0, 11, 21),
                                           said(3, 0, 11, 21), said(0, 1, 30, 40), said(1, 1, 30, 40),
                                           said(2, 0, 31, 41), said(3, 0, 31, 41)};
  auto jobs = ByJob(processes);
  ASSERT_THAT(jobs, SizeIs(2));
  for (const JobRanks& job : jobs) {
    EXPECT_THAT(job.ranks, SizeIs(4)) << job.restart;
    EXPECT_THAT(job.missing, IsEmpty()) << job.restart;
    EXPECT_THAT(job.further, IsEmpty()) << job.restart;
  }
  EXPECT_EQ(jobs[1].restart, 1);
  EXPECT_EQ(jobs[1].started, 30);
  for (ProcessSummary& each : processes) each.ended += 10;  // of the first start until after the second began
  jobs = ByJob(processes);
  ASSERT_THAT(jobs, SizeIs(2)) << "as they said it, where the times tell nothing";
  EXPECT_THAT(jobs[1].missing, ElementsAre(2, 3));
}

ProcessSummary Unnumbered(int rank, double started, double ended) {
  ProcessSummary process = Rank(rank, 100, 2);
  process.launched.launcher = "torchrun";
  process.launched.job = std::string("0");  // a string: of the letter alone GCC 12 says that it overlaps
  process.started = started;
  process.ended = ended;
  return process;
}

TEST(RankSummaries, RunsOfAJobWithoutANumberAreToldApartByTime) {
  // The second run is one rank short, a worker of the first one's rank 0 has a summary of its own.
  const auto jobs =
      ByJob({Unnumbered(0, 50, 60), Unnumbered(1, 11, 20), Unnumbered(0, 10, 20.5), Unnumbered(0, 12, 14)});
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_EQ(jobs[0].run, 1);
  EXPECT_EQ(jobs[0].started, 10);
  EXPECT_THAT(jobs[0].ranks, SizeIs(2));
  EXPECT_THAT(jobs[0].further, SizeIs(1));
  EXPECT_EQ(jobs[1].run, 2);
  EXPECT_EQ(jobs[1].started, 50);
  EXPECT_THAT(jobs[1].missing, ElementsAre(1));
}

// What a rank had started has ended well, and the rank was killed before its next summary.
TEST(RankSummaries, WhatARankStartsAfterItsLastSummaryIsOfItsRun) {
  ProcessSummary rank = Unnumbered(0, 10, 90);
  rank.running = true;
  const ProcessSummary later = Unnumbered(0, 95, 96);
  EXPECT_THAT(ByJob({rank, later}), SizeIs(2)) << "it may be the next run";
  std::vector<ProcessSummary> named = {rank, later, Unnumbered(0, 101, 102)};
  for (ProcessSummary& each : named) each.run = "5eed";
  const auto jobs = ByJob(named);
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_THAT(jobs[0].further, SizeIs(1));
  EXPECT_EQ(jobs[1].started, 101);
}

TEST(RankSummaries, RanksThatRunOneAfterTheOtherAreOfOneRun) {
  const auto once = ByJob({Unnumbered(0, 1, 2), Unnumbered(1, 3, 4)});
  ASSERT_THAT(once, SizeIs(1));
  EXPECT_EQ(once[0].run, 0);
  EXPECT_THAT(once[0].missing, IsEmpty());
  const auto twice =
      ByJob({Unnumbered(0, 1, 2), Unnumbered(1, 3, 4), Unnumbered(1, 7, 8), Unnumbered(0, 5, 6)});
  ASSERT_THAT(twice, SizeIs(2));
  for (const JobRanks& run : twice) EXPECT_THAT(run.missing, IsEmpty());
}

TEST(RankSummaries, WhatRunsWithinALongRunIsOfIt) {
  EXPECT_THAT(ByJob({Unnumbered(0, 0, 100), Unnumbered(0, 1, 2), Unnumbered(0, 50, 60)}), SizeIs(1));
}

TEST(RankSummaries, ARankThatComesAThirdTimeIsOfAThirdRun) {
  const auto jobs = ByJob({Unnumbered(0, 1, 2), Unnumbered(1, 3, 4), Unnumbered(1, 5, 6)});
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_THAT(jobs[0].ranks, SizeIs(2));
  EXPECT_THAT(jobs[0].further, IsEmpty());
  EXPECT_THAT(jobs[1].missing, ElementsAre(0));
}

TEST(RankSummaries, WhatALaterRunHasNoRoomForIsOfNoEarlierOne) {
  const auto jobs =
      ByJob({Unnumbered(0, 1, 2), Unnumbered(0, 3, 4), Unnumbered(1, 5, 6), Unnumbered(1, 7, 8)});
  ASSERT_THAT(jobs, SizeIs(3));
  EXPECT_THAT(jobs[0].missing, ElementsAre(1));
}

TEST(RankSummaries, WithoutTimesAllIsOneRun) {
  EXPECT_THAT(ByJob({Unnumbered(0, 0, 0), Unnumbered(1, 0, 0), Unnumbered(0, 0, 0)}), SizeIs(1));
}

ProcessSummary Of(const std::string& run, int rank, double started, double ended) {
  ProcessSummary process = Unnumbered(rank, started, ended);
  process.run = run;
  return process;
}

// A sweep: each run has its own name, and all leave their files in one folder.
TEST(RankSummaries, RunsAtTheSameTimeAreToldApartByName) {
  const auto jobs = ByJob(
      {Of("a", 0, 10, 20), Of("b", 0, 11, 21), Of("b", 1, 11, 21), Of("a", 1, 10, 20), Of("", 0, 15, 16)});
  ASSERT_THAT(jobs, SizeIs(3));
  for (const size_t i : {0, 1}) {
    EXPECT_THAT(jobs[i].ranks, SizeIs(2));
    EXPECT_THAT(jobs[i].further, IsEmpty());
  }
  EXPECT_THAT(jobs[2].ranks, SizeIs(1)) << "started without the command";
  EXPECT_EQ(jobs[1].run, 2);
  EXPECT_EQ(jobs[1].started, 11);
}

TEST(RankSummaries, OnEachHostOfOneJobItsRunMayHaveAnotherName) {
  const auto once = ByJob({Of("a", 0, 10, 20), Of("b", 1, 11, 19)});
  ASSERT_THAT(once, SizeIs(1));
  EXPECT_THAT(once[0].missing, IsEmpty());
  EXPECT_THAT(ByJob({Of("a", 0, 10, 20), Of("b", 1, 11, 30), Of("c", 2, 25, 40)}), SizeIs(1)) << "a chain";
  const auto twice = ByJob({Of("a", 0, 10, 20), Of("b", 1, 11, 19), Of("a", 0, 30, 40), Of("b", 1, 31, 39)});
  ASSERT_THAT(twice, SizeIs(2));
  for (const JobRanks& run : twice) EXPECT_THAT(run.missing, IsEmpty());
  EXPECT_THAT(ByJob({Of("a", 0, 10, 20), Of("b", 1, 30, 40)}), SizeIs(2)) << "one has ended before the other";
}

TEST(RankSummaries, WhatOneRunStartsOneAfterTheOtherIsToldApartByTime) {
  const auto jobs = ByJob({Of("a", 0, 10, 20), Of("a", 1, 10, 20), Of("a", 1, 30, 40), Of("a", 0, 30, 40)});
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_THAT(jobs[1].missing, IsEmpty());
}

TEST(RankSummaries, AProcessWithoutARankIsOfTheRanksThatRanMeanwhile) {
  ProcessSummary plain = Of("", 0, 30, 40);
  plain.launched = {.job = "0", .step = "0"};
  EXPECT_THAT(ByJob({Of("", 0, 10, 20), Of("", 1, 10, 20), plain}), SizeIs(2));
  plain.started = 15;
  const auto jobs = ByJob({Of("", 0, 10, 20), Of("", 1, 10, 20), plain});
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_THAT(jobs[0].further, SizeIs(1));
}

TEST(RankSummaries, ANumberThatIsGivenTwiceIsOfTwoRunsWhereAllRanksComeAgain) {
  const auto numbered = [](int rank, double started, double ended) {
    ProcessSummary process = Unnumbered(rank, started, ended);
    process.launched.job = "100";
    return process;
  };
  const std::vector<ProcessSummary> first = {numbered(0, 10, 20), numbered(1, 10, 20)};
  const auto with = [&](std::vector<ProcessSummary> later) {
    later.insert(later.end(), first.begin(), first.end());
    return ByJob(std::move(later));
  };
  const auto jobs = with({numbered(1, 30, 41), numbered(0, 31, 40)});
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_EQ(jobs[1].started, 30);
  for (const JobRanks& job : jobs) EXPECT_THAT(job.missing, IsEmpty());
  const auto one = with({numbered(1, 30, 41)});
  ASSERT_THAT(one, SizeIs(1)) << "what one of the ranks has started besides";
  EXPECT_THAT(one[0].further, SizeIs(1));
}

TEST(RankSummaries, WhatOneScriptStartsOneAfterTheOtherIsOneRun) {
  ProcessSummary helper = Of("a", 0, 10, 11), program = Of("a", 0, 12, 20);
  for (ProcessSummary* const each : {&helper, &program}) each->launched = {.job = "0", .step = "0"};
  program.live_peak = Bytes(1000);
  const auto jobs = ByJob({helper, program});
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].live_peak, Bytes(1000));
  EXPECT_THAT(jobs[0].further, SizeIs(1));
  helper.run = program.run = "";
  EXPECT_THAT(ByJob({helper, program}), SizeIs(2)) << "where nothing says that it is one";
}

TEST(RankSummaries, AJobWithANumberIsOneRun) {
  ProcessSummary first = Rank(0, 1), second = Rank(0, 2);
  first.started = first.ended = 1;
  second.started = second.ended = 2;
  EXPECT_THAT(ByJob({first, second}), SizeIs(1));
  first.run = "a";
  second.run = "b";
  EXPECT_THAT(ByJob({first, second}), SizeIs(2)) << "unless it was started twice";
}

}  // namespace
}  // namespace reprise::replay
