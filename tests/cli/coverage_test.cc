// Why this exists: a page is believed. That a trace is all of a job, or half of it because a plan was
// adopted, must be so: of a job on several devices, of one whose disk was full, of one that was only
// recorded.
#include "cli/report/coverage.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace reprise::cli {
namespace {

struct Given {
  int64_t device = 0;
  bool closed = true;
  profiler::TraceEnd end = profiler::TraceEnd::kClosed;
  uint64_t dropped = 0;
  bool redacted = false;
};

LoadedInput TraceOf(const Given& given) {
  LoadedInput input;
  input.content.format = profiler::InputFormat::kTrace;
  input.content.trace.metadata.device = given.device;
  input.content.trace.closed = given.closed;
  input.content.trace.end = given.end;
  input.content.trace.dropped = given.dropped;
  return input;
}

nlohmann::ordered_json Parsed(const char* summary) {
  return nlohmann::ordered_json::parse(summary, nullptr, false);
}

// Of a trace with 200 allocations.
std::string Of(const char* summary, Given given = {}) {
  return Coverage(TraceOf(given), 200, Parsed(summary), given.redacted);
}

constexpr char kUnknown[] =
    "The recording was closed in order. By earlier versions it also was where, while serving, the first plan "
    "was adopted.";

TEST(Coverage, AllOfTheJob) {
  EXPECT_EQ(Of(R"({"requests":200,"passed":0,"plans":3})"),
            "The trace covers all of the job's 200 allocations.");
}

TEST(Coverage, UntilThePlan) {
  EXPECT_EQ(Of(R"({"requests":800,"passed":0,"plans":1,"trace_stopped":"","trace_dropped":0})"),
            "The trace covers 200 of the job's 800 allocations (25.00 %): while serving, it ends when the "
            "first plan "
            "is adopted.");
}

TEST(Coverage, WritingFailed) {
  EXPECT_EQ(
      Of(R"({"requests":400,"plans":0,"trace_stopped":"t: No space left on device","trace_dropped":300})"),
      "The trace covers 200 of the job's 400 allocations (50.00 %): it ended early: t: No space left on "
      "device.");
  EXPECT_EQ(Of(R"({"requests":400,"plans":1,"trace_stopped":"t: the limit"})"),
            "The trace covers 200 of the job's 400 allocations (50.00 %): it ended early: t: the limit.");
}

TEST(Coverage, WhyItEndedIsNotToldWhereNamesAreNot) {
  EXPECT_EQ(
      Of(R"({"requests":400,"trace_stopped":"secret.reprise: No space left on device"})", {.redacted = true}),
      "The trace covers 200 of the job's 400 allocations (50.00 %): it ended early.");
}

TEST(Coverage, PassedAndDropped) {
  EXPECT_EQ(
      Of(R"({"requests":800,"passed":600,"plans":0})"),
      "The trace covers 200 of the job's 800 allocations (25.00 %): 600 were left to the real allocator.");
  EXPECT_EQ(
      Of(R"({"requests":800,"passed":500,"plans":0,"trace_dropped":150})"),
      "The trace covers 200 of the job's 800 allocations (25.00 %): 500 were left to the real allocator; 150 "
      "events were dropped.");
}

TEST(Coverage, CutShort) {
  EXPECT_EQ(Of(R"({"requests":400,"plans":1})", {.closed = false}),
            "The trace covers 200 of the job's 400 allocations (50.00 %): recording was not finished.");
}

TEST(Coverage, WhatWasDroppedIsSaidOnce) {
  EXPECT_EQ(Of(R"({"requests":400,"plans":0,"trace_dropped":150})", {.dropped = 150}),
            "The trace covers 200 of the job's 400 allocations (50.00 %): 150 events were dropped.");
  EXPECT_EQ(Of("", {.dropped = 150}), "The trace may not hold all of the job: events were dropped.");
}

// The trace's own word needs no summary, and tells nothing of who it was.
TEST(Coverage, TheTraceSaysWhyItEnds) {
  const Given full = {.end = profiler::TraceEnd::kSizeLimit, .redacted = true};
  EXPECT_EQ(Of("", full), "The trace may not hold all of the job: recording stopped at its size limit.");
  EXPECT_EQ(
      Of(R"({"requests":400,"trace_stopped":"secret.reprise: the limit"})", full),
      "The trace covers 200 of the job's 400 allocations (50.00 %): recording stopped at its size limit.");
  EXPECT_EQ(
      Of(R"({"requests":400,"plans":1})", {.end = profiler::TraceEnd::kFirstPlan}),
      "The trace covers 200 of the job's 400 allocations (50.00 %): recording ended when the first plan "
      "was adopted.");
}

TEST(Coverage, TheJobsPeakIsThatOfItsSummaryWhereItIsHigher) {
  const auto peak = [](const char* summary, const Given& given = {}) {
    return JobsPeak(TraceOf(given), Bytes(100), Parsed(summary)).count();
  };
  EXPECT_EQ(peak(R"({"requests":400,"live_peak":170})"), 170);
  EXPECT_EQ(peak(R"({"requests":400,"live_peak":70})"), 100);
  EXPECT_EQ(peak(R"({"requests":400})"), 100);
  EXPECT_EQ(peak(""), 100);
  const char* const two = R"({"requests":400,"live_peak":170,"devices":[
      {"device":0,"requests":200,"live_peak":120},{"device":1,"requests":200,"live_peak":170}]})";
  EXPECT_EQ(peak(two), 120);
  EXPECT_EQ(peak(two, {.device = 1}), 170);
  LoadedInput other;
  other.content.format = profiler::InputFormat::kSnapshot;
  EXPECT_EQ(JobsPeak(other, Bytes(100), Parsed(two)).count(), 100) << "PyTorch counts otherwise";
}

