#include "planner/exact_solver.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "base/stack_room.h"
#include "planner/exact.h"
#include "planner/first_fit.h"
#include "planner/orders.h"

namespace reprise::planner {
namespace {

ExactRules RulesOf(const Search& search) {
  return {.not_first = search.on("exact-not-first"),
          .components = search.on("exact-components"),
          .trouble = search.on("exact-trouble"),
          .rivals = search.on("exact-rivals"),
          .perturbed = search.on("exact-perturbed"),
          .strategies = search.on("exact-strategies")};
}

// Every slab is a multiple of this: buffers lie on sums of sizes above the ground or an obstacle's end,
// rounded up to alignments.
int64_t GrainOf(const Instance& instance) {
  int64_t grain = 0;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_pinned(i)) grain = std::gcd(grain, instance.pinned[i] + instance.size[i]);
    if (!instance.is_free(i)) continue;
    grain = std::gcd(grain, instance.size[i]);
    if (instance.alignment[i] > 1) grain = std::gcd(grain, instance.alignment[i]);
  }
  return std::max<int64_t>(grain, 1);
}

// The search goes deeper with each buffer that it places, by some 130 bytes of the stack and by twice that where time falls
// apart; and what is there besides.
constexpr size_t kStackOfABuffer = 320;
constexpr size_t kStackOfTheRest = size_t{32} << 10;

// A thread of a job may have a small one. Where nothing is known of it, it is taken to be as large as usual.
bool HasStackFor(const Instance& instance) {
  const size_t room = StackRoom();
  return room == 0 || room >= kStackOfTheRest + kStackOfABuffer * static_cast<size_t>(instance.buffers());
}

// Of a grain, what a size lacks at most that is nearly a multiple of it.
constexpr int64_t kPartsLacking = 16;

// Rounds the sizes up to multiples of `grain`. False where they are not nearly that, or are it already.
bool RoundUp(const Instance& instance, int64_t grain, Instance& coarse) {
  int64_t most_lacking = 0;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (!instance.is_free(i)) continue;
    coarse.size[i] = RoundUpTo(instance.size[i], grain);
    most_lacking = std::max(most_lacking, coarse.size[i] - instance.size[i]);
  }
  return most_lacking > 0 && most_lacking <= grain / kPartsLacking;
}

// Where all sizes are nearly multiples of a power of two, and what is in use at once has room within `capacity` if they are
// rounded up to the largest such: what fits so fits as it is, and there is less to tell apart.
std::optional<Instance> Coarser(const Instance& instance, int64_t capacity) {
  // Sums of sizes that grow by a grain each are numbers.
  const int64_t most = std::numeric_limits<int64_t>::max() / 4 / std::max(instance.buffers(), 1);
  Instance coarse = instance;
  for (auto grain = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(capacity, most))));
       grain >= kPartsLacking; grain /= 2) {
    if (!RoundUp(instance, grain, coarse)) continue;
    const std::vector<int64_t> load = LoadOfSlots(coarse);
    if (!load.empty() && *std::ranges::max_element(load) <= capacity) return coarse;
  }
  return std::nullopt;
}

// The last worker is the one that gives the exact search the most steps.
bool IsBeside(const Search& search) { return search.worker() + 1 < search.workers(); }

class ExactTurns {
 public:
  ExactTurns(Search& search, std::string_view name)
      : search_(search),
        name_(name),
        grain_(GrainOf(search.instance())),
        at_target_(search.instance(), search.seed(), RulesOf(search), IsBeside(search)),
        between_(search.instance(), search.seed() + 1, RulesOf(search), IsBeside(search)) {
    if (search.decides() && search.on("exact-coarse")) coarse_ = Coarser(search.instance(), search.target());
    if (coarse_) at_target_of_coarse_.emplace(*coarse_, search.seed() + 2, RulesOf(search), IsBeside(search));
  }

  bool Run() {
    if (search_.best_slab() == Search::kNothing) PlaceSomehow();
    const int64_t begin = search_.steps();
    const int64_t granted = search_.granted();
    // Half of a decision's turn for coarser sizes.
    until_ = begin + granted / 2;
    while (at_target_of_coarse_ && !Stop(1)) AskCoarse();
    // Half of a turn for the target, the rest for what lies between it and the best placement.
    until_ = begin + (search_.decides() ? granted : granted / 2);
    while (!Stop(1)) Ask(at_target_, search_.target());
    until_ = Search::kNothing;
    const int asked = nearness_;
    while (!Stop(1) && Between() > search_.target()) Ask(between_, Between());
    if (nearness_ == asked) ++nearness_;
    return !search_.Over();
  }

 private:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 2;

  bool Stop(int64_t steps) { return search_.Stop(steps) || search_.steps() >= until_; }

  void Ask(ExactSearch& exact, int64_t height) {
    switch (exact.Decide(height, kNoLimit, stop_, offsets_)) {
      case ExactSearch::Answer::kPlaced:
        search_.Offer(offsets_, name_, InOrderOfOffsets(search_.instance(), offsets_));
        nearness_ = 1;
        break;
      case ExactSearch::Answer::kRefuted:
        // The next multiple of the grain is above `height`; what is below it is refuted with it.
        search_.Refute(height / grain_ * grain_ + grain_ - 1);
        nearness_ = 1;
        break;
      case ExactSearch::Answer::kGaveUp:
        break;
    }
  }

  void AskCoarse() {
    switch (at_target_of_coarse_->Decide(search_.target(), kNoLimit, stop_, offsets_)) {
      case ExactSearch::Answer::kPlaced:
        search_.Offer(offsets_, name_, InOrderOfOffsets(search_.instance(), offsets_));
        break;
      case ExactSearch::Answer::kRefuted:  // which says nothing of the sizes as they are
        at_target_of_coarse_.reset();
        break;
      case ExactSearch::Answer::kGaveUp:
        break;
    }
  }

  // Between the bound and the best placement, 1/2, 3/4, 7/8, ... of the way.
  int64_t Between() const {
    const int64_t way = search_.best_slab() - search_.target();
    const int64_t height = search_.best_slab() - (way >> std::min(nearness_ + search_.worker(), 20));
    return std::min(height, search_.best_slab() - 1) / grain_ * grain_;
  }

  // Time and steps do not count before there is a placement.
  void PlaceSomehow() {
    const std::vector<int32_t> order = SortedBy(Order::kSize, search_.instance());
    const auto outcome = FirstFit(search_.instance()).Place(order, Search::kNothing, search_, offsets_);
    if (outcome == FirstFit::Outcome::kComplete) search_.Offer(offsets_, name_, order);
  }

  Search& search_;
  const std::string_view name_;
  const int64_t grain_;
  ExactSearch at_target_;
  ExactSearch between_;
  std::optional<Instance> coarse_;
  std::optional<ExactSearch> at_target_of_coarse_;
  const std::function<bool(int64_t)> stop_ = [this](int64_t steps) { return Stop(steps); };
  std::vector<int64_t> offsets_;
  int64_t until_ = Search::kNothing;  // which step at_target_ may work
  int nearness_ = 1;
};

}  // namespace

Turn BeginExact(Search& search, std::string_view name) {
  const Instance& instance = search.instance();
  if (!ExactSearch::CanLookAt(instance) || !HasStackFor(instance)) return [] { return false; };
  return [exact = std::make_shared<ExactTurns>(search, name)] { return exact->Run(); };
}

}  // namespace reprise::planner
