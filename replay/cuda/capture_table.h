// The captures that are going on, by the stream that each began in.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "replay/cuda/driver.h"
#include "replay/cuda/streams.h"

namespace reprise::replay::cuda {

// Thread-safe.
class CaptureTable {
 public:
  // Where a capture began. A later one of the same origin has another number.
  struct Capture {
    StreamKey origin;
    cu_context context = nullptr;
    uint64_t number = 0;
  };

  // False: it is known already, and counted; or another was that ended with a stream or context of the same handle,
  // whose end is about to be written down and will not be this one's.
  bool Add(Capture capture);
  // True: there was one.
  bool Take(const StreamKey& origin);
  // A capture ends with its stream, or the stream's context. Which those are is known before the end alone.
  std::vector<uint64_t> InStream(const StreamKey& origin);
  std::vector<uint64_t> InContext(cu_context context);
  // How many of these were still there.
  int Drop(const std::vector<uint64_t>& numbers);

 private:
  template <typename IsIt>
  std::vector<uint64_t> Those(IsIt is_it);

  std::mutex mutex_;
  std::vector<Capture> captures_;
  uint64_t last_ = 0;
};

}  // namespace reprise::replay::cuda
