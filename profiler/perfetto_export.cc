// A Perfetto trace: a `Trace` of `TracePacket`s, here counter tracks and their values, and tracks of slices.
// The numbers are those of Perfetto's public schema (perfetto/trace/).
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <queue>
#include <utility>

#include "profiler/exports.h"
#include "profiler/lifetimes.h"
#include "profiler/live_allocations.h"
#include "profiler/site_labels.h"
#include "profiler/site_stats.h"

namespace reprise::profiler {
namespace {

constexpr size_t kMostSites = 10;
constexpr int64_t kUntimedStep = 1000;  // ns an event

enum TraceField : protozero::pbf_tag_type { kPacket = 1 };
enum TracePacketField : protozero::pbf_tag_type {
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTrackDescriptor = 60
};
enum TrackDescriptor : protozero::pbf_tag_type { kUuid = 1, kTrackName = 2, kCounter = 8 };
enum CounterDescriptor : protozero::pbf_tag_type { kUnit = 3 };
enum TrackEvent : protozero::pbf_tag_type { kType = 9, kNameId = 10, kTrackUuid = 11, kCounterValue = 30 };
enum InternedData : protozero::pbf_tag_type { kEventNames = 2 };
enum EventName : protozero::pbf_tag_type { kEventNameId = 1, kEventName = 2 };
constexpr int32_t kUnitSizeBytes = 3;
constexpr int32_t kTypeSliceBegin = 1, kTypeSliceEnd = 2, kTypeCounter = 4;
constexpr uint32_t kStateCleared = 1, kNeedsState = 2;
constexpr uint32_t kSequence = 1;
constexpr uint32_t kSliceSequence = 2;       // whose names are told once, and named by number
constexpr uint64_t kFirstSliceTrack = 1000;  // counters have lower numbers

class Writer {
 public:
  // A track from kFirstSliceTrack on is of slices.
  void AddTrack(uint64_t uuid, const std::string& name) {
    const bool slices = uuid >= kFirstSliceTrack;
    protozero::pbf_writer packet(trace_, kPacket);
    packet.add_uint32(kSequenceId, kSequence);
    protozero::pbf_writer track(packet, kTrackDescriptor);
    track.add_uint64(kUuid, uuid);
    track.add_string(kTrackName, name);
    if (slices) return;
    protozero::pbf_writer counter(track, kCounter);
    counter.add_enum(kUnit, kUnitSizeBytes);
  }
  void AddValue(int64_t time, uint64_t uuid, Bytes value) {
    protozero::pbf_writer packet(trace_, kPacket);
    packet.add_uint64(kTimestamp, static_cast<uint64_t>(time));
    packet.add_uint32(kSequenceId, kSequence);
    protozero::pbf_writer event(packet, kTrackEvent);
    event.add_enum(kType, kTypeCounter);
    event.add_uint64(kTrackUuid, uuid);
    event.add_int64(kCounterValue, value.count());
  }
  // The names of all slices that come after, by number from 1.
  void AddNames(const std::vector<std::string>& names) {
    protozero::pbf_writer packet(trace_, kPacket);
    packet.add_uint32(kSequenceId, kSliceSequence);
    packet.add_uint32(kSequenceFlags, kStateCleared);
    protozero::pbf_writer interned(packet, kInternedData);
    for (size_t i = 0; i < names.size(); ++i) {
      protozero::pbf_writer name(interned, kEventNames);
      name.add_uint64(kEventNameId, i + 1);
      name.add_string(kEventName, names[i]);
    }
  }
  void AddSlice(int64_t begin, int64_t end, uint64_t track, uint64_t name) {
    AddSliceEvent(begin, kTypeSliceBegin, track, name);
    AddSliceEvent(end, kTypeSliceEnd, track, 0);
  }
  std::string Take() { return std::move(data_); }

 private:
  void AddSliceEvent(int64_t time, int32_t type, uint64_t track, uint64_t name) {
    protozero::pbf_writer packet(trace_, kPacket);
    packet.add_uint64(kTimestamp, static_cast<uint64_t>(time));
    packet.add_uint32(kSequenceId, kSliceSequence);
    packet.add_uint32(kSequenceFlags, kNeedsState);
    protozero::pbf_writer event(packet, kTrackEvent);
    event.add_enum(kType, type);
    event.add_uint64(kTrackUuid, track);
    if (name != 0) event.add_uint64(kNameId, name);
  }

