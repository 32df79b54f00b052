// Why: committed memory must be usable and zero after a release, and what is not committed must not be
// touched by accident.
#include "replay/host_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "replay/sparse_array.h"

namespace reprise::replay {
namespace {

// Whether the mapping that holds `address` would be a part of a core dump.
bool IsDumped(uintptr_t address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-') inside = begin <= address && address < end;
    if (inside && line.starts_with("VmFlags:")) return (line + " ").find(" dd ") == std::string::npos;
  }
  ADD_FAILURE() << "nothing is mapped there";
  return false;
}

// A job that crashes leaves a core of its own size, not of all that we have reserved.
TEST(HostMemory, OnlyWhatIsCommittedIsDumped) {
  const auto memory = HostMemory::Reserve(kGiB);
  ASSERT_TRUE(memory.ok());
  const auto at = [&](int64_t granule) {
    return (*memory)->begin() + granule * HostMemory::kGranule.count();
  };
  ASSERT_TRUE((*memory)->Commit(0, 2));
  memset(reinterpret_cast<char*>(at(0)), 7, 2 * HostMemory::kGranule.count());
  EXPECT_TRUE(IsDumped(at(0)));
  EXPECT_TRUE(IsDumped(at(1)));
  (*memory)->Release(1, 1);
  EXPECT_TRUE(IsDumped(at(0)));
  EXPECT_FALSE(IsDumped(at(1)));
  EXPECT_FALSE(IsDumped(at(100)));
  SparseArray<char> table(1 << 20);
  EXPECT_FALSE(IsDumped(reinterpret_cast<uintptr_t>(table.data())));
}

TEST(HostMemory, BeginsAtAGranule) {
  const auto memory = HostMemory::Reserve(kGiB);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ((*memory)->begin() % HostMemory::kGranule.count(), 0u);
  EXPECT_EQ((*memory)->end() - (*memory)->begin(), static_cast<uintptr_t>(kGiB.count()));
}

TEST(HostMemory, CommittedMemoryHoldsBytesAndIsZeroAfterRelease) {
  const auto memory = HostMemory::Reserve(kGiB);
  ASSERT_TRUE(memory.ok());
  auto* bytes = reinterpret_cast<char*>((*memory)->begin() + 2 * HostMemory::kGranule.count());
  ASSERT_TRUE((*memory)->Commit(2, 1));
  memset(bytes, 7, HostMemory::kGranule.count());
  (*memory)->Release(2, 1);
  ASSERT_TRUE((*memory)->Commit(2, 1));
  EXPECT_EQ(bytes[0], 0);
}

TEST(HostMemory, WhatIsNotCommittedCannotBeTouched) {
  const auto memory = HostMemory::Reserve(kGiB);
  ASSERT_TRUE(memory.ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto can_be_read = [&] {
    return write(ends[1], reinterpret_cast<const void*>((*memory)->begin()), 1) == 1;
  };
  EXPECT_FALSE(can_be_read());
  ASSERT_TRUE((*memory)->Commit(0, 1));
  EXPECT_TRUE(can_be_read());
  (*memory)->Release(0, 1);
  EXPECT_FALSE(can_be_read());
  close(ends[0]);
  close(ends[1]);
}

TEST(HostMemory, LeavesErrnoAlone) {
  const auto memory = HostMemory::Reserve(kGiB);
  ASSERT_TRUE(memory.ok());
  errno = 1234;
  ASSERT_TRUE((*memory)->Commit(0, 1));
  (*memory)->Release(0, 1);
  EXPECT_EQ(errno, 1234);
}

TEST(HostMemory, ImpossibleReservationIsAnError) {
  const auto memory = HostMemory::Reserve(Bytes(int64_t{1} << 60));
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(HostMemoryDeathTest, UncommittedMemoryFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const auto memory = HostMemory::Reserve(kGiB);
        *reinterpret_cast<volatile char*>((*memory)->begin()) = 1;
      },
      "");
}

}  // namespace
}  // namespace reprise::replay
