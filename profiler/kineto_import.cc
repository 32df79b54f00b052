#include "profiler/kineto_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "profiler/csv_rows.h"
#include "profiler/event_check.h"
#include "profiler/exports.h"
#include "profiler/lifetimes.h"

namespace reprise::profiler {
namespace {

constexpr double kFurthestMicroseconds = 0x1p52;  // either side of 0: between any two it is no overflow in ns
constexpr int64_t kMostBytes = int64_t{1} << 61;

constexpr size_t kMostNamed = 8;  // of the devices that are not read

using DeviceKey = std::pair<int64_t, int64_t>;  // type, id

struct MemoryEvent {
  double ts = 0;
  int64_t bytes = 0;
  uint64_t address = 0;
  int64_t allocated = 0, reserved = 0;  // in all by then, as the allocator says; 0 where it does not
};

using MemoryEvents = std::map<DeviceKey, std::vector<MemoryEvent>>;

// In order of time; as the Sequencer takes them: what is freed without having come was there at the begin. A double:
// nothing has been summed yet, and no file makes it overflow.
double LivePeakOf(const std::vector<MemoryEvent>& events) {
  absl::flat_hash_map<uint64_t, double> live_at;  // by address, every one seen
  double before = 0, change = 0, most = 0;
  for (const MemoryEvent& event : events) {
    const auto bytes = static_cast<double>(event.bytes);
    const auto [it, unseen] = live_at.try_emplace(event.address, 0);
    const double left = std::exchange(it->second, std::max(bytes, 0.0));
    if (unseen && bytes < 0) before -= bytes;
    change += unseen ? bytes : it->second - left;
    most = std::max(most, change);
  }
  return before + most;
}

// In order of time, `recorded` being the live peak of what is told. What is there when the profiler is switched on is
// among what is reserved by then and, unless it is freed, is not told of. The host's allocators reserve nothing.
std::optional<Bytes> UnseenIn(const std::vector<MemoryEvent>& events, Bytes recorded) {
  int64_t most = events.front().reserved;
  if (most <= 0) return std::nullopt;
  for (const MemoryEvent& event : events) most = std::max(most, event.allocated);
  return std::max(Bytes(std::min(most, kMostBytes)) - recorded, Bytes(0));
}

std::string NoteOn(const MemoryEvents& by_device, DeviceKey read) {
  std::string others;
  size_t named = 0;
  for (const auto& [device, events] : by_device) {
    if (device == read || named++ >= kMostNamed) continue;
    others += fmt::format(", type {} number {} (up to {:.0f} B live)", device.first, device.second,
                          LivePeakOf(events));
  }
  if (named > kMostNamed) others += fmt::format(" and {} more", named - kMostNamed);
  return fmt::format(
      "{} devices in it; only device type {}, number {}, the one with the largest live peak, is read; not {}",
      by_device.size(), read.first, read.second, others.substr(2));
}

// Hears the file piece by piece and keeps the memory events alone: traces of gigabytes are mostly other
// things.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  MemoryEvents by_device;
  int64_t malformed = 0;
  std::string first_malformed;  // what is wrong with it
  std::string error;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t value) override { return Number(static_cast<double>(value), value); }
  bool number_unsigned(uint64_t value) override {
    if (InArgs() && key_ == "Addr") address_ = value;
    return Number(static_cast<double>(value), static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
  }
  bool number_float(double value, const std::string&) override { return Number(value, std::nullopt); }
  bool string(std::string& value) override {
    if (InEvent() && key_ == "name") is_memory_ = value == "[memory]";
    return true;
  }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool key(std::string& value) override {
    key_ = value;
    return true;
  }
  bool start_object(size_t) override {
    ++level_;
    if (events_level_ > 0 && level_ == events_level_ + 1) Begin();
    if (events_level_ > 0 && level_ == events_level_ + 2) in_args_ = key_ == "args";
    return true;
  }
  bool end_object() override {
    if (events_level_ > 0 && level_ == events_level_ + 1) End();
    if (events_level_ > 0 && level_ == events_level_ + 2) in_args_ = false;
    --level_;
    return true;
  }
  bool start_array(size_t) override {
    ++level_;
    if (events_level_ == 0 && (level_ == 1 || (level_ == 2 && key_ == "traceEvents"))) events_level_ = level_;
    return true;
  }
  bool end_array() override {
    if (level_ == events_level_) events_level_ = 0;
    --level_;
    return true;
  }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::json::exception& exception) override {
    const bool overflow = dynamic_cast<const nlohmann::json::out_of_range*>(&exception) != nullptr;
    error = overflow
                ? fmt::format("byte {}: {} is beyond any number that can be read", position, Quoted(token))
                : fmt::format("byte {}: no JSON from here on", position);
    return false;
  }