  std::string data_;
  protozero::pbf_writer trace_{data_};
};

// The tracks of one stream or thread. Of those that are free the oldest is taken, so that the first one shows
// what it can. In heaps, for there may be as many tracks as slices.
class Lanes {
 public:
  // A track that is free at `begin`, which never falls from one call to the next, taken until `end`; 0: none
  // is.
  uint64_t Take(int64_t begin, int64_t end) {
    for (; !busy_.empty() && busy_.top().first <= begin; busy_.pop()) free_.push(busy_.top().second);
    if (free_.empty()) return 0;
    const uint64_t uuid = free_.top();
    free_.pop();
    busy_.emplace(end, uuid);
    return uuid;
  }
  void Add(uint64_t uuid) { free_.push(uuid); }
  size_t size() const { return busy_.size() + free_.size(); }

 private:
  template <typename T>
  using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;
  LeastFirst<std::pair<int64_t, uint64_t>> busy_;  // by when each is free
  LeastFirst<uint64_t> free_;
};

// Slices of a track must nest, and what runs on one stream may overlap: what does goes to a further track of
// the same name.
void AddActivities(std::vector<Activity> activities, const StackTable& stacks, Writer& writer) {
  if (activities.empty()) return;
  std::vector<std::string> names;
  std::map<FrameId, uint64_t> number_of;
  for (const Activity& activity : activities) {
    if (!number_of.try_emplace(activity.name, names.size() + 1).second) continue;
    names.push_back(activity.name == FrameId(0) ? "unnamed" : stacks.frame(activity.name).function);
  }
  writer.AddNames(names);
  std::ranges::stable_sort(activities, {}, &Activity::begin_ns);
  std::map<std::pair<bool, uint32_t>, Lanes> lanes_of;  // of streams, then of threads
  uint64_t next_uuid = kFirstSliceTrack;
  for (const Activity& activity : activities) {
    const int64_t begin = std::max<int64_t>(0, activity.begin_ns);  // not before the trace
    const int64_t end = std::max(begin, activity.begin_ns + activity.duration_ns);
    const bool marker = activity.kind == ActivityKind::kMarker;
    Lanes& lanes = lanes_of[{marker, activity.track}];
    uint64_t lane = lanes.Take(begin, end);
    if (lane == 0) {
      lanes.Add(next_uuid++);
      const std::string number = lanes.size() == 1 ? "" : " (" + std::to_string(lanes.size()) + ")";
      lane = lanes.Take(begin, end);
      writer.AddTrack(lane, (marker ? "thread " : "stream ") + std::to_string(activity.track) + number);
    }
    writer.AddSlice(begin, end, lane, number_of[activity.name]);
  }
}

}  // namespace

std::string ToPerfetto(const std::vector<Event>& events, const StackTable& stacks,
                       const std::vector<Activity>& activities) {
  Writer writer;
  writer.AddTrack(1, "live bytes");
  SiteTable table = SitesOf(stacks);
  TellApart(std::array{&table});
  std::map<uint32_t, uint64_t> track_of;  // of a site
  std::vector<Bytes> held(kMostSites + 2);
  if (stacks.stacks() > 0) {
    for (const SiteBytes& site : BySite(table, StacksLiveAt(events, LivePeakOf(events).at))) {
      if (track_of.size() == kMostSites) break;
      const uint64_t uuid = 2 + track_of.size();
      track_of[site.site] = uuid;
      writer.AddTrack(uuid, "live bytes of " + table.sites[site.site].label);
    }
  }
  LiveAllocations live;
  const bool timed = !events.empty() && events.back().time_ns > 0;
  int64_t time = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    time = std::max(time, timed ? event.time_ns : static_cast<int64_t>(i) * kUntimedStep);
    const auto [alloc, bytes] = live.Add(event);
    if (alloc == nullptr) continue;
    writer.AddValue(time, 1, live.bytes());
    const auto track = track_of.find(table.site_of_stack[static_cast<size_t>(alloc->stack)]);
    if (track == track_of.end()) continue;
    held[track->second] += bytes;
    writer.AddValue(time, track->second, held[track->second]);
  }
  AddActivities(activities, stacks, writer);
  return writer.Take();
}

}  // namespace reprise::profiler
