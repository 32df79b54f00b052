// The seam to libreprise.so: every hooked call as a function that throws nothing (law 4), and the opening.
#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/exceptions.h"
#include "replay/core/log.h"
#include "replay/cuda/core.h"

// The C library's own registration: for no library, so that the handlers stay until the process is gone.
// pthread_atfork would have exit take them away while other threads still fork.
extern "C" int __register_atfork(  // NOLINT(bugprone-reserved-identifier)
    void (*before)(), void (*in_parent)(), void (*in_child)(), void* library);

namespace reprise::replay::cuda {
namespace {

Core* core = nullptr;  // set once, never destroyed

// `ours`, unless this process is a fork's child, or `real` where ours failed. So where the driver has done what it was
// asked for, ours must not fail any more: what comes then is noted (Core::Note). A block of ours must not reach the
// driver's free: whoever frees one says so by `address`.
template <typename Ours, typename Real>
Result Answer(Ours ours, Real real, cu_address address = 0) noexcept {
  if (core->passive()) return real();
  const bool can_throw = CanThrow();
  if (can_throw) {
    try {
      return ours();
    } catch (...) {
    }
  }
  core->Fail();
  if (core->Owns(address)) return kSuccess;
  return can_throw ? core->AskWithoutUs(real) : real();
}

constexpr DefaultStream kLegacy = DefaultStream::kLegacy;
constexpr DefaultStream kPerThread = DefaultStream::kPerThread;

// For calls that only look at what the driver cannot know of, or must not see.
template <typename Real>
Result Exported(cu_address address, const char* call, Exportable exportable, Result refusal,
                Real real) noexcept {
  return Answer([&] { return core->RefuseExport(address, call, exportable) ? refusal : real(); },
                [&] { return core->Owns(address) ? refusal : real(); });
}

void FillMemoryCalls(reprise_cuda_calls& calls) {
  calls.cuMemAlloc_v2 = [](cu_address* out, size_t bytes) {
    return Answer([&] { return core->Alloc(out, bytes); },
                  [&] { return core->driver().cuMemAlloc_v2(out, bytes); });
  };
  calls.cuMemAllocPitch_v2 = [](cu_address* out, size_t* pitch, size_t width, size_t height,
                                unsigned element) {
    return Answer([&] { return core->AllocPitch(out, pitch, width, height, element); },
                  [&] { return core->driver().cuMemAllocPitch_v2(out, pitch, width, height, element); });
  };
  calls.cuMemFree_v2 = [](cu_address block) {
    return Answer([&] { return core->Free(block); }, [&] { return core->driver().cuMemFree_v2(block); },
                  block);
  };
  calls.cuMemGetInfo_v2 = [](size_t* free, size_t* total) {
    return Answer([&] { return core->GetInfo(free, total); },
                  [&] { return core->driver().cuMemGetInfo_v2(free, total); });
  };
  calls.cuMemCreate = [](uint64_t* handle, size_t bytes, const void* properties, uint64_t flags) {
    const auto real = [&] { return core->driver().cuMemCreate(handle, bytes, properties, flags); };
    const auto* const wanted = static_cast<const AllocationProp*>(properties);
    const int device = wanted == nullptr ? -1 : DeviceAt(wanted->location);
    if (device < 0) return real();
    return Answer([&] { return core->AskAgainOn(device, real); }, real);
  };
  calls.cuMemAllocAsync = [](cu_address* out, size_t bytes, cu_stream stream) {
    return Answer([&] { return core->AllocAsync(out, bytes, nullptr, stream, kLegacy); },
                  [&] { return core->driver().cuMemAllocAsync(out, bytes, stream); });
  };
  calls.cuMemAllocAsync_ptsz = [](cu_address* out, size_t bytes, cu_stream stream) {
    return Answer([&] { return core->AllocAsync(out, bytes, nullptr, stream, kPerThread); },
                  [&] { return core->driver().cuMemAllocAsync_ptsz(out, bytes, stream); });
  };
  calls.cuMemAllocFromPoolAsync = [](cu_address* out, size_t bytes, cu_pool pool, cu_stream stream) {
    const auto real = [&] { return core->driver().cuMemAllocFromPoolAsync(out, bytes, pool, stream); };
    if (pool == nullptr) return real();
    return Answer([&] { return core->AllocAsync(out, bytes, pool, stream, kLegacy); }, real);
  };
  calls.cuMemAllocFromPoolAsync_ptsz = [](cu_address* out, size_t bytes, cu_pool pool, cu_stream stream) {
    const auto real = [&] { return core->driver().cuMemAllocFromPoolAsync_ptsz(out, bytes, pool, stream); };
    if (pool == nullptr) return real();
    return Answer([&] { return core->AllocAsync(out, bytes, pool, stream, kPerThread); }, real);
  };
  calls.cuMemFreeAsync = [](cu_address block, cu_stream stream) {
    return Answer([&] { return core->FreeAsync(block, stream, kLegacy); },
                  [&] { return core->driver().cuMemFreeAsync(block, stream); }, block);
  };
  calls.cuMemFreeAsync_ptsz = [](cu_address block, cu_stream stream) {
    return Answer([&] { return core->FreeAsync(block, stream, kPerThread); },
                  [&] { return core->driver().cuMemFreeAsync_ptsz(block, stream); }, block);
  };
}

// What a call finds in its arguments and leaves otherwise there: of a compilation's log how large it may be, then how much
// of it was filled. Asked again, it is to find what it found before. Throws nothing; where the host has no memory for
// it, all stays as the call has left it.
class FoundValues {
 public:
  FoundValues(void** values, unsigned count)
      : values_(values),
        count_(values == nullptr ? 0 : count),
        found_(count_ == 0 ? nullptr : new (std::nothrow) void*[count_]) {
    if (values != nullptr && found_ != nullptr) std::copy_n(values, count_, found_.get());
  }
  void PutBack() const {
    for (unsigned i = 0; found_ != nullptr && i < count_; ++i) {
      if (values_[i] != found_[i])
        values_[i] = found_[i];  // who passes constants has them where nobody may write
    }
  }

