#include "replay/host_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::replay {

absl::StatusOr<std::unique_ptr<HostMemory>> HostMemory::Reserve(Bytes bytes) {
  const Bytes size = RoundUp(bytes, kGranule);
  // One granule more, so that the first can begin at a multiple of its size.
  const auto mapped = static_cast<size_t>((size + kGranule).count());
  void* mapping = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot reserve ", mapped, " bytes of address space: ", strerror(errno)));
  }
  // Once a part of it has been used, a core dump would be as large as all of it.
  madvise(mapping, mapped, MADV_DONTDUMP);
  const auto step = static_cast<uintptr_t>(kGranule.count());
  char* const begin =
      static_cast<char*>(mapping) + (step - reinterpret_cast<uintptr_t>(mapping) % step) % step;
  // No MADV_HUGEPAGE: a block of which the job touches little would become memory as a whole, which a job that
  // runs without us does not pay for.
  return std::unique_ptr<HostMemory>(new HostMemory(mapping, mapped, begin, size / kGranule));
}

HostMemory::~HostMemory() { munmap(mapping_, mapped_); }

// errno belongs to the job: an allocation that succeeds must not change it.
bool HostMemory::Commit(int64_t first, int64_t count) {
  const int saved = errno;
  const auto bytes = static_cast<size_t>((kGranule * count).count());
  const bool done = mprotect(At(first), bytes, PROT_READ | PROT_WRITE) == 0;
  if (done) madvise(At(first), bytes, MADV_DODUMP);
  errno = saved;
  return done;
}

void HostMemory::Release(int64_t first, int64_t count) {
  const int saved = errno;
  const auto bytes = static_cast<size_t>((kGranule * count).count());
  madvise(At(first), bytes, MADV_DONTNEED);
  madvise(At(first), bytes, MADV_DONTDUMP);
  mprotect(At(first), bytes, PROT_NONE);
  errno = saved;
}

}  // namespace reprise::replay
