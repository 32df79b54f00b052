#include "planner/keep.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "planner/ejector.h"
#include "planner/first_fit.h"
#include "planner/problem.h"
#include "planner/search.h"

namespace reprise::planner {
namespace {

// Moves of the search for room: some, and one for so many buffers. Where it takes more there mostly is none.
constexpr int64_t kLeastMoves = 1000;
constexpr int64_t kBuffersPerMove = 4;
constexpr size_t kBuffersBetweenLooks = 64;

class Keeper {
 public:
  // `instance` is the problem's and must outlive the keeper.
  Keeper(const Problem& problem, const Instance& instance, int64_t limit, const std::function<bool()>& stop)
      : instance_(instance), first_fit_(instance_), limit_(limit), stop_(stop), offsets_(instance_.pinned) {
    for (int32_t i = 0; i < instance_.buffers(); ++i) {
      const std::optional<Offset>& previous = problem.buffers[i].previous;
      previous_.push_back(previous ? previous->count() : Search::kNothing);
      if (instance_.is_free(i)) buffers_.push_back(i);
    }
    std::sort(buffers_.begin(), buffers_.end(), [&](int32_t a, int32_t b) {
      return previous_[a] != previous_[b] ? previous_[a] < previous_[b] : a < b;
    });
  }

  // False where not all find room below the limit.
  bool Run() {
    const std::vector<int32_t> homeless = LayAll();
    return !stopped_ && (homeless.empty() || MakeRoomFor(homeless));
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t slab() const { return SlabOf(instance_, offsets_); }

 private:
  // Returns the buffers that would end above the limit.
  std::vector<int32_t> LayAll() {
    first_fit_.Clear();  // but for what is pinned
    std::vector<int32_t> rest;
    std::vector<int32_t> homeless;
    for (const int32_t buffer : buffers_) {
      if (Stopped()) return {};
      if (previous_[buffer] != Search::kNothing && Fits(buffer, previous_[buffer])) {
        Put(buffer, previous_[buffer]);
      } else {
        rest.push_back(buffer);
      }
    }
    std::stable_sort(rest.begin(), rest.end(),
                     [&](int32_t a, int32_t b) { return instance_.size[a] > instance_.size[b]; });
    for (const int32_t buffer : rest) {
      if (Stopped()) return {};
      const int64_t offset = first_fit_.LowestFree(buffer);
      if (offset + instance_.size[buffer] > limit_) {
        homeless.push_back(buffer);
      } else {
        Put(buffer, offset);
      }
    }
    return homeless;
  }

  // False where there is none, or it takes too long.
  bool MakeRoomFor(const std::vector<int32_t>& homeless) {
    Ejector ejector(instance_, limit_, static_cast<double>(limit_) * instance_.slots);
    for (int32_t i = 0; i < instance_.buffers(); ++i) {
      if (offsets_[i] >= 0) ejector.Put(i, offsets_[i]);
    }
    for (const int32_t buffer : homeless) ejector.Wait(buffer);
    for (int64_t moves = kLeastMoves + instance_.buffers() / kBuffersPerMove; ejector.anybody_waits();
         --moves) {
      if (moves == 0 || stop_() || !ejector.Move(limit_)) return false;
    }
    for (const int32_t buffer : buffers_) offsets_[buffer] = ejector.pile().offset(buffer);
    return true;
  }

  // Asked for each buffer; looks every few of them.
  bool Stopped() {
    if (asked_++ % kBuffersBetweenLooks == 0) stopped_ = stopped_ || stop_();
    return stopped_;
  }

  bool Fits(int32_t buffer, int64_t offset) {
    return offset >= 0 && offset % instance_.alignment[buffer] == 0 &&
           offset <= limit_ - instance_.size[buffer] && first_fit_.LowestFree(buffer, offset) == offset;
  }

  void Put(int32_t buffer, int64_t offset) {
    first_fit_.Insert(buffer, offset);
    offsets_[buffer] = offset;
  }

  const Instance& instance_;
  FirstFit first_fit_;
  const int64_t limit_;
  const std::function<bool()>& stop_;
  size_t asked_ = 0;
  bool stopped_ = false;
  std::vector<int64_t> offsets_;
  std::vector<int64_t> previous_;  // by buffer: where it was; Search::kNothing: nowhere
  std::vector<int32_t> buffers_;   // the free ones, from the bottom up as they were
};

// The height up to which an obstacle fills everything, at all times, as the lanes below one do.
int64_t FloorOf(const Instance& instance) {
  int64_t floor = 0;
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    if (instance.is_pinned(i) && instance.pinned[i] == 0 && instance.ranges(i).front().begin == 0 &&
        instance.ranges(i).front().end == instance.slots)
      floor = std::max(floor, instance.size[i]);
  }
  return floor;
}

}  // namespace

bool HasPrevious(const Problem& problem) {
  return std::any_of(problem.buffers.begin(), problem.buffers.end(),
                     [](const Buffer& buffer) { return buffer.previous.has_value(); });
}

void KeepPrevious(const Problem& problem, const std::function<bool()>& stop, Solution& solution) {
  if (!HasPrevious(problem) || stop()) return;
  try {
    const Bytes slab = solution.placement.slab;
    const Instance instance = Compress(problem);
    const int64_t own = std::max<int64_t>(0, slab.count() - FloorOf(instance));
    Bytes limit = slab + Bytes(static_cast<int64_t>(static_cast<double>(own) * kPriceOfKeeping));
    if (problem.capacity && slab <= *problem.capacity) limit = std::min(limit, *problem.capacity);
    Keeper keeper(problem, instance, limit.count(), stop);
    if (!keeper.Run()) return;
    for (size_t i = 0; i < keeper.offsets().size(); ++i)
      solution.placement.offsets[i] = Offset(keeper.offsets()[i]);
    solution.placement.slab = Bytes(keeper.slab());
    solution.proven_optimal = solution.placement.slab == solution.lower_bound;
    solution.solver = "keep-previous";
  } catch (const std::bad_alloc&) {  // nothing of the solution has changed yet
  }
}

void AdoptPrevious(std::span<const Bytes> sizes, std::span<const Offset> offsets, Problem& problem) {
  constexpr size_t kLookAhead = 64;
  std::vector<Buffer>& buffers = problem.buffers;
  size_t i = 0;
  size_t k = 0;
  // How many buffers of the problem, or else of the earlier one, are to be passed over.
  const auto skip = [&] {
    for (size_t d = 1; d < kLookAhead; ++d) {
      if (i + d < buffers.size() && buffers[i + d].size == sizes[k]) return std::pair(d, size_t{0});
      if (k + d < sizes.size() && buffers[i].size == sizes[k + d]) return std::pair(size_t{0}, d);
    }
    return std::pair(size_t{1}, size_t{1});
  };
  while (i < buffers.size() && k < sizes.size()) {
    if (buffers[i].size != sizes[k]) {
      const auto [new_ones, old_ones] = skip();
      i += new_ones;
      k += old_ones;
      continue;
    }
    if (offsets[k] != kOutside) buffers[i].previous = offsets[k];
    ++i;
    ++k;
  }
}

std::optional<double> ShareKept(const Problem& problem, const Placement& placement) {
  int64_t had = 0;
  int64_t kept = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (!problem.buffers[i].previous) continue;
    ++had;
    kept += placement.offsets[i] == *problem.buffers[i].previous;
  }
  if (had == 0) return std::nullopt;
  return static_cast<double>(kept) / static_cast<double>(had);
}

}  // namespace reprise::planner
