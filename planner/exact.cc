#include "planner/exact.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace reprise::planner {
namespace {

// Chosen on MiniMalloc's instances, under eight seeds, forwards and backwards in time.
constexpr int64_t kFirstTurn = 1000;        // nodes
constexpr double kGrowthOfTurns = 1.1;      // a round
constexpr double kNoiseOfLifetimes = 0.03;  // more would lose which ones are equal
constexpr double kNoiseOfSizes = 0.1;
constexpr double kGrowthOfFailure = 1.001;
constexpr double kLargestFailure = 1e50;  // where all are scaled down, far from overflow
// Of large instances, some nodes take as much as thousands of small ones.
constexpr int64_t kNodesBetweenPolls = 64;
constexpr int64_t kStepsBetweenPolls = 10'000;
constexpr int64_t kListLooksPerStep = 8;  // at lists' entries that lie side by side

// Nothing is built for an instance that is too large to be looked at.
const Instance& OrNone(const Instance& instance) {
  static const Instance& none = *new Instance{.first_range = {0}};  // outlives exit: jobs plan meanwhile
  return ExactSearch::CanLookAt(instance) ? instance : none;
}

}  // namespace

// Each order and each choice is the fastest by far on some instance and fails on others. Two take two turns a
// round: the first, which costs the least a node and is the best where there is some slack, and the last.
constexpr ExactSearch::Strategy ExactSearch::kStrategies[] = {
    {Order::kLifetime, Choice::kLowest},
    {Order::kCrowdLifetime, Choice::kTrouble},
    {Order::kCrowdArea, Choice::kLowest},
    {Order::kTimeInCrowds, Choice::kLowest},
    {Order::kLifetime, Choice::kLowest, true},
    {Order::kCrowdLifetime, Choice::kFewestRivals},
    {Order::kCrowdLifetime, Choice::kFewestRivals, true},
};

bool ExactSearch::CanLookAt(const Instance& instance) {
  constexpr int64_t kMost = 2 * int64_t{kMostBuffers} * kMostBuffers;
  const int64_t ranges = static_cast<int64_t>(instance.all_ranges.size());
  return instance.buffers() <= kMostBuffers && instance.buffers() * ranges <= kMost;
}

ExactSearch::ExactSearch(const Instance& instance, uint64_t seed, const ExactRules& rules, bool beside)
    : instance_(instance),
      rules_(rules),
      first_turn_(beside ? std::size(kStrategies) : 0),
      random_(seed),
      state_(OrNone(instance)) {
  state_.Reset(0);
  for (int32_t slot = 0; slot < state_.slots(); ++slot) full_load_.push_back(state_.load(slot));
  for (int64_t load : full_load_) largest_load_ = std::max(largest_load_, load);
  rank_.resize(instance.buffers());
  trouble_.resize(state_.slots());
  least_end_.resize(state_.slots());
  crossing_.resize(state_.slots() + 1);
}

ExactSearch::Answer ExactSearch::Decide(int64_t capacity, int64_t node_limit,
                                        const std::function<bool(int64_t)>& stop,
                                        std::vector<int64_t>& offsets) {
  if (!CanLookAt(instance_)) return Answer::kGaveUp;
  if (capacity != capacity_) Restart(capacity);
  if (refuted_all_) return Answer::kRefuted;
  stop_ = &stop;
  stopped_ = false;
  const int64_t last_node = node_limit < std::numeric_limits<int64_t>::max() - nodes_
                                ? nodes_ + node_limit
                                : std::numeric_limits<int64_t>::max();
  while (nodes_ < last_node && !stopped_) {
    switch (TakeTurn(last_node)) {
      case Outcome::kOutOfNodes:
        break;
      case Outcome::kRefuted:
        refuted_all_ = true;
        return Answer::kRefuted;
      case Outcome::kPlaced:
        offsets.assign(instance_.pinned.begin(), instance_.pinned.end());
        for (int32_t i = 0; i < instance_.buffers(); ++i) {
          if (instance_.is_free(i)) offsets[i] = state_.floor(i);
        }
        return Answer::kPlaced;
    }
  }
  return Answer::kGaveUp;
}

void ExactSearch::Restart(int64_t capacity) {
  capacity_ = capacity;
  refuted_all_ = false;
  std::fill(trouble_.begin(), trouble_.end(), 1.0);
  failure_ = 1;
  turn_ = first_turn_;
  turn_limit_ = kFirstTurn;
}

ExactSearch::Outcome ExactSearch::TakeTurn(int64_t last_node) {
  const size_t round = turn_ / std::size(kStrategies);
  const Strategy& strategy = kStrategies[rules_.strategies ? turn_ % std::size(kStrategies) : 0];
  ++turn_;
  if (turn_ % std::size(kStrategies) == 0) {
    turn_limit_ = static_cast<int64_t>(static_cast<double>(turn_limit_) * kGrowthOfTurns);
  }
  choice_ = strategy.choice;
  if (choice_ == Choice::kTrouble && !rules_.trouble) choice_ = Choice::kFewestRivals;
  if (!rules_.rivals) choice_ = Choice::kLowest;
  SetRanks(strategy.order, rules_.perturbed && (round > 0 || strategy.perturbed));
  Poll();  // a turn costs more than its nodes, which may be none
  return Run(std::min(turn_limit_, last_node - nodes_));
}

