#include "planner/pile.h"

#include <algorithm>
#include <limits>

namespace reprise::planner {
namespace {

constexpr int32_t kBuffersOfAShelf = 32;
constexpr int64_t kNoHeight = std::numeric_limits<int64_t>::max() / 2;

}  // namespace

Pile::Pile(const Instance& instance, int64_t height)
    : instance_(instance),
      slots_(instance.slots),
      shelf_height_(1 + height / (1 + instance.buffers() / kBuffersOfAShelf)),
      bottoms_(2 + instance.buffers() / kBuffersOfAShelf),
      tops_(bottoms_.size()),
      offset_(instance.buffers(), kNowhere),
      lower_(instance.buffers() + 1),
      upper_(instance.buffers() + 1) {
  for (int64_t size : instance.size) largest_ = std::max(largest_, size);
}

void Pile::Clear() {
  for (Shelves* shelves : {&bottoms_, &tops_}) {
    for (Shelf& shelf : *shelves) shelf.clear();
  }
  std::ranges::fill(offset_, kNowhere);
}

size_t Pile::ShelfOf(int64_t height) const {
  return std::min(static_cast<size_t>(height / shelf_height_), bottoms_.size() - 1);
}

void Pile::Insert(Shelves& shelves, Entry entry) {
  Shelf& shelf = shelves[ShelfOf(entry.height)];
  shelf.insert(std::ranges::lower_bound(shelf, entry.height, {}, &Entry::height), entry);
}

void Pile::Erase(Shelves& shelves, int64_t height, int32_t buffer) {
  Shelf& shelf = shelves[ShelfOf(height)];
  shelf.erase(std::ranges::find(shelf, buffer, &Entry::buffer));
}

void Pile::Put(int32_t buffer, int64_t offset, int64_t cost) {
  offset_[buffer] = offset;
  const int32_t begin = instance_.begin[buffer], length = instance_.length(buffer);
  Insert(bottoms_, {offset, cost, begin, length, buffer});
  Insert(tops_, {offset + instance_.size[buffer], cost, begin, length, buffer});
}

void Pile::Take(int32_t buffer) {
  Erase(bottoms_, offset_[buffer], buffer);
  Erase(tops_, offset_[buffer] + instance_.size[buffer], buffer);
  offset_[buffer] = kNowhere;
}

// Fills `edges` with the entries that share a slot with `buffer`, on all shelves up to that of `below`, and
// puts one at the end that no sweep reaches. Without a branch on what shares one: that is as good as random.
void Pile::Meeting(int32_t buffer, const Shelves& shelves, int64_t below, std::vector<Edge>& edges) {
  const int32_t begin = instance_.begin[buffer], length = instance_.length(buffer);
  Edge* next = edges.data();
  const size_t last = ShelfOf(below);
  for (size_t k = 0; k <= last; ++k) {
    looks_ += static_cast<int64_t>(shelves[k].size());
    for (const Entry& entry : shelves[k]) {
      *next = {entry.height, entry.cost};
      next += Together(begin, length, entry) ? 1 : 0;
    }
  }
  looks_ += next - edges.data();  // by the sweep
  *next = {kNoHeight, 0};
}

// At each top, from the lowest on, the cost is that of the bottoms below the buffer's top there, less that of
// the tops that do not reach above its bottom.
Pile::Spot Pile::Cheapest(int32_t buffer, int64_t height) {
  const int64_t size = instance_.size[buffer];
  const int64_t alignment = instance_.alignment[buffer];
  Spot best{kNowhere, kImmovable};
  const int64_t highest = height - size;
  if (highest < 0) return best;
  Meeting(buffer, bottoms_, height, lower_);
  Meeting(buffer, tops_, highest, upper_);
  const Edge* lower = lower_.data();
  const Edge* upper = upper_.data();
  int64_t cost = 0;
  for (; lower->height < size; ++lower) cost += lower->cost;
  if (cost < best.cost) best = {0, cost};
  for (int64_t offset = 0; best.cost > 0;) {
    offset = RoundUpTo(upper->height, alignment);
    if (offset > highest) break;
    const bool is_lower = lower->height - size < offset;
    cost += is_lower ? lower->cost : -upper->cost;
    if (cost < best.cost && !is_lower) best = {offset, cost};
    lower += is_lower ? 1 : 0;
    upper += is_lower ? 0 : 1;
  }
  return best;
}

const std::vector<int32_t>& Pile::InTheWay(int32_t buffer, int64_t offset) {
  const int32_t begin = instance_.begin[buffer], length = instance_.length(buffer);
  const int64_t top = offset + instance_.size[buffer];
  in_the_way_.clear();
  const size_t last = ShelfOf(top);
  for (size_t k = ShelfOf(std::max<int64_t>(0, offset - largest_)); k <= last; ++k) {
    looks_ += static_cast<int64_t>(bottoms_[k].size());
    for (const Entry& entry : bottoms_[k]) {
      if (entry.height < top && entry.height + instance_.size[entry.buffer] > offset &&
          Together(begin, length, entry))
        in_the_way_.push_back(entry.buffer);
    }
  }
  return in_the_way_;
}

}  // namespace reprise::planner
