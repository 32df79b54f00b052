#include "profiler/trace_activities.h"

#include <fmt/format.h>

#include <limits>

#include "profiler/trace_format.h"
#include "profiler/varint.h"

namespace reprise::profiler {
namespace {

// The most that an activity can take in all columns, and what stands before them.
constexpr size_t kMostActivityBytes = 1 + 10 + 10 + 5 + 5 + 10;
static_assert(kMostBlockActivities * kMostActivityBytes + 128 < kMostRawBytes);

bool HasBytes(ActivityKind kind) { return kind == ActivityKind::kCopy || kind == ActivityKind::kSet; }

absl::Status MalformedActivities(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("malformed activities: {}", what));
}

// Decodes the columns of one block. Every read is checked.
class ActivityDecoder {
 public:
  absl::StatusOr<ActivitiesHead> Decode(std::string_view raw, std::vector<Activity>* append_to) {
    if (raw.empty()) return MalformedActivities("no type");
    raw.remove_prefix(1);
    ActivitiesHead head;
    for (uint64_t* number : {&head.first_activity, &head.dropped, &head.activities}) {
      if (!TakeVarint(&raw, number)) return MalformedActivities("the head ends early");
    }
    for (std::string_view* column : {&kinds_, &begins_, &durations_, &tracks_, &names_, &bytes_}) {
      uint64_t length;
      if (!TakeVarint(&raw, &length) || length > raw.size())
        return MalformedActivities("a column ends early");
      *column = raw.substr(0, length);
      raw.remove_prefix(length);
    }
    if (!raw.empty()) return MalformedActivities("bytes after the last column");
    if (head.activities > kMostBlockActivities) return MalformedActivities("too many activities");
    for (uint64_t i = 0; i < head.activities; ++i) {
      Activity activity;
      if (absl::Status status = Next(&activity); !status.ok()) return status;
      append_to->push_back(activity);
    }
    for (const std::string_view column : {kinds_, begins_, durations_, tracks_, names_, bytes_}) {
      if (!column.empty()) return MalformedActivities("a column is longer than its activities");
    }
    return head;
  }

 private:
  absl::Status Next(Activity* activity) {
    uint64_t kind, begin, duration, track, name, bytes = 0;
    if (!TakeVarint(&kinds_, &kind) || !TakeVarint(&begins_, &begin) || !TakeVarint(&durations_, &duration) ||
        !TakeVarint(&tracks_, &track) || !TakeVarint(&names_, &name)) {
      return MalformedActivities("a column ends early");
    }
    if (kind >= kActivityKinds) return MalformedActivities("an unknown kind");
    activity->kind = static_cast<ActivityKind>(kind);
    if (HasBytes(activity->kind) && !TakeVarint(&bytes_, &bytes))
      return MalformedActivities("a column ends early");
    constexpr uint64_t kMost32 = std::numeric_limits<uint32_t>::max();
    if (track > kMost32 || name > kMost32) return MalformedActivities("a number above 32 bits");
    if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return MalformedActivities("bytes above 63 bits");
    activity->track = static_cast<uint32_t>(track);
    activity->name = FrameId(static_cast<uint32_t>(name));
    activity->bytes = Bytes(static_cast<int64_t>(bytes));
    if (__builtin_add_overflow(end_ns_, UnZigZag(begin), &activity->begin_ns) ||
        activity->begin_ns > kMostActivityNs || activity->begin_ns < -kMostActivityNs ||
        duration > static_cast<uint64_t>(kMostActivityNs)) {
      return MalformedActivities("a time out of range");
    }
    activity->duration_ns = static_cast<int64_t>(duration);
    end_ns_ = activity->begin_ns + activity->duration_ns;
    return absl::OkStatus();
  }

  std::string_view kinds_, begins_, durations_, tracks_, names_, bytes_;
  int64_t end_ns_ = 0;
};

}  // namespace

void ActivityEncoder::Add(const Activity& activity) {
  PutVarint(static_cast<uint64_t>(activity.kind), &kinds_);
  PutVarint(ZigZag(activity.begin_ns - end_ns_), &begins_);
  PutVarint(static_cast<uint64_t>(activity.duration_ns), &durations_);
  PutVarint(activity.track, &tracks_);
  PutVarint(static_cast<uint64_t>(activity.name), &names_);
  if (HasBytes(activity.kind)) PutVarint(static_cast<uint64_t>(activity.bytes.count()), &bytes_);
  end_ns_ = activity.begin_ns + activity.duration_ns;
  ++activities_;
}

std::string_view ActivityEncoder::Take(uint64_t dropped) {
  raw_.assign(1, static_cast<char>(BlockType::kActivities));
  for (const uint64_t number : {first_, dropped, activities_}) PutVarint(number, &raw_);
  for (std::string* column : {&kinds_, &begins_, &durations_, &tracks_, &names_, &bytes_}) {
    PutVarint(column->size(), &raw_);
    raw_ += *column;
    column->clear();
  }
  first_ += activities_;
  activities_ = 0;
  end_ns_ = 0;
  return raw_;
}

absl::StatusOr<ActivitiesHead> DecodeActivities(std::string_view raw, std::vector<Activity>* append_to) {
  return ActivityDecoder().Decode(raw, append_to);
}

}  // namespace reprise::profiler
