#include "planner/ejector.h"

#include <algorithm>
#include <cmath>

namespace reprise::planner {
namespace {

constexpr double kWorthOfTheWhole = 1 << 20;

}  // namespace

Ejector::Ejector(const Instance& instance, int64_t height, double area)
    : instance_(instance), pile_(instance, height), price_(instance.buffers(), 1) {
  for (int32_t i = 0; i < instance.buffers(); ++i) {
    const double share = static_cast<double>(instance.size[i]) * instance.length(i) / area;
    worth_.push_back(1 + static_cast<int64_t>(kWorthOfTheWhole * std::sqrt(share)));
  }
}

void Ejector::Clear() {
  pile_.Clear();
  std::ranges::fill(price_, 1);
  waiting_ = {};
}

void Ejector::Put(int32_t buffer, int64_t offset) {
  pile_.Put(buffer, offset, instance_.is_pinned(buffer) ? Pile::kImmovable : worth_[buffer] * price_[buffer]);
}

bool Ejector::Move(int64_t height) {
  const int32_t buffer = waiting_.top().second;
  const Pile::Spot spot = pile_.Cheapest(buffer, height);
  if (spot.cost >= Pile::kImmovable) return false;
  waiting_.pop();
  if (spot.cost > 0) {
    ++price_[buffer];
    for (const int32_t other : pile_.InTheWay(buffer, spot.offset)) {
      pile_.Take(other);
      Wait(other);
    }
  }
  Put(buffer, spot.offset);
  return true;
}

}  // namespace reprise::planner
