// Where a CUDA device's arena has its memory from.
//
// VirtualMemory reserves a range of addresses and backs it granule by granule: physical memory is created,
// mapped, given access, and, when it is free, moved to other addresses. SlabMemory is for devices that cannot
// do that: one piece of cuMemAlloc, as large as the plan there is when the first block is to lie in it.
//
// When oversubscribed, a granule that the device has no memory for may lie in the host's instead, at the same
// addresses and for the device to use as any other. That is slow, so it has to be allowed each time.
//
// Not thread-safe: the engine's lock is held around every call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/hash_map.h"
#include "replay/cuda/driver.h"
#include "replay/memory_source.h"
#include "replay/ranges.h"

namespace reprise::replay::cuda {

inline constexpr Bytes kGranule{2 * kMiB.count()};

class DeviceMemory : public MemorySource {
 public:
  // The best that the device can do. `driver` outlives it.
  static absl::StatusOr<std::unique_ptr<DeviceMemory>> Create(const Driver& driver, int device,
                                                              bool oversubscribe);

  // The address of offset 0; 0 while there is none. Any thread.
  cu_address begin() const { return begin_.load(std::memory_order_acquire); }
  // Where `address` lies in the reserved range; negative: elsewhere. Any thread.
  int64_t OffsetOf(cu_address address) const {
    const cu_address begin = this->begin();
    const uint64_t offset = address - begin;
    return begin != 0 && offset < size_.load(std::memory_order_relaxed) ? static_cast<int64_t>(offset) : -1;
  }
  // How often the driver has refused memory, how often of these because it had none left, and what it said last.
  int64_t refusals() const { return refusals_; }
  int64_t shortages() const { return shortages_; }
  const std::string& refusal() const { return refusal_; }
  // Granules, when oversubscribed.
  struct Oversubscription {
    int64_t in_host = 0;         // now
    int64_t in_host_peak = 0;    // at most
    int64_t on_device_full = 0;  // the most on the device when it had no more
  };
  const Oversubscription& oversubscription() const { return oversubscription_; }
  // Whether Commit may take the host's memory where the device has no more. False at first.
  virtual void AllowHost(bool allowed) {}
  // A context has been destroyed, with everything that belonged to it.
  virtual void OnContextGone(cu_context context) {}
  // Whether it would be gone with that context.
  virtual bool LiesIn(cu_context context) const { return false; }
  // Whether a context's blocks may lie in it, those in stream order or the others. Memory that has an owner goes with that.
  virtual bool Serves(cu_context context, bool in_stream_order) const { return true; }
  // Whether that was all of the memory: what the arena has taken it still has for committed.
  virtual bool lost() const { return false; }
  // Lets another device reach all of it, now and later; flags as in CUmemAccess_flags. Nothing is taken away. Where the
  // driver refuses that of a part, it can be asked for again.
  virtual Result SetAccess(int device, int flags) = 0;

 protected:
  void SetRange(cu_address begin, uint64_t size) {
    size_.store(size, std::memory_order_relaxed);
    begin_.store(begin, std::memory_order_release);
  }
  bool Refuse(const char* function, Result result);
  void ForgetRefusal() { refusal_.clear(); }

  Oversubscription oversubscription_;

 private:
  std::atomic<cu_address> begin_{0};
  std::atomic<uint64_t> size_{0};
  int64_t refusals_ = 0;
  int64_t shortages_ = 0;
  std::string refusal_;
};

class VirtualMemory : public DeviceMemory {
 public:
  static absl::StatusOr<std::unique_ptr<VirtualMemory>> Reserve(const Driver& driver, int device,
                                                                bool oversubscribe);

  Bytes granule() const override { return granule_; }
  int64_t granule_count() const override { return static_cast<int64_t>(handles_.size()); }
  bool Commit(int64_t first, int64_t count) override;
  void Release(int64_t first, int64_t count) override;
  void Trim() override;
  Result SetAccess(int device, int flags) override;
  void AllowHost(bool allowed) override { host_allowed_ = allowed; }

 private:
  VirtualMemory(const Driver& driver, const AllocationProp& prop, Bytes granule, cu_address begin,
                int64_t count);
  uint64_t FreeBytes() const;
  bool MayHave(int64_t granules);
  bool TryCommit(int64_t first, int64_t count);
  bool ResortToPlain();
  bool Make(Handle* handle);
  bool MakeInHost(Handle* handle);
  bool Back(int64_t granule);
  cu_address At(int64_t granule) const {
    return begin() + static_cast<uint64_t>((granule_ * granule).count());
  }
  size_t SizeOf(int64_t count) const { return static_cast<size_t>((granule_ * count).count()); }

  const Driver& driver_;
  AllocationProp prop_;
  const Bytes granule_;
  std::vector<Handle> handles_;    // by granule; 0: nothing is mapped there
  std::vector<Handle> spare_;      // unmapped and kept for the next Commit
  std::vector<cu_access> access_;  // who may use it: this device first, then its peers
  HashSet<Handle> in_host_;        // of the handles, spare ones too
  int64_t on_device_ = 0;          // how many of them are the device's
  bool host_allowed_ = false;
};

class SlabMemory : public DeviceMemory {
 public:
  SlabMemory(const Driver& driver, int device, Bytes total);

  Bytes granule() const override { return kGranule; }
  int64_t granule_count() const override { return total_ / kGranule; }
  bool Commit(int64_t first, int64_t count) override;
  void Release(int64_t first, int64_t count) override {}
  bool moves() const override { return false; }
  // Of a plan it is not known whether anything will be placed by it: it may be there before anything is asked for, or be of
  // what is the driver's alone. So the driver is asked for memory only when a block needs it.
  void Plan(Bytes end) override { planned_ = RoundUp(end, kGranule) / kGranule; }
  void OnContextGone(cu_context context) override;
  // A pool may be opened to a peer at any time, and a slab cannot be: what it has is within reach of contexts that enable that
  // by themselves. Where there may be peers, only blocks that they reach so as well lie in it.
  bool Serves(cu_context context, bool in_stream_order) const override {
    if (lost_ || (in_stream_order && may_have_peers_)) return false;
    return context == (taken_ == 0 ? driver_.Current() : context_);
  }
  Result SetAccess(int device, int flags) override { return kSuccess; }
  bool LiesIn(cu_context context) const override { return taken_ > 0 && !lost_ && context == context_; }
  bool lost() const override { return lost_; }

 private:
  void Take();

  const Driver& driver_;
  const int device_;
  const Bytes total_;
  bool may_have_peers_ = false;
  int64_t planned_ = 0;           // granules that the next slab would have
  int64_t taken_ = 0;             // those of the slab
  bool lost_ = false;             // with its context
  cu_context context_ = nullptr;  // whose the slab is
};

}  // namespace reprise::replay::cuda
