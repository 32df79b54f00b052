// Events.
#include <chrono>

#include "tests/simcuda/driver/capture.h"
#include "tests/simcuda/driver/work.h"

namespace {

using sim::Call;
using sim::Event;

double Now() {
  using std::chrono::duration;
  return duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Body>
CUresult OnEvent(const char* function, CUevent handle, Body&& body) {
  return sim::Enter(function, sim::Needs::kDriver, [&](Call& call) {
    auto found = call.sim.events.find(handle);
    if (found == call.sim.events.end()) return sim::NoSuchHandle(call.sim, handle, function);
    call.context = found->second->context;
    return body(call, *found->second);
  });
}

bool Timed(const Event& event) {
  return (event.flags & CU_EVENT_DISABLE_TIMING) == 0 && event.record != nullptr;
}

CUresult Record(Call& call, sim::Stream& stream, Event& event) {
  if (stream.capture != nullptr) {
    if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event.record = nullptr;
    event.capture = stream.capture;
    event.capture_after = stream.capture_after;
    return CUDA_SUCCESS;
  }
  auto record = std::make_shared<sim::Record>();
  sim::Work work;
  work.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  work.run = [record](sim::Context&) { record->milliseconds = Now(); };
  if (stream.legacy) {
    if (CUresult error = sim::AdmitLegacy(call, *stream.context); error != CUDA_SUCCESS) return error;
  }
  event.capture = nullptr;
  event.capture_after.clear();
  event.record = record;
  record->operation = call.sim.executor.Queue(stream, std::move(work), {}, call.lock);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) {
  return sim::Enter("cuEventCreate", sim::Needs::kContext, [&](Call& call) {
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (phEvent == nullptr || (Flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((Flags & CU_EVENT_INTERPROCESS) != 0) return sim::NotSimulated("CU_EVENT_INTERPROCESS");
    auto event = std::make_unique<Event>();
    event->context = call.context;
    event->flags = Flags;
    *phEvent = reinterpret_cast<CUevent>(event.get());
    call.sim.events[*phEvent] = std::move(event);
    call.sim.dead.erase(*phEvent);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy(CUevent hEvent) {
  return OnEvent("cuEventDestroy", hEvent, [&](Call& call, Event&) {
    call.sim.events.erase(hEvent);
    call.sim.dead.insert(hEvent);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  return sim::OnStream("cuEventRecord", hStream, [&](Call& call, sim::Stream& stream) {
    auto found = call.sim.events.find(hEvent);
    if (found == call.sim.events.end()) return sim::NoSuchHandle(call.sim, hEvent, "cuEventRecord");
    if (flags == CU_EVENT_RECORD_EXTERNAL) return sim::NotSimulated("CU_EVENT_RECORD_EXTERNAL");
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    Event& event = *found->second;
    if (event.context != stream.context) return CUDA_ERROR_INVALID_HANDLE;
    return Record(call, stream, event);
  });
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  return cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult cuEventQuery(CUevent hEvent) {
  return OnEvent("cuEventQuery", hEvent, [&](Call& call, Event& event) {
    if (event.capture != nullptr) return sim::InvalidateFor(*event.capture, CUDA_ERROR_CAPTURED_EVENT);
    if (CUresult error = sim::AdmitUnsafe(call); error != CUDA_SUCCESS) return error;
    if (event.record == nullptr) return call.context->sticky;
    uint64_t operation = event.record->operation;
    call.sim.executor.Nudge({operation}, call.lock);
    if (call.context->sticky != CUDA_SUCCESS) return call.context->sticky;
    return call.sim.executor.Done(operation) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventSynchronize(CUevent hEvent) {
  return OnEvent("cuEventSynchronize", hEvent, [&](Call& call, Event& event) {
    if (event.capture != nullptr) return sim::InvalidateFor(*event.capture, CUDA_ERROR_CAPTURED_EVENT);
    if (event.record == nullptr) return call.context->sticky;
    return sim::WaitFor(call, {event.record->operation}, *call.context);
  });
}

CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return OnEvent("cuEventElapsedTime", hStart, [&](Call& call, Event& start) {
    auto found = call.sim.events.find(hEnd);
    if (found == call.sim.events.end()) return sim::NoSuchHandle(call.sim, hEnd, "cuEventElapsedTime");
    const Event& end = *found->second;
    if (pMilliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!Timed(start) || !Timed(end)) return CUDA_ERROR_INVALID_HANDLE;
    bool over =
        call.sim.executor.Done(start.record->operation) && call.sim.executor.Done(end.record->operation);
    if (!over) return CUDA_ERROR_NOT_READY;
    *pMilliseconds = static_cast<float>(end.record->milliseconds - start.record->milliseconds);
    return CUDA_SUCCESS;
  });
}
