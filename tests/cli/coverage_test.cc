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
  bool redacted = false;
};

// Of a trace with 200 allocations.
std::string Of(const char* summary, Given given = {}) {
  LoadedInput input;
  input.content.format = profiler::InputFormat::kTrace;
  input.content.trace.metadata.device = given.device;
  input.content.trace.closed = given.closed;
  return Coverage(input, 200, nlohmann::ordered_json::parse(summary, nullptr, false), given.redacted);
}

constexpr char kUnknown[] =
    "The recording was closed in order. Of a run that served, it ends when the first plan is adopted.";

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
            "The trace covers 200 of the job's 400 allocations (50.00 %): it is read in part, up to the "
            "end of a block.");
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
