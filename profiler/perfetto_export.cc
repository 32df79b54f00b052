// A Perfetto trace: a `Trace` of `TracePacket`s, here counter tracks and their values. The numbers are those
// of Perfetto's public schema (perfetto/trace/).
#include <algorithm>
#include <map>
#include <protozero/pbf_writer.hpp>

#include "absl/container/flat_hash_map.h"
#include "profiler/exports.h"
#include "profiler/lifetimes.h"
#include "profiler/site_stats.h"

namespace reprise::profiler {
namespace {

constexpr size_t kMostSites = 10;
constexpr int64_t kUntimedStep = 1000;  // ns an event

enum Trace : protozero::pbf_tag_type { kPacket = 1 };
enum TracePacket : protozero::pbf_tag_type {
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kTrackDescriptor = 60
};
enum TrackDescriptor : protozero::pbf_tag_type { kUuid = 1, kName = 2, kCounter = 8 };
enum CounterDescriptor : protozero::pbf_tag_type { kUnit = 3 };
enum TrackEvent : protozero::pbf_tag_type { kType = 9, kTrackUuid = 11, kCounterValue = 30 };
constexpr int32_t kUnitSizeBytes = 3;
constexpr int32_t kTypeCounter = 4;
constexpr uint32_t kSequence = 1;

class Writer {
 public:
  void AddTrack(uint64_t uuid, const std::string& name) {
    protozero::pbf_writer packet(trace_, kPacket);
    packet.add_uint32(kSequenceId, kSequence);
    protozero::pbf_writer track(packet, kTrackDescriptor);
    track.add_uint64(kUuid, uuid);
    track.add_string(kName, name);
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
  std::string Take() { return std::move(data_); }

 private:
  std::string data_;
  protozero::pbf_writer trace_{data_};
};

}  // namespace

std::string ToPerfetto(const std::vector<Event>& events, const StackTable& stacks) {
  Writer writer;
  writer.AddTrack(1, "live bytes");
  const SiteTable table = SitesOf(stacks);
  std::map<uint32_t, uint64_t> track_of;  // of a site
  std::vector<Bytes> held(kMostSites + 2);
  if (stacks.stacks() > 0) {
    for (const SiteBytes& site : BySite(table, StacksLiveAt(events, LifetimesOf(events).peak_at.count()))) {
      if (track_of.size() == kMostSites) break;
      const uint64_t uuid = 2 + track_of.size();
      track_of[site.site] = uuid;
      writer.AddTrack(uuid, "live bytes of " + table.sites[site.site].label);
    }
  }
  struct Block {
    Bytes bytes;
    uint64_t track;  // 0: of none
  };
  absl::flat_hash_map<BlockId, Block> live;
  const bool timed = !events.empty() && events.back().time_ns > 0;
  int64_t time = 0;
  Bytes total;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    time = std::max(time, timed ? event.time_ns : static_cast<int64_t>(i) * kUntimedStep);
    Block block{};
    Bytes change;
    if (event.kind == EventKind::kAlloc) {
      const auto track = track_of.find(table.site_of_stack[static_cast<size_t>(event.stack)]);
      block = {event.bytes, track == track_of.end() ? 0 : track->second};
      live[event.id] = block;
      change = event.bytes;
    } else if (event.kind == EventKind::kFree) {
      const auto it = live.find(event.id);
      if (it == live.end()) continue;
      block = it->second;
      change = Bytes(-block.bytes.count());
      live.erase(it);
    } else {
      continue;
    }
    total += change;
    writer.AddValue(time, 1, total);
    if (block.track == 0) continue;
    held[block.track] += change;
    writer.AddValue(time, block.track, held[block.track]);
  }
  return writer.Take();
}

}  // namespace reprise::profiler
