#include "planner/chain.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace reprise::planner {

Chain::Chain(const Instance& instance)
    : instance_(instance),
      begin_(instance.buffers()),
      end_(instance.buffers()),
      first_(instance.slots + 1),
      before_(instance.buffers()) {
  const int32_t slots = instance.slots;
  const auto slot = [&](const Moment& m) {
    return m.is_end ? (instance.end[m.buffer] - 1) % slots + 1 : instance.begin[m.buffer];
  };
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (!instance.is_free(i)) continue;  // what is outside has no slots
    moments_.push_back({i, false});
    moments_.push_back({i, true});
  }
  std::ranges::sort(moments_, {}, [&](const Moment& m) { return std::tuple(slot(m), !m.is_end, m.buffer); });
  marked_.resize(moments_.size() / 64 + 1);
  std::ranges::fill(first_, moments_.size());
  for (size_t k = moments_.size(); k-- > 0;) {
    (moments_[k].is_end ? end_ : begin_)[moments_[k].buffer] = k;
    if (!moments_[k].is_end) first_[slot(moments_[k])] = k;
  }
  for (int32_t s = slots; s-- > 0;) first_[s] = std::min(first_[s], first_[s + 1]);
}

const std::vector<int32_t>& Chain::Best(int32_t low, int32_t high, std::span<const int32_t> candidates,
                                        std::span<const double> values) {
  for (const int32_t i : candidates) {
    Mark(begin_[i]);
    Mark(end_[i]);
  }
  Sum best;
  if (high <= instance_.slots) {
    Sweep(first_[low], first_[high], values, best);
  } else {
    Sweep(first_[low], moments_.size(), values, best);
    Sweep(0, first_[high - instance_.slots], values, best);
  }
  chain_.clear();
  for (int32_t i = best.last; i != kNone; i = before_[i].last) chain_.push_back(i);
  std::ranges::reverse(chain_);
  return chain_;
}

// Visits the marked moments and takes the marks away.
void Chain::Sweep(size_t moment, size_t until, std::span<const double> values, Sum& best) {
  while (moment < until) {
    uint64_t& word = marked_[moment / 64];
    const uint64_t rest = word >> moment % 64;
    moment += rest == 0 ? 64 - moment % 64 : static_cast<size_t>(std::countr_zero(rest));
    if (rest == 0 || moment >= until) continue;
    word &= ~(uint64_t{1} << moment % 64);
    const auto [buffer, is_end] = moments_[moment];
    if (!is_end) {
      before_[buffer] = best;
    } else if (before_[buffer].value + values[buffer] > best.value) {
      best = {before_[buffer].value + values[buffer], buffer};
    }
  }
}

}  // namespace reprise::planner