// A job that was killed has left what it was some time before.
TEST(Coverage, OfAJobThatHadNotEnded) {
  EXPECT_EQ(
      Of(R"({"requests":400,"plans":1,"running":true})", {.closed = false}),
      "The trace covers 200 of the job's 400 allocations (when its last summary was written): recording "
      "was not finished.");
  EXPECT_EQ(Of(R"({"requests":200,"running":true})", {.closed = false}),
            "The trace may not hold all of the job: recording was not finished.");
  EXPECT_EQ(Of(R"({"requests":200,"running":true,"devices":[{"device":0,"requests":200}]})"), kUnknown);
}

TEST(Coverage, OfASnapshot) {
  LoadedInput input;
  input.content.format = profiler::InputFormat::kSnapshot;
  input.content.snapshot.live_at_begin = 20;
  const auto covers = [&] { return Coverage(input, 200, {}, false); };
  EXPECT_EQ(covers(),
            "A snapshot holds the last stretch of a job: 20 of the 200 allocations were live before its "
            "history begins and are taken as allocated first.");
  // What was live before is an allocation like others there.
  input.content.snapshot.live_at_begin = 0;
  input.content.snapshot.converted = true;
  EXPECT_EQ(covers(),
            "The snapshot was converted from another input and holds what that did, which is not all of the "
            "job.");
  input.content.snapshot.unseen = Bytes(0);
  EXPECT_EQ(covers(),
            "The snapshot was converted from another input and holds what that did, which counts as all of "
            "the job.");
}

TEST(Coverage, NobodyKnowsWhy) {
  EXPECT_EQ(Of(R"({"requests":400,"plans":0})"),
            "The trace covers 200 of the job's 400 allocations (50.00 %).");
}

// The top level is that of one device.
TEST(Coverage, OfADevice) {
  const char* const two = R"({"requests":400,"plans":1,"devices":[{"device":0,"requests":200,"plans":0},
                              {"device":1,"requests":400,"plans":1}]})";
  EXPECT_EQ(Of(two), "The trace covers all of the job's 200 allocations on device 0.");
  EXPECT_EQ(Of(two, {.device = 1}),
            "The trace covers 200 of the job's 400 allocations on device 1 (50.00 %): while serving, it ends "
            "when the "
            "first plan is adopted.");
  EXPECT_EQ(Of(two, {.device = 2}), kUnknown);
  EXPECT_EQ(Of(R"({"requests":200,"devices":[{"device":3,"requests":200}]})", {.device = 3}),
            "The trace covers all of the job's 200 allocations.");
}

TEST(Coverage, WithoutCounters) {
  for (const char* summary : {"", "[]", "{}", R"({"requests":0,"complete":false})",
                              R"({"requests":0,"devices":[{"device":0,"requests":0,"complete":false}]})",
                              R"({"requests":0,"devices":[3]})"}) {
    EXPECT_EQ(Of(summary), kUnknown) << summary;
  }
}

}  // namespace
}  // namespace reprise::cli
