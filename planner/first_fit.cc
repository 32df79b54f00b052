#include "planner/first_fit.h"

#include <algorithm>
#include <utility>

namespace reprise::planner {
namespace {

constexpr size_t kPollMask = 63;  // buffers between two polls, less one

constexpr int32_t kBranches =
    8;  // of a node; fewer make more levels to insert into, more make more canonical nodes

// Intervals that each buffer may have in its way on average, and any one at least: far more than where holes
// are of use. Where none of many is large enough, they would be walked through anew for every buffer.
constexpr int64_t kLooks = 512;

// The first node of each level, from the words up to the root, and one past it.
std::vector<int32_t> LevelsOver(int32_t words) {
  std::vector<int32_t> begin = {0};
  for (int32_t width = words;; width = (width + kBranches - 1) / kBranches) {
    begin.push_back(begin.back() + width);
    if (width == 1) return begin;
  }
}

}  // namespace

FirstFit::FirstFit(const Instance& instance, IntervalLists& memory)
    : instance_(instance),
      words_(instance),
      level_begin_(LevelsOver(words_.count())),
      sets_(memory),
      // From the bottom up: in the middle of a list an insertion moves half of it.
      pinned_(PinnedBuffers(instance)),
      seen_(level_begin_.back(), 0) {
  sets_.Reset(2 * level_begin_.back());
  for (const int32_t i : pinned_)
    top_of_pinned_ = std::max(top_of_pinned_, instance.pinned[i] + instance.size[i]);
}

FirstFit::Outcome FirstFit::Place(std::span<const int32_t> order, int64_t limit, Search& search,
                                  std::vector<int64_t>& offsets) {
  offsets = instance_.pinned;
  int64_t steps = Clear();  // looked at since the last poll
  for (size_t i = 0; i < order.size(); ++i) {
    if ((i & kPollMask) == kPollMask && search.Stop(std::exchange(steps, 0))) return Outcome::kStopped;
    const int32_t buffer = order[i];
    offsets[buffer] = LowestFree(buffer);
    steps += Nodes();
    if (offsets[buffer] + instance_.size[buffer] > limit) {
      too_high_ = buffer;
      search.Stop(steps);
      return Outcome::kTooHigh;
    }
    Insert(buffer, offsets[buffer]);
  }
  search.Stop(steps);
  return Outcome::kComplete;
}

void FirstFit::FindNodes(int32_t buffer) {
  canonical_.clear();
  above_.clear();
  parts_.clear();
  ++round_;
  for (const Range& range : instance_.ranges(buffer)) AddWords(words_.Split(range, parts_));
  for (const SlotWords::Part& part : parts_) AddPath(0, part.word);
}

void FirstFit::AddWords(Range words) {
  auto [low, high] = words;
  for (int32_t level = 0; low < high; ++level) {
    const auto add = [&](int32_t index) {
      canonical_.push_back(level_begin_[level] + index);
      AddPath(level + 1, index / kBranches);
    };
    // A last node that has fewer branches is covered if those are.
    const int32_t width = level_begin_[level + 1] - level_begin_[level];
    if (high == width && width > 1) high = (width + kBranches - 1) / kBranches * kBranches;
    for (; low < high && low % kBranches != 0; ++low) {
      if (low < width) add(low);
    }
    while (low < high && high % kBranches != 0) add(--high);
    low /= kBranches;
    high /= kBranches;
  }
}

void FirstFit::AddPath(int32_t level, int32_t index) {
  const int32_t levels = static_cast<int32_t>(level_begin_.size()) - 1;
  for (; level < levels; ++level, index /= kBranches) {
    const int32_t node = level_begin_[level] + index;
    if (seen_[node] == round_) return;
    seen_[node] = round_;
    above_.push_back(node);
  }
}

int64_t FirstFit::Clear() {
  sets_.Clear();
  words_.Clear();
  spare_looks_ = kLooks * instance_.buffers();
  resorts_ = 0;
  int64_t steps = 0;
  for (int32_t buffer : pinned_) {
    FindNodes(buffer);
    Insert(buffer, instance_.pinned[buffer]);
    steps += Nodes();
  }
  return steps;
}

int64_t FirstFit::LowestFree(int32_t buffer, int64_t from) {
  FindNodes(buffer);
  blockers_.clear();
  // The largest nodes first: they leave the fewest holes.
  for (auto node = canonical_.rbegin(); node != canonical_.rend(); ++node) {
    if (!sets_.Empty(Any(*node))) blockers_.push_back(sets_.Begin(Any(*node)));
  }
  for (int32_t node : above_) {
    if (!sets_.Empty(Cover(node))) blockers_.push_back(sets_.Begin(Cover(node)));
  }
  word_blockers_.clear();
  for (const SlotWords::Part& part : parts_) word_blockers_.push_back(words_.Begin(part));
  const int64_t size = instance_.size[buffer];
  const int64_t alignment = instance_.alignment[buffer];
  int64_t address = RoundUpTo(from, alignment);
  looks_ = kLooks + spare_looks_;
  for (;;) {
    const int64_t leapt = LeapSets(address, size, alignment);
    address = leapt;
    if (looks_ == 0) {
      address = RoundUpTo(std::max(address, address < top_of_pinned_ ? top_of_pinned_ : TopOfBlockers()),
                          alignment);
      spare_looks_ = 0;
      looks_ = kLooks;
      ++resorts_;
      continue;
    }
    for (SlotWords::Cursor& word : word_blockers_) address = SlotWords::Leap(word, address, size, alignment);
    if (address == leapt) break;
  }
  spare_looks_ = std::min(spare_looks_, looks_);
  return address;
}

int64_t FirstFit::TopOfBlockers() const {
  int64_t top = 0;
  for (const IntervalLists::Cursor& set : blockers_) top = std::max(top, set.last[-1].end);
  for (const SlotWords::Cursor& word : word_blockers_) top = std::max(top, SlotWords::Top(word));
  return top;
}

int64_t FirstFit::LeapSets(int64_t address, int64_t size, int64_t alignment) {
  // A set that asks for a leap comes sooner from then on, and those before it are asked again: who objected
  // often is the likeliest to object next.
  for (size_t i = 0; i < blockers_.size() && looks_ > 0;) {
    const int64_t leapt = IntervalLists::Leap(blockers_[i], address, size, alignment, looks_);
    if (leapt == address || i == 0) {
      ++i;
    } else {
      std::swap(blockers_[i], blockers_[i / 2]);
      i = 0;
    }
    address = leapt;
  }
  return address;
}

void FirstFit::Insert(int32_t buffer, int64_t offset) {
  const int64_t end = offset + instance_.size[buffer];
  for (int32_t node : canonical_) {
    // Nobody asks what covers a word of one slot: there is nothing below it.
    if (node >= level_begin_[1] || words_.has_parts(node)) sets_.Insert(Cover(node), offset, end);
    sets_.Insert(Any(node), offset, end);
  }
  for (const SlotWords::Part& part : parts_) words_.Insert(part, offset, end);
  for (int32_t node : above_) sets_.Insert(Any(node), offset, end);
}

void PlaceBelowBest(FirstFit& first_fit, const std::vector<int32_t>& order, Search& search,
                    std::string_view solver) {
  std::vector<int64_t> offsets;
  const auto outcome = first_fit.Place(order, search.best_slab() - 1, search, offsets);
  if (outcome == FirstFit::Outcome::kComplete) search.Offer(offsets, solver, order);
}

}  // namespace reprise::planner