 private:
  void** const values_;
  const unsigned count_;
  const std::unique_ptr<void*[]> found_;
};

// By the parameters of the call.
template <typename... Arguments>
FoundValues ValuesIn(Arguments...) {
  return {nullptr, 0};
}
FoundValues ValuesIn(void** /*module*/, const void* /*image*/, unsigned count, int* /*options*/,
                     void** values) {
  return {values, count};
}
template <typename Code>
FoundValues ValuesIn(void** /*library*/, const Code* /*code*/, int* /*jit_options*/, void** jit_values,
                     unsigned jit_count, int* /*options*/, void** /*values*/, unsigned /*count*/) {
  return {jit_values, jit_count};
}

void FillCallsAskedAgain(reprise_cuda_calls& calls) {
#define LOOKUP(symbol, query, since, streams, parameters, arguments)
#define CALL(symbol, query, since, streams, parameters, arguments)
#define AGAIN(symbol, query, since, streams, parameters, arguments) \
  calls.symbol = [] parameters {                                    \
    const FoundValues values_found = ValuesIn arguments;            \
    const auto real = [&] {                                         \
      values_found.PutBack();                                       \
      return core->driver().symbol arguments;                       \
    };                                                              \
    return Answer([&] { return core->AskAgain(real); }, real);      \
  };
#include "replay/cuda_calls.def"
}

void FillPoolCalls(reprise_cuda_calls& calls) {
  calls.cuMemPoolCreate = [](cu_pool* pool, const cu_pool_props* props) {
    return Answer([&] { return core->PoolCreate(pool, props); },
                  [&] { return core->driver().cuMemPoolCreate(pool, props); });
  };
  calls.cuMemPoolDestroy = [](cu_pool pool) {
    return Answer([&] { return core->PoolDestroy(pool); },
                  [&] { return core->driver().cuMemPoolDestroy(pool); });
  };
  calls.cuDeviceSetMemPool = [](int device, cu_pool pool) {
    const Result result = core->driver().cuDeviceSetMemPool(device, pool);
    core->CurrentPoolsChanged();
    return result;
  };
  calls.cuMemSetMemPool = [](cu_location* location, int type, cu_pool pool) {
    const Result result = core->driver().cuMemSetMemPool(location, type, pool);
    core->CurrentPoolsChanged();
    return result;
  };
  calls.cuMemPoolGetAttribute = [](cu_pool pool, int attribute, void* value) {
    return Answer([&] { return core->PoolGetAttribute(pool, attribute, value); },
                  [&] { return core->driver().cuMemPoolGetAttribute(pool, attribute, value); });
  };
  calls.cuMemPoolSetAttribute = [](cu_pool pool, int attribute, void* value) {
    return Answer([&] { return core->PoolSetAttribute(pool, attribute, value); },
                  [&] { return core->driver().cuMemPoolSetAttribute(pool, attribute, value); });
  };
  calls.cuMemPoolTrimTo = [](cu_pool pool, size_t keep) {
    return Answer([&] { return core->PoolTrim(pool, keep); },
                  [&] { return core->driver().cuMemPoolTrimTo(pool, keep); });
  };
  calls.cuMemPoolSetAccess = [](cu_pool pool, const cu_access* access, size_t count) {
    return Answer([&] { return core->PoolSetAccess(pool, access, count); },
                  [&] { return core->driver().cuMemPoolSetAccess(pool, access, count); });
  };
  calls.cuMemPoolExportPointer = [](void* data, cu_address block) {
    return Exported(block, "cuMemPoolExportPointer", Exportable::kNone, kInvalidValue,
                    [&] { return core->driver().cuMemPoolExportPointer(data, block); });
  };
}

void FillQueryCalls(reprise_cuda_calls& calls) {
  calls.cuMemGetAddressRange_v2 = [](cu_address* base, size_t* bytes, cu_address address) {
    return Answer([&] { return core->AddressRange(base, bytes, address); },
                  [&] { return core->driver().cuMemGetAddressRange_v2(base, bytes, address); });
  };
  calls.cuPointerGetAttribute = [](void* value, int attribute, cu_address address) {
    return Answer([&] { return core->PointerAttribute(value, attribute, address); },
                  [&] { return core->driver().cuPointerGetAttribute(value, attribute, address); });
  };
  calls.cuPointerGetAttributes = [](unsigned count, int* attributes, void** values, cu_address address) {
    return Answer([&] { return core->PointerAttributes(count, attributes, values, address); },
                  [&] { return core->driver().cuPointerGetAttributes(count, attributes, values, address); });
  };
  calls.cuPointerSetAttribute = [](const void* value, int attribute, cu_address address) {
    return Answer([&] { return core->SetPointerAttribute(value, attribute, address); },
                  [&] { return core->driver().cuPointerSetAttribute(value, attribute, address); });
  };
  calls.cuIpcGetMemHandle = [](void* handle, cu_address block) {
    core->NoteExport();
    return Exported(block, "cuIpcGetMemHandle", Exportable::kSynchronous, kInvalidValue,
                    [&] { return core->driver().cuIpcGetMemHandle(handle, block); });
  };
  calls.cuMemGetHandleForAddressRange = [](void* handle, cu_address begin, size_t bytes, int type,
                                           uint64_t flags) {
    core->NoteExport();
    return Exported(begin, "cuMemGetHandleForAddressRange", Exportable::kAll, kNotSupported, [&] {
      return core->driver().cuMemGetHandleForAddressRange(handle, begin, bytes, type, flags);
    });
  };
  calls.cuMemRetainAllocationHandle = [](uint64_t* handle, void* address) {
    return Exported(reinterpret_cast<cu_address>(address), "cuMemRetainAllocationHandle", Exportable::kNone,
                    kInvalidValue,
                    [&] { return core->driver().cuMemRetainAllocationHandle(handle, address); });
  };
}

// An allocating call that takes the thread's call stack first, before any lock.
template <auto Member, typename... Arguments>
void TakeStackFirst(reprise_cuda_calls& calls, Result (*)(Arguments...)) {
  static Result (*call)(Arguments...) = nullptr;
  call = calls.*Member;
  calls.*Member = [](Arguments... arguments) {
    if (!core->passive()) core->stacks()->Take();
    return call(arguments...);
  };
}

template <auto... Members>
void TakeStacksFirst(reprise_cuda_calls& calls) {
  (TakeStackFirst<Members>(calls, calls.*Members), ...);
}

template <auto Member>
Result EndContext(cu_context context) {
  const auto call = core->driver().*Member;
  return Answer([&] { return core->EndContext(context, call); }, [&] { return call(context); });
}
template <auto Member>
Result ResetPrimary(int device) {
  const auto call = core->driver().*Member;
  return Answer([&] { return core->ResetPrimary(device, call); }, [&] { return call(device); });
}
template <auto Member>
Result ReleasePrimary(int device) {
  const auto call = core->driver().*Member;
  return Answer([&] { return core->ReleasePrimary(device, call); }, [&] { return call(device); });
}
template <auto Member, typename... Arguments>
Result CreateStream(cu_stream* stream, unsigned flags, Arguments... arguments) {
  const auto real = [&] { return (core->driver().*Member)(stream, flags, arguments...); };
  if ((flags & kStreamNonBlocking) == 0) core->NoteBlockingStream();
  return Answer([&] { return core->AskAgain(real); }, real);
}
template <auto Member>
Result DestroyStream(cu_stream stream) {
  const auto call = core->driver().*Member;
  return Answer([&] { return core->DestroyStream(stream, call); }, [&] { return call(stream); });
}
template <auto Member, DefaultStream kMeans, typename... Arguments>
Result BeginCapture(cu_stream stream, Arguments... arguments) {
  const auto call = [&] { return (core->driver().*Member)(stream, arguments...); };
  return Answer([&] { return core->BeginCapture(stream, kMeans, call); }, call);
}

void FillEndCalls(reprise_cuda_calls& calls) {
  using Calls = reprise_cuda_calls;
  calls.cuCtxDestroy = EndContext<&Calls::cuCtxDestroy>;
  calls.cuCtxDestroy_v2 = EndContext<&Calls::cuCtxDestroy_v2>;
  calls.cuCtxDetach = EndContext<&Calls::cuCtxDetach>;
  calls.cuDevicePrimaryCtxRetain = [](cu_context* context, int device) {
    const auto real = [&] { return core->driver().cuDevicePrimaryCtxRetain(context, device); };
    return Answer([&] { return core->RetainPrimary(context, device, real); }, real);
  };
  calls.cuDevicePrimaryCtxReset = ResetPrimary<&Calls::cuDevicePrimaryCtxReset>;
  calls.cuDevicePrimaryCtxReset_v2 = ResetPrimary<&Calls::cuDevicePrimaryCtxReset_v2>;
  calls.cuDevicePrimaryCtxRelease = ReleasePrimary<&Calls::cuDevicePrimaryCtxRelease>;
  calls.cuDevicePrimaryCtxRelease_v2 = ReleasePrimary<&Calls::cuDevicePrimaryCtxRelease_v2>;
  calls.cuStreamCreate = CreateStream<&Calls::cuStreamCreate>;
  calls.cuStreamCreateWithPriority = CreateStream<&Calls::cuStreamCreateWithPriority>;
  calls.cuStreamDestroy = DestroyStream<&Calls::cuStreamDestroy>;
  calls.cuStreamDestroy_v2 = DestroyStream<&Calls::cuStreamDestroy_v2>;
  calls.cuStreamBeginCapture = BeginCapture<&Calls::cuStreamBeginCapture, kLegacy>;
  calls.cuStreamBeginCapture_ptsz = BeginCapture<&Calls::cuStreamBeginCapture_ptsz, kPerThread>;
  calls.cuStreamBeginCapture_v2 = BeginCapture<&Calls::cuStreamBeginCapture_v2, kLegacy>;
  calls.cuStreamBeginCapture_v2_ptsz = BeginCapture<&Calls::cuStreamBeginCapture_v2_ptsz, kPerThread>;
  calls.cuStreamBeginCaptureToGraph = BeginCapture<&Calls::cuStreamBeginCaptureToGraph, kLegacy>;
  calls.cuStreamBeginCaptureToGraph_ptsz = BeginCapture<&Calls::cuStreamBeginCaptureToGraph_ptsz, kPerThread>;
  calls.cuStreamBeginRecaptureToGraph = BeginCapture<&Calls::cuStreamBeginRecaptureToGraph, kLegacy>;
  calls.cuStreamBeginRecaptureToGraph_ptsz =
      BeginCapture<&Calls::cuStreamBeginRecaptureToGraph_ptsz, kPerThread>;
  calls.cuStreamEndCapture = [](cu_stream stream, void** graph) {
    return Answer([&] { return core->EndCapture(stream, graph, kLegacy); },
                  [&] { return core->driver().cuStreamEndCapture(stream, graph); });
  };
  calls.cuStreamEndCapture_ptsz = [](cu_stream stream, void** graph) {
    return Answer([&] { return core->EndCapture(stream, graph, kPerThread); },
                  [&] { return core->driver().cuStreamEndCapture_ptsz(stream, graph); });
  };
  calls.cuCtxEnablePeerAccess = [](cu_context peer, unsigned flags) {
    const Result result = core->driver().cuCtxEnablePeerAccess(peer, flags);
    const bool is_peer = result == kSuccess || result == kPeerAccessAlreadyEnabled;
    if (!is_peer || core->passive()) return result;
    const Result ours = Answer([&] { return core->AllowPeer(peer, kReadWrite); }, [] { return kUnknown; });
    if (ours == kSuccess) return result;
    // Where ours are not within reach, the driver's are not either, so that the job may ask again.
    if (result == kSuccess) core->driver().cuCtxDisablePeerAccess(peer);
    return ours;
  };
  // The arena stays within reach of a peer that asked for it once; the driver's own blocks do not.
  calls.cuCtxDisablePeerAccess = [](cu_context peer) { return core->driver().cuCtxDisablePeerAccess(peer); };
}

Core* Open(const reprise_cuda_shim& shim) {
  std::unique_ptr<CoreSession> session = CoreSession::Open(shim.stderr_at_start, shim.cpus_at_start);
  if (session == nullptr) return nullptr;
  const char* missing = nullptr;
  const std::optional<Driver> driver = Driver::Find(shim, &missing);
  if (!driver) {
    Log(LogLevel::kWarn, absl::StrCat("this CUDA driver has no ", missing, "; memory is left as it is"));
    return nullptr;
  }
  return std::make_unique<Core>(*driver, std::move(session)).release();
}

__attribute__((destructor)) void AtExit() {
  if (core != nullptr) core->AtExit();
}

const reprise_cuda_core* OpenOnce(const reprise_cuda_shim* shim) {
  static reprise_cuda_core entries;
  if (shim->version != REPRISE_ABI_VERSION || shim->size < sizeof *shim) {
    Log(LogLevel::kWarn, "the preload library is of another version; memory is left as it is");
    return nullptr;
  }
  if (core != nullptr) return nullptr;
  core = Open(*shim);
  if (core == nullptr) return nullptr;
  if (__register_atfork([] { core->BeforeFork(); }, [] { core->AfterForkInParent(); },
                        [] { core->AfterForkInChild(); }, nullptr) != 0) {
    Log(LogLevel::kWarn, "no memory for fork handlers; memory is left as it is");
    core = nullptr;
    return nullptr;
  }
  entries.version = REPRISE_ABI_VERSION;
  entries.size = sizeof entries;
  entries.stop = [] { core->Stop(); };
  FillMemoryCalls(entries.calls);
  FillPoolCalls(entries.calls);
  FillQueryCalls(entries.calls);
  FillEndCalls(entries.calls);
  FillCallsAskedAgain(entries.calls);
  using Calls = reprise_cuda_calls;
  if (core->stacks() != nullptr) {
    TakeStacksFirst<&Calls::cuMemAlloc_v2, &Calls::cuMemAllocPitch_v2, &Calls::cuMemAllocAsync,
                    &Calls::cuMemAllocAsync_ptsz, &Calls::cuMemAllocFromPoolAsync,
                    &Calls::cuMemAllocFromPoolAsync_ptsz>(entries.calls);
  }
  return &entries;
}

}  // namespace
}  // namespace reprise::replay::cuda

extern "C" __attribute__((visibility("default"))) const reprise_cuda_core* reprise_core_open_cuda(
    const reprise_cuda_shim* shim) {
  const reprise_cuda_core* opened = nullptr;
  if (!reprise::Completes([&] { opened = reprise::replay::cuda::OpenOnce(shim); })) {
    reprise::replay::Log(reprise::replay::LogLevel::kWarn,
                         "an error while starting; memory is left as it is");
  }
  return opened;
}
