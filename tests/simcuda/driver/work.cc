#include "tests/simcuda/driver/work.h"

#include <algorithm>
#include <cstdio>

#include "tests/simcuda/driver/capture.h"
#include "tests/simcuda/driver/pools.h"

namespace sim {

std::shared_ptr<Stream> MakeStream(Simulator& sim, Context& context, unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>();
  stream->context = &context;
  stream->serial = ++sim.serials;
  stream->flags = flags;
  stream->priority = priority;
  sim.executor.Add(stream);
  return stream;
}

CUresult FindStream(Call& call, const char* function, CUstream handle, Stream** stream) {
  bool special = handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  if (!special) {
    auto found = call.sim.streams.find(handle);
    if (found == call.sim.streams.end()) return NoSuchHandle(call.sim, handle, function);
    *stream = found->second.get();
    call.context = (*stream)->context;
    return call.context->sticky;
  }
  if (CUresult error = CurrentContext(call.sim, &call.context); error != CUDA_SUCCESS) return error;
  Context& context = *call.context;
  if (handle != CU_STREAM_PER_THREAD) {
    *stream = context.legacy;
    return CUDA_SUCCESS;
  }
  Stream*& own = context.per_thread[std::this_thread::get_id()];
  if (own == nullptr) {
    own = MakeStream(call.sim, context, CU_STREAM_DEFAULT, 0).get();  // the executor holds it
    own->per_thread = true;
  }
  *stream = own;
  return CUDA_SUCCESS;
}

CUresult Submit(Call& call, Stream& stream, Work work) {
  if (stream.capture != nullptr) {
    if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    stream.capture_after = {AddNode(*stream.capture->graph, std::move(work), stream.capture_after)};
    return CUDA_SUCCESS;
  }
  if (stream.legacy) {
    if (CUresult error = AdmitLegacy(call, *stream.context); error != CUDA_SUCCESS) return error;
  }
  call.sim.executor.Queue(stream, std::move(work), {}, call.lock);
  return CUDA_SUCCESS;
}

CUresult WaitFor(Call& call, const std::vector<uint64_t>& operations, const Context& context) {
  ++call.sim.counters.host_synchronizations;
  call.sim.executor.RunUntil(operations, call.lock);
  TrimPools(call.sim);
  return context.sticky;
}

// Green contexts are parts of the primary one.
CUresult WaitForContext(Call& call, const Context& context) {
  std::vector<uint64_t> tails = call.sim.executor.Tails(&context);
  for (const auto& other : call.sim.contexts) {
    if (!context.primary || !other->green || other->device != context.device) continue;
    const std::vector<uint64_t> more = call.sim.executor.Tails(other.get());
    tails.insert(tails.end(), more.begin(), more.end());
  }
  return WaitFor(call, tails, context);
}

CUresult WaitForStream(Call& call, Stream& stream) {
  std::vector<uint64_t> tails = {stream.tail};
  if (stream.legacy) {  // waits for whatever the legacy stream would wait for
    for (const auto& [handle, other] : call.sim.streams) {
      if (other->context == stream.context && other->blocking()) tails.push_back(other->tail);
    }
    for (const auto& [thread, other] : stream.context->per_thread) tails.push_back(other->tail);
  }
  return WaitFor(call, tails, *stream.context);
}

namespace {

bool Allowed(const Context& context, const Mapping& mapping, Access access) {
  uint32_t devices =
      access == Access::kCopyRead || access == Access::kKernelRead ? mapping.readable : mapping.writable;
  if (access == Access::kCopyRead || access == Access::kCopyWrite) return devices != 0;
  if (devices >> context.device & 1) return true;
  auto is_owner = [&](const Context* peer) { return peer->device == mapping.device; };
  return mapping.open_to_peers && std::any_of(context.peers.begin(), context.peers.end(), is_owner);
}

}  // namespace

bool Touch(Context& context, uint64_t address, uint64_t bytes, Access access,
           const std::function<void(char*, uint64_t)>& visit) {
  Simulator& sim = TheSimulator();
  auto allowed = [&](const Mapping& mapping) { return Allowed(context, mapping, access); };
  if (sim.addresses.Visit(address, bytes, allowed, visit)) return true;
  ++sim.counters.illegal_accesses;
  context.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  char line[96];
  snprintf(line, sizeof line, "device %d: illegal access to %llu bytes at 0x%llx", context.device,
           static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address));
  Say(line);
  return false;
}

}  // namespace sim
