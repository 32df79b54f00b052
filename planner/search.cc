#include "planner/search.h"

#include <algorithm>

namespace reprise::planner {
namespace {

constexpr int64_t kStepsBetweenLooks = 1000;

}  // namespace

int64_t SlabOf(const Instance& instance, std::span<const int64_t> offsets) {
  int64_t slab = 0;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_free(i)) slab = std::max(slab, offsets[i] + instance.size[i]);
  }
  return slab;
}

std::vector<int32_t> InOrderOfOffsets(const Instance& instance, std::span<const int64_t> offsets) {
  std::vector<int32_t> order = FreeBuffers(instance);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return offsets[a] != offsets[b] ? offsets[a] < offsets[b] : a < b; });
  return order;
}

Search::Search(const Instance& instance, int64_t target, const Budget& budget, bool decides)
    : instance_(instance),
      workers_(std::clamp(budget.threads, 1, kMostThreads)),
      target_(target),
      decides_(decides),
      budget_(budget),
      begin_(std::chrono::steady_clock::now()) {}

Search::Search(const Instance& instance, int64_t target, Search& whole)
    : instance_(instance),
      whole_(&whole),
      target_(target),
      decides_(false),
      budget_(whole.budget_),
      begin_(whole.begin_) {}

Search::Search(const Search& first, int worker)
    : instance_(first.instance_),
      worker_(worker),
      workers_(first.workers_),
      target_(first.target_),
      decides_(first.decides_),
      budget_(first.budget_),
      begin_(first.begin_),
      steps_(first.steps_) {
  Learn(first);
}

void Search::Join(Race* race) {
  race_ = race;
  race_began_ = steps_;
}

void Search::NoteAnswer() {
  if (race_ == nullptr || won_after_ != kNothing || !Answered()) return;
  won_after_ = steps_ - race_began_;
  int64_t first = race_->won_after.load(std::memory_order_relaxed);
  while (won_after_ < first && !race_->won_after.compare_exchange_weak(first, won_after_)) {
  }
}

void Search::Learn(const Search& other) {
  if (other.best_slab_ < best_slab_) {
    best_order_ = other.best_order_;
    best_ = other.best_;
    best_slab_ = other.best_slab_;
    best_solver_ = other.best_solver_;
  }
  if (other.refuted_ >= 0) Refute(other.refuted_);
}

double Search::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

bool Search::cancelled() const {
  return budget_.cancel != nullptr && budget_.cancel->load(std::memory_order_relaxed);
}

bool Search::Stop(int64_t steps) {
  Count(steps);
  return Over() || (HasPlacement() && !Granted());
}

bool Search::Over() const { return best_slab_ <= target_ || cancelled() || (HasPlacement() && Spent()); }

void Search::Count(int64_t steps) {
  steps_ += steps;
  if (whole_ != nullptr) return whole_->Count(steps);
  // Looking at a clock costs about a step; an eighth of a millisecond's delay is nothing to anyone.
  if (steps_ >= next_look_) {
    next_look_ = steps_ + kStepsBetweenLooks;
    out_of_time_ = seconds() >= budget_.seconds;
  }
}

bool Search::HasPlacement() const {
  return best_slab_ != kNothing || (whole_ != nullptr && whole_->HasPlacement());
}

bool Search::Spent() const {
  if (whole_ != nullptr) return !whole_->Granted() || whole_->Spent();
  if (race_ != nullptr && steps_ - race_began_ > race_->won_after.load(std::memory_order_relaxed))
    return true;
  return out_of_reach_ || out_of_time_ || steps_ >= budget_.steps;
}

void Search::Refute(int64_t height) {
  refuted_ = std::max(refuted_, height);
  if (!decides_) {
    target_ = std::max(target_, refuted_ + 1);
  } else if (refuted_ >= target_) {
    out_of_reach_ = true;
  }
  NoteAnswer();
}

void Search::Grant(int64_t steps) { granted_until_ = steps < kNothing - steps_ ? steps_ + steps : kNothing; }

void Search::Offer(std::span<const int64_t> offsets, std::string_view solver,
                   std::span<const int32_t> order) {
  const int64_t slab = SlabOf(instance_, offsets);
  if (slab >= best_slab_ || std::ranges::find(offsets, Instance::kFree) != offsets.end()) return;
  best_order_.assign(order.begin(), order.end());
  best_.assign(offsets.begin(), offsets.end());
  best_slab_ = slab;
  best_solver_ = solver;
  NoteAnswer();
}

const std::vector<int32_t>& Search::best_order() {
  if (best_order_.empty()) best_order_ = InOrderOfOffsets(instance_, best_);
  return best_order_;
}

}  // namespace reprise::planner
