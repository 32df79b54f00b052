// Host memory for an arena: anonymous private pages, mapped while they are committed.
//
// What is not committed is not mapped either: a job may limit its address space at any time, or have all of it
// locked, and what is reserved would count. The range is kept free by where it lies, far from all that is mapped
// without an address asked for. Only where a process has no such place is the range reserved.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "replay/bit_tree.h"
#include "replay/memory_source.h"

namespace reprise::replay {

class HostMemory : public MemorySource {
 public:
  // Small, as free parts of granules are what an arena wastes, and no driver asks for more here. Not smaller, as each that
  // moves has to be faulted in anew.
  static constexpr Bytes kGranule{256 * 1024};
  // Of the range's begin. A huge page, so that blocks may be aligned to one.
  static constexpr Bytes kAlignment{2 * kMiB.count()};
  // The most mappings to divide the range into, about: a process may have 65,530 of them unless its machine allows more, and it
  // could start no thread without one.
  static constexpr int64_t kMostRuns = 16384;

  // A range of `bytes`, rounded up to a granule. Fails where the address space is limited or the system refuses.
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
  struct Mapping {
    char* begin = nullptr;
    size_t bytes = 0;
  };
  HostMemory(const Mapping& around, char* begin, int64_t count, bool reserved)
      : around_(around),
        begin_(begin),
        count_(count),
        reserved_(reserved),
        usable_(static_cast<uint64_t>(count)) {}
  static std::unique_ptr<HostMemory> Find(Bytes size);
  static std::unique_ptr<HostMemory> ReserveAnywhere(Bytes size);
  char* At(int64_t granule) const { return begin_ + granule * kGranule.count(); }
  int64_t UsableBeside(int64_t first, int64_t count) const;
  bool MakeUsable(int64_t first, int64_t count);
  bool TakeAway(int64_t first, int64_t count);

  const Mapping around_;  // all that is ours, the range in it
  char* const begin_;
  const int64_t count_;
  const bool reserved_;  // mapped where it is not committed, too
  BitTree usable_;       // granules that are committed, or could not be taken away
  int64_t runs_ = 0;     // of them
};

}  // namespace reprise::replay
