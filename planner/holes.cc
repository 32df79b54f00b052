#include "planner/holes.h"

#include <iterator>

#include "planner/problem.h"

namespace reprise::planner {

Holes::Holes(int64_t height) {
  const auto ground = tenants_.emplace(-1, Tenant{0, kNever}).first;
  Open(ground, tenants_.emplace(height, Tenant{height, kNever}).first);
}

// Between these two is a hole from now on, unless they touch.
void Holes::Open(Tenants::const_iterator below, Tenants::const_iterator above) {
  const int64_t bottom = below->second.top, bytes = above->first - bottom;
  if (bytes == 0) return;
  edges_.insert({below->second.end, bytes, bottom, false});
  edges_.insert({above->second.end, bytes, bottom, true});
}

void Holes::Close(Tenants::const_iterator below, Tenants::const_iterator above) {
  const int64_t bottom = below->second.top, bytes = above->first - bottom;
  if (bytes == 0) return;
  edges_.erase({below->second.end, bytes, bottom, false});
  edges_.erase({above->second.end, bytes, bottom, true});
}

void Holes::Put(int64_t bottom, int64_t top, int32_t end) {
  const auto above = tenants_.upper_bound(bottom);
  const auto below = std::prev(above);
  Close(below, above);
  const auto tenant = tenants_.emplace_hint(above, bottom, Tenant{top, end});
  Open(below, tenant);
  Open(tenant, above);
}

void Holes::Drop(int64_t bottom) {
  const auto tenant = tenants_.find(bottom);
  const auto below = std::prev(tenant), above = std::next(tenant);
  Close(below, tenant);
  Close(tenant, above);
  tenants_.erase(tenant);
  Open(below, above);
}

// The place in the first hole that has one, of those from `edge` on whose neighbour leaves at `end`; `edge` is the one behind
// them where none has.
int64_t Holes::InGroup(Edges::const_iterator& edge, int32_t end, int64_t bytes, int64_t alignment) {
  for (; edge != edges_.end() && edge->end == end; ++edge) {
    ++looks_;
    const int64_t top = edge->bottom + edge->bytes;
    const int64_t at =
        edge->is_top ? (top - bytes) / alignment * alignment : RoundUpTo(edge->bottom, alignment);
    if (at >= edge->bottom && at + bytes <= top) return at;
  }
  return kNowhere;
}

int64_t Holes::Beside(int32_t end, int64_t bytes, int64_t alignment) {
  // Of the ends not yet looked at the earlier ones are before `earlier`, and the later ones from `later` on.
  Edges::const_iterator later = edges_.lower_bound({end, 0, 0, false}), earlier = later;
  for (;;) {
    ++looks_;
    const bool has_later = later != edges_.end();
    if (!has_later && earlier == edges_.begin()) return kNowhere;
    const bool goes_up = has_later && (earlier == edges_.begin() ||
                                       int64_t{later->end} - end <= int64_t{end} - std::prev(earlier)->end);
    const int32_t at_end = goes_up ? later->end : std::prev(earlier)->end;
    auto edge = edges_.lower_bound({at_end, bytes, 0, false});
    if (const int64_t at = InGroup(edge, at_end, bytes, alignment); at != kNowhere) return at;
    if (goes_up) {
      later = edge;
    } else {
      earlier = edges_.lower_bound({at_end, 0, 0, false});
    }
  }
}

}  // namespace reprise::planner
