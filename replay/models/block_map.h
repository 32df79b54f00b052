// The blocks of a model's segments, in order of address, and the ordered sets of those that are free.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/units.h"

namespace reprise::replay {

struct Block {
  Offset address;
  Bytes size;
  Stream stream{};
  int64_t segment = 0;  // blocks of one segment lie without gaps
  bool small = false;   // which of a caching allocator's two pools it belongs to
  bool allocated = false;
  bool mapped = true;  // has memory behind it; only expandable segments have blocks without
};

// All blocks. References stay valid until the block is merged into another or its segment removed.
class BlockMap {
 public:
  Block& Add(const Block& block) { return blocks_[block.address] = block; }
  Block* At(Offset address) {
    const auto it = blocks_.find(address);
    return it == blocks_.end() ? nullptr : &it->second;
  }
  // That with the highest address, or nullptr.
  Block* Last() { return blocks_.empty() ? nullptr : &blocks_.rbegin()->second; }
  // The neighbour in the same segment, or nullptr.
  Block* Before(const Block& block) {
    const auto it = blocks_.find(block.address);
    return it == blocks_.begin() ? nullptr : Neighbour(block, std::prev(it));
  }
  Block* After(const Block& block) { return Neighbour(block, std::next(blocks_.find(block.address))); }
  bool IsWholeSegment(const Block& block) { return Before(block) == nullptr && After(block) == nullptr; }

  // Cuts `block` to its first `size` bytes; the rest becomes a block like it, which is returned.
  Block& Split(Block& block, Bytes size) {
    Block rest = block;
    rest.address = block.address + size;
    rest.size = block.size - size;
    block.size = size;
    return Add(rest);
  }
  // `block` takes in the one after it, which is gone then.
  void MergeAfter(Block& block) {
    const auto next = std::next(blocks_.find(block.address));
    block.size += next->second.size;
    blocks_.erase(next);
  }
  void Remove(const Block& block) { blocks_.erase(block.address); }

 private:
  using Blocks = std::map<Offset, Block>;

  Block* Neighbour(const Block& block, Blocks::iterator it) {
    return it == blocks_.end() || it->second.segment != block.segment ? nullptr : &it->second;
  }

  Blocks blocks_;
};

// Smallest first within a stream, then lowest address: the first that is large enough is the best fit.
struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return std::tuple(a->stream, a->size, a->address) < std::tuple(b->stream, b->size, b->address);
  }
};
struct ByAddress {
  bool operator()(const Block* a, const Block* b) const {
    return std::pair(a->stream, a->address) < std::pair(b->stream, b->address);
  }
};
using FreeBySize = std::set<Block*, BySize>;
using FreeByAddress = std::set<Block*, ByAddress>;

// The best fit for `size` bytes among the free blocks of `stream`, or the end.
inline FreeBySize::iterator BestFit(FreeBySize& free, Bytes size, Stream stream) {
  Block key{.address = Offset(0), .size = size, .stream = stream};
  const auto it = free.lower_bound(&key);
  return it == free.end() || (*it)->stream != stream ? free.end() : it;
}

}  // namespace reprise::replay
