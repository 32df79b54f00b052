#include "planner/eject.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "planner/boxes.h"
#include "planner/ejector.h"
#include "planner/first_fit.h"
#include "planner/large_first.h"
#include "planner/orders.h"

namespace reprise::planner {
namespace {

// The heights of boxes, of the target, from coarse to fine.
constexpr double kBoxHeights[] = {2e-4, 5e-5, 0};
constexpr double kHardlyMore = 1.2;

// More take too long: to be put into boxes, which nothing interrupts, and to be looked at in each move.
constexpr int32_t kMostBuffers = 200'000;
constexpr int32_t kMostBoxes = 30'000;
constexpr int64_t kPileLooksPerStep = 48;

// Of the way from the best slab to the target: the first leap, and from which on the boxes are too coarse.
constexpr double kFirstLeaps[kMostThreads] = {0.7, 0.2};
constexpr double kFirstLeapOfLarge = 0.4;
constexpr double kLeastLeap = 0.05;

// For each box, until a leap is given up; and in a row, until all is.
constexpr int64_t kMovesPerLeap = 10;
constexpr int64_t kMovesUntilGivingUp = 100;

// A box is slight if it lives for at most this share of the ring and has less than this part of the mean
// area: tall ones are hard to place even when they do not live for long.
constexpr double kBriefLife = 0.05;
constexpr double kLittleArea = 0.25;

// Obstacles, which are left out, may lie above the slab.
int64_t LargestFreeLoad(const Instance& instance) {
  int64_t largest = 0;
  const auto is_free = [&](int32_t i) { return instance.is_free(i); };
  for (const int64_t load : LoadOfSlots(instance, is_free)) largest = std::max(largest, load);
  return largest;
}

// Boxes of one grain, and where they lie.
struct Crate {
  Crate(const Instance& whole, Boxes of_whole, int64_t height)
      : boxes(std::move(of_whole)),
        first_fit(boxes.instance),
        largest_load(LargestFreeLoad(boxes.instance)),
        waste(largest_load - LargestFreeLoad(whole)),
        ejector(boxes.instance, height, static_cast<double>(largest_load) * boxes.instance.slots) {
    SetAside();
  }

  // Slight ones would hardly ever be in the way, and be looked at in every move.
  void SetAside() {
    const Instance& all = boxes.instance;
    const auto area = [&](int32_t i) { return static_cast<double>(all.size[i]) * all.length(i); };
    double sum = 0;
    for (int32_t i = 0; i < all.buffers(); ++i) sum += area(i);
    for (int32_t i = 0; i < all.buffers(); ++i) {
      aside.push_back(!all.is_pinned(i) && all.length(i) <= kBriefLife * all.slots &&
                      area(i) * all.buffers() < kLittleArea * sum);
    }
  }

  Boxes boxes;
  FirstFit first_fit;
  const int64_t largest_load;  // no height below it can be reached with these boxes
  const int64_t waste;         // what they add to it
  Ejector ejector;
  std::vector<bool> aside;       // slight ones, that first-fit has found room for so far
  std::vector<int64_t> offsets;  // of the boxes
  int64_t slab = -1;             // the best one at the time
};

class Ejection {
 public:
  Ejection(Search& search, std::string_view name, double first_leap)
      : search_(search), name_(name), first_leap_(first_leap), first_fit_(search.instance()) {}

  // False when there is nothing more to try.
  bool Run() {
    if (search_.best_slab() == Search::kNothing && !PlaceSomehow()) return true;
    for (;;) {
      if (search_.Stop(1)) return true;
      if (height_ >= search_.best_slab()) height_ = -1;  // others were faster
      if (height_ < 0 && !Aim()) return false;
      switch (Move()) {
        case FirstFit::Outcome::kStopped:
          return true;
        case FirstFit::Outcome::kTooHigh:
          leap_ /= 2;
          height_ = -1;
          break;
        case FirstFit::Outcome::kComplete:
          if (!Unpack()) return true;
          // Boxes know nothing of gaps: what they reach need not be better.
          leap_ = failed_ == 0 ? first_leap_ : leap_ / 2;
          height_ = -1;
      }
    }
  }

