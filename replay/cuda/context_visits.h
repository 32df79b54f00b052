// Contexts that are waited in, and contexts that are ending: none ends before its visits are over.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "replay/cuda/driver.h"

namespace reprise::replay::cuda {

// Thread-safe.
class ContextVisits {
 private:
  struct EndOfVisit {
    ContextVisits* visits = nullptr;
    void operator()(cu_context context) const { visits->EndVisit(context); }
  };
  struct EndOfEnding {
    ContextVisits* visits = nullptr;
    void operator()(cu_context context) const { visits->EndEnding(context); }
  };

 public:
  // A wait in a context that is not the call's own, so that another thread may end it. One begins under the lock under
  // which who ends the context makes that known: that of a primary context, of the device, of the peers.
  using Visit = std::unique_ptr<std::remove_pointer_t<cu_context>, EndOfVisit>;
  Visit Begin(cu_context context);
  Visit TryBegin(cu_context context);  // none where another thread is ending it
  void Await(cu_context context);      // until its visits are over

  // From before a context ends, or may, until what that means is written down: another thread may have been given its
  // handle by then, and nobody can tell whose that is. One at a time for a handle. A primary context's lock is taken
  // before. Of null there is none.
  using Ending = std::unique_ptr<std::remove_pointer_t<cu_context>, EndOfEnding>;
  Ending BeginEnding(cu_context context);
  void AwaitEnding(cu_context context);

 private:
  void EndVisit(cu_context context);
  void EndEnding(cu_context context);
  bool EndsElsewhere(cu_context context) const;  // with the lock

  std::mutex mutex_;
  std::condition_variable visit_over_;
  std::vector<cu_context> visited_;  // once for each visit
  std::condition_variable ending_over_;
  std::vector<std::pair<cu_context, uint64_t>> ending_;  // and the thread in whose call
};

}  // namespace reprise::replay::cuda
