// CUPTI as the time line uses it: found in the process or by the loader, never linked. Documented functions
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "replay/abi.h"

namespace reprise::replay::cuda {

// By the names under which CUDA 13, 12 and 11.8 install it.
inline constexpr const char* kCuptiNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"};

struct Cupti {
  using Result = int;  // CUptiResult
  static constexpr Result kSuccess = 0;
  static constexpr Result kMaxLimitReached = 12;  // also: how CUDA 11's first versions said the next
  static constexpr Result kMultipleSubscribers = 39;
  static constexpr uint32_t kFlushForced = 1;

  using Subscriber = struct CUpti_Subscriber_st*;
  using Callback = void (*)(void* user, int domain, uint32_t id, const void* data);
  using BufferRequested = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
  using BufferCompleted = void (*)(cu_context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid);

// FUNCTION(member, symbol, parameters)
#define REPRISE_CUPTI_FUNCTIONS(FUNCTION)                                                           \
  FUNCTION(GetVersion, "cuptiGetVersion", (uint32_t*))                                              \
  FUNCTION(GetResultString, "cuptiGetResultString", (Result, const char**))                         \
  FUNCTION(GetTimestamp, "cuptiGetTimestamp", (uint64_t*))                                          \
  FUNCTION(Subscribe, "cuptiSubscribe", (Subscriber*, Callback, void*))                             \
  FUNCTION(Unsubscribe, "cuptiUnsubscribe", (Subscriber))                                           \
  FUNCTION(RegisterCallbacks, "cuptiActivityRegisterCallbacks", (BufferRequested, BufferCompleted)) \
  FUNCTION(Enable, "cuptiActivityEnable", (uint32_t))                                               \
  FUNCTION(Disable, "cuptiActivityDisable", (uint32_t))                                             \
  FUNCTION(FlushAll, "cuptiActivityFlushAll", (uint32_t))                                           \
  FUNCTION(GetNextRecord, "cuptiActivityGetNextRecord", (uint8_t*, size_t, const uint32_t**))       \
  FUNCTION(GetNumDropped, "cuptiActivityGetNumDroppedRecords", (cu_context, uint32_t, size_t*))

#define REPRISE_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  REPRISE_CUPTI_FUNCTIONS(REPRISE_MEMBER)
#undef REPRISE_MEMBER

  // What the job has loaded, else what the loader finds. NotFound: neither; FailedPrecondition: not a CUPTI
  // of a version whose records are known.
  static absl::StatusOr<Cupti> Find();

  std::string Words(Result result) const;
};

}  // namespace reprise::replay::cuda
