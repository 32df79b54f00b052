// The CUDA driver as the core uses it: the real functions behind the hooks, and those that are not hooked.
//
// Documented functions only, found by name in the driver that the job has loaded. The driver API alone is
// used, so that the job's last error of the runtime is never touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "replay/abi.h"

namespace reprise::replay::cuda {

using Result = int;  // CUresult
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kDeinitialized = 4;
inline constexpr Result kInvalidContext = 201;
inline constexpr Result kInvalidHandle = 400;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;
inline constexpr Result kPeerAccessAlreadyEnabled = 704;
inline constexpr Result kNotSupported = 801;
inline constexpr Result kStreamCaptureUnsupported = 900;
inline constexpr Result kUnknown = 999;

// The default streams under explicit names.
inline CUstream_st* const kLegacyStream =
    reinterpret_cast<cu_stream>(1);  // NOLINT(performance-no-int-to-ptr)
inline CUstream_st* const kPerThreadStream =
    reinterpret_cast<cu_stream>(2);  // NOLINT(performance-no-int-to-ptr)

// CU_DEVICE_ATTRIBUTE_...
inline constexpr int kVirtualMemoryManagementSupported = 102;
inline constexpr int kRdmaWithVirtualMemorySupported = 110;
inline constexpr int kHostNumaId = 134;
inline constexpr int kMemDecompressAlgorithmMask = 136;

inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kDeviceLocation = 1;
inline constexpr int kDevicePartLocation = 6;  // ..._DEVICE_LOCALITY_DOMAIN, from CUDA 13.5 on
inline constexpr int kHostLocation = 2;
inline constexpr int kHostNumaLocation = 3;
inline constexpr int kPinnedAllocation = 1;
inline constexpr int kReadWrite = 3;
inline constexpr int kUsageHwDecompress = 2;

using Event = struct CUevent_st*;
using Handle = unsigned long long;  // CUmemGenericAllocationHandle

// CUmemAllocationProp
struct AllocationProp {
  int type = 0;
  int handle_types = 0;
  cu_location location{};
  void* security = nullptr;
  struct {
    unsigned char compression = 0;
    unsigned char rdma_capable = 0;
    uint16_t usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};

// Which device's memory a location is; negative: none's. Of a part of a device the first byte names that, the next the part.
inline int DeviceAt(const cu_location& location) {
  if (location.type == kDeviceLocation) return location.id;
  return location.type == kDevicePartLocation ? *reinterpret_cast<const unsigned char*>(&location.id) : -1;
}

struct Driver {
  const reprise_cuda_calls* calls = nullptr;  // those that are hooked

// FUNCTION(name, symbol, parameters)
#define REPRISE_DRIVER_FUNCTIONS(FUNCTION)                                                                \
  FUNCTION(CtxGetCurrent, "cuCtxGetCurrent", (cu_context*))                                               \
  FUNCTION(CtxPushCurrent, "cuCtxPushCurrent_v2", (cu_context))                                           \
  FUNCTION(CtxPopCurrent, "cuCtxPopCurrent_v2", (cu_context*))                                            \
  FUNCTION(CtxSetCurrent, "cuCtxSetCurrent", (cu_context))                                                \
  FUNCTION(CtxGetDevice, "cuCtxGetDevice", (int*))                                                        \
  FUNCTION(CtxSynchronize, "cuCtxSynchronize", ())                                                        \
  FUNCTION(DevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", (int, unsigned*, int*))                \
  FUNCTION(DeviceGetCount, "cuDeviceGetCount", (int*))                                                    \
  FUNCTION(DeviceGetAttribute, "cuDeviceGetAttribute", (int*, int, int))                                  \
  FUNCTION(DeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int*, int, int))                                \
  FUNCTION(DeviceGetName, "cuDeviceGetName", (char*, int, int))                                           \
  FUNCTION(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t*, int))                                         \
  FUNCTION(DeviceGetMemPool, "cuDeviceGetMemPool", (cu_pool*, int))                                       \
  FUNCTION(DeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", (cu_pool*, int))                         \
  FUNCTION(MemPoolGetAccess, "cuMemPoolGetAccess", (int*, cu_pool, cu_location*))                         \
  FUNCTION(StreamGetCtx, "cuStreamGetCtx", (cu_stream, cu_context*))                                      \
  FUNCTION(StreamGetFlags, "cuStreamGetFlags", (cu_stream, unsigned*))                                    \
  FUNCTION(StreamQuery, "cuStreamQuery", (cu_stream))                                                     \
  FUNCTION(StreamIsCapturing, "cuStreamIsCapturing", (cu_stream, int*))                                   \
  FUNCTION(StreamWaitEvent, "cuStreamWaitEvent", (cu_stream, Event, unsigned))                            \
  FUNCTION(EventCreate, "cuEventCreate", (Event*, unsigned))                                              \
  FUNCTION(EventRecord, "cuEventRecord", (Event, cu_stream))                                              \
  FUNCTION(EventQuery, "cuEventQuery", (Event))                                                           \
  FUNCTION(MemGetAllocationGranularity, "cuMemGetAllocationGranularity",                                  \
           (size_t*, const AllocationProp*, int))                                                         \
  FUNCTION(MemAddressReserve, "cuMemAddressReserve", (cu_address*, size_t, size_t, cu_address, uint64_t)) \
  FUNCTION(MemCreate, "cuMemCreate", (Handle*, size_t, const AllocationProp*, uint64_t))                  \
  FUNCTION(MemRelease, "cuMemRelease", (Handle))                                                          \
  FUNCTION(MemMap, "cuMemMap", (cu_address, size_t, size_t, Handle, uint64_t))                            \
  FUNCTION(MemUnmap, "cuMemUnmap", (cu_address, size_t))                                                  \
  FUNCTION(MemSetAccess, "cuMemSetAccess", (cu_address, size_t, const cu_access*, size_t))

#define REPRISE_MEMBER(name, symbol, parameters) Result(*name) parameters = nullptr;
  REPRISE_DRIVER_FUNCTIONS(REPRISE_MEMBER)
#undef REPRISE_MEMBER

