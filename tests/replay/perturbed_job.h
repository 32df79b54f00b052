// A recorded sequence of allocations, replayed for ever with faults: what jobs do that a plan does not
// expect.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profiler/types.h"

namespace reprise::replay {

class PerturbedJob {
 public:
  using Key = uint64_t;  // names a block of this job, never reused

  // What the job does next: allocate `bytes` under `key`, or free `key`.
  struct Action {
    bool alloc = false;
    Key key = 0;
    Bytes bytes;
    Stream stream{};
  };

  // `base` is a consistent sequence; it is replayed round and round, what is live at its end carried on until
  // the next round frees it.
  PerturbedJob(std::vector<profiler::Event> base, uint64_t seed) : base_(std::move(base)), random_(seed) {}

  // The probability with which each event is disturbed, from now on.
  void SetRate(double rate) { rate_ = rate; }

  Action Next() {
    while (ready_.empty()) Advance();
    const Action action = ready_.front();
    ready_.pop_front();
    return action;
  }

 private:
  bool Chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  int64_t Between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  void Alloc(BlockId id, Bytes bytes, Stream stream) {
    const Key key = next_key_++;
    ready_.push_back({.alloc = true, .key = key, .bytes = bytes, .stream = stream});
    if (Chance(rate_ / 4)) {
      due_.emplace(step_ + Between(1, 300), key);  // freed by the clock: early, or late, of its own free
    } else if (!Chance(rate_ / 400)) {             // otherwise never freed
      key_of_[id] = key;
    }
  }

  void Free(Key key) { ready_.push_back({.alloc = false, .key = key, .bytes = {}, .stream = {}}); }

  void Advance() {
    ++step_;
    while (!due_.empty() && due_.begin()->first <= step_) {
      Free(due_.begin()->second);
      due_.erase(due_.begin());
    }
    if (at_ == base_.size()) Rewind();
    const profiler::Event event = base_[at_++];
    if (Chance(rate_) && at_ < base_.size() && base_[at_].id != event.id) {
      Apply(base_[at_++]);  // swapped with its successor
    }
    Apply(event);
  }

  void Apply(const profiler::Event& event) {
    if (event.kind == profiler::EventKind::kAlloc) {
      if (Chance(rate_)) return;  // dropped
      if (Chance(rate_)) due_.emplace(step_ + Between(0, 2000), Extra());
      int64_t bytes = event.bytes.count();
      if (Chance(rate_)) bytes = Between(0, 2 * bytes + 1);
      Alloc(event.id, Bytes(bytes), event.stream);
    } else if (event.kind == profiler::EventKind::kFree) {
      const auto it = key_of_.find(event.id);
      if (it == key_of_.end()) return;
      if (Chance(rate_)) {
        due_.emplace(step_ + Between(1, 3000), it->second);  // late
      } else {
        Free(it->second);
      }
      key_of_.erase(it);
    }
  }

  Key Extra() {
    const Key key = next_key_++;
    ready_.push_back({.alloc = true, .key = key, .bytes = Bytes(Between(0, 3 << 20)), .stream = Stream{0}});
    return key;
  }

  // The end of the recording: what it left live is freed, and it begins again.
  void Rewind() {
    at_ = 0;
    for (const auto& [id, key] : key_of_) Free(key);
    key_of_.clear();
  }

  const std::vector<profiler::Event> base_;
  std::mt19937_64 random_;
  double rate_ = 0;
  size_t at_ = 0;
  int64_t step_ = 0;
  Key next_key_ = 0;
  absl::flat_hash_map<BlockId, Key> key_of_;
  std::multimap<int64_t, Key> due_;
  std::deque<Action> ready_;
};

}  // namespace reprise::replay
