#include "profiler/event_check.h"

#include <fmt/format.h>

#include <limits>

namespace reprise::profiler {
namespace {

// Of live bytes: leaves room to round sizes up to an alignment without overflow.
constexpr int64_t kMostLiveBytes = int64_t{1} << 62;

template <typename... Args>
absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace

absl::Status EventChecker::Add(const Event& event) {
  switch (event.kind) {
    case EventKind::kAlloc:
      return AddAlloc(event);
    case EventKind::kFree:
      return AddFree(event);
    case EventKind::kMark:
      return absl::OkStatus();
  }
  return Invalid("an unknown kind of event");
}

absl::Status EventChecker::AddAlloc(const Event& event) {
  const uint64_t id = static_cast<uint64_t>(event.id);
  const int64_t bytes = event.bytes.count();
  if (bytes <= 0) return Invalid("allocation {} of {} bytes; a block has at least 1", id, bytes);
  if (event.alignment.count() < 0) {
    return Invalid("allocation {} with alignment {}; it cannot be negative", id, event.alignment.count());
  }
  if (bytes > kMostLiveBytes - live_bytes_) {
    return Invalid("allocation {} of {} bytes makes more than 2^62 live bytes", id, bytes);
  }
  if (ids_exhausted_ || id < next_id_) {
    return Invalid("allocation {} comes after one with a higher or the same id; ids must rise", id);
  }
  ids_exhausted_ = id == std::numeric_limits<uint64_t>::max();
  next_id_ = id + 1;
  live_.emplace(event.id, bytes);
  live_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status EventChecker::AddFree(const Event& event) {
  const auto it = live_.find(event.id);
  if (it == live_.end()) return Invalid("free of {}, which is not live", static_cast<uint64_t>(event.id));
  live_bytes_ -= it->second;
  live_.erase(it);
  return absl::OkStatus();
}

absl::Status NumberBlocks(std::vector<Event>& events) {
  absl::flat_hash_map<BlockId, BlockId> numbers;  // by the id so far
  EventChecker checker;
  for (size_t i = 0; i < events.size(); ++i) {
    Event& event = events[i];
    if (event.kind == EventKind::kAlloc) numbers.try_emplace(event.id, BlockId(numbers.size()));
    if (event.kind != EventKind::kMark) {
      const auto number = numbers.find(event.id);
      if (number == numbers.end()) return Invalid("event {}: free of a block without an allocation", i);
      event.id = number->second;
    }
    if (const absl::Status status = checker.Add(event); !status.ok()) {
      return Invalid("event {}: {}", i, std::string_view(status.message().data(), status.message().size()));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise::profiler
