#include "replay/crossings.h"

#include <cstdint>
#include <map>

#include "replay/ranges.h"

namespace reprise::replay {
namespace {

// Who had each part of the slab last.
class Owners {
 public:
  // Calls visit(owner) for each part of [begin, end), which is `slot`'s from now on.
  template <typename Visit>
  void Take(int64_t begin, int64_t end, uint32_t slot, Visit visit) {
    auto part = parts_.upper_bound(begin);
    if (part != parts_.begin()) --part;
    while (part != parts_.end() && part->first < end) {
      const auto [from, was] = *part;
      if (was.end <= begin) {
        ++part;
        continue;
      }
      visit(was.slot);
      part = parts_.erase(part);
      if (from < begin) parts_[from] = {begin, was.slot};
      if (was.end > end) part = parts_.insert({end, was}).first;
    }
    parts_[begin] = {end, slot};
  }

 private:
  struct Part {
    int64_t end = 0;
    uint32_t slot = 0;
  };
  std::map<int64_t, Part> parts_;  // by begin; they do not overlap
};

}  // namespace

std::vector<bool> FindCrossings(const ServingPlan& plan, const std::vector<Stream>& freed_on) {
  std::vector<bool> crossings(plan.slots.size());
  Owners owners;
  for (int round = 0; round < 2; ++round) {  // the second sees what the first has left
    for (uint32_t i = 0; i < plan.slots.size(); ++i) {
      const ServingPlan::Slot& slot = plan.slots[i];
      if (!slot.planned()) continue;
      const int64_t begin = slot.offset.count();
      owners.Take(begin, begin + RoundUp(slot.bytes, kUnit).count(), i, [&](uint32_t last) {
        if (freed_on[last] != slot.stream) crossings[last] = true;
      });
    }
  }
  return crossings;
}

}  // namespace reprise::replay