// A factor around 1.
double ExactSearch::Noise(double width) {
  return std::exp(width * (static_cast<double>(random_() >> 11) * 0x1p-52 - 1));
}

// The first part decides, the second one breaks its ties. The crowd is the largest load that the buffer is a
// part of; noise leaves it alone, because what counts is that many buffers share it.
std::pair<double, double> ExactSearch::KeyOf(int32_t buffer, Order order, bool perturbed) {
  const double noise = perturbed ? Noise(kNoiseOfLifetimes) : 1;
  const double lifetime = static_cast<double>(state_.slots_of(buffer).size()) * noise;
  const double size = static_cast<double>(instance_.size[buffer]) * (perturbed ? Noise(kNoiseOfSizes) : 1);
  if (order == Order::kLifetime) return {lifetime, size};  // which looks at no slots
  double crowd = 0;
  double time_in_crowds = 0;
  for (int32_t slot : state_.slots_of(buffer)) {
    const double load = static_cast<double>(full_load_[slot]) / static_cast<double>(largest_load_);
    crowd = std::max(crowd, load);
    // Hardly anything where a fifth of the largest load is missing.
    if (order == Order::kTimeInCrowds) time_in_crowds += std::pow(load, 16);
  }
  looks_ += static_cast<int64_t>(state_.slots_of(buffer).size());
  if (order == Order::kCrowdLifetime) return {crowd, lifetime};
  if (order == Order::kCrowdArea) return {crowd, lifetime * size};
  return {time_in_crowds * noise, size};
}

// Buffers with large keys come first. Ties are broken by what buffers are, not by where they stand in the
// problem, so that this order does not matter.
void ExactSearch::SetRanks(Order order, bool perturbed) {
  std::vector<std::pair<double, double>> key(instance_.buffers());
  std::vector<int32_t> sorted = FreeBuffers(instance_);
  const auto rest = [&](int32_t i) {
    return std::tuple(instance_.begin[i], instance_.end[i], instance_.size[i], i);
  };
  std::sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) { return rest(a) < rest(b); });
  for (int32_t i : sorted) key[i] = KeyOf(i, order, perturbed);
  std::stable_sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) { return key[a] > key[b]; });
  for (size_t k = 0; k < sorted.size(); ++k) rank_[sorted[k]] = static_cast<int32_t>(k);
}

// One search from the root. When it succeeds, the pool is left with all buffers that it has placed.
ExactSearch::Outcome ExactSearch::Run(int64_t limit) {
  state_.Reset(capacity_);
  stop_at_node_ = nodes_ + limit;
  pool_ = FreeBuffers(instance_);
  return Extend({0, pool_.size()});
}

// Solves what of `items` is not placed yet.
ExactSearch::Outcome ExactSearch::Extend(Items items) {
  const Items unplaced{pool_.size(), pool_.size() + (items.end - items.begin)};
  pool_.resize(unplaced.end);
  size_t end = unplaced.begin;
  for (size_t k = items.begin; k < items.end; ++k) {
    if (!state_.placed(pool_[k])) pool_[end++] = pool_[k];
  }
  pool_.resize(end);
  const Outcome outcome = Branch({unplaced.begin, end});
  pool_.resize(unplaced.begin);
  return outcome;
}

// Each turn of the loop puts a buffer on its floor and, when that fails, goes on with the state in which the
// buffer is not there. The first state of the loop has a solution exactly if one of all these has.
ExactSearch::Outcome ExactSearch::Branch(Items items) {
  for (;;) {
    if (!state_.Propagate(rules_.not_first)) {
      NoteFailure(state_.failed_slot());
      break;
    }
    if (items.begin == items.end) return Outcome::kPlaced;
    std::vector<Items> parts;
    if (rules_.components && Split(items, parts)) {
      const Outcome outcome = ExtendAll(parts);
      pool_.resize(items.end);
      if (outcome != Outcome::kRefuted) return outcome;
      break;
    }
    if (OutOfNodes()) return Outcome::kOutOfNodes;
    const int32_t buffer = Choose(items);
    const ExactState::Mark mark = state_.mark();
    state_.Place(buffer);
    const Outcome outcome = Extend(items);
    if (outcome != Outcome::kRefuted) return outcome;
    state_.Undo(mark);
    if (!state_.Reject(buffer)) break;
  }
  return Outcome::kRefuted;
}

void ExactSearch::NoteFailure(int32_t slot) {
  trouble_[slot] += failure_;
  failure_ *= kGrowthOfFailure;
  if (failure_ < kLargestFailure) return;
  for (double& trouble : trouble_) trouble /= kLargestFailure;
  failure_ /= kLargestFailure;
}

ExactSearch::Outcome ExactSearch::ExtendAll(const std::vector<Items>& parts) {
  for (const Items& part : parts) {
    if (const Outcome outcome = Extend(part); outcome != Outcome::kPlaced) return outcome;
  }
  return Outcome::kPlaced;
}

