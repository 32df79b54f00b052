// Free ranges of an address space: first fit, coalescing. Serves device addresses and physical memory alike.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace sim {

class Ranges {
 public:
  Ranges(uint64_t begin, uint64_t end) { free_[begin] = end; }

  std::optional<uint64_t> Take(uint64_t size, uint64_t alignment);
  bool TakeAt(uint64_t at, uint64_t size);
  void Give(uint64_t at, uint64_t size);

 private:
  void Cut(std::map<uint64_t, uint64_t>::iterator range, uint64_t at, uint64_t size);

  std::map<uint64_t, uint64_t> free_;  // begin -> end
};

}  // namespace sim
