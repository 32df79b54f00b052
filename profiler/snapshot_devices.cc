#include "profiler/snapshot_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

namespace reprise::profiler {
namespace {

constexpr size_t kMostNamed = 8;  // of the other devices

std::optional<PickleValue> In(PickleValue dict, std::string_view key) {
  return dict.kind() == Pickle::Kind::kDict && dict.size() <= kMostKeys ? dict.Find(key) : std::nullopt;
}
std::string_view TextIn(PickleValue dict, std::string_view key) {
  const std::optional<PickleValue> value = In(dict, key);
  return value ? value->string().value_or("") : "";
}
// A double: nothing has been checked, and a few sums of what any file may say do not overflow it.
double NumberIn(PickleValue dict, std::string_view key) {
  const std::optional<PickleValue> value = In(dict, key);
  return value ? static_cast<double>(value->integer().value_or(0)) : 0;
}

bool IsCompletion(std::string_view action) { return action == "free_completed" || action == "free"; }

class DeviceCounter {
 public:
  explicit DeviceCounter(size_t most_entries) : entries_left_(most_entries) {}

  double LiveAtEnd(PickleValue segment) {
    const std::optional<PickleValue> blocks = In(segment, "blocks");
    double live = 0;
    for (size_t i = 0; blocks && blocks->is_sequence() && i < blocks->size() && Looks(); ++i) {
      const PickleValue block = (*blocks)[i];
      if (!TextIn(block, "state").starts_with("active")) continue;
      live += NumberIn(block, In(block, "requested_size") ? "requested_size" : "size");
    }
    return live;
  }

  // What was live before the history is what is live at its end and has not come in it.
  double LivePeak(PickleValue trace, double live_at_end) {
    Sum completed, requested;  // by when frees were completed, or asked for where no completion is told
    bool completions = false;
    for (size_t i = 0; i < trace.size() && Looks(); ++i) {
      const std::string_view action = TextIn(trace[i], "action");
      const double size = NumberIn(trace[i], "size");
      completions |= IsCompletion(action);
      if (action == "alloc") completed.Add(size);
      if (action == "alloc") requested.Add(size);
      if (IsCompletion(action)) completed.Add(-size);
      if (action == "free_requested") requested.Add(-size);
    }
    const Sum& sum = completions ? completed : requested;
    return std::max(0.0, live_at_end - sum.change) + sum.most;
  }

 private:
  struct Sum {
    double change = 0, most = 0;
    void Add(double size) {
      change += size;
      most = std::max(most, change);
    }
  };

  bool Looks() { return entries_left_ > 0 && entries_left_-- > 0; }

  size_t entries_left_;
};

}  // namespace

bool TellsCompletions(PickleValue trace) {
  for (size_t i = 0; i < trace.size(); ++i) {
    if (IsCompletion(TextIn(trace[i], "action"))) return true;
  }
  return false;
}

int64_t DeviceOf(PickleValue segment) {
  const std::optional<PickleValue> device = In(segment, "device");
  return device ? device->integer().value_or(0) : 0;
}

std::vector<DeviceUse> DevicesOf(PickleValue segments, std::optional<PickleValue> traces,
                                 size_t most_entries) {
  const size_t histories = traces ? traces->size() : 0;
  std::map<int64_t, double> peaks;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (const int64_t device = DeviceOf(segments[i]); device >= 0) peaks[device] = 0;
  }
  const auto has_history = [&](size_t i) { return (*traces)[i].is_sequence() && (*traces)[i].size() > 0; };
  for (size_t i = 0; i < histories; ++i) {
    if (has_history(i)) peaks[static_cast<int64_t>(i)] = 0;
  }
  if (peaks.size() > 1) {
    DeviceCounter counter(most_entries);
    for (size_t i = 0; i < segments.size(); ++i) {
      const auto device = peaks.find(DeviceOf(segments[i]));
      if (device != peaks.end()) device->second += counter.LiveAtEnd(segments[i]);
    }
    for (size_t i = 0; i < histories; ++i) {
      if (!has_history(i)) continue;
      double& peak = peaks[static_cast<int64_t>(i)];
      peak = counter.LivePeak((*traces)[i], peak);
    }
  }
  std::vector<DeviceUse> devices;
  devices.reserve(peaks.size());
  for (const auto& [device, peak] : peaks) devices.push_back({device, peak});
  std::ranges::stable_sort(devices, std::ranges::greater(), &DeviceUse::live_peak);
  return devices;
}

std::string NoteOn(const std::vector<DeviceUse>& devices) {
  std::string others;
  for (size_t i = 1; i < std::min(devices.size(), kMostNamed + 1); ++i) {
    others += fmt::format(", {} (up to {:.0f} B live)", devices[i].device, devices[i].live_peak);
  }
  if (devices.size() > kMostNamed + 1) others += fmt::format(" and {} more", devices.size() - kMostNamed - 1);
  return fmt::format(
      "{} devices in it; only device {}, the one with the largest live peak, is read; not device{} {}",
      devices.size(), devices[0].device, devices.size() > 2 ? "s" : "", others.substr(2));
}

}  // namespace reprise::profiler
