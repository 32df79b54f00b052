// Why: committed memory must be usable and zero after a release, and what is not committed must not be
// touched by accident.
#include "replay/host_memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

namespace reprise::replay {
namespace {

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
