#include "replay/cuda/pool_table.h"

#include <algorithm>
#include <limits>

namespace reprise::replay::cuda {

void PoolTable::Add(cu_pool handle, int device) {
  const std::lock_guard lock(mutex_);
  const bool known =
      std::any_of(pools_.begin(), pools_.end(), [&](const Pool& p) { return p.handle == handle; });
  if (known || pools_.size() >= std::numeric_limits<Owner>::max()) return;
  pools_.push_back({handle, device, static_cast<Owner>(pools_.size() + 1)});
}

// Its number is not given again: blocks may outlive a pool.
std::optional<PoolTable::Pool> PoolTable::Take(cu_pool handle) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(pools_.begin(), pools_.end(), [&](const Pool& p) { return p.handle == handle; });
  if (handle == nullptr || found == pools_.end()) return std::nullopt;
  const Pool taken = *found;
  found->handle = nullptr;
  return taken;
}

void PoolTable::PutBack(const Pool& pool) {
  const std::lock_guard lock(mutex_);
  pools_[pool.owner - 1U].handle = pool.handle;
}

std::optional<PoolTable::Pool> PoolTable::Find(cu_pool handle) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(pools_.begin(), pools_.end(), [&](const Pool& p) { return p.handle == handle; });
  if (handle == nullptr || found == pools_.end()) return std::nullopt;
  return *found;
}

std::optional<PoolTable::Pool> PoolTable::Find(Owner owner) {
  const std::lock_guard lock(mutex_);
  if (owner == kNoPool) return std::nullopt;
  return pools_[owner - 1U];
}

}  // namespace reprise::replay::cuda
