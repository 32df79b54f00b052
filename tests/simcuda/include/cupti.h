// Our own declarations of what the simulated CUPTI offers: names, values and layouts of CUDA 13.0's cupti.h,
// its records of the newest version there. headers_test.py holds them to an installed toolkit's.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda.h"

#define CUPTIAPI

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CUPTI_SUCCESS = 0,
  CUPTI_ERROR_INVALID_PARAMETER = 1,
  CUPTI_ERROR_INVALID_OPERATION = 7,
  CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
  CUPTI_ERROR_INVALID_KIND = 21,
  CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
} CUptiResult;

typedef enum {
  CUPTI_ACTIVITY_KIND_INVALID = 0,
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_MEMSET = 2,
  CUPTI_ACTIVITY_KIND_KERNEL = 3,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_ACTIVITY_KIND_MARKER = 12,
  CUPTI_ACTIVITY_KIND_MEMCPY2 = 22,
} CUpti_ActivityKind;

typedef enum {
  CUPTI_ACTIVITY_FLAG_NONE = 0,
  CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1,
  CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS = 1,
  CUPTI_ACTIVITY_FLAG_MARKER_START = 2,
  CUPTI_ACTIVITY_FLAG_MARKER_END = 4,
} CUpti_ActivityFlag;

typedef enum {
  CUPTI_ACTIVITY_OBJECT_UNKNOWN = 0,
  CUPTI_ACTIVITY_OBJECT_THREAD = 2,
} CUpti_ActivityObjectKind;

typedef enum {
  CUPTI_CB_DOMAIN_INVALID = 0,
} CUpti_CallbackDomain;

#define SIM_RECORD __attribute__((__packed__)) __attribute__((aligned(8)))

typedef struct SIM_RECORD {
  CUpti_ActivityKind kind;
} CUpti_Activity;

typedef struct SIM_RECORD {
  CUpti_ActivityKind kind;
  uint8_t cacheConfig;
  uint8_t sharedMemoryConfig;
  uint16_t registersPerThread;
  uint32_t partitionedGlobalCacheRequested;
  uint32_t partitionedGlobalCacheExecuted;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  int32_t gridX;
  int32_t gridY;
  int32_t gridZ;
  int32_t blockX;
  int32_t blockY;
  int32_t blockZ;
  int32_t staticSharedMemory;
  int32_t dynamicSharedMemory;
  uint32_t localMemoryPerThread;
  uint32_t localMemoryTotal;
  uint32_t correlationId;
  int64_t gridId;
  const char* name;
  uint8_t behind[104];
} CUpti_ActivityKernel10;

typedef struct SIM_RECORD {
  CUpti_ActivityKind kind;
  uint8_t copyKind;
  uint8_t srcKind;
  uint8_t dstKind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t correlationId;
  uint8_t behind[48];
} CUpti_ActivityMemcpy6;

typedef struct SIM_RECORD {
  CUpti_ActivityKind kind;
  uint8_t copyKind;
  uint8_t srcKind;
  uint8_t dstKind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t srcDeviceId;
  uint32_t srcContextId;
  uint32_t dstDeviceId;
  uint32_t dstContextId;
  uint32_t correlationId;
  uint8_t behind[32];
} CUpti_ActivityMemcpyPtoP4;

typedef struct SIM_RECORD {
  CUpti_ActivityKind kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t deviceId;
  uint32_t contextId;
  uint32_t streamId;
  uint32_t correlationId;
  uint8_t behind[40];
} CUpti_ActivityMemset4;

typedef struct SIM_RECORD {
  CUpti_ActivityKind kind;
  CUpti_ActivityFlag flags;
  uint64_t timestamp;
  uint32_t id;
  CUpti_ActivityObjectKind objectKind;
  uint32_t objectId[3];
  uint32_t pad;
  const char* name;
  const char* domain;
} CUpti_ActivityMarker2;

typedef struct CUpti_Subscriber_st* CUpti_SubscriberHandle;
typedef uint32_t CUpti_CallbackId;
typedef void(CUPTIAPI* CUpti_CallbackFunc)(void* userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                                           const void* cbdata);
typedef void(CUPTIAPI* CUpti_BuffersCallbackRequestFunc)(uint8_t** buffer, size_t* size,
                                                         size_t* maxNumRecords);
typedef void(CUPTIAPI* CUpti_BuffersCallbackCompleteFunc)(CUcontext context, uint32_t streamId,
                                                          uint8_t* buffer, size_t size, size_t validSize);

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version);
CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** str);
CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp);
CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                                    void* userdata);
CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber);
CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                                                    CUpti_BuffersCallbackCompleteFunc funcBufferCompleted);
CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind);
CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind);
CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag);
CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                                CUpti_Activity** record);
CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId, size_t* dropped);

#ifdef __cplusplus
}
#endif