bool ExactSearch::OutOfNodes() {
  ++nodes_;
  if (nodes_ % kNodesBetweenPolls == 0 || steps() - steps_told_ >= kStepsBetweenPolls) Poll();
  return stopped_ || nodes_ > stop_at_node_;
}

int64_t ExactSearch::steps() const { return (state_.looks() + looks_) / kListLooksPerStep; }

void ExactSearch::Poll() {
  const int64_t worked = steps() - steps_told_;
  steps_told_ += worked;
  stopped_ = (*stop_)(worked);
}

// Cuts time where no lifetime of `items` crosses from one slot to the next, and appends the items of each
// part to the pool, small parts first. False if there is only one. A lifetime in several ranges counts as one
// that lasts from the first to the last, which can only miss a cut.
bool ExactSearch::Split(Items items, std::vector<Items>& parts) {
  int32_t from = state_.slots();
  int32_t to = 0;
  for (int32_t buffer : In(items)) {
    const std::span<const int32_t> slots = state_.slots_of(buffer);
    from = std::min(from, slots.front());
    to = std::max(to, slots.back());
  }
  std::fill(crossing_.begin() + from, crossing_.begin() + to + 1, 0);
  for (int32_t buffer : In(items)) {
    const std::span<const int32_t> slots = state_.slots_of(buffer);
    ++crossing_[slots.front()];
    --crossing_[slots.back()];
  }
  bool cut = false;
  for (int32_t slot = from, crossing = 0; slot < to; ++slot) {
    crossing += crossing_[slot];
    cut |= crossing == 0;
  }
  if (!cut) return false;
  for (int32_t slot = from, crossing = 0, begin = from; slot <= to; ++slot) {
    crossing += crossing_[slot];
    if (crossing > 0) continue;
    const size_t first = pool_.size();
    for (size_t k = items.begin; k < items.end; ++k) {
      const int32_t at = state_.slots_of(pool_[k]).front();
      if (begin <= at && at <= slot) pool_.push_back(pool_[k]);
    }
    if (pool_.size() > first) parts.push_back({first, pool_.size()});
    begin = slot + 1;
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Items& a, const Items& b) { return a.end - a.begin < b.end - b.begin; });
  return true;
}

int32_t ExactSearch::Choose(Items items) {
  return choice_ == Choice::kLowest ? ChooseLowest(items) : ChooseAmongRivals(items);
}

// Nobody can come beneath the lowest of all.
int32_t ExactSearch::ChooseLowest(Items items) {
  int32_t lowest = pool_[items.begin];
  for (int32_t buffer : In(items)) {
    if (state_.floor(buffer) < state_.floor(lowest) ||
        (state_.floor(buffer) == state_.floor(lowest) && rank_[buffer] < rank_[lowest]))
      lowest = buffer;
  }
  return lowest;
}

// The places where a decision can be made are the buffers with the least end of all they conflict with: one
// of the *rivals* that can begin below this end, the buffer among them, must be placed next.
int32_t ExactSearch::ChooseAmongRivals(Items items) {
  FindLeastEnds(items);
  int32_t best = -1;
  double best_score = 0;
  for (int32_t buffer : In(items)) {
    const int64_t end = state_.floor_end(buffer);
    const std::span<const int32_t> slots = state_.slots_of(buffer);
    if (!std::ranges::all_of(slots, [&](int32_t slot) { return least_end_[slot] >= end; })) continue;
    int32_t rivals = 1;
    int32_t first = buffer;
    bool open = true;
    for (int32_t other : state_.conflicts_of(buffer)) {
      if (state_.placed(other) || state_.floor(other) >= end) continue;
      open = std::ranges::all_of(state_.slots_of(other),
                                 [&](int32_t slot) { return least_end_[slot] > state_.floor(other); });
      if (!open) break;
      ++rivals;
      if (rank_[other] < rank_[first]) first = other;
    }
    if (!open) continue;
    const double score = Score(buffer, rivals);
    if (best < 0 || score > best_score || (score == best_score && rank_[first] < rank_[best])) {
      best = first;
      best_score = score;
    }
  }
  return best;
}

// Few ways on are good and, if told to look for it, much trouble is: a search that goes where it must fail
// anyway fails early.
double ExactSearch::Score(int32_t buffer, int32_t rivals) const {
  double trouble = 1;
  if (choice_ == Choice::kTrouble) {
    trouble = 0;
    for (int32_t slot : state_.slots_of(buffer)) trouble = std::max(trouble, trouble_[slot]);
  }
  return trouble / rivals;
}

void ExactSearch::FindLeastEnds(Items items) {
  for (int32_t buffer : In(items)) {
    for (int32_t slot : state_.slots_of(buffer)) least_end_[slot] = ExactState::kNever;
  }
  for (int32_t buffer : In(items)) {
    const int64_t end = state_.floor_end(buffer);
    for (int32_t slot : state_.slots_of(buffer)) least_end_[slot] = std::min(least_end_[slot], end);
  }
}

}  // namespace reprise::planner
