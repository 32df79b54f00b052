// The whole of the simulated CUPTI. State is behind one lock, which is let go while the client is called; the
// simulator's own lock may be held by who reports work, so nothing here calls the driver under ours.
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/simcuda/include/cupti.h"
#include "tests/simcuda/include/simcuda.h"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Buffer {
  uint8_t* bytes = nullptr;
  size_t size = 0;
  size_t used = 0;
  size_t records_left = 0;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  bool subscribed = false;
  CUpti_BuffersCallbackRequestFunc requested = nullptr;
  CUpti_BuffersCallbackCompleteFunc completed = nullptr;
  std::set<CUpti_ActivityKind> enabled;
  Buffer current;
  std::deque<Buffer> full;
  int being_handed_over = 0;
  bool has_thread = false;
  size_t dropped = 0;
};

bool IsSet(const char* variable) {
  const char* const set = getenv(variable);
  return set != nullptr && strcmp(set, "1") == 0;
}

// The error that `function` was told to answer with; CUPTI_SUCCESS: none.
CUptiResult Failure(const std::string& function) {
  const char* const set = getenv("SIMCUDA_CUPTI_FAIL");
  std::istringstream all(set == nullptr ? "" : set);
  for (std::string one; std::getline(all, one, ',');) {
    const size_t colon = one.find(':');
    if (colon != std::string::npos && one.substr(0, colon) == function)
      return static_cast<CUptiResult>(atoi(one.c_str() + colon + 1));
  }
  return CUPTI_SUCCESS;
}

// Leaked: work may be reported when all destructors have run.
State& TheState() {
  static State* const state = new State;
  return *state;
}

using Lock = std::unique_lock<std::mutex>;

void HandOver(State& state, Lock& lock) {
  while (!state.full.empty()) {
    const Buffer buffer = state.full.front();
    state.full.pop_front();
    const auto completed = state.completed;
    ++state.being_handed_over;
    lock.unlock();
    completed(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
    lock.lock();
    --state.being_handed_over;
    state.changed.notify_all();
  }
}

// As on a device whose work does not end: what is there is not complete before it must be.
bool Late() {
  static const bool late = IsSet("SIMCUDA_CUPTI_LATE");
  return late;
}

void Work() {
  State& state = TheState();
  Lock lock(state.mutex);
  for (;;) {
    state.changed.wait(lock, [&] { return !state.full.empty(); });
    HandOver(state, lock);
  }
}

void CloseCurrent(State& state) {
  if (state.current.bytes != nullptr) state.full.push_back(state.current);
  state.current = {};
}

size_t SizeOf(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_MARKER:
      return sizeof(CUpti_ActivityMarker2);
    default:
      return 0;
  }
}

// The client is asked for a buffer under the lock, as the real one asks in the middle of a launch.
template <typename Record>
void Add(const Record& record) {
  State& state = TheState();
  const Lock lock(state.mutex);
  if (!state.enabled.contains(record.kind) || state.requested == nullptr) return;
  if (state.current.records_left == 0 || state.current.size - state.current.used < sizeof record) {
    if (state.current.bytes != nullptr) {
      CloseCurrent(state);
      if (!state.has_thread && !Late()) std::thread(Work).detach();
      state.has_thread = true;
      state.changed.notify_all();
    }
    // The client has to say all of it: what is there before is nothing.
    state.current = {.bytes = reinterpret_cast<uint8_t*>(1), .size = SIZE_MAX, .records_left = 1};
    state.requested(&state.current.bytes, &state.current.size, &state.current.records_left);
    if (state.current.records_left == 0) state.current.records_left = SIZE_MAX;
    if (state.current.bytes == nullptr || state.current.size < sizeof record) {
      state.current = {};
      ++state.dropped;
      return;
    }
  }
  memcpy(state.current.bytes + state.current.used, &record, sizeof record);
  state.current.used += sizeof record;
  --state.current.records_left;
}

template <typename Record>
void Place(Record& record, const simActivity& activity) {
  record.start = activity.begin;
  record.end = activity.end;
  record.deviceId = activity.device;
  record.contextId = activity.context;
  record.streamId = activity.stream;
}

bool Strange() {
  static const bool strange = IsSet("SIMCUDA_CUPTI_STRANGE");
  return strange;
}

// The same again with times that are none: not taken, the wrong way round, beyond any.
template <typename Record>
void AddStrange(Record record) {
  const uint64_t end = record.end;
  const std::pair<uint64_t, uint64_t> times[] = {{0, 0}, {0, end}, {end + 1, end}, {end, UINT64_MAX}};
  for (const auto& [from, to] : times) {
    record.start = from;
    record.end = to;
    Add(record);
  }
}

