// The summary is what people see of Reprise and what other tools read: its names and its honesty about what
// was not served.
#include "replay/core/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace reprise::replay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Summary Served() {
  Summary summary;
  summary.mode = Mode::kServe;
  summary.pid = 42;
  summary.command = "python3 train.py";
  summary.threshold = kKiB * 4;
  summary.trace.path = "out/trace.reprise";
  summary.counters.requests = 1000;
  summary.counters.plans = 1;
  summary.counters.iterations = 30;
  summary.counters.period = 33;
  summary.counters.first_planned_iteration = 3;
  summary.counters.passed = 2;
  summary.counters.requests_after_plan = 800;
  summary.counters.planned_requests_after_plan = 796;
  summary.counters.bytes_after_plan = kGiB * 1000;
  summary.counters.planned_bytes_after_plan = kGiB * 998;
  summary.counters.live_peak = kGiB;
  summary.counters.reserved_peak = kMiB * 1044;
  summary.counters.slab = kMiB * 510;
  summary.counters.lower_bound = kMiB * 500;
  summary.host_counters = {.passed = 5, .late_frees = 7};
  return summary;
}

TEST(SummaryText, SaysWhatWasServed) {
  const std::string text = SummaryText(Served());
  EXPECT_THAT(text, HasSubstr("reprise: python3 train.py (pid 42), served\n"));
  EXPECT_THAT(text, HasSubstr("1.02 GiB"));
  EXPECT_THAT(text, HasSubstr("99.80 %"));
  EXPECT_THAT(text, HasSubstr("gap 2.00 %"));
  EXPECT_THAT(text, HasSubstr("1.020 of the live peak"));
  EXPECT_THAT(text, HasSubstr("passed 7,"));
  EXPECT_THAT(text, HasSubstr("late frees 7,"));
  EXPECT_THAT(text, HasSubstr("\nreprise: next: reprise stats out/trace.reprise\n"));
}

TEST(SummaryText, WhatOthersWroteBeginsNoLines) {
  const std::string others = "a\nreprise: b\x1b[2J";
  Summary summary = Served();
  summary.command = summary.trace.path = summary.trace.counters.stopped = others;
  summary.plans = {.read = others, .refused = others, .written = others};
  const std::string text = SummaryText(summary);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\nreprise: b")));
}

TEST(SummaryText, NamesTheTraceAsAShellReadsIt) {
  Summary summary = Served();
  summary.trace.path = "my runs/trace.reprise";
  EXPECT_THAT(SummaryText(summary), HasSubstr("\nreprise: next: reprise stats 'my runs/trace.reprise'\n"));
}

TEST(SummaryText, WhoeverStartedTheRunSaysWhatComesNext) {
  Summary summary = Served();
  summary.run = "a1b2";
  EXPECT_THAT(SummaryText(summary), Not(HasSubstr("next:")));
}

TEST(SummaryText, ATraceThatWasWantedAndCouldNotBeHadIsNotAskedForAgain) {
  Summary summary = Served();
  summary.trace.path = "";
  EXPECT_THAT(SummaryText(summary), HasSubstr("next: set REPRISE_OUT=DIR"));
  summary.files = true;
  EXPECT_THAT(SummaryText(summary), Not(HasSubstr("next:")));
}

TEST(SummaryText, ThePeakIsTheJobsOnlyWhereNothingWasPassed) {
  Summary summary = Served();
  EXPECT_THAT(SummaryText(summary), HasSubstr("the most that was served at once"));
  summary.counters.passed = summary.host_counters.passed = 0;
  EXPECT_THAT(SummaryText(summary), HasSubstr("the most the job held at once"));
}

TEST(SummaryText, SaysWhatThreadsThatBeginTogetherCost) {
  Summary summary = Served();
  EXPECT_THAT(SummaryText(summary), Not(HasSubstr("other threads'")));
  summary.host_counters.passed_while_opening = 3;
  EXPECT_THAT(SummaryText(summary), HasSubstr("\n  of those passed 3 were other threads' "));
}

TEST(SummaryText, ThePeakOfADeviceIsTheJobsOnlyWhereTheEngineWasToldOfAll) {
  for (const auto untold : {&DeviceSummary::capture_passes, &DeviceSummary::unrecorded}) {
    Summary summary = Served();
    summary.devices.emplace_back().counters = summary.counters;
    EXPECT_THAT(SummaryText(summary), HasSubstr("the most the job held at once"));
    summary.devices[0].*untold = 1;
    EXPECT_THAT(SummaryText(summary), HasSubstr("the most that was served at once"));
  }
}

TEST(SummaryText, CountsWhatADevicesEngineWasNotToldOf) {
  Summary summary = Served();
  summary.devices.emplace_back().unrecorded = 17;
  EXPECT_THAT(SummaryText(summary), HasSubstr("unrecorded 17,"));
}

TEST(SummaryText, SaysWhyTheArenaWasRefusedMemory) {
  Summary summary = Served();
  summary.devices.emplace_back().refusal = "cuMemCreate answered 2 (out of memory)";
  EXPECT_THAT(SummaryText(summary), HasSubstr("refused memory: cuMemCreate answered 2 (out of memory)\n"));
}

