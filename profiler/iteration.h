// From a period to an iteration: which blocks one round of the cycle allocates, and how long each lives.
//
// The history remembers the latest tokens; the period says after how many of them the sequence repeats. The
// iteration begins at the cut, the token with the least live bytes before it. Lifetimes are measured in
// tokens and are cyclic: a gradient allocated near the end of one round and freed at the beginning of the
// next has begin + length > period, and still one offset. What one step hands to the next may live for longer
// than a period; of that several instances are alive at once.
//
// Threads: not synchronised; the caller's lock guards a History. Extraction only reads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "profiler/period_finder.h"

namespace reprise::profiler {

// The latest tokens of a device, in a ring. 48 bytes a token; remembers `initial_tokens` at first, more when
// told to (Reserve), never more than `max_tokens` (bound: 96 MiB by default). Older tokens are forgotten.
class History {
 public:
  struct Options {
    int64_t initial_tokens = int64_t{1} << 12;  // a power of two
    int64_t max_tokens = int64_t{1} << 21;      // a power of two >= initial_tokens
  };
  struct Entry {
    Bytes bytes;
    Bytes alignment;
    Stream stream{};
    Bytes live_before;
    Tick freed_at;  // freed after this many tokens had been seen, i.e. just before the token of this tick;
                    // kAlive when it has not been freed
    Stream freed_on{};  // the stream of the free; of the allocation while there is none
  };
  static constexpr Tick kAlive{INT64_MAX};

  History();
  explicit History(Options options);

  // Appends one token and returns its tick (0 for the first). O(1).
  Tick OnAlloc(Bytes bytes, Bytes alignment, Stream stream, Bytes live_before);
  // The block of the token `alloc_tick` has been freed now, on `stream`. Ticks that are forgotten or never
  // were are ignored. O(1).
  void OnFree(Tick alloc_tick, Stream stream = {});
  // Makes room for the latest `tokens` tokens, rounded up to a power of two, within max_tokens. Call it with
  // PeriodFinder::capacity() after each token: nothing happens but one comparison unless the finder has
  // grown.
  void Reserve(int64_t tokens) {
    if (tokens > capacity()) Grow(tokens);
  }

  Tick now() const { return Tick(now_); }  // tokens seen: the tick of the next one
  Tick oldest() const { return Tick(now_ > capacity() ? now_ - capacity() : 0); }
  int64_t capacity() const { return mask_ + 1; }
  // oldest() <= tick < now().
  const Entry& at(Tick tick) const { return ring_[static_cast<size_t>(tick.count() & mask_)]; }

 private:
  void Grow(int64_t tokens);

  std::vector<Entry> ring_;
  int64_t mask_ = 0;
  int64_t max_tokens_ = 0;
  int64_t now_ = 0;
};

// A block of the cycle is freed within so many rounds; what lives longer counts as persistent. Results that
// one step hands to the next, where the next may already be under way when the one after it is prepared, live
// for up to three.
inline constexpr int64_t kMostRounds = 3;

struct Slot {
  Bytes bytes;
  Bytes alignment;
  Stream stream{};
  int64_t begin = 0;        // position in the cycle of its allocation = its index
  int64_t length = 0;       // lifetime in tokens, 1 <= length <= kMostRounds * period: freed just before the
                            // token begin + length, which may lie in a later round; the period when
                            // persistent
  Stream freed_on{};        // the stream of its free, where one was seen; else of its allocation
  bool persistent = false;  // in no instance seen freed within kMostRounds: not part of a plan
};

struct Iteration {
  int64_t period = 0;
  std::vector<Slot> slots;  // one a token of the cycle; slot 0 is the cut
  Tick origin;              // the latest seen instance of slot 0
  // Slots alive in the only instance seen, taken to live for the whole period. Right after the first
  // confirmation blocks that are freed late in the next round (gradients, after the forward pass) are among
  // them; extracting again some tokens later settles them.
  int64_t unsettled = 0;
};

// The cycle that the latest `period.length` tokens of `history` are one round of. For each position the
// longest lifetime known from the instances seen is taken, so that a plan never ends a lifetime too early
// where two instances differ, but one that is longer than a period only where most instances have lived for
// longer; a block that is alive now takes the lifetime of its earlier instances. An empty
// iteration (no slots) when the history holds fewer tokens than one period. O(period) time and memory.
Iteration ExtractIteration(const History& history, const Period& period);

}  // namespace reprise::profiler
