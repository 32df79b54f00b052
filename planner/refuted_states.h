// States of the exact search that are known to have no solution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace reprise::planner {

// A set of 128-bit keys, bounded: when it is full, a new key drives out an old one, so that a state may be
// forgotten, which costs time, but is never made up. Two states that get one key would make the search call a
// solvable state refuted. With k keys stored and q questions asked the odds are k * q / 2^127 (one bit marks
// the entry as used): below 1e-24 for 10^6 keys and 10^8 questions.
class RefutedStates {
 public:
  struct Key {
    uint64_t low = 0;
    uint64_t high = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  RefutedStates() : entries_(kFewest) {}

  bool Has(Key key) const {
    key.low |= 1;
    const size_t at = Index(key);
    return entries_[at] == key || entries_[at ^ 1] == key;
  }

  void Add(Key key) {
    key.low |= 1;
    if (++added_ > entries_.size() / 2 && entries_.size() < kMost) Grow();
    Put(key);
  }

  void Clear() {
    entries_.assign(kFewest, {});
    added_ = 0;
  }

 private:
  static constexpr size_t kFewest = size_t{1} << 12;
  static constexpr size_t kMost = size_t{1} << 20;  // 16 MiB

  size_t Index(Key key) const { return key.high & (entries_.size() - 1); }

  // Pairs of entries; the newer key is the first of its pair, the older one is driven out.
  void Put(Key key) {
    const size_t at = Index(key);
    if (entries_[at] == key) return;
    entries_[at ^ 1] = std::exchange(entries_[at], key);
  }

  void Grow() {
    std::vector<Key> old(entries_.size() * 4);
    old.swap(entries_);
    for (const Key& key : old) {
      if (key.low != 0) Put(key);
    }
  }

  std::vector<Key> entries_;
  size_t added_ = 0;
};

}  // namespace reprise::planner
