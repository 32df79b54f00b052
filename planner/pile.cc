#include "planner/pile.h"

#include <algorithm>
#include <limits>

namespace reprise::planner {
namespace {

int64_t RoundUpTo(int64_t value, int64_t step) {
  return step == 1 ? value : (value + step - 1) / step * step;
}

}  // namespace

Pile::Pile(const Instance& instance)
    : instance_(instance),
      slots_(instance.slots),
      offset_(instance.buffers(), kNowhere),
      lower_(instance.buffers() + 1),
      upper_(instance.buffers() + 1) {}

void Pile::Clear() {
  bottoms_.clear();
  tops_.clear();
  std::ranges::fill(offset_, kNowhere);
}

Pile::Entries::iterator Pile::Find(Entries& entries, int64_t height) {
  return std::ranges::lower_bound(entries, height, {}, &Entry::height);
}

void Pile::Insert(Entries& entries, Entry entry) { entries.insert(Find(entries, entry.height), entry); }

void Pile::Erase(Entries& entries, int64_t height, int32_t buffer) {
  auto it = Find(entries, height);
  while (it->buffer != buffer) ++it;
  entries.erase(it);
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

// Fills `edges` with the entries from the first on that share a slot with `buffer`, as long as they are below
// `below`, and puts one at the end that no sweep reaches. Without a branch on what shares one: that is as
// good as random.
size_t Pile::Meeting(int32_t buffer, const Entries& entries, int64_t below, std::vector<Edge>& edges) {
  const int32_t begin = instance_.begin[buffer], length = instance_.length(buffer);
  size_t found = 0;
  auto entry = entries.begin();
  for (; entry != entries.end() && entry->height < below; ++entry) {
    edges[found] = {entry->height, entry->cost};
    found += Together(begin, length, *entry) ? 1 : 0;
  }
  looks_ += entry - entries.begin();
  edges[found] = {std::numeric_limits<int64_t>::max(), 0};
  return found;
}

Pile::Spot Pile::Cheapest(int32_t buffer, int64_t height) {
  const int64_t size = instance_.size[buffer];
  const int64_t alignment = instance_.alignment[buffer];
  Spot best{kNowhere, kImmovable};
  if (size > height) return best;
  Meeting(buffer, bottoms_, height, lower_);
  const size_t uppers = Meeting(buffer, tops_, height - size + 1, upper_);
  int64_t cost = 0;
  int64_t offset = 0;
  for (size_t lower = 0, upper = 0;; offset = RoundUpTo(upper_[upper].height, alignment)) {
    if (offset + size > height) break;
    for (; lower_[lower].height < offset + size; ++lower) cost += lower_[lower].cost;
    for (; upper_[upper].height <= offset; ++upper) cost -= upper_[upper].cost;
    if (cost < best.cost) best = {offset, cost};
    if (cost == 0 || upper == uppers) break;
  }
  return best;
}

const std::vector<int32_t>& Pile::InTheWay(int32_t buffer, int64_t offset) {
  const int32_t begin = instance_.begin[buffer], length = instance_.length(buffer);
  const int64_t top = offset + instance_.size[buffer];
  in_the_way_.clear();
  auto entry = bottoms_.begin();
  for (; entry != bottoms_.end() && entry->height < top; ++entry) {
    if (entry->height + instance_.size[entry->buffer] > offset && Together(begin, length, *entry))
      in_the_way_.push_back(entry->buffer);
  }
  looks_ += entry - bottoms_.begin();
  return in_the_way_;
}

}  // namespace reprise::planner
