#include "planner/rounded.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "planner/first_fit.h"

namespace reprise::planner {
namespace {

// How much of the largest size of a class the others may lack, at first and at least; in between it is halved again and
// again.
constexpr double kMostLacking = 0.25;
constexpr double kLeastLacking = 0.05;

class Rounded {
 public:
  Rounded(Search& search, std::string_view name) : search_(search), name_(name) {}

  // False when there is nothing more to try. A turn lays buffers once.
  bool Run() {
    for (bool laid = false; lacking_ >= kLeastLacking; lacking_ /= 2) {
      if (laid || search_.Stop(search_.instance().buffers())) return true;
      Instance rounded = search_.instance();
      const std::vector<int32_t> order = RoundUp(rounded);
      if (rounded.size == sizes_ || !CanBeLower(rounded)) continue;
      if (!Place(rounded, order)) return true;
      sizes_ = std::move(rounded.size);
      laid = true;
    }
    return false;
  }

 private:
  // Gives each free buffer the size of the largest in its class. Returns the order of these: the largest class first,
  // and each by its starts.
  std::vector<int32_t> RoundUp(Instance& instance) const {
    std::vector<int32_t> order = FreeBuffers(instance);
    std::ranges::sort(order, [&](int32_t a, int32_t b) {
      return instance.size[a] != instance.size[b] ? instance.size[a] > instance.size[b] : a < b;
    });
    int64_t largest = 0;
    for (const int32_t i : order) {
      const auto least = (1 - lacking_) * static_cast<double>(largest);
      if (largest == 0 || static_cast<double>(instance.size[i]) < least) largest = instance.size[i];
      instance.size[i] = largest;
    }
    std::ranges::sort(order, [&](int32_t a, int32_t b) {
      if (instance.size[a] != instance.size[b]) return instance.size[a] > instance.size[b];
      return instance.begin[a] != instance.begin[b] ? instance.begin[a] < instance.begin[b] : a < b;
    });
    return order;
  }

  // What rounding adds to the load is seldom won back.
  bool CanBeLower(const Instance& rounded) const {
    const std::vector<int64_t> load = LoadOfSlots(rounded);
    return load.empty() || *std::ranges::max_element(load) < search_.best_slab();
  }

  // False if stopped.
  bool Place(const Instance& rounded, const std::vector<int32_t>& order) {
    std::vector<int64_t> offsets;
    FirstFit::Outcome outcome = FirstFitWithin(rounded, order, offsets);
    if (outcome != FirstFit::Outcome::kComplete) return outcome != FirstFit::Outcome::kStopped;
    const std::vector<int32_t> settled = InOrderOfOffsets(search_.instance(), offsets);
    outcome = FirstFitWithin(search_.instance(), settled, offsets);
    if (outcome == FirstFit::Outcome::kComplete) search_.Offer(offsets, name_, settled);
    return outcome != FirstFit::Outcome::kStopped;
  }

  // Given up once it cannot be lower than the best so far.
  FirstFit::Outcome FirstFitWithin(const Instance& instance, const std::vector<int32_t>& order,
                                   std::vector<int64_t>& offsets) {
    const int64_t best = search_.best_slab();
    const int64_t limit = best == Search::kNothing ? Search::kNothing : best - 1;
    return FirstFit(instance, search_.memory()).Place(order, limit, search_, offsets);
  }

  Search& search_;
  const std::string_view name_;
  double lacking_ = kMostLacking;
  std::vector<int64_t> sizes_;  // rounded, as they were laid last
};

}  // namespace

Turn BeginRounded(Search& search, std::string_view name) {
  return [rounded = std::make_shared<Rounded>(search, name)] { return rounded->Run(); };
}

}  // namespace reprise::planner