 private:
  bool PlaceSomehow() {
    const std::vector<int32_t> order = SortedBy(Order::kSize, search_.instance());
    if (first_fit_.Place(order, Search::kNothing, search_, offsets_) != FirstFit::Outcome::kComplete)
      return false;
    search_.Offer(offsets_, name_, order);
    return true;
  }

  // Chooses the next height and takes out what ends above it. False: there is none left to try.
  bool Aim() {
    for (;; crate_.reset(), ++grain_, leap_ = first_leap_) {
      if (grain_ == std::size(kBoxHeights)) return false;
      if (leap_ < kLeastLeap) continue;
      if (crate_ == nullptr) {
        crate_ = std::make_unique<Crate>(search_.instance(), NextBoxes(), search_.best_slab());
      }
      const int32_t boxes = crate_->boxes.instance.buffers();
      if (boxes > kMostBoxes || failed_ > kMovesUntilGivingUp * boxes) return false;
      const int64_t least = std::max(search_.target(), crate_->largest_load);
      const int64_t way = search_.best_slab() - least;
      if (way <= 0) continue;
      const auto leap = static_cast<int64_t>(leap_ * static_cast<double>(way));
      height_ = search_.best_slab() - std::max<int64_t>(1, leap);
      TakeOut();
      return true;
    }
  }

  // Of the grain, or of a finer one that has hardly more boxes: coarse ones waste more and save little.
  Boxes NextBoxes() {
    Boxes boxes = BoxesOfGrain(grain_);
    while (grain_ + 1 < std::size(kBoxHeights)) {
      Boxes finer = BoxesOfGrain(grain_ + 1);
      if (finer.instance.buffers() > kHardlyMore * boxes.instance.buffers()) break;
      boxes = std::move(finer);
      ++grain_;
    }
    return boxes;
  }

  Boxes BoxesOfGrain(size_t grain) {
    search_.Stop(search_.instance().buffers());
    const double height = kBoxHeights[grain] * static_cast<double>(search_.target());
    return BoxesOf(search_.instance(), static_cast<int64_t>(height));
  }

  void TakeOut() {
    const Instance& boxes = crate_->boxes.instance;
    if (crate_->slab != search_.best_slab()) LayBoxes();
    crate_->ejector.Clear();
    moves_ = 0;
    for (int32_t box = 0; box < boxes.buffers(); ++box) {
      if (crate_->aside[box]) continue;
      if (boxes.is_pinned(box)) {
        crate_->ejector.Put(box, boxes.pinned[box]);
      } else if (crate_->offsets[box] + boxes.size[box] > height_) {
        crate_->ejector.Wait(box);
      } else {
        crate_->ejector.Put(box, crate_->offsets[box]);
      }
    }
  }

  // First-fit, each box where the lowest of its members has its turn in the best placement.
  void LayBoxes() {
    const std::vector<int64_t>& best = search_.best();
    std::vector<int64_t> lowest;
    for (int32_t box = 0; box < crate_->boxes.instance.buffers(); ++box) {
      const std::span<const int32_t> members = crate_->boxes.of(box);
      lowest.push_back(best[*std::ranges::min_element(members, {}, [&](int32_t i) { return best[i]; })]);
    }
    Settle(lowest);
    crate_->slab = search_.best_slab();
  }

  void Settle(const std::vector<int64_t>& offsets) {
    crate_->first_fit.Clear();
    crate_->offsets = crate_->boxes.instance.pinned;
    for (int32_t box : InOrderOfOffsets(crate_->boxes.instance, offsets)) {
      crate_->offsets[box] = crate_->first_fit.LowestFree(box);
      crate_->first_fit.Insert(box, crate_->offsets[box]);
    }
    search_.Stop(kStepsOfFirstFit * crate_->boxes.instance.buffers());
  }

  FirstFit::Outcome Move() {
    Ejector& ejector = crate_->ejector;
    const Pile& pile = ejector.pile();
    const int32_t boxes = crate_->boxes.instance.buffers();
    const int64_t most = kMovesPerLeap * boxes;
    for (;;) {
      if (!ejector.anybody_waits()) {
        SettleAll();
        if (!TakeIn()) return FirstFit::Outcome::kComplete;
      }
      const int64_t looks = pile.looks();
      if (!ejector.Move(height_)) return FirstFit::Outcome::kTooHigh;
      ++failed_;
      if (++moves_ > most) return FirstFit::Outcome::kTooHigh;
      if (moves_ % boxes == 0) {
        SettleAll();
        if (!Unpack()) return FirstFit::Outcome::kStopped;
      }
      if (search_.Stop(1 + (pile.looks() - looks) / kPileLooksPerStep)) return FirstFit::Outcome::kStopped;
    }
  }

