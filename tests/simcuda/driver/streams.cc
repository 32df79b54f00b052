// Streams, as the API has them.
#include "tests/simcuda/driver/capture.h"
#include "tests/simcuda/driver/work.h"

namespace {

using sim::Call;
using sim::OnStream;
using sim::Stream;

template <typename T, typename Ask>
CUresult Answer(const char* function, CUstream handle, T* value, Ask&& ask) {
  return OnStream(function, handle, [&](Call& call, Stream& stream) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *value = ask(call, stream);
    return CUDA_SUCCESS;
  });
}

// The same for what may not be asked of a stream that is captured, which voids the capture.
template <typename T, typename Ask>
CUresult AnswerUncaptured(const char* function, CUstream handle, T* value, Ask&& ask) {
  return OnStream(function, handle, [&](Call& call, Stream& stream) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult error = sim::AdmitStreamWait(call, stream); error != CUDA_SUCCESS) return error;
    *value = ask(call, stream);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  return sim::Enter("cuStreamCreate", sim::Needs::kContext, [&](Call& call) {
    if (phStream == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    int clamped = priority > 0 ? 0 : (priority < -5 ? -5 : priority);
    std::shared_ptr<Stream> stream = sim::MakeStream(call.sim, *call.context, flags, clamped);
    *phStream = reinterpret_cast<CUstream>(stream.get());
    call.sim.streams[*phStream] = stream;
    call.sim.dead.erase(*phStream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) {
  return cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult cuStreamDestroy(CUstream hStream) {
  return sim::Enter("cuStreamDestroy", sim::Needs::kDriver, [&](Call& call) {
    auto found = call.sim.streams.find(hStream);
    if (found == call.sim.streams.end()) return sim::NoSuchHandle(call.sim, hStream, "cuStreamDestroy");
    std::shared_ptr<Stream> stream = found->second;
    if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    call.sim.streams.erase(found);
    call.sim.dead.insert(hStream);
    call.sim.executor.Retire(*stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  return AnswerUncaptured("cuStreamGetPriority", hStream, priority,
                          [](Call&, Stream& stream) { return stream.priority; });
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  return AnswerUncaptured("cuStreamGetFlags", hStream, flags,
                          [](Call&, Stream& stream) { return stream.flags; });
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  return AnswerUncaptured("cuStreamGetId", hStream, streamId,
                          [](Call&, Stream& stream) { return stream.serial; });
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  return AnswerUncaptured("cuStreamGetDevice", hStream, device,
                          [](Call&, Stream& stream) { return stream.context->device; });
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  return Answer("cuStreamGetCtx", hStream, pctx,
                [](Call& call, Stream& stream) { return call.sim.HandleOf(stream.context); });
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  return OnStream("cuStreamWaitEvent", hStream, [&](Call& call, Stream& stream) {
    auto found = call.sim.events.find(hEvent);
    if (found == call.sim.events.end()) return sim::NoSuchHandle(call.sim, hEvent, "cuStreamWaitEvent");
    if (Flags == CU_EVENT_WAIT_EXTERNAL) return sim::NotSimulated("CU_EVENT_WAIT_EXTERNAL");
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    ++call.sim.counters.event_waits;
    const sim::Event& event = *found->second;
    if (event.capture != nullptr || stream.capture != nullptr) return sim::CaptureWait(stream, event);
    if (event.record == nullptr) return CUDA_SUCCESS;
    if (stream.legacy) {
      if (CUresult error = sim::AdmitLegacy(call, *stream.context); error != CUDA_SUCCESS) return error;
    }
    call.sim.executor.Queue(stream, {}, {event.record->operation}, call.lock);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamQuery(CUstream hStream) {
  return OnStream("cuStreamQuery", hStream, [&](Call& call, Stream& stream) {
    if (CUresult error = sim::AdmitStreamWait(call, stream); error != CUDA_SUCCESS) return error;
    const uint64_t tail = stream.tail;
    sim::Context& context = *stream.context;
    call.sim.executor.Nudge({tail}, call.lock);
    if (context.sticky != CUDA_SUCCESS) return context.sticky;
    return call.sim.executor.Done(tail) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamSynchronize(CUstream hStream) {
  return OnStream("cuStreamSynchronize", hStream, [&](Call& call, Stream& stream) {
    if (CUresult error = sim::AdmitStreamWait(call, stream); error != CUDA_SUCCESS) return error;
    return sim::WaitForStream(call, stream);
  });
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  return OnStream("cuLaunchHostFunc", hStream, [&](Call& call, Stream& stream) {
    if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    sim::Work work;
    work.type = CU_GRAPH_NODE_TYPE_HOST;
    work.on_host = true;
    work.run = [=](sim::Context&) { fn(userData); };
    return sim::Submit(call, stream, std::move(work));
  });
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
  return OnStream("cuStreamAddCallback", hStream, [&](Call& call, Stream& stream) {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (stream.capture != nullptr) return sim::AdmitStreamWait(call, stream);
    sim::Work work;
    work.type = CU_GRAPH_NODE_TYPE_HOST;
    work.on_host = true;
    work.run = [=](sim::Context& context) { callback(hStream, context.sticky, userData); };
    return sim::Submit(call, stream, std::move(work));
  });
}
