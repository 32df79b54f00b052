// Interposition stands on how a runtime reaches its driver. If ours took another way than the real one, every
// test of interposition would be about a runtime that does not exist. Linked with the recording driver and a
// static runtime.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/simcuda/include/cuda_runtime.h"
#include "tests/simcuda/recording/recording.h"

namespace {

int Times(const char* name, int version, unsigned long long flags) {
  return static_cast<int>(std::count_if(AllAsked().begin(), AllAsked().end(), [&](const Asked& asked) {
    return asked.name == name && asked.version == version && asked.flags == flags;
  }));
}

class Lookups : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver) << "this driver has nothing";
  }
};

TEST_F(Lookups, BeginWithTheEmptyNameAndTheLookupItself) {
  ASSERT_GE(AllAsked().size(), 4U);
  EXPECT_EQ(AllAsked()[0].name, "");
  EXPECT_EQ(AllAsked()[0].version, 0);
  EXPECT_EQ(AllAsked()[1].name, "cuInit");
  EXPECT_EQ(AllAsked()[1].version, 2000);
  EXPECT_EQ(AllAsked()[2].name, "cuGetProcAddress");
  EXPECT_EQ(AllAsked()[2].version, 11030);
  EXPECT_EQ(AllAsked()[3].name, "cuGetProcAddress");
  EXPECT_EQ(AllAsked()[3].version, 12000);
}

TEST_F(Lookups, PlainMemoryIsAskedForOnceAndByItsBaseName) {
  for (const char* name : {"cuMemAlloc", "cuMemFree", "cuMemGetInfo"}) {
    EXPECT_EQ(Times(name, 3020, 0), 1) << name;
    EXPECT_EQ(Times(name, 3020, 2), 0) << name;
  }
}

TEST_F(Lookups, StreamOrderedMemoryIsAskedForTwice) {
  for (const char* name : {"cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemFreeAsync"}) {
    EXPECT_EQ(Times(name, 11020, 0), 1) << name;
    EXPECT_EQ(Times(name, 11020, 2), 1) << name;
  }
}

TEST_F(Lookups, VirtualMemoryIsNotAskedFor) {
  for (const Asked& asked : AllAsked()) {
    EXPECT_NE(asked.name, "cuMemCreate");
    EXPECT_NE(asked.name, "cuMemMap");
  }
}

}  // namespace
