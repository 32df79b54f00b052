#include "profiler/rounds.h"

#include <algorithm>
#include <utility>

#include "profiler/live_allocations.h"

namespace reprise::profiler {
namespace {

class RoundFollower {
 public:
  explicit RoundFollower(const Iteration& iteration)
      : iteration_(iteration),
        origin_(iteration.origin.count()),
        described_(origin_ >= iteration.period ? origin_ - iteration.period : origin_) {
    result_.rounds.resize(1);
    result_.rounds.reserve(static_cast<size_t>(origin_ / iteration.period) + 2);
    result_.event_of_slot.assign(static_cast<size_t>(iteration.period), 0);
  }

  // Whether everything has been seen that is asked for.
  bool done() const { return token_ > origin_ && token_ >= described_ + iteration_.period; }

  void Add(const Event& event, int64_t index) {
    if (event.kind == EventKind::kAlloc && event.bytes >= kLeastToken) Token(event, index);
    live_.Add(event);
    if (token_ > 0) result_.rounds.back().peak = std::max(result_.rounds.back().peak, live_.bytes());
  }

  Rounds Take() { return std::move(result_); }

 private:
  void Token(const Event& event, int64_t index) {
    if (token_ <= origin_ && (origin_ - token_) % iteration_.period == 0) {
      const Slot& cut = iteration_.slots[0];
      const bool is_cut = event.bytes == cut.bytes && event.stream == cut.stream;
      result_.rounds.push_back({.live_before = live_.bytes(), .peak = live_.bytes(), .cut = is_cut});
    }
    const int64_t slot = token_ - described_;
    if (slot >= 0 && slot < iteration_.period) result_.event_of_slot[static_cast<size_t>(slot)] = index;
    ++token_;
  }

  const Iteration& iteration_;
  const int64_t origin_;
  const int64_t described_;  // the first token of the round whose events are named
  int64_t token_ = 0;        // the tick of the next one
  LiveAllocations live_;
  Rounds result_;
};

}  // namespace

Rounds RoundsOf(const std::vector<Event>& events, const Iteration& iteration) {
  RoundFollower follower(iteration);
  for (size_t i = 0; i < events.size() && !follower.done(); ++i) {
    follower.Add(events[i], static_cast<int64_t>(i));
  }
  return follower.Take();
}

}  // namespace reprise::profiler
