#include "replay/cuda/streams.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "replay/core/log.h"
#include "replay/core/trace.h"

namespace reprise::replay::cuda {

pid_t ThreadId() { return static_cast<pid_t>(syscall(SYS_gettid)); }

bool HasEnded(pid_t thread) { return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH; }

Stream DeviceStreams::Add(const StreamKey& key, cu_context context, const StreamOrder& order) {
  size_t number = 0;
  const auto is_free = [&](const Entry& e) {
    return !e.in_use && !e.held && (e.context == nullptr || e.context == context) &&
           order.Quiet(Stream{number});
  };
  while (number < streams_.size() && !is_free(streams_[number])) ++number;
  if (number == streams_.size()) streams_.emplace_back();
  streams_[number] = {.key = key, .context = context, .in_use = true, .blocking = IsBlocking(key.handle)};
  if (key.handle == kPerThreadStream) streams_[number].thread = ThreadId();
  return Stream{number};
}

// One that the driver says nothing of is taken for it: there more is waited for.
bool DeviceStreams::IsBlocking(cu_stream stream) const {
  if (IsDefault(stream)) return stream == kPerThreadStream;
  unsigned flags = 0;
  return driver_.StreamGetFlags(stream, &flags) != kSuccess || (flags & kStreamNonBlocking) == 0;
}

void DeviceStreams::Remove(Stream stream) {
  Entry& entry = streams_[static_cast<size_t>(stream)];
  entry = {.context = entry.context};
}

std::vector<DeviceStreams::Ended> DeviceStreams::OfEndedThreads() const {
  std::vector<Ended> ended;
  for (size_t i = 0; i < streams_.size(); ++i) {
    const Entry& entry = streams_[i];
    if (entry.in_use && entry.key.handle == kPerThreadStream && HasEnded(entry.thread)) {
      ended.push_back({Stream{i}, entry.key});
    }
  }
  return ended;
}

std::vector<Stream> DeviceStreams::OfContext(cu_context context) const {
  std::vector<Stream> streams;
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i].context == context) streams.push_back(Stream{i});
  }
  return streams;
}

cu_context DeviceStreams::AnyContext() const {
  const auto known = std::ranges::find_if(
      streams_, [&](const Entry& entry) { return entry.context != nullptr && !Suspended(entry.context); });
  return known == streams_.end() ? nullptr : known->context;
}

void DeviceStreams::DropContext(cu_context context) {
  std::ranges::replace_if(
      streams_, [&](const Entry& entry) { return entry.context == context; }, Entry());
  Resume(context);
  unused_.erase(context);
  for (const auto& recorded : all_) {
    if (recorded->context == context) recorded->context = nullptr;
  }
}

// A per-thread default stream can be named by its own thread alone. While something is being captured, a
// record in a stream that takes part would become a part of the graph, and one in the legacy stream would end
// it.
StreamEvents::Event DeviceStreams::Record(Stream stream) {
  if (static_cast<size_t>(stream) >= streams_.size()) return nullptr;
  Entry& entry = streams_[static_cast<size_t>(stream)];
  const bool may =
      entry.in_use && captures_.load(std::memory_order_relaxed) == 0 && !Suspended(entry.context);
  return may ? RecordIn(entry) : nullptr;
}

// A stream that is not captured by now will not be any more: its caller is destroying it.
StreamEvents::Event DeviceStreams::RecordLast(Stream stream) {
  Entry& entry = streams_[static_cast<size_t>(stream)];
  if (Suspended(entry.context)) return nullptr;
  int status = 0;
  if (driver_.StreamIsCapturing(entry.key.handle, &status) != kSuccess || status != 0) return nullptr;
  return RecordIn(entry);
}

bool DeviceStreams::StandIn(Stream stream) {
  Entry& entry = streams_[static_cast<size_t>(stream)];
  if (entry.key.handle != kLegacyStream) return true;
  const Event event = Record(stream);
  if (event != nullptr) {
    Recycle(stream, event);
  } else {
    entry.lacks_stand_in = any_lacks_stand_in_ = true;
  }
  return event != nullptr;
}

// Of the context's legacy stream. False: not now.
bool DeviceStreams::MakeUpForStandIns(cu_context context) {
  if (!any_lacks_stand_in_) return true;
  any_lacks_stand_in_ = false;
  bool all = true;
  for (size_t i = 0; i < streams_.size(); ++i) {
    const bool lacks = streams_[i].lacks_stand_in;
    if (lacks && streams_[i].context == context) all &= StandIn(Stream{i});
    any_lacks_stand_in_ |= streams_[i].lacks_stand_in;
  }
  return all;
}

