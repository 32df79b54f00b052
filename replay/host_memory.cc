#include "replay/host_memory.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::replay {
namespace {

constexpr uintptr_t kTiB = uintptr_t{1} << 40;
// Where ranges are looked for, one to a window. The system maps from the top of a process's 128 TiB down, or from a
// third of them up where the stack is not limited, and programs lie at two thirds. Allocators that ask for
// addresses at random (V8's, PartitionAlloc, mimalloc) do so below 64 TiB.
constexpr uintptr_t kFirstWindow = 72 * kTiB;
constexpr uintptr_t kWindow = 2 * kTiB;
constexpr uintptr_t kWindowsEnd = 80 * kTiB;

constexpr auto kStep = static_cast<uintptr_t>(HostMemory::kAlignment.count());

char* Map(char* at, size_t bytes, int protection, int fixed) {
  void* const got = mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  return got == MAP_FAILED ? nullptr : static_cast<char*>(got);
}

// False: something is there already. A system that does not know the flag maps elsewhere then.
bool MapIfFree(char* at, size_t bytes, int protection) {
  char* const got = Map(at, bytes, protection, MAP_FIXED_NOREPLACE);
  if (got != nullptr && got != at) munmap(got, bytes);
  return got == at;
}

// Of `count`, one that nobody can foretell: addresses that are the same in every run help an attacker.
uintptr_t AnyOf(uintptr_t count) {
  uintptr_t any = 0;
  if (getrandom(&any, sizeof any, GRND_NONBLOCK) < 0) any = 0;
  return any % count;
}

}  // namespace

// In a window with nothing in it. A step stays mapped at its begin, and keeps others of us out.
std::unique_ptr<HostMemory> HostMemory::Find(Bytes size) {
  if (size > Bytes(kWindow / 2)) return nullptr;
  const uintptr_t places = (kWindow - static_cast<uintptr_t>(size.count())) / kStep - 1;
  for (uintptr_t at = kFirstWindow; at < kWindowsEnd; at += kWindow) {
    char* const window = reinterpret_cast<char*>(at);  // NOLINT(performance-no-int-to-ptr)
    if (!MapIfFree(window, kWindow, PROT_NONE)) continue;
    munmap(window + kStep, kWindow - kStep);
    char* const begin = window + kStep * (1 + AnyOf(places));
    return std::unique_ptr<HostMemory>(
        new HostMemory({window, kWindow}, begin, size / kGranule, /*reserved=*/false));
  }
  return nullptr;
}

// Wherever the system likes. A step more, so that the range can begin at a multiple of it.
std::unique_ptr<HostMemory> HostMemory::ReserveAnywhere(Bytes size) {
  const auto mapped = static_cast<size_t>((size + kAlignment).count());
  char* const mapping = Map(nullptr, mapped, PROT_NONE, 0);
  if (mapping == nullptr) return nullptr;
  char* const begin = mapping + (kStep - reinterpret_cast<uintptr_t>(mapping) % kStep) % kStep;
  return std::unique_ptr<HostMemory>(
      new HostMemory({mapping, mapped}, begin, size / kGranule, /*reserved=*/true));
}

absl::StatusOr<std::unique_ptr<HostMemory>> HostMemory::Reserve(Bytes bytes) {
  const Bytes size = RoundUp(bytes, kGranule);
  std::unique_ptr<HostMemory> memory = Find(size);
  if (memory == nullptr) memory = ReserveAnywhere(size);
  if (memory != nullptr && memory->usable_.ok()) return memory;
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot reserve ", size.count(), " bytes of address space: ", strerror(errno)));
}

HostMemory::~HostMemory() { munmap(around_.begin, around_.bytes); }

// How many of the two granules around these are usable.
int64_t HostMemory::UsableBeside(int64_t first, int64_t count) const {
  const int64_t end = first + count;
  return (first > 0 && usable_.Contains(static_cast<uint64_t>(first - 1)) ? 1 : 0) +
         (end < count_ && usable_.Contains(static_cast<uint64_t>(end)) ? 1 : 0);
}

// Of granules of which none is.
bool HostMemory::MakeUsable(int64_t first, int64_t count) {
  const auto bytes = static_cast<size_t>((kGranule * count).count());
  const int usable = PROT_READ | PROT_WRITE;
  const bool done =
      reserved_ ? Map(At(first), bytes, usable, MAP_FIXED) != nullptr : MapIfFree(At(first), bytes, usable);
  if (!done) return false;
  runs_ += 1 - UsableBeside(first, count);
  for (int64_t g = first; g < first + count; ++g) usable_.Insert(static_cast<uint64_t>(g));
  return true;
}

// Of granules that all are.
bool HostMemory::TakeAway(int64_t first, int64_t count) {
  const auto bytes = static_cast<size_t>((kGranule * count).count());
  const bool done =
      reserved_ ? Map(At(first), bytes, PROT_NONE, MAP_FIXED) != nullptr : munmap(At(first), bytes) == 0;
  if (!done) return false;
  runs_ += UsableBeside(first, count) - 1;
  for (int64_t g = first; g < first + count; ++g) usable_.Erase(static_cast<uint64_t>(g));
  return true;
}

// errno belongs to the job: an allocation that succeeds must not change it.
//
// No MADV_HUGEPAGE: a block of which the job touches little would become memory as a whole, which a job that
// runs without us does not pay for.
//
// Refused, it may leave addresses to granules that are not committed, as Release does; no memory.
bool HostMemory::Commit(int64_t first, int64_t count) {
  const int saved = errno;
  const int64_t end = first + count;
  bool done = true;
  for (int64_t at = first; done && at < end; ++at) {
    if (usable_.Contains(static_cast<uint64_t>(at))) continue;  // it could not be taken away
    const uint64_t next = usable_.AtOrAfter(static_cast<uint64_t>(at));
    const int64_t missing = static_cast<int64_t>(std::min(next, static_cast<uint64_t>(end))) - at;
    done = MakeUsable(at, missing);
    at += missing - 1;
  }
  errno = saved;
  return done;
}

// Where the process may have no more mappings, which a hole makes, its memory goes back without its addresses.
void HostMemory::Release(int64_t first, int64_t count) {
  const int saved = errno;
  const bool divides = UsableBeside(first, count) == 2;
  if ((divides && runs_ >= kMostRuns) || !TakeAway(first, count))
    madvise(At(first), static_cast<size_t>((kGranule * count).count()), MADV_DONTNEED);
  errno = saved;
}

}  // namespace reprise::replay