 private:
  bool InEvent() const { return events_level_ > 0 && level_ == events_level_ + 1; }
  bool InArgs() const { return in_args_ && level_ == events_level_ + 2; }

  void Begin() {
    is_memory_ = false;
    ts_.reset();
    bytes_.reset();
    address_.reset();
    allocated_ = reserved_ = 0;
    device_ = {0, 0};
  }
  void End() {
    if (!is_memory_) return;
    if (const std::string_view fault = Fault(); !fault.empty()) {
      if (malformed++ == 0) first_malformed = fault;
      return;
    }
    by_device[device_].push_back({*ts_, *bytes_, *address_, allocated_, reserved_});
  }
  // What is wrong with the memory event that was read; empty: nothing.
  std::string_view Fault() const {
    if (!ts_) return "\"ts\" is missing, or no number";
    if (std::abs(*ts_) > kFurthestMicroseconds) return "\"ts\" is further from 0 than 2^52";
    if (!bytes_) return "\"Bytes\" is missing in its \"args\", or no whole number";
    if (*bytes_ == 0) return "\"Bytes\" is 0";
    if (*bytes_ > kMostBytes || *bytes_ < -kMostBytes) return "\"Bytes\" is further from 0 than 2^61";
    if (!address_) return "\"Addr\" is missing in its \"args\", or no whole number";
    return {};
  }
  bool Number(double value, std::optional<int64_t> whole) {
    if (InEvent() && key_ == "ts") ts_ = value;
    if (!InArgs() || !whole) return true;
    if (key_ == "Bytes") bytes_ = whole;
    if (key_ == "Total Allocated") allocated_ = *whole;
    if (key_ == "Total Reserved") reserved_ = *whole;
    if (key_ == "Addr" && *whole < 0) address_ = static_cast<uint64_t>(*whole);
    if (key_ == "Device Type") device_.first = *whole;
    if (key_ == "Device Id") device_.second = *whole;
    return true;
  }

  int64_t level_ = 0;         // of nesting
  int64_t events_level_ = 0;  // of the array of events; 0: not in it
  bool in_args_ = false;
  std::string key_;
  bool is_memory_ = false;  // of the event that is read
  std::optional<double> ts_;
  std::optional<int64_t> bytes_;
  std::optional<uint64_t> address_;
  int64_t allocated_ = 0, reserved_ = 0;
  DeviceKey device_;
};

class Sequencer {
 public:
  void Add(const MemoryEvent& from, double first) {
    Event event;
    event.time_ns = static_cast<int64_t>((from.ts - first) * 1000);
    const auto [it, unseen] = live_.try_emplace(from.address);
    std::optional<BlockId>& live = it->second;
    if (from.bytes > 0) {
      if (live) {
        AddFree(*live, event.time_ns);
        ++lost_;
      }
      event.bytes = Bytes(from.bytes);
      live = event.id = NewBlock();
      history_.push_back(event);
    } else if (live) {
      AddFree(*live, event.time_ns);
      live.reset();
    } else if (unseen) {
      early_.push_back({.id = NewBlock(), .bytes = Bytes(-from.bytes)});
      AddFree(early_.back().id, event.time_ns);
    } else {
      ++lost_;
    }
  }