// Not asked while anything is captured: some captures do not allow it. What a blocking stream has freed may have been in
// use by work that it waits for and has none behind: the legacy stream's. And whether the legacy stream has finished says
// nothing of the blocking streams that it waits for but what is queued there for that.
bool DeviceStreams::Finished(Stream stream) {
  if (static_cast<size_t>(stream) >= streams_.size()) return false;
  const Entry& entry = streams_[static_cast<size_t>(stream)];
  if (!entry.in_use || captures_.load(std::memory_order_relaxed) != 0 || Suspended(entry.context))
    return false;
  if (entry.key.handle == kPerThreadStream && entry.key.thread != ThreadNumber()) return false;
  const bool waits = entry.blocking || entry.key.handle == kLegacyStream;
  if (waits && !MakeUpForStandIns(entry.context)) return false;
  const ContextScope scope(driver_, entry.context);
  return scope.ok() && driver_.StreamQuery(entry.key.handle) == kSuccess &&
         (!entry.blocking || driver_.StreamQuery(kLegacyStream) == kSuccess);
}

StreamEvents::Event DeviceStreams::RecordIn(Entry& entry) {
  if (entry.key.handle == kPerThreadStream && entry.key.thread != ThreadNumber()) return nullptr;
  const ContextScope scope(driver_, entry.context);
  if (!scope.ok()) return nullptr;
  std::vector<Recorded*>& unused = unused_[entry.context];
  if (unused.empty()) {
    cuda::Event event = nullptr;
    if (driver_.EventCreate(&event, kEventDisableTiming) != kSuccess) return nullptr;
    all_.push_back(std::make_unique<Recorded>(Recorded{event, entry.context}));
    unused.push_back(all_.back().get());
  }
  if (driver_.EventRecord(unused.back()->event, entry.key.handle) != kSuccess) return nullptr;
  entry.lacks_stand_in = false;
  Recorded* const recorded = unused.back();
  unused.pop_back();
  return recorded;
}

bool DeviceStreams::Wait(Stream stream, Event event) {
#ifdef REPRISE_BREAK_EVENT_WAIT  // in a test's own build alone: shows that the test would notice
  return true;
#endif
  const Entry& entry = streams_[static_cast<size_t>(stream)];
  const auto* const recorded = static_cast<Recorded*>(event);
  if (recorded->context == nullptr) return true;
  if (Suspended(recorded->context)) return false;
  const ContextScope scope(driver_, entry.context);
  return scope.ok() && driver_.StreamWaitEvent(entry.key.handle, recorded->event, 0) == kSuccess;
}

Result DeviceStreams::Query(const Recorded& recorded) const {
  if (recorded.context == nullptr) return kSuccess;
  if (captures_.load(std::memory_order_relaxed) != 0 || Suspended(recorded.context))
    return kStreamCaptureUnsupported;
  return driver_.EventQuery(recorded.event);
}

bool DeviceStreams::Complete(Event event) { return Query(*static_cast<Recorded*>(event)) == kSuccess; }

// What the device waits for may be the host's to do, by this very thread even: then it is asked for in vain, once. Another
// thread that is about to begin a capture waits for the lock that we have, and we do not keep it waiting.
bool DeviceStreams::Await(Event event) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const Result state = Query(*static_cast<Recorded*>(event));
    if (state != kNotReady || impatient_ || ending_.load(std::memory_order_relaxed)) return state == kSuccess;
    impatient_ = std::chrono::steady_clock::now() - start > patience_;
    if (impatient_) {
      Log(LogLevel::kWarn,
          "a device did not come to the end of its work while an allocation waited for it; none will any "
          "more");
    }
    std::this_thread::yield();
  }
}

void DeviceStreams::Recycle(Stream, Event event) {
  auto* const recorded = static_cast<Recorded*>(event);
  if (recorded->context != nullptr) unused_[recorded->context].push_back(recorded);
}

std::optional<StreamTable::Place> StreamTable::Find(const StreamKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(key);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

void StreamTable::Add(const StreamKey& key, const Place& place) {
  const std::lock_guard lock(mutex_);
  places_[key] = place;
}

std::optional<StreamTable::Place> StreamTable::Take(const StreamKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(key);
  if (found == places_.end()) return std::nullopt;
  const Place place = found->second;
  places_.erase(found);
  ++generation_;
  return place;
}

StreamTable::Taken StreamTable::TakeAll(const Device& device, const std::vector<Stream>& streams) {
  const std::lock_guard lock(mutex_);
  Taken taken;
  std::erase_if(places_, [&](const auto& entry) {
    const Place& place = entry.second;
    const bool is_theirs =
        place.device == &device && std::find(streams.begin(), streams.end(), place.stream) != streams.end();
    if (is_theirs) taken.push_back(entry);
    return is_theirs;
  });
  ++generation_;
  return taken;
}

}  // namespace reprise::replay::cuda