  // Those aside that came out above the height aimed at wait for a place from now on. False: there are none.
  bool TakeIn() {
    const Instance& boxes = crate_->boxes.instance;
    for (int32_t box = 0; box < boxes.buffers(); ++box) {
      if (!crate_->aside[box] || crate_->offsets[box] + boxes.size[box] <= height_) continue;
      crate_->aside[box] = false;
      crate_->ejector.Wait(box);
    }
    return crate_->ejector.anybody_waits();
  }

  // From the pile; boxes that wait or are aside come last, the largest first.
  void SettleAll() {
    const Instance& boxes = crate_->boxes.instance;
    const Pile& pile = crate_->ejector.pile();
    std::vector<int64_t> offsets(boxes.buffers());
    for (int32_t box = 0; box < boxes.buffers(); ++box) {
      offsets[box] = pile.has(box) ? pile.offset(box) : 2 * height_ - boxes.size[box];
    }
    Settle(offsets);
    crate_->slab = -1;  // these boxes do not lie as in the best placement
  }

  // Places every buffer as its box has settled. Even while some wait, that may be the best so far. False: the
  // search is over.
  bool Unpack() {
    const Instance& boxes = crate_->boxes.instance;
    // To place every buffer wins back what the boxes waste: hardly more than twice what they add to the load.
    if (SlabOf(boxes, crate_->offsets) - 2 * crate_->waste >= search_.best_slab()) return true;
    std::vector<int32_t> order;
    for (int32_t box : InOrderOfOffsets(boxes, crate_->offsets)) {
      const std::span<const int32_t> members = crate_->boxes.of(box);
      order.insert(order.end(), members.begin(), members.end());
    }
    // What was granted may end meanwhile: done again and again, it might never be enough.
    offsets_ = search_.instance().pinned;
    search_.Stop(first_fit_.Clear());
    for (int32_t i : order) {
      search_.Stop(kStepsOfFirstFit);
      if (search_.Over()) return false;
      offsets_[i] = first_fit_.LowestFree(i);
      if (offsets_[i] + search_.instance().size[i] >= search_.best_slab()) return true;
      first_fit_.Insert(i, offsets_[i]);
    }
    search_.Offer(offsets_, name_, order);
    crate_->slab = search_.best_slab();
    failed_ = 0;
    return true;
  }

  static constexpr int64_t kStepsOfFirstFit = 20;  // a buffer

  Search& search_;
  const std::string_view name_;
  const double first_leap_;
  FirstFit first_fit_;
  size_t grain_ = 0;
  double leap_ = first_leap_;
  std::unique_ptr<Crate> crate_;
  int64_t height_ = -1;  // aimed at
  int64_t moves_ = 0;
  int64_t failed_ = 0;  // moves since the last better placement
  std::vector<int64_t> offsets_;
};

Turn BeginAt(double first_leap, Search& search, std::string_view name) {
  if (search.instance().buffers() > kMostBuffers) return [] { return false; };
  return [ejection = std::make_shared<Ejection>(search, name, first_leap)] { return ejection->Run(); };
}

Turn BeginLarge(Search& search, std::string_view name) { return BeginAt(kFirstLeapOfLarge, search, name); }

}  // namespace

Turn BeginEject(Search& search, std::string_view name) {
  Turn all = BeginAt(kFirstLeaps[search.worker()], search, name);
  // On a line the hybrid has laid the large ones already.
  const bool begins_with_large = search.worker() == 0 && search.instance().cyclic;
  if (!begins_with_large || !search.on(kEjectLargeFirst)) return all;
  return [all = std::move(all), large = BeginLargeFirst(search, name, BeginLarge)]() mutable {
    if (large != nullptr && large()) return true;
    large = nullptr;
    return all();
  };
}

}  // namespace reprise::planner