TEST(SummaryText, SaysThatThreadsAreApart) {
  Summary summary = Served();
  EXPECT_THAT(SummaryText(summary), Not(HasSubstr("each for itself")));
  summary.counters.threads = 3;
  EXPECT_THAT(SummaryText(summary), HasSubstr("; 3 threads, each for itself\n"));
}

TEST(SummaryText, SaysThatNothingWasPlanned) {
  Summary summary = Served();
  summary.counters = {};
  EXPECT_THAT(SummaryText(summary), HasSubstr("no iteration was found: nothing repeats and comes back to"));
  summary.counters.iterations = 4;
  EXPECT_THAT(SummaryText(summary), HasSubstr("4 iterations found, no plan adopted"));
}

TEST(SummaryText, SaysWhatTheTraceLost) {
  Summary summary = Served();
  EXPECT_THAT(SummaryText(summary), Not(HasSubstr("DROPPED")));
  summary.trace.counters.dropped = 12;
  summary.trace.counters.stopped = "disk full";
  EXPECT_THAT(SummaryText(summary), HasSubstr("12 DROPPED"));
  EXPECT_THAT(SummaryText(summary), HasSubstr("ended early: disk full"));
}

TEST(SummaryText, AnUnreadableEngineIsSaid) {
  Summary summary = Served();
  summary.complete = false;
  EXPECT_THAT(SummaryText(summary), HasSubstr("ended inside an allocation"));
}

Summary Oversubscribed(Bytes plan_needs, Bytes live_peak = kMiB * 900) {
  Summary summary = Served();
  DeviceSummary device;
  device.counters = summary.counters;
  device.counters.plan_needs = plan_needs;
  device.counters.live_peak = live_peak;
  device.granules_in_host_peak = 20;
  device.in_host_peak = kMiB * 40;
  device.on_device_full = kMiB * 1000;
  summary.devices.push_back(device);
  return summary;
}

TEST(SummaryText, SaysWhetherWhatWasOversubscribedFitsByPlan) {
  EXPECT_THAT(
      SummaryText(Oversubscribed(kMiB * 1010)),
      AllOf(HasSubstr("40.00 MiB  at most in the host's memory, 20 granules"),
            HasSubstr("1010.00 MiB  10.00 MiB more than the device gave: the next attempt does not fit")));
  EXPECT_THAT(SummaryText(Oversubscribed(kMiB * 1000)),
              HasSubstr("1000.00 MiB  with all that was live at once, no more than the device gave: the next "
                        "attempt has room by plan"));
  EXPECT_THAT(SummaryText(Oversubscribed(kMiB * 900, kMiB * 1040)),
              HasSubstr("1.02 GiB  40.00 MiB more than the device gave: the next attempt does not fit"))
      << "what came after the plan";
  EXPECT_THAT(SummaryText(Oversubscribed(Bytes(0))), HasSubstr("unknown  no plan was adopted"));
  Summary within = Oversubscribed(kMiB * 900);
  within.devices[0].granules_in_host_peak = 0;
  EXPECT_THAT(SummaryText(within), AllOf(Not(HasSubstr("oversubscribed")), Not(HasSubstr("plan needs"))));
}

TEST(SummaryText, SaysWhatIsHeldForStreams) {
  Summary summary = Oversubscribed(kMiB);
  EXPECT_THAT(SummaryText(summary), Not(HasSubstr("for streams")));
  summary.devices[0].counters.held_for_streams = kMiB * 12;
  EXPECT_THAT(SummaryText(summary), HasSubstr("for streams       12.00 MiB  of that held"));
  EXPECT_EQ(nlohmann::json::parse(SummaryJson(summary))["devices"][0]["held_for_streams"], 12 << 20);
}

TEST(SummaryJson, HoldsWhatWasOversubscribed) {
  const nlohmann::json device = nlohmann::json::parse(SummaryJson(Oversubscribed(kMiB * 1010)))["devices"][0];
  EXPECT_EQ(device["granules_in_host_peak"], 20);
  EXPECT_EQ(device["in_host_peak"], 40 << 20);
  EXPECT_EQ(device["on_device_full"], 1000 << 20);
  EXPECT_EQ(device["plan_needs"], 1010 << 20);
}

TEST(SummaryJson, NamesAreThoseOfSimulate) {
  const auto json = nlohmann::json::parse(SummaryJson(Served()));
  EXPECT_EQ(json["requests"], 1005);
  EXPECT_EQ(json["passed"], 7);
  EXPECT_EQ(json["planned_after_plan"], 0.995);
  EXPECT_EQ(json["planned_bytes_after_plan"], 0.998);
  EXPECT_EQ(json["live_peak"], kGiB.count());
  EXPECT_EQ(json["complete"], true);
  for (const char* name :
       {"planned", "arena", "conflicts", "mismatches", "plans", "iterations", "first_planned_iteration",
        "slab", "lower_bound", "reserved_peak", "passed_while_opening", "late_frees"}) {
    EXPECT_TRUE(json[name].is_number()) << name;
  }
}

TEST(SummaryJson, HoldsAnyCommandLine) {
  Summary summary = Served();
  summary.command = "x \xff\" \\";
  EXPECT_TRUE(nlohmann::json::accept(SummaryJson(summary)));
}

}  // namespace
}  // namespace reprise::replay
