// A report that leaves the house must show what happened where, and nothing of who it was.
#include "cli/report/redact.h"

#include <gtest/gtest.h>

#include <vector>

#include "profiler/sites.h"

namespace reprise::cli {
namespace {

using profiler::Frame;
using profiler::FrameKind;

TEST(Redact, WhatRanOnTheDeviceKeepsItsOwnName) {
  profiler::Trace trace;
  // One library in two folders becomes one frame, and all that come after it move up.
  trace.stacks.Intern(Frame{.module = "/a/libtorch_cpu.so", .address = 1});
  trace.stacks.Intern(Frame{.module = "/b/libtorch_cpu.so", .address = 1});
  const auto kernel = [&](const char* name) {
    return trace.stacks.Intern(Frame{.kind = FrameKind::kDevice, .function = name});
  };
  for (const char* name : {"first", "second", "first"}) trace.activities.push_back({.name = kernel(name)});
  trace.activities.push_back({});
  Redactor().Redact(trace);
  EXPECT_EQ(trace.stacks.frames(), 3);
  const auto name = [&](size_t i) { return trace.stacks.frame(trace.activities[i].name).function; };
  EXPECT_EQ(name(0), "function-1");
  EXPECT_EQ(name(1), "function-2");
  EXPECT_EQ(trace.activities[2].name, trace.activities[0].name);
  EXPECT_EQ(trace.activities[3].name, profiler::FrameId(0));
}

TEST(Redact, ALibraryWhoseNameBeginsAsAKnownOnesIsNotNamed) {
  for (const char* module :
       {"/x/libtorch_secret.so", "/secret/libcuda.so.1", "secret.so", "libxla-secret.so.2"}) {
    profiler::Trace trace;
    const profiler::FrameId frame = trace.stacks.Intern(Frame{.module = module, .address = 1});
    Redactor().Redact(trace);
    const std::string& after = trace.stacks.frame(frame).module;
    EXPECT_EQ(after.find("secret"), std::string::npos) << after;
    const bool known = profiler::KnownLibraryPrefix(module) != "";
    EXPECT_EQ(profiler::LibraryOf(after), known ? profiler::LibraryOf(module) : "library-1");
  }
}

TEST(Redact, WhatIsMissingIsStillSaid) {
  profiler::Trace trace;
  trace.notes = {"3 events were dropped"};
  Redactor().Redact(trace);
  EXPECT_EQ(trace.notes.size(), 1u);
}

TEST(Redact, SitesAreTheSameFrames) {
  for (const char* function : {"torch::autograd::Engine::thread_main()", "at::_ops::bmm::call(at::Tensor)",
                               "torch::unwind::unwind()", "Secret::Run()"}) {
    profiler::Trace trace;
    const profiler::FrameId frame = trace.stacks.Intern(Frame{.function = function});
    const profiler::StackId stack = trace.stacks.Intern(std::vector<profiler::FrameId>{frame});
    trace.events.push_back({.stack = stack});
    const profiler::Site before = SiteOf(trace.stacks, stack);
    Redactor().Redact(trace);
    const profiler::Site after = SiteOf(trace.stacks, trace.events[0].stack);
    EXPECT_EQ(after.library, before.library) << function;
    EXPECT_EQ(after.label == "backward pass", before.label == "backward pass") << function;
    EXPECT_EQ(after.label.find("Secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace reprise::cli
