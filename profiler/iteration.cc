#include "profiler/iteration.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace reprise::profiler {
namespace {

// How many earlier instances of a slot are asked for its lifetime. One is needed (gradients of the latest
// round are alive when the plan is made), kMostRounds for what lives that long; and they catch lifetimes that
// differ from round to round.
constexpr int kEarlierInstances = kMostRounds;
// Tokens in a row that must be equal for two rounds to be the same there: equal sizes alone are met by
// chance.
constexpr int64_t kSameRun = 8;
// Noise between two rounds: this many tokens more or fewer at one place are skipped, and an equal run of
// kRejoinRun ends the skip.
constexpr int64_t kMaxSkip = 16;
constexpr int64_t kRejoinRun = 4;

// Pairs the latest round, token by token, with the one `lag` tokens before it, going back from the present.
class Pairing {
 public:
  Pairing(const History& history, int64_t period, int64_t lag)
      : history_(history),
        begin_(history.now().count() - period),
        partners_(static_cast<size_t>(period), kNone) {
    int64_t tick = history.now().count() - 1;
    int64_t past = tick - lag;
    do {
      const int64_t run = EqualRun(tick, past, period);
      if (run >= kSameRun) {
        for (int64_t i = 0; i < run; ++i) partners_[static_cast<size_t>(tick - i - begin_)] = past - i;
      }
      tick -= run;
      past -= run;
    } while (Rejoin(tick, past));
  }

  static constexpr int64_t kNone = -1;
  // The tick that is to the earlier round what `tick` is to the latest, or kNone.
  int64_t Of(int64_t tick) const { return partners_[static_cast<size_t>(tick - begin_)]; }

 private:
  // How many tokens are equal going back from `tick` and `past`, at most `limit`.
  int64_t EqualRun(int64_t tick, int64_t past, int64_t limit) const {
    int64_t run = 0;
    while (run < limit && tick - run >= begin_ && past - run >= history_.oldest().count()) {
      const History::Entry& a = history_.at(Tick(tick - run));
      const History::Entry& b = history_.at(Tick(past - run));
      if (a.bytes != b.bytes || a.stream != b.stream) break;
      ++run;
    }
    return run;
  }

  // Skips the fewest tokens on either side after which they are equal again; false when they differ for good.
  bool Rejoin(int64_t& tick, int64_t& past) const {
    for (int64_t skipped = 1; skipped <= kMaxSkip; ++skipped) {
      for (int64_t here = 0; here <= skipped; ++here) {
        if (EqualRun(tick - here, past - (skipped - here), kRejoinRun) < kRejoinRun) continue;
        tick -= here;
        past -= skipped - here;
        return true;
      }
    }
    return false;
  }

  const History& history_;
  int64_t begin_;
  std::vector<int64_t> partners_;
};

// The token of the latest `period` ones with the least live bytes before it; the earliest of equals.
int64_t Cut(const History& history, int64_t period) {
  const int64_t now = history.now().count();
  int64_t cut = now - period;
  for (int64_t tick = cut + 1; tick < now; ++tick) {
    if (history.at(Tick(tick)).live_before < history.at(Tick(cut)).live_before) cut = tick;
  }
  return cut;
}

// What some instances of a slot have shown of its lifetime, in tokens.
class Lifetimes {
 public:
  Lifetimes(const History& history, int64_t period) : history_(history), period_(period) {}

  void Add(int64_t tick) {
    const Tick freed_at = history_.at(Tick(tick)).freed_at;
    if (freed_at == History::kAlive) return;
    const int64_t length = std::max<int64_t>(freed_at - Tick(tick), 1);
    if (length > kMostRounds * period_) return;
    Seen& seen = length <= period_ ? within_ : beyond_;
    seen.longest = std::max(seen.longest, length);
    ++seen.instances;
  }
  // 0 when there is none.
  int64_t WithinPeriod() const { return within_.longest; }
  int64_t Longest() const {
    return beyond_.instances > within_.instances ? beyond_.longest : within_.longest;
  }

 private:
  struct Seen {
    int64_t longest = 0;
    int instances = 0;
  };

