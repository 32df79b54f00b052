#include "planner/best_fit_solver.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/best_fit.h"
#include "planner/large_first.h"

namespace reprise::planner {
namespace {

// The exponent of a price: for a load as large as the largest; and for each pass, for a skyline as high as
// that. Two threads look in different places.
constexpr double kOfLoad[kMostThreads] = {20, 10};
constexpr double kOfLoadOnCycles[kMostThreads] = {28, 14};
constexpr double kOfHeight[kMostThreads] = {20, 10};
constexpr double kLeastPrice = 1e-9;  // of the largest: where nothing is scarce the longest lifetime counts

// Of the worth of a lifetime, in a chain.
constexpr double kPowerInChain = 1.5;

// In a row, without a better placement: for each buffer, as a few can be laid in few ways, and at most.
constexpr int64_t kPassesForEach = 10;
constexpr int64_t kMostPasses = 1000;

// Of the area: what is not large, first and at least. In between it is halved again and again.
constexpr double kMostOfSmall = 0.2;
constexpr double kLeastOfSmall = 0.001;

// Where the highest buffer of each slot ends; a tree over the slots has what holds for all below a node.
std::vector<int64_t> TopOfSlots(const Instance& instance, const std::vector<int64_t>& offsets) {
  const int32_t slots = instance.slots;
  std::vector<int64_t> tops(2 * static_cast<size_t>(slots), 0);
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (!instance.is_free(i)) continue;
    const int64_t top = offsets[i] + instance.size[i];
    for (const Range& range : instance.ranges(i)) {
      int32_t low = range.begin + slots, high = range.end + slots;
      for (; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1) tops[low] = std::max(tops[low], top), ++low;
        if (high % 2 == 1) --high, tops[high] = std::max(tops[high], top);
      }
    }
  }
  for (int32_t node = 2; node < 2 * slots; ++node) tops[node] = std::max(tops[node], tops[node / 2]);
  tops.erase(tops.begin(), tops.begin() + slots);
  return tops;
}

class PricedBestFit {
 public:
  PricedBestFit(Search& search, std::string_view name, bool chains)
      : search_(search),
        instance_(search.instance()),
        name_(name),
        chains_(chains),
        best_fit_(instance_),
        exponents_(instance_.slots, 0) {
    const std::vector<int64_t> load = LoadOfSlots(instance_);
    for (const int64_t bytes : load) largest_load_ = std::max(largest_load_, static_cast<double>(bytes));
    if (search.on(kBestFitPrices))
      Raise(load, (instance_.cyclic ? kOfLoadOnCycles : kOfLoad)[search.worker()]);
  }

  // False when there is nothing more to try.
  bool Run() {
    do {
      if (!placing_) {
        Rank();
        best_fit_.Begin(order_, values_);
      }
      placing_ = !best_fit_.Place(search_);
      if (placing_) return true;
      const int64_t best = search_.best_slab();
      search_.Offer(best_fit_.offsets(), name_);
      failed_ = search_.best_slab() < best ? 0 : failed_ + 1;
      if (failed_ >= kPassesForEach * instance_.buffers() || failed_ >= kMostPasses) return false;
      if (!search_.on(kBestFitFeedback)) return false;
      Raise(TopOfSlots(instance_, best_fit_.offsets()), kOfHeight[search_.worker()]);
    } while (passes_ > 1 && !search_.Stop());
    return true;
  }

 private:
  void Raise(const std::vector<int64_t>& bytes, double exponent) {
    for (int32_t slot = 0; slot < instance_.slots; ++slot)
      exponents_[slot] += exponent * static_cast<double>(bytes[slot]) / largest_load_;
  }

  // The worth of every lifetime, by sums over the slots before it.
  void Rank() {
    ++passes_;
    double largest = 0;
    for (const double exponent : exponents_) largest = std::max(largest, exponent);
    std::vector<double> before = {0};
    for (const double exponent : exponents_)
      before.push_back(before.back() + std::max(kLeastPrice, std::exp(exponent - largest)));
    worth_.clear();
    order_.clear();
    for (int32_t i = 0; i < instance_.buffers(); ++i) {
      const int32_t end = instance_.end[i];
      const double until =
          end <= instance_.slots ? before[end] : before.back() + before[end - instance_.slots];
      worth_.push_back(until - before[instance_.begin[i]]);
      if (instance_.is_free(i)) order_.push_back(i);
    }
    std::ranges::sort(order_, [&](int32_t a, int32_t b) {
      if (worth_[a] != worth_[b]) return worth_[a] > worth_[b];
      return instance_.size[a] != instance_.size[b] ? instance_.size[a] > instance_.size[b] : a < b;
    });
    values_.clear();
    if (chains_) {
      for (const double worth : worth_) values_.push_back(std::pow(worth, kPowerInChain));
    }
    search_.Stop(instance_.buffers());
  }

  Search& search_;
  const Instance& instance_;
  const std::string_view name_;
  const bool chains_;
  BestFit best_fit_;
  double largest_load_ = 1;
  std::vector<double> exponents_;  // of the prices, by slot
  std::vector<double> worth_;      // by buffer
  std::vector<double> values_;     // by buffer, in chains
  std::vector<int32_t> order_;
  bool placing_ = false;  // a pass has begun
  int64_t passes_ = 0;
  int64_t failed_ = 0;
};

Turn Begin(Search& search, std::string_view name, bool chains) {
  return [best_fit = std::make_shared<PricedBestFit>(search, name, chains)] { return best_fit->Run(); };
}

}  // namespace

void PlaceByBestFit(Search& search, std::string_view name) {
  PricedBestFit(search, name, /*chains=*/false).Run();
}

Turn BeginBestFit(Search& search, std::string_view name) { return Begin(search, name, /*chains=*/false); }

Turn BeginChains(Search& search, std::string_view name) { return Begin(search, name, /*chains=*/true); }

Turn BeginLargeByBestFit(Search& search, std::string_view name) {
  return [&search, name, of_small = kMostOfSmall, turn = Turn()]() mutable {
    for (;;) {
      if (!turn) turn = BeginLargeFirst(search, name, BeginBestFit, 1 - of_small);
      if (turn()) return true;
      turn = nullptr;
      of_small /= 2;
      if (of_small < kLeastOfSmall) return false;
      if (search.Stop(search.instance().buffers())) return true;
    }
  };
}

}  // namespace reprise::planner
