// Which memory pools of the driver a block of ours may stand for.
//
// A pool whose blocks lie on a device, without a limit, and are never exported is plain: nobody can tell its
// blocks from ours. (What a limit leaves depends on what the driver's pool can use again, and when.)
// The default pools are; of the others those whose creation was seen.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "replay/cuda/device.h"
#include "replay/cuda/driver.h"

namespace reprise::replay::cuda {

// Thread-safe.
class PoolTable {
 public:
  struct Pool {
    cu_pool handle = nullptr;  // null: destroyed
    int device = 0;
    Owner owner = kNoPool;  // its number
  };

  // A plain pool is known from now on.
  void Add(cu_pool handle, int device);
  // No longer; what it was.
  std::optional<Pool> Take(cu_pool handle);
  // It is known again under its number: it has not been destroyed after all.
  void PutBack(const Pool& pool);
  std::optional<Pool> Find(cu_pool handle);
  std::optional<Pool> Find(Owner owner);

 private:
  std::mutex mutex_;
  std::vector<Pool> pools_;  // by owner - 1
};

}  // namespace reprise::replay::cuda
