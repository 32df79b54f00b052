// The threads of a job that allocate at once, each with a sequence of its own, and whether it is these that repeat.
//
// A thread alone needs none: there are none before a second one is seen. The engine's lock is held around every call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.h"
#include "profiler/period_finder.h"
#include "replay/sequence.h"

namespace reprise::replay {

class JobThreads {
 public:
  // One of them, and what it alone has live.
  struct Thread {
    uint64_t number = 0;
    std::unique_ptr<Sequence> sequence;
    Bytes live;
    int64_t heard_at = 0;  // the request with which others gave way to it last
    int64_t recent = 0;    // of the device's latest tokens, those that were its own

    // It must have followed its own iteration for so many rounds before the device's is given up.
    static constexpr int64_t kRoundsToSplit = 4;
    bool Repeats() const {
      const std::optional<profiler::Period>& own = sequence->period();
      return own.has_value() && sequence->in_period() &&
             sequence->now() >= own->found_at + kRoundsToSplit * own->length;
    }
  };

  // What their sequences go by.
  JobThreads(profiler::PeriodFinder::Options period, Sequence::Rules rules);

  // Where the thread with that number of the job's is here: 0 while there is one alone. `request` is this one's number, and
  // `tokens` how many the device has seen. Threads beyond a limit share a place, unless one has not been heard of for long.
  // Throws std::bad_alloc, and may be asked again then.
  uint16_t PlaceOf(uint64_t number, int64_t request, Tick tokens) {
    if (threads_.empty() && first_ == number) return 0;
    return Find(number, request, tokens);
  }

  bool several() const { return !threads_.empty(); }
  size_t size() const { return threads_.size(); }
  Thread& operator[](uint16_t place) { return threads_[place]; }
  auto begin() { return threads_.begin(); }
  auto end() { return threads_.end(); }
  auto begin() const { return threads_.begin(); }
  auto end() const { return threads_.end(); }

  // The device's latest token is one of this thread's.
  void CountToken(Thread& thread);
  // Whether those that repeat make up half of what the device does.
  bool MostRepeats() const;

 private:
  // The latest tokens are so many at most, and half as many at least: older ones count for half, and half again.
  static constexpr int64_t kRecentTokens = 1 << 16;

  uint16_t Find(uint64_t number, int64_t request, Tick tokens);
  uint16_t TakeOver(uint64_t number, int64_t request);
  void Add(uint64_t number);

  profiler::PeriodFinder::Options period_;
  Sequence::Rules rules_;
  std::vector<Thread> threads_;    // from the second one on
  std::optional<uint64_t> first_;  // the only one until then
  uint16_t latest_ = 0;            // the one looked up last
  int64_t recent_tokens_ = 0;      // of all of them
};

}  // namespace reprise::replay
