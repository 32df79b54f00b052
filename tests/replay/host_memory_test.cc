// Why: committed memory must be usable and zero after a release, and what is not committed must neither be
// touched by accident nor count against a limit of the job's.
#include "replay/host_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

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

// A job that crashes leaves a core of its own size.
TEST(HostMemory, IsDumpedAndTablesAreNot) {
  const auto memory = HostMemory::Reserve(kGiB);
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_TRUE((*memory)->Commit(0, 1));
  EXPECT_TRUE(IsDumped((*memory)->begin()));
  SparseArray<char> table(1 << 20);
  EXPECT_FALSE(IsDumped(reinterpret_cast<uintptr_t>(table.data())));
}

// Bytes of address space that this process has.
int64_t Mapped() {
  int64_t pages = -1;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// A job may limit its address space, or lock all of it, whenever it likes.
TEST(HostMemory, WhatIsNotCommittedIsNotMapped) {
  const int64_t before = Mapped();
  const auto memory = HostMemory::Reserve(kGiB * 64);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_LT(Mapped() - before, kGiB.count());
  const int64_t granules = kGiB / HostMemory::kGranule;
  ASSERT_TRUE((*memory)->Commit(0, granules));
  EXPECT_GE(Mapped() - before, kGiB.count());
  (*memory)->Release(0, granules);
  EXPECT_LT(Mapped() - before, kGiB.count());
}

// Each in a place of its own; where there is no such place any more, the range is reserved.
TEST(HostMemory, ManyAtOnce) {
  std::vector<std::unique_ptr<HostMemory>> all;
  for (int i = 0; i < 8; ++i) {
    absl::StatusOr<std::unique_ptr<HostMemory>> memory = HostMemory::Reserve(kGiB);
    ASSERT_TRUE(memory.ok()) << memory.status();
    for (const auto& other : all) {
      EXPECT_TRUE((*memory)->end() <= other->begin() || other->end() <= (*memory)->begin());
    }
    all.push_back(*std::move(memory));
  }
  for (const auto& memory : all) {
    auto* const bytes = reinterpret_cast<char*>(memory->begin());
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(memory->Commit(0, 1));
      EXPECT_EQ(bytes[0], 0);
      bytes[0] = 7;
      memory->Release(0, 1);
    }
  }
}

TEST(HostMemory, WhatSomebodyElseHasMappedThereIsLeftAlone) {
  const auto memory = HostMemory::Reserve(kGiB);
  ASSERT_TRUE(memory.ok());
  auto* const theirs = reinterpret_cast<char*>((*memory)->begin()) + HostMemory::kGranule.count();
  ASSERT_EQ(mmap(theirs, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            theirs);
  theirs[0] = 7;
  EXPECT_FALSE((*memory)->Commit(0, 2));
  EXPECT_EQ(theirs[0], 7);
  EXPECT_TRUE((*memory)->Commit(0, 1));
}

// How many mappings begin in the range.
int64_t Mappings(const HostMemory& memory) {
  std::ifstream maps("/proc/self/maps");
  int64_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    const uintptr_t begin = std::stoull(line, nullptr, 16);
    if (memory.begin() <= begin && begin < memory.end()) ++count;
  }
  return count;
}

// A process that may have no more mappings can start no thread and open no library.
TEST(HostMemory, TakesAFewOfTheMappingsThatAProcessMayHave) {
  constexpr int64_t kGranules = 3 * HostMemory::kMostRuns;
  const auto memory = HostMemory::Reserve(HostMemory::kGranule * kGranules);
  ASSERT_TRUE(memory.ok());
  auto* const bytes = reinterpret_cast<char*>((*memory)->begin());
  const auto at = [&](int64_t granule) { return bytes + granule * HostMemory::kGranule.count(); };
  for (int64_t g = 0; g < kGranules; ++g) ASSERT_TRUE((*memory)->Commit(g, 1)) << g;
  for (int time = 1; time <= 2; ++time) {  // what comes back between two others leaves room for as many
    for (int64_t g = 1; g < kGranules; g += 2) {
      at(g)[0] = 7;
      (*memory)->Release(g, 1);
    }
    EXPECT_GE(Mappings(**memory), HostMemory::kMostRuns - 1) << "what can be is taken away";
    EXPECT_LE(Mappings(**memory), HostMemory::kMostRuns + 1);
    for (int64_t g = 1; g < kGranules; g += 2) {
      ASSERT_TRUE((*memory)->Commit(g, 1)) << g;
      ASSERT_EQ(at(g)[0], 0) << g;
    }
  }
  // Some lie among what is taken away, and come back with it.
  for (int64_t g = 1; g < kGranules; g += 2) (*memory)->Release(g, 1);
  for (int64_t g = 0; g < kGranules; g += 2) (*memory)->Release(g, 1);
  ASSERT_TRUE((*memory)->Commit(0, kGranules));
  EXPECT_LE(Mappings(**memory), 2);
}

TEST(HostMemory, BeginsAtAHugePage) {
  const auto memory = HostMemory::Reserve(kGiB);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ((*memory)->begin() % HostMemory::kAlignment.count(), 0u);
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

// Status 0: what cannot be taken away is given back and can be had again.
void ReleaseWithNoMappingLeft() {
  const auto memory = HostMemory::Reserve(kGiB);
  if (!memory.ok() || !(*memory)->Commit(0, 3)) _exit(1);
  char* const middle = reinterpret_cast<char*>((*memory)->begin()) + HostMemory::kGranule.count();
  middle[0] = 7;
  int protection = PROT_READ;  // neighbours that differ are not joined
  while (mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
    protection ^= PROT_READ;
  (*memory)->Release(1, 1);
  if (munmap(middle, 4096) == 0) _exit(2);  // there was one left
  if (!(*memory)->Commit(1, 1)) _exit(3);
  _exit(middle[0] == 0 ? 0 : 4);
}

TEST(HostMemoryDeathTest, WithNoMappingLeftWhatIsReleasedCanBeHadAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ReleaseWithNoMappingLeft(), testing::ExitedWithCode(0), "");
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