void AddStrange(CUpti_ActivityMarker2 record) {
  record.flags = CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS;
  for (const uint64_t time : {uint64_t{0}, UINT64_MAX}) {
    record.timestamp = time;
    Add(record);
  }
}

template <typename Record>
void Tell(const Record& record) {
  Add(record);
  if (Strange()) AddStrange(record);
}

constexpr int kBetweenDevices = 10;

template <typename Record>
void TellCopy(CUpti_ActivityKind kind, const simActivity& activity) {
  Record record = {};
  record.kind = kind;
  record.copyKind = static_cast<uint8_t>(activity.copy_kind);
  record.bytes = activity.bytes;
  Place(record, activity);
  Tell(record);
}

void Observe(const simActivity* activity) {
  switch (activity->kind) {
    case SIM_ACTIVITY_KERNEL: {
      CUpti_ActivityKernel10 record = {};
      record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
      record.name = activity->name;
      Place(record, *activity);
      return Tell(record);
    }
    case SIM_ACTIVITY_COPY:
      return activity->copy_kind == kBetweenDevices
                 ? TellCopy<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, *activity)
                 : TellCopy<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, *activity);
    case SIM_ACTIVITY_SET: {
      CUpti_ActivityMemset4 record = {};
      record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
      record.bytes = activity->bytes;
      Place(record, *activity);
      return Tell(record);
    }
    default: {
      CUpti_ActivityMarker2 record = {};
      const bool begin = activity->kind == SIM_ACTIVITY_RANGE_BEGIN;
      record.kind = CUPTI_ACTIVITY_KIND_MARKER;
      record.flags = begin ? CUPTI_ACTIVITY_FLAG_MARKER_START : CUPTI_ACTIVITY_FLAG_MARKER_END;
      record.timestamp = activity->begin;
      record.id = activity->range;
      record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
      record.objectId[1] = activity->thread;
      record.name = begin ? activity->name : nullptr;
      return Tell(record);
    }
  }
}

CUpti_SubscriberHandle Handle() { return reinterpret_cast<CUpti_SubscriberHandle>(&TheState()); }

}  // namespace

SIM_EXPORT CUptiResult cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const char* const set = getenv("SIMCUDA_CUPTI_VERSION");
  *version = set == nullptr ? 130001 : static_cast<uint32_t>(atoi(set));
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetResultString(CUptiResult, const char** str) {
  if (str == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *str = "a simulated error";
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *timestamp =
      uint64_t{1'000'000'000} * static_cast<uint64_t>(now.tv_sec) + static_cast<uint64_t>(now.tv_nsec);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void*) {
  if (subscriber == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  State& state = TheState();
  const Lock lock(state.mutex);
  *subscriber = Handle();  // where it fails, too: nobody promises that it is null then
  if (const CUptiResult failure = Failure("cuptiSubscribe"); failure != CUPTI_SUCCESS) return failure;
  if (state.subscribed) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  state.subscribed = true;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  State& state = TheState();
  const Lock lock(state.mutex);
  if (subscriber != Handle() || !state.subscribed) return CUPTI_ERROR_INVALID_PARAMETER;
  state.subscribed = false;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                      CUpti_BuffersCallbackCompleteFunc completed) {
  if (requested == nullptr || completed == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (const CUptiResult failure = Failure("cuptiActivityRegisterCallbacks"); failure != CUPTI_SUCCESS)
    return failure;
  State& state = TheState();
  const Lock lock(state.mutex);
  state.requested = requested;
  state.completed = completed;
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const CUptiResult failure = Failure("cuptiActivityEnable/" + std::to_string(kind));
  if (failure != CUPTI_SUCCESS) return failure;
  simObserve(&Observe);  // the simulator's lock comes before ours
  State& state = TheState();
  const Lock lock(state.mutex);
  state.enabled.insert(kind);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  State& state = TheState();
  const Lock lock(state.mutex);
  state.enabled.erase(kind);
  return CUPTI_SUCCESS;
}

// Records are complete as soon as they are there, so both kinds of flush are one; unless they are to come late.
SIM_EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  State& state = TheState();
  Lock lock(state.mutex);
  if (state.completed == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  if (Late() && flag != CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) return CUPTI_SUCCESS;
  CloseCurrent(state);
  // A blocking call: what the worker is handing over comes first, and then the rest of all.
  const auto handed_over = [&] { return state.being_handed_over == 0; };
  state.changed.wait(lock, handed_over);
  HandOver(state, lock);
  state.changed.wait(lock, handed_over);
  return CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t* const next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + SizeOf(*record);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return SizeOf(*record) == 0 ? CUPTI_ERROR_INVALID_KIND : CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  State& state = TheState();
  const Lock lock(state.mutex);
  *dropped = state.dropped;
  state.dropped = 0;
  return CUPTI_SUCCESS;
}
