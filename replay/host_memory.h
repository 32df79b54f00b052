// Host memory for an arena: anonymous private pages, inaccessible until committed.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "replay/memory_source.h"

namespace reprise::replay {

class HostMemory : public MemorySource {
 public:
  static constexpr Bytes kGranule{2 * kMiB.count()};  // a huge page, where the system gives them unasked

  // Reserves `bytes` of addresses, rounded up to a granule. Fails where the address space is limited or the
  // system refuses.
  static absl::StatusOr<std::unique_ptr<HostMemory>> Reserve(Bytes bytes);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(begin_); }
  uintptr_t end() const { return begin() + static_cast<uintptr_t>((kGranule * count_).count()); }

  Bytes granule() const override { return kGranule; }
  int64_t granule_count() const override { return count_; }
  bool Commit(int64_t first, int64_t count) override;
  void Release(int64_t first, int64_t count) override;

 private:
  HostMemory(void* mapping, size_t mapped, char* begin, int64_t count)
      : mapping_(mapping), mapped_(mapped), begin_(begin), count_(count) {}
  void* At(int64_t granule) const { return begin_ + granule * kGranule.count(); }

  void* mapping_;
  size_t mapped_;
  char* begin_;
  int64_t count_;
};

}  // namespace reprise::replay