  // From CUDA 12.4 on, which has green contexts.
  Result (*StreamGetGreenCtx)(cu_stream, void** green) = nullptr;

  // Whether it is a stream of a green context, or the legacy stream while one is current. That context ends unheard of, and
  // until then may be current to one thread alone: nothing is served there, so that it is never named again. Nor where the
  // driver does not say, unless because it knows of none, or none for streams of this kind.
  bool InGreenContext(cu_stream stream) const {
    if (StreamGetGreenCtx == nullptr) return false;
    void* green = nullptr;
    const Result told = StreamGetGreenCtx(stream, &green);
    if (told == kSuccess) return green != nullptr;
    return told != kNotSupported && told != kNotFound && told != kInvalidHandle;
  }

  // nullopt: this driver is too old, it lacks `*missing`.
  static std::optional<Driver> Find(const reprise_cuda_shim& shim, const char** missing);

  int Attribute(int device, int attribute) const {
    int value = 0;
    return DeviceGetAttribute(&value, attribute, device) == kSuccess ? value : 0;
  }
  // Whether a device can be another's peer, unless the driver says that it cannot.
  bool MayReach(int device, int other) const {
    int can = 0;
    return DeviceCanAccessPeer(&can, device, other) != kSuccess || can != 0;
  }
  std::string NameOf(int device) const {
    char name[128] = "";
    return DeviceGetName(name, sizeof name, device) == kSuccess ? name : "";
  }
  cu_context Current() const {
    cu_context context = nullptr;
    return CtxGetCurrent(&context) == kSuccess ? context : nullptr;
  }
};

// Makes a context current, where it is not, for the lifetime of the scope. Where the driver refuses, another one stays
// current: nothing may be asked of it in this one's place.
class ContextScope {
 public:
  ContextScope(const Driver& driver, cu_context context)
      : driver_(driver),
        context_(context),
        was_current_(driver.Current() == context),
        pushed_(!was_current_ && driver.CtxPushCurrent(context) == kSuccess) {}
  ~ContextScope() {
    cu_context popped = nullptr;
    if (!pushed_ || driver_.CtxPopCurrent(&popped) == kSuccess) return;
    if (driver_.Current() == context_) driver_.CtxSetCurrent(nullptr);  // takes it off as well
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  bool ok() const { return was_current_ || pushed_; }

 private:
  const Driver& driver_;
  const cu_context context_;
  const bool was_current_;
  const bool pushed_;
};

}  // namespace reprise::replay::cuda