  const History& history_;
  const int64_t period_;
  Seen within_;  // the period
  Seen beyond_;
};

// The stream of the latest free of this slot that was seen; of its allocation where none was.
Stream FreedOn(const History& history, int64_t tick, const std::vector<Pairing>& earlier) {
  const History::Entry& latest = history.at(Tick(tick));
  if (latest.freed_at != History::kAlive) return latest.freed_on;
  for (const Pairing& pairing : earlier) {
    const int64_t past = pairing.Of(tick);
    if (past != Pairing::kNone && history.at(Tick(past)).freed_at != History::kAlive)
      return history.at(Tick(past)).freed_on;
  }
  return latest.stream;
}

// Fills in the lifetime of the slot whose latest instance is `tick`. False when nothing is known of it yet.
bool SetLifetime(const History& history, int64_t tick, int64_t period, const std::vector<Pairing>& earlier,
                 Slot& slot) {
  const bool alive = history.at(Tick(tick)).freed_at == History::kAlive;
  // Instances at another distance than whole periods had other tokens between, perhaps in their lifetime (the
  // first iteration has those of the optimizer's state): they are believed only when there are no others.
  Lifetimes straight(history, period), doubtful(history, period);
  straight.Add(tick);
  bool seen = straight.Longest() > 0;
  for (size_t i = 0; i < earlier.size(); ++i) {
    const int64_t past = earlier[i].Of(tick);
    if (past == Pairing::kNone) continue;
    seen = true;
    (tick - past == static_cast<int64_t>(i + 1) * period ? straight : doubtful).Add(past);
  }
  const int64_t known = straight.Longest() > 0 ? straight.Longest() : doubtful.WithinPeriod();
  slot.freed_on = FreedOn(history, tick, earlier);
  slot.persistent = seen && known == 0;
  slot.length = known > 0 ? known : period;
  // A block that has outlived its earlier instances is alive at least until now.
  if (alive) slot.length = std::max(slot.length, history.now().count() - tick);
  return seen;
}

}  // namespace

History::History() : History(Options()) {}

History::History(Options options)
    : ring_(static_cast<size_t>(options.initial_tokens)),
      mask_(options.initial_tokens - 1),
      max_tokens_(options.max_tokens) {}

Tick History::OnAlloc(Bytes bytes, Bytes alignment, Stream stream, Bytes live_before) {
  ring_[static_cast<size_t>(now_ & mask_)] = {bytes, alignment, stream, live_before, kAlive, stream};
  return Tick(now_++);
}

void History::OnFree(Tick alloc_tick, Stream stream) {
  if (alloc_tick < oldest() || alloc_tick >= now()) return;
  Entry& entry = ring_[static_cast<size_t>(alloc_tick.count() & mask_)];
  entry.freed_at = now();
  entry.freed_on = stream;
}

void History::Grow(int64_t tokens) {
  const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tokens)));
  const int64_t size = std::min(wanted, max_tokens_);
  if (size <= capacity()) return;
  std::vector<Entry> ring(static_cast<size_t>(size));
  for (int64_t tick = oldest().count(); tick < now_; ++tick) {
    ring[static_cast<size_t>(tick & (size - 1))] = at(Tick(tick));
  }
  ring_ = std::move(ring);
  mask_ = size - 1;
}

Iteration ExtractIteration(const History& history, const Period& period) {
  const int64_t length = period.length;
  const int64_t now = history.now().count();
  Iteration iteration{.period = length, .slots = {}, .origin = {}};
  if (length <= 0 || now - history.oldest().count() < length) return iteration;

  std::vector<Pairing> earlier;
  for (int i = 1; i <= kEarlierInstances; ++i) earlier.emplace_back(history, length, i * length);
  const int64_t cut = Cut(history, length);
  iteration.origin = Tick(cut);
  iteration.slots.reserve(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    const int64_t tick = cut + i < now ? cut + i : cut + i - length;
    const History::Entry& entry = history.at(Tick(tick));
    Slot slot{.bytes = entry.bytes, .alignment = entry.alignment, .stream = entry.stream, .begin = i};
    if (!SetLifetime(history, tick, length, earlier, slot)) ++iteration.unsettled;
    iteration.slots.push_back(slot);
  }
  return iteration;
}

}  // namespace reprise::profiler
