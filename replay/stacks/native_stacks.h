// The native call stack of a thread: addresses, told by module and offset, never by name. Names are found
// later, from the modules' files, by whoever reads the trace.
//
// libunwind walks the stack (unwinder.h); a frame that it knows costs a look-up.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "replay/stacks/stack_source.h"
#include "replay/stacks/unwinder.h"

namespace reprise::replay {

class NativeStacks : public StackTaker {
 public:
  // Null, and the log says why, where libunwind is not to be had.
  static std::unique_ptr<NativeStacks> Begin(StackSource& source);

  profiler::StackId Take() override;

 private:
  struct KnownStack {
    std::vector<void*> addresses;
    profiler::StackId id;
  };

  NativeStacks(StackSource& source, Unwind unwind) : source_(source), unwind_(unwind) {}
  profiler::StackId Known(std::span<void* const> addresses, uint64_t hash);
  profiler::StackId Learn(std::span<void* const> addresses, uint64_t hash);

  StackSource& source_;
  const Unwind unwind_;

  std::mutex mutex_;                                   // held for a look-up
  unsigned long long unloaded_ = 0;                    // libraries, when what is known here was learnt
  HashMap<uint64_t, std::vector<KnownStack>> stacks_;  // by hash of the addresses
  size_t known_ = 0;                                   // how many are in it
  HashSet<std::string> modules_;                       // told of to the table
};

}  // namespace reprise::replay
