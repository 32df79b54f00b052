// Why this exists: memory that no line of the job asked for is found by whose it is, or not at all.
#include "profiler/breakdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ByStream, ABlockIsItsAllocationsStreams) {
  const std::vector<Event> events = {Alloc(0, 10, 7), Alloc(1, 20), Free(0, 0), Alloc(2, 5, 7), Free(1)};
  const std::vector<StreamUse> uses = ByStream(events, 1);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].stream, Stream(7));
  EXPECT_EQ(uses[0].allocs, 2);
  EXPECT_EQ(uses[0].allocated, Bytes(15));
  EXPECT_EQ(uses[0].live_peak, Bytes(10));
  EXPECT_EQ(uses[0].at_peak, Bytes(10));
  EXPECT_EQ(uses[1].at_peak, Bytes(20));
  EXPECT_EQ(uses[1].blocks_at_peak, 1);
}

TEST(ByStream, WhatIsLiveLaterIsNotLiveAtThePeak) {
  const std::vector<StreamUse> uses = ByStream({Alloc(0, 30), Free(0), Alloc(1, 20, 3), Alloc(2, 1)}, 0);
  EXPECT_EQ(uses[0].at_peak, Bytes(30));
  EXPECT_EQ(uses[1].at_peak, Bytes(0));
  EXPECT_EQ(uses[1].blocks_at_peak, 0);
}

class ByLibraryTest : public ::testing::Test {
 protected:
  StackBytes Live(const std::vector<std::string>& modules, int64_t bytes) {
    std::vector<FrameId> ids;
    for (const std::string& module : modules) ids.push_back(stacks_.Intern({.module = module, .address = 1}));
    return {.stack = stacks_.Intern(ids), .blocks = 1, .bytes = Bytes(bytes)};
  }
  std::vector<std::string> Names(const std::vector<StackBytes>& live) {
    std::vector<std::string> names;
    for (const LibraryUse& use : ByLibrary(stacks_, live)) names.push_back(use.library);
    return names;
  }

  StackTable stacks_;
};

TEST_F(ByLibraryTest, WhoAskedTheAllocator) {
  const std::vector<StackBytes> live = {
      Live({"/cuda/libcudart.so.12", "/nv/libcublas.so.12", "/t/libtorch_cuda.so", "/bin/python3.11"}, 10),
      Live({"/nv/libnccl.so.2", "/t/libtorch_cuda.so"}, 40),
      Live({"/lib/libc.so.6", "/t/libc10.so", "/t/libtorch_cpu.so"}, 20),
      Live({"/t/libtorch_cuda.so"}, 5),
  };
  EXPECT_THAT(Names(live), ElementsAre("NCCL", "PyTorch", "cuBLAS"));
  EXPECT_EQ(ByLibrary(stacks_, live)[1].bytes, Bytes(25));
  EXPECT_EQ(ByLibrary(stacks_, live)[1].blocks, 2);
}

TEST_F(ByLibraryTest, WhatNoStackTellsIsCountedAsThat) {
  EXPECT_THAT(Names({Live({"/nv/libnccl.so.2"}, 10), Live({}, 40)}), ElementsAre("", "NCCL"));
}

TEST_F(ByLibraryTest, PythonsLinesTellOfNoLibrary) {
  const FrameId line = stacks_.Intern({.kind = FrameKind::kPython, .function = "step", .file = "/job/a.py"});
  const StackBytes live{.stack = stacks_.Intern(std::vector<FrameId>{line}), .blocks = 1, .bytes = Bytes(8)};
  EXPECT_THAT(ByLibrary(stacks_, std::vector<StackBytes>{live}), IsEmpty());
}

}  // namespace
}  // namespace reprise::profiler
