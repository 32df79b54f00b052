#include "planner/clique.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "planner/arcs.h"

namespace reprise::planner {
namespace {

constexpr int64_t kArcsPerStep = 4;  // looked at

class Cliques {
 public:
  explicit Cliques(Search& search)
      : search_(search), slots_(search.instance().slots), arcs_(ArcsOf(search.instance())) {
    const std::vector<int64_t> load = LoadOfSlots(search.instance());
    for (const Arc& arc : arcs_)
      bases_.push_back({load[arc.begin] + load[(arc.end - 1) % slots_] - arc.size, arc});
    std::ranges::stable_sort(bases_, std::greater(), &Base::most);
  }

  // False once no other base can refute more.
  bool Run() {
    for (; next_ < bases_.size(); ++next_) {
      const int64_t proven = std::max(search_.target(), search_.refuted() + 1);
      if (bases_[next_].most <= proven) return false;
      if (search_.Stop(static_cast<int64_t>(arcs_.size()) / kArcsPerStep)) return true;
      const int64_t heaviest = HeaviestAround(bases_[next_].arc);
      if (heaviest > proven) search_.Refute(heaviest - 1);
    }
    return false;
  }

 private:
  struct Base {
    int64_t most;  // that a clique around it can weigh
    Arc arc;
  };
  // An arc that holds one end of the base and not the other, told by what lies beside the base's two ends:
  // where it begins and ends in the slots that the base has, and in those that it has not.
  struct OneEnd {
    int32_t within;
    int32_t around;
    int64_t size;
  };

  // Of the arcs that hold the first slot of `base`, its last one or both. Slots count from its first one.
  int64_t HeaviestAround(const Arc& base) {
    const int32_t length = base.end - base.begin;
    int64_t all = 0;
    firsts_.clear();
    lasts_.clear();
    for (const Arc& arc : arcs_) {
      const int32_t begin = arc.begin - base.begin + (arc.begin < base.begin ? slots_ : 0);
      const int32_t end = begin + arc.end - arc.begin;
      const bool first = begin == 0 || end > slots_;
      const bool last = (begin < length && end >= length) || end >= slots_ + length;
      if (first || last) all += arc.size;
      if (first && !last)
        firsts_.push_back({begin == 0 ? end : end - slots_, begin == 0 ? slots_ : begin, arc.size});
      if (last && !first) lasts_.push_back({begin, end, arc.size});
    }
    return all - FlowApart();
  }

  // What must go at least, so that no two of the rest are apart. One of `firsts_` and one of `lasts_` are if
  // the first ends no later than the last begins, within the base, and begins no sooner than that one ends,
  // around it.
  int64_t FlowApart() {
    std::ranges::sort(firsts_, {}, &OneEnd::around);
    std::ranges::sort(lasts_, {}, &OneEnd::around);
    std::multimap<int32_t, int64_t> open;  // what is left of the lasts that end early enough, by their begin
    int64_t flow = 0;
    auto last = lasts_.begin();
    for (const OneEnd& first : firsts_) {
      for (; last != lasts_.end() && last->around <= first.around; ++last)
        open.emplace(last->within, last->size);
      int64_t left = first.size;
      // The later one begins, the more of the firsts still to come it suits: it is kept for them.
      for (auto it = open.lower_bound(first.within); left > 0 && it != open.end();) {
        const int64_t part = std::min(left, it->second);
        flow += part;
        left -= part;
        it->second -= part;
        it = it->second == 0 ? open.erase(it) : it;
      }
    }
    return flow;
  }

  Search& search_;
  const int32_t slots_;
  std::vector<Arc> arcs_;
  std::vector<Base> bases_;  // the heaviest first
  size_t next_ = 0;
  std::vector<OneEnd> firsts_, lasts_;  // scratch
};

}  // namespace

Turn BeginClique(Search& search, std::string_view) {
  if (!search.instance().cyclic) return [] { return false; };
  return [cliques = std::make_shared<Cliques>(search)] { return cliques->Run(); };
}

}  // namespace reprise::planner
