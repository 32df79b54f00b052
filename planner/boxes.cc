#include "planner/boxes.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace reprise::planner {
namespace {

// The least and the largest of some values.
struct Spread {
  int32_t least;
  int32_t most;
  int32_t Width() const { return most - least; }
};

class Packing {
 public:
  Packing(const Instance& whole, int64_t height) : whole_(whole), height_(height) {
    boxes_.instance.slots = whole.slots;
    std::vector<int32_t> small;
    for (int32_t i = 0; i < whole.buffers(); ++i) {
      if (!whole.is_free(i) && !whole.is_pinned(i)) continue;
      if (whole.is_free(i) && whole.size[i] < height) {
        small.push_back(i);
      } else {
        Add({&i, 1});
      }
    }
    if (!small.empty()) Divide(small);
  }

  Boxes Take() {
    boxes_.first_member.push_back(static_cast<int32_t>(boxes_.members.size()));
    boxes_.instance.first_range.push_back(static_cast<int32_t>(boxes_.instance.all_ranges.size()));
    return std::move(boxes_);
  }

 private:
  int64_t Room(int32_t buffer) const { return RoundUpTo(whole_.size[buffer], whole_.alignment[buffer]); }

  static Spread SpreadOf(const std::vector<int32_t>& values, std::span<const int32_t> buffers) {
    const auto [least, most] = std::ranges::minmax(buffers, {}, [&](int32_t i) { return values[i]; });
    return {values[least], values[most]};
  }

  void Divide(std::span<int32_t> buffers) {
    const Spread begins = SpreadOf(whole_.begin, buffers), ends = SpreadOf(whole_.end, buffers);
    int64_t room = 0;
    for (int32_t i : buffers) room += Room(i);
    if (room <= height_ || buffers.size() == 1) return Add(buffers);
    const bool by_begin = begins.Width() >= ends.Width();
    const auto& first = by_begin ? whole_.begin : whole_.end;
    const auto& second = by_begin ? whole_.end : whole_.begin;
    std::ranges::sort(buffers, {}, [&](int32_t i) { return std::tuple(first[i], second[i], i); });
    size_t half = 0;
    for (int64_t below = 0; half + 1 < buffers.size(); ++half) {
      below += Room(buffers[half]);
      if (half > 0 && below > room / 2) break;
    }
    half = std::max<size_t>(half, 1);
    Divide(buffers.first(half));
    Divide(buffers.subspan(half));
  }

  void Add(std::span<const int32_t> buffers) {
    const int32_t begin = SpreadOf(whole_.begin, buffers).least;
    const int32_t end = std::min(SpreadOf(whole_.end, buffers).most, begin + whole_.slots);
    const bool alone = buffers.size() == 1;
    int64_t size = alone ? whole_.size[buffers.front()] : 0;
    int64_t alignment = 1;
    for (int32_t i : buffers) {
      if (!alone) size += Room(i);
      alignment = std::max(alignment, whole_.alignment[i]);
    }
    Instance& instance = boxes_.instance;
    instance.begin.push_back(begin);
    instance.end.push_back(end);
    instance.size.push_back(size);
    instance.alignment.push_back(alignment);
    instance.pinned.push_back(whole_.pinned[buffers.front()]);
    instance.first_range.push_back(static_cast<int32_t>(instance.all_ranges.size()));
    if (end > whole_.slots) {
      instance.cyclic = true;
      if (end - begin == whole_.slots) {
        instance.all_ranges.push_back({0, whole_.slots});
      } else {
        instance.all_ranges.push_back({0, end - whole_.slots});
        instance.all_ranges.push_back({begin, whole_.slots});
      }
    } else {
      instance.all_ranges.push_back({begin, end});
    }
    boxes_.first_member.push_back(static_cast<int32_t>(boxes_.members.size()));
    boxes_.members.insert(boxes_.members.end(), buffers.begin(), buffers.end());
  }

  const Instance& whole_;
  const int64_t height_;
  Boxes boxes_;
};

}  // namespace

Boxes BoxesOf(const Instance& whole, int64_t height) { return Packing(whole, height).Take(); }

}  // namespace reprise::planner
