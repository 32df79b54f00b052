#include "profiler/activity_stats.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace reprise::profiler {
namespace {

// The sum of two that are not negative, or the largest there is: a stranger's file may hold any numbers.
int64_t Sum(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

void Count(const Activity& activity, ActivityTotal& total) {
  total.kind = activity.kind;
  ++total.count;
  total.ns = Sum(total.ns, activity.duration_ns);
  total.bytes = Bytes(Sum(total.bytes.count(), activity.bytes.count()));
}

}  // namespace

ActivityStats StatsOf(const std::vector<Activity>& activities, int64_t time_ns) {
  ActivityStats stats;
  for (size_t i = 0; i < kActivityKinds; ++i) stats.by_kind[i].kind = static_cast<ActivityKind>(i);
  absl::flat_hash_map<std::pair<ActivityKind, FrameId>, ActivityTotal> totals;
  for (const Activity& activity : activities) {
    Count(activity, stats.by_kind[static_cast<size_t>(activity.kind)]);
    if (activity.begin_ns <= time_ns && time_ns < activity.begin_ns + activity.duration_ns)
      stats.at.push_back(activity);
    if (activity.kind == ActivityKind::kMarker) continue;
    ActivityTotal& total = totals[{activity.kind, activity.name}];
    total.name = activity.name;
    Count(activity, total);
  }
  for (const auto& [key, total] : totals) stats.by_name.push_back(total);
  std::ranges::sort(stats.by_name, [](const ActivityTotal& a, const ActivityTotal& b) {
    return std::tuple(b.ns, a.kind, a.name) < std::tuple(a.ns, b.kind, b.name);
  });
  std::ranges::stable_sort(stats.at, {}, &Activity::begin_ns);
  return stats;
}

}  // namespace reprise::profiler
