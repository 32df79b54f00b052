// A set of small integers as a 64-ary tree of bits: insert, erase and nearest member in a few instructions.
//
// Level 0 holds one bit per integer; a bit of level k + 1 says that its word of level k is not zero. With 64
// bits a word, four levels span 16 million integers and five span a billion, so a nearest-member query reads
// at most five words up and five down, and one word when the answer is near. (van Emde Boas's idea with a
// fixed fan-out.)
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "replay/sparse_array.h"

namespace reprise::replay {

class BitTree {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  // An empty set over [0, universe), universe > 0.
  explicit BitTree(uint64_t universe) : universe_(universe) {
    uint64_t bits = universe;
    do {
      bits = (bits + 63) / 64;
      memory_.emplace_back(bits);
      levels_[depth_++] = memory_.back().data();
    } while (bits > 1);
  }

  bool ok() const {
    return std::all_of(memory_.begin(), memory_.end(), [](const auto& level) { return level.ok(); });
  }

  bool Contains(uint64_t i) const { return (levels_[0][i / 64] >> (i % 64)) & 1; }

  // True when [first, last), first < last, has a member: one mask where both ends lie in one word.
  bool AnyIn(uint64_t first, uint64_t last) const {
    if (first / 64 != (last - 1) / 64) return AtOrAfter(first) < last;
    const uint64_t mask = (~uint64_t{0} << (first % 64)) & (~uint64_t{0} >> (63 - (last - 1) % 64));
    return (levels_[0][first / 64] & mask) != 0;
  }

  void Insert(uint64_t i) {
    for (size_t k = 0; k < depth_; ++k) {
      uint64_t& word = levels_[k][i / 64];
      const bool was_empty = word == 0;
      word |= uint64_t{1} << (i % 64);
      if (!was_empty) return;
      i /= 64;
    }
  }

  // All of [0, universe).
  void InsertAll() {
    for (size_t k = 0; k < depth_; ++k) {
      const uint64_t bits = LevelBits(k);
      std::fill_n(levels_[k], bits / 64, ~uint64_t{0});
      if (bits % 64 != 0) levels_[k][bits / 64] = ~uint64_t{0} >> (64 - bits % 64);
    }
  }

  void Erase(uint64_t i) {
    for (size_t k = 0; k < depth_; ++k) {
      uint64_t& word = levels_[k][i / 64];
      word &= ~(uint64_t{1} << (i % 64));
      if (word != 0) return;
      i /= 64;
    }
  }

  // The largest member <= i, or kNone.
  uint64_t AtOrBefore(uint64_t i) const {
    for (size_t k = 0; k < depth_; ++k) {
      const uint64_t below = levels_[k][i / 64] & (~uint64_t{0} >> (63 - i % 64));
      if (below != 0) return Descend(k, i / 64 * 64 + 63 - std::countl_zero(below), /*last=*/true);
      if (i / 64 == 0) return kNone;
      i = i / 64 - 1;
    }
    return kNone;
  }

  // The smallest member >= i, or kNone.
  uint64_t AtOrAfter(uint64_t i) const {
    if (i >= universe_) return kNone;
    for (size_t k = 0; k < depth_; ++k) {
      const uint64_t above = levels_[k][i / 64] & (~uint64_t{0} << (i % 64));
      if (above != 0) return Descend(k, i / 64 * 64 + std::countr_zero(above), /*last=*/false);
      i = i / 64 + 1;
      if (k + 1 == depth_ || i >= LevelBits(k + 1)) return kNone;
    }
    return kNone;
  }

 private:
  // Bits in use at level k.
  uint64_t LevelBits(size_t k) const {
    uint64_t bits = universe_;
    for (size_t j = 0; j < k; ++j) bits = (bits + 63) / 64;
    return bits;
  }

  uint64_t Descend(size_t k, uint64_t i, bool last) const {
    while (k-- > 0) {
      const uint64_t word = levels_[k][i];
      i = i * 64 + (last ? 63 - std::countl_zero(word) : std::countr_zero(word));
    }
    return i;
  }

  uint64_t universe_;
  static constexpr size_t kMaxDepth = 11;  // 64^11 > 2^64
  size_t depth_ = 0;
  std::array<uint64_t*, kMaxDepth> levels_{};
  std::vector<SparseArray<uint64_t>> memory_;  // what levels_ points into
};

}  // namespace reprise::replay