  absl::StatusOr<KinetoTrace> Finish(std::string_view name) {
    KinetoTrace trace;
    trace.events = early_;
    trace.events.insert(trace.events.end(), history_.begin(), history_.end());
    if (const absl::Status s = NumberBlocks(trace.events); !s.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: memory {}", name, std::string_view(s.message().data(), s.message().size())));
    }
    if (!early_.empty()) {
      trace.notes.push_back(
          fmt::format("{} blocks are freed that were not allocated in it; they are taken as allocated first",
                      early_.size()));
    }
    if (lost_ > 0)
      trace.notes.push_back(
          fmt::format("{} events do not fit what was before them and were set right", lost_));
    return trace;
  }

 private:
  BlockId NewBlock() { return BlockId(blocks_++); }
  void AddFree(BlockId id, int64_t time_ns) {
    history_.push_back({.kind = EventKind::kFree, .id = id, .time_ns = time_ns});
  }

  absl::flat_hash_map<uint64_t, std::optional<BlockId>> live_;  // by address, every one seen
  std::vector<Event> early_, history_;  // early: the allocations of what is freed without one
  uint64_t blocks_ = 0;
  int64_t lost_ = 0;
};

}  // namespace

std::string_view KinetoTrace::WhyNotWhole() const {
  if (!unseen) return "it does not say how much was there when the profiler was switched on";
  return *unseen > Bytes(0) ? "more was there when the profiler was switched on than it tells of" : "";
}

bool LooksLikeJson(std::string_view contents) {
  if (contents.starts_with(kByteOrderMark)) contents.remove_prefix(kByteOrderMark.size());
  const size_t first = contents.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (contents[first] == '{' || contents[first] == '[');
}

absl::StatusOr<KinetoTrace> ParseKineto(std::string_view contents, std::string_view name) {
  Handler handler;
  if (!nlohmann::json::sax_parse(contents, &handler)) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", name, handler.error));
  }
  if (handler.by_device.empty() && handler.malformed > 0) {
    return absl::InvalidArgumentError(
        fmt::format("{}: all of its \"[memory]\" events, {}, are malformed; of the first, {}", name,
                    handler.malformed, handler.first_malformed));
  }
  if (handler.by_device.empty() && contents.starts_with(kJsonExportHead)) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: an export of `reprise convert`, which is for other programs; name the input that it was made of",
        name));
  }
  if (handler.by_device.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: no \"[memory]\" event in it; expected a trace of PyTorch's profiler with "
        "profile_memory=True (of what a run leaves, its trace.reprise is an input, no summary and no plans)",
        name));
  }
  for (auto& [device, events] : handler.by_device) std::ranges::stable_sort(events, {}, &MemoryEvent::ts);
  const auto fullest =
      std::ranges::max_element(handler.by_device, {}, [](const auto& d) { return LivePeakOf(d.second); });
  const std::vector<MemoryEvent>& events = fullest->second;
  Sequencer sequencer;
  for (const MemoryEvent& event : events) sequencer.Add(event, events.front().ts);
  absl::StatusOr<KinetoTrace> trace = sequencer.Finish(name);
  if (!trace.ok()) return trace.status();
  trace->device = fullest->first.second;
  trace->devices = handler.by_device.size();
  trace->unseen = UnseenIn(events, LivePeakOf(trace->events).bytes);
  if (const std::string_view why = trace->WhyNotWhole(); !why.empty()) {
    trace->notes.push_back(
        fmt::format("the job's live peak may be higher{}: {}",
                    trace->unseen ? fmt::format(", by up to {} B", trace->unseen->count()) : "", why));
  }
  if (handler.by_device.size() > 1) trace->notes.push_back(NoteOn(handler.by_device, fullest->first));
  if (handler.malformed > 0) {
    trace->notes.push_back(fmt::format("{} malformed memory events were ignored; of the first, {}",
                                       handler.malformed, handler.first_malformed));
  }
  return trace;
}

}  // namespace reprise::profiler
