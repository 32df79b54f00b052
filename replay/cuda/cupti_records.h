// What is read of CUPTI's records. NVIDIA gives a record a new version when it grows, at its end: the fields
// here lie where they are in every version from CUDA 9.0 (kernels; 11.0 for the others) to 13.0, as
// tests/cuda/cupti_records_test.py checks against the toolkit's headers, which keep the old versions. Of what
// lies behind them nothing is read, and nothing relies on a record's size: CUPTI's own iterator goes from one
// to the next.
#pragma once

#include <cstdint>

namespace reprise::replay::cuda {

// CUpti_ActivityKind
inline constexpr uint32_t kRecordCopy = 1;
inline constexpr uint32_t kRecordSet = 2;
inline constexpr uint32_t kRecordKernel = 10;  // concurrent: kind 3 would make kernels run one at a time
inline constexpr uint32_t kRecordMarker = 12;
inline constexpr uint32_t kRecordPeerCopy = 22;

struct KernelRecord {
  uint32_t kind;
  uint32_t unread1[3];
  uint64_t start, end;
  uint64_t unread2;
  uint32_t device, context, stream;
  uint32_t unread3[13];
  const char* name;
};

// Of kRecordCopy and kRecordPeerCopy.
struct CopyRecord {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t unread[3];
  uint64_t bytes;
  uint64_t start, end;
  uint32_t device, context, stream;
};

struct SetRecord {
  uint32_t kind;
  uint32_t unread;
  uint64_t bytes;
  uint64_t start, end;
  uint32_t device, context, stream;
};

struct MarkerRecord {
  uint32_t kind;
  uint32_t flags;
  uint64_t timestamp;
  uint32_t id;
  uint32_t object_kind;
  uint32_t object[3];  // process and thread, where that is what the kind says
  uint32_t unread;
  const char* name;  // null at an end
};

inline constexpr uint32_t kMarkerBegin = 2;
inline constexpr uint32_t kMarkerEnd = 4;
inline constexpr uint32_t kObjectThread = 2;

}  // namespace reprise::replay::cuda
