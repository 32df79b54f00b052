// Contexts: primary and created ones, the stack of each thread, and what goes with a context that ends.
#include <cstdlib>

#include "tests/simcuda/driver/allocations.h"
#include "tests/simcuda/driver/capture.h"
#include "tests/simcuda/driver/modules.h"
#include "tests/simcuda/driver/pools.h"
#include "tests/simcuda/driver/work.h"

namespace {

using sim::Call;
using sim::Context;
using sim::Enter;
using sim::Needs;

sim::Device* DeviceOf(Call& call, CUdevice device) {
  return call.sim.HasDevice(device) ? call.sim.devices[device].get() : nullptr;
}

void Activate(Call& call, Context& context) {
  context.alive = true;
  context.sticky = CUDA_SUCCESS;
  context.serial = ++call.sim.serials;
  context.legacy = sim::MakeStream(call.sim, context, CU_STREAM_DEFAULT, 0).get();  // the executor holds it
  context.legacy->legacy = true;
}

// One that has ended, where a handle may come again: then nobody is told of who still uses it.
Context* Ended(sim::Simulator& sim) {
  if (!sim.config.reuse_contexts) return nullptr;
  for (const auto& context : sim.contexts) {
    if (context->alive) continue;
    sim::Device& device = sim.DeviceOf(*context);
    if (device.primary == context.get()) device.primary = nullptr;
    *context = Context();
    return context.get();
  }
  return nullptr;
}

Context* NewContext(Call& call, CUdevice device, unsigned flags, bool primary) {
  Context* again = Ended(call.sim);
  if (again == nullptr) again = call.sim.contexts.emplace_back(std::make_unique<Context>()).get();
  Context& context = *again;
  context.device = device;
  context.flags = flags;
  context.primary = primary;
  Activate(call, context);
  return &context;
}

// All queued work is over. Streams, captures, events and memory of the context end with it; pools and physical handles
// belong to the device and stay.
void Empty(Call& call, Context& context) {
  sim::Simulator& sim = call.sim;
  context.alive = false;
  sim::EndCapturesIn(sim, context);
  sim::EndModulesIn(sim, context);
  std::erase_if(sim.streams, [&](const auto& entry) {
    if (entry.second->context != &context) return false;
    sim.dead.insert(entry.first);
    sim.executor.Retire(*entry.second);
    return true;
  });
  sim.executor.Retire(*context.legacy);
  context.legacy = nullptr;
  for (const auto& [thread, stream] : context.per_thread) sim.executor.Retire(*stream);
  context.per_thread.clear();
  context.peers.clear();
  for (const auto& other : sim.contexts) other->peers.erase(&context);
  std::erase_if(sim.events, [&](const auto& entry) {
    if (entry.second->context != &context) return false;
    sim.dead.insert(entry.first);
    return true;
  });
  for (auto it = sim.allocations.begin(); it != sim.allocations.end();) {
    auto next = std::next(it);
    if (it->second.context == &context) {
      if (it->second.kind == sim::Allocation::Kind::kPool)
        it->second.context = nullptr;  // a pool's memory is the device's
      else
        sim::EndAllocation(sim, it, nullptr, 0);
    }
    it = next;
  }
  std::erase_if(sim.host_blocks, [&](const auto& entry) {
    if (entry.second.context != &context) return false;
    if (!entry.second.registered) free(reinterpret_cast<void*>(entry.first));
    return true;
  });
}

CUresult End(Call& call, Context& context) {
  sim::WaitForContext(call, context);
  Empty(call, context);
  return CUDA_SUCCESS;
}

Context* Retain(Call& call, CUdevice dev, sim::Device& device) {
  if (device.primary == nullptr) {
    device.primary = NewContext(call, dev, device.primary_flags, true);
  } else if (!device.primary->alive) {
    Activate(call, *device.primary);
  }
  ++device.primary_references;
  return device.primary;
}

CUresult Release(Call& call, sim::Device& device) {
  if (device.primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device.primary_references > 0 || !device.primary->alive) return CUDA_SUCCESS;
  return End(call, *device.primary);
}

CUgreenCtx GreenHandle(Context* context) { return reinterpret_cast<CUgreenCtx>(context); }

template <typename Body>
CUresult OnGreen(const char* function, CUgreenCtx handle, Body&& body) {
  return Enter(function, Needs::kDriver, [&](Call& call) {
    for (const auto& context : call.sim.contexts) {
      if (context->green && context->alive && GreenHandle(context.get()) == handle)
        return body(call, *context);
    }
    return CUDA_ERROR_INVALID_CONTEXT;
  });
}

template <typename Body>
CUresult OnContext(const char* function, CUcontext handle, Body&& body) {
  return Enter(function, Needs::kDriver, [&](Call& call) {
    if (handle == nullptr) {
      if (CUresult error = sim::CurrentContext(call.sim, &call.context); error != CUDA_SUCCESS) return error;
    } else {
      call.context = call.sim.FindContext(handle);
      if (call.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    }
    return body(call);
  });
}

CUresult Synchronize(Call& call) {
  if (CUresult error = sim::AdmitContextWait(call, *call.context); error != CUDA_SUCCESS) return error;
  return sim::WaitForContext(call, *call.context);
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return Enter("cuDevicePrimaryCtxRetain", Needs::kDriver, [&](Call& call) {
    sim::Device* device = DeviceOf(call, dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pctx = call.sim.HandleOf(Retain(call, dev, *device));
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) {
  return Enter("cuDevicePrimaryCtxRelease", Needs::kDriver, [&](Call& call) {
    sim::Device* device = DeviceOf(call, dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    return Release(call, *device);
  });
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev) {
  return Enter("cuDevicePrimaryCtxReset", Needs::kDriver, [&](Call& call) {
    sim::Device* device = DeviceOf(call, dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary == nullptr || !device->primary->alive) return CUDA_SUCCESS;
    return End(call, *device->primary);
  });
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  return Enter("cuDevicePrimaryCtxSetFlags", Needs::kDriver, [&](Call& call) {
    sim::Device* device = DeviceOf(call, dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return CUDA_ERROR_INVALID_VALUE;
    device->primary_flags = flags;
    if (device->primary != nullptr) device->primary->flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  return Enter("cuDevicePrimaryCtxGetState", Needs::kDriver, [&](Call& call) {
    sim::Device* device = DeviceOf(call, dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = device->primary_flags;
    *active = device->primary != nullptr && device->primary->alive;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxCreate(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags, CUdevice dev) {
  return Enter("cuCtxCreate", Needs::kDriver, [&](Call& call) {
    if (ctxCreateParams != nullptr) return sim::NotSimulated("parameters of cuCtxCreate");
    if (pctx == nullptr || (flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (DeviceOf(call, dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *pctx = call.sim.HandleOf(NewContext(call, dev, flags, false));
    return sim::ThisThread().Push(*pctx) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

CUresult cuCtxDestroy(CUcontext ctx) {
  return Enter("cuCtxDestroy", Needs::kDriver, [&](Call& call) {
    Context* context = call.sim.FindContext(ctx);
    if (context == nullptr || context->primary || context->green) return CUDA_ERROR_INVALID_CONTEXT;
    End(call, *context);
    if (sim::ThisThread().top() == ctx) sim::ThisThread().Pop();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxDetach(CUcontext ctx) { return cuCtxDestroy(ctx); }

CUresult cuCtxPushCurrent(CUcontext ctx) {
  return Enter("cuCtxPushCurrent", Needs::kDriver, [&](Call& call) {
    if (call.sim.FindContext(ctx) == nullptr) return call.sim.NoSuchContext(ctx, "cuCtxPushCurrent");
    return sim::ThisThread().Push(ctx) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  });
}

CUresult cuCtxPopCurrent(CUcontext* pctx) {
  return Enter("cuCtxPopCurrent", Needs::kDriver, [&](Call&) {
    sim::ThreadState& thread = sim::ThisThread();
    if (thread.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx != nullptr) *pctx = thread.top();
    thread.Pop();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext ctx) {
  return Enter("cuCtxSetCurrent", Needs::kDriver, [&](Call& call) {
    sim::ThreadState& thread = sim::ThisThread();
    if (ctx != nullptr && call.sim.FindContext(ctx) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (thread.depth > 0) thread.Pop();
    if (ctx != nullptr) thread.Push(ctx);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  return Enter("cuCtxGetCurrent", Needs::kDriver, [&](Call&) {
    if (pctx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pctx = sim::ThisThread().top();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return Enter("cuCtxGetDevice", Needs::kContext, [&](Call& call) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = call.context->device;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
  return OnContext("cuCtxGetDevice", ctx, [&](Call& call) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = call.context->device;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  return Enter("cuCtxGetFlags", Needs::kContext, [&](Call& call) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = call.context->flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  return OnContext("cuCtxGetId", ctx, [&](Call& call) {
    if (ctxId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *ctxId = call.context->serial;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  return OnContext("cuCtxGetApiVersion", ctx, [&](Call&) {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  return Enter("cuCtxGetLimit", Needs::kContext,
               [&](Call&) { return sim::NotSimulated("limit " + std::to_string(limit)); });
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return Enter("cuCtxSetLimit", Needs::kContext,
               [&](Call&) { return sim::NotSimulated("limit " + std::to_string(limit)); });
}

CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return Enter("cuCtxGetStreamPriorityRange", Needs::kContext, [&](Call&) {
    if (leastPriority != nullptr) *leastPriority = 0;
    if (greatestPriority != nullptr) *greatestPriority = -5;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() { return Enter("cuCtxSynchronize", Needs::kContext, Synchronize); }

CUresult cuCtxSynchronize_v2(CUcontext ctx) { return OnContext("cuCtxSynchronize", ctx, Synchronize); }

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
  return Enter("cuCtxEnablePeerAccess", Needs::kContext, [&](Call& call) {
    Context* peer = call.sim.FindContext(peerContext);
    if (peer == nullptr || peer == call.context) return CUDA_ERROR_INVALID_CONTEXT;
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (peer->device == call.context->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    bool added = call.context->peers.insert(peer).second;
    return added ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  return Enter("cuCtxDisablePeerAccess", Needs::kContext, [&](Call& call) {
    Context* peer = call.sim.FindContext(peerContext);
    if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return call.context->peers.erase(peer) == 1 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  return Enter("cuDeviceGetDevResource", Needs::kDriver, [&](Call& call) {
    if (DeviceOf(call, device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
      return sim::NotSimulated("resources of a device but multiprocessors");
    *resource = {};
    resource->type = type;
    resource->sm = {8, 2, 2};
    return CUDA_SUCCESS;
  });
}

// All are the same here.
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* phDesc, CUdevResource* resources,
                                   unsigned int nbResources) {
  return Enter("cuDevResourceGenerateDesc", Needs::kDriver, [&](Call&) {
    if (phDesc == nullptr || resources == nullptr || nbResources == 0) return CUDA_ERROR_INVALID_VALUE;
    static char description;
    *phDesc = reinterpret_cast<CUdevResourceDesc>(&description);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxCreate(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  return Enter("cuGreenCtxCreate", Needs::kDriver, [&](Call& call) {
    sim::Device* device = DeviceOf(call, dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (phCtx == nullptr || desc == nullptr || flags != CU_GREEN_CTX_DEFAULT_STREAM)
      return CUDA_ERROR_INVALID_VALUE;
    Retain(call, dev, *device);
    Context* green = NewContext(call, dev, 0, false);
    green->green = true;
    *phCtx = GreenHandle(green);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx) {
  return OnGreen("cuGreenCtxDestroy", hCtx, [](Call& call, Context& green) {
    End(call, green);
    return Release(call, call.sim.DeviceOf(green));
  });
}

CUresult cuCtxFromGreenCtx(CUcontext* pContext, CUgreenCtx hCtx) {
  return OnGreen("cuCtxFromGreenCtx", hCtx, [&](Call& call, Context& green) {
    if (pContext == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pContext = call.sim.HandleOf(&green);
    return CUDA_SUCCESS;
  });
}

CUresult cuGreenCtxStreamCreate(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int priority) {
  return OnGreen("cuGreenCtxStreamCreate", greenCtx, [&](Call& call, Context& green) {
    if (phStream == nullptr || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<sim::Stream> stream = sim::MakeStream(call.sim, green, flags, priority);
    *phStream = reinterpret_cast<CUstream>(stream.get());
    call.sim.streams[*phStream] = stream;
    call.sim.dead.erase(*phStream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* phCtx) {
  return sim::OnStream("cuStreamGetGreenCtx", hStream, [&](Call& call, sim::Stream& stream) {
    if (phCtx == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult error = sim::AdmitStreamWait(call, stream); error != CUDA_SUCCESS) return error;
    *phCtx = stream.context->green ? GreenHandle(stream.context) : nullptr;
    return CUDA_SUCCESS;
  });
}
