// Copies and sets. Which of them wait, and for what, follows "API synchronization behavior" of the driver
// API's documentation.
#include <cstring>
#include <memory>

#include "tests/simcuda/driver/capture.h"
#include "tests/simcuda/driver/work.h"

namespace {

using sim::Access;
using sim::Call;
using sim::Context;
using sim::Stream;

enum class Place { kDevice, kPinned, kPageable };

struct End {
  uint64_t address = 0;
  Place place = Place::kDevice;
  int device = sim::kHost;  // whose memory it is
};

// A copy; its source may have been read already, into `staged`.
struct Copy {
  End to;
  End from;
  uint64_t bytes = 0;
  std::shared_ptr<std::vector<char>> staged;
};

End Locate(Call& call, uint64_t address) {
  if (call.sim.addresses.Contains(address)) {
    const sim::Mapping* const mapping = call.sim.addresses.Find(address).second;
    return {address, Place::kDevice, mapping == nullptr ? sim::kHost : mapping->device};
  }
  bool pinned = call.sim.FindHostBlock(address) != call.sim.host_blocks.end();
  return {address, pinned ? Place::kPinned : Place::kPageable};
}

// As simActivity has it.
int KindOf(const Copy& copy) {
  const bool to_device = copy.to.place == Place::kDevice, from_device = copy.from.place == Place::kDevice;
  if (!to_device) return from_device ? 2 : 9;
  if (!from_device) return 1;
  return copy.to.device == copy.from.device ? 8 : 10;
}

void Perform(Context& context, const Copy& copy) {
  std::vector<char> between;
  const char* source = reinterpret_cast<const char*>(copy.from.address);
  if (copy.staged != nullptr) {
    source = copy.staged->data();
  } else if (copy.from.place == Place::kDevice) {
    between.reserve(copy.bytes);
    auto read = [&](const char* bytes, uint64_t size) { between.insert(between.end(), bytes, bytes + size); };
    if (!sim::Touch(context, copy.from.address, copy.bytes, Access::kCopyRead, read)) return;
    source = between.data();
  }
  if (copy.to.place != Place::kDevice) {
    memcpy(reinterpret_cast<void*>(copy.to.address), source, copy.bytes);
    return;
  }
  sim::Touch(context, copy.to.address, copy.bytes, Access::kCopyWrite, [&](char* bytes, uint64_t size) {
    memcpy(bytes, source, size);
    source += size;
  });
}

// A graph reads and writes pageable memory when it is launched; a stream has to be done with it when the call
// returns.
CUresult Submit(Call& call, Stream& stream, Copy copy) {
  bool captured = stream.capture != nullptr;
  if (copy.from.place == Place::kPageable && !captured) {
    auto source = reinterpret_cast<const char*>(copy.from.address);
    copy.staged = std::make_shared<std::vector<char>>(source, source + copy.bytes);
  }
  sim::Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  work.bytes = copy.bytes;
  work.copy_kind = KindOf(copy);
  work.run = [copy](Context& context) { Perform(context, copy); };
  if (CUresult error = sim::Submit(call, stream, std::move(work)); error != CUDA_SUCCESS) return error;
  if (copy.to.place == Place::kPageable && !captured)
    return sim::WaitFor(call, {stream.tail}, *stream.context);
  return CUDA_SUCCESS;
}

CUresult CopyAsync(const char* function, uint64_t to, uint64_t from, size_t bytes, CUstream handle) {
  return sim::OnStream(function, handle, [&](Call& call, Stream& stream) {
    if (bytes == 0) return CUDA_SUCCESS;
    if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
    return Submit(call, stream, {Locate(call, to), Locate(call, from), bytes, nullptr});
  });
}

// The synchronous forms: on a default stream, and waiting where host memory is concerned. A copy out of
// pageable memory waits for the stream first, then returns with the last leg still to come.
CUresult CopySync(const char* function, uint64_t to, uint64_t from, size_t bytes, CUstream handle) {
  return sim::OnStream(function, handle, [&](Call& call, Stream& stream) {
    if (CUresult error = sim::AdmitStreamWait(call, stream); error != CUDA_SUCCESS) return error;
    if (bytes == 0) return CUDA_SUCCESS;
    if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
    Copy copy{Locate(call, to), Locate(call, from), bytes, nullptr};
    if (copy.from.place == Place::kPageable) {
      if (CUresult error = sim::WaitForStream(call, stream); error != CUDA_SUCCESS) return error;
    }
    if (CUresult error = Submit(call, stream, copy); error != CUDA_SUCCESS) return error;
    bool on_device = copy.to.place == Place::kDevice && copy.from.place != Place::kPinned;
    return on_device ? stream.context->sticky : sim::WaitFor(call, {stream.tail}, *stream.context);
  });
}

template <typename T>
CUresult Set(const char* function, CUdeviceptr to, T value, size_t count, CUstream handle) {
  return sim::OnStream(function, handle, [&](Call& call, Stream& stream) {
    if (to % sizeof(T) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (count == 0) return CUDA_SUCCESS;
    sim::Work work;
    work.type = CU_GRAPH_NODE_TYPE_MEMSET;
    work.bytes = count * sizeof(T);
    work.run = [=](Context& context) {
      sim::Touch(context, to, count * sizeof(T), Access::kKernelWrite, [&](char* bytes, uint64_t size) {
        for (uint64_t at = 0; at < size; at += sizeof(T)) memcpy(bytes + at, &value, sizeof(T));
      });
    };
    if (!call.sim.addresses.Contains(to)) return sim::NotSimulated("cuMemset of host memory");
    return sim::Submit(call, stream, std::move(work));
  });
}

uint64_t Address(const void* host) { return reinterpret_cast<uint64_t>(host); }

}  // namespace

SIM_EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return CopySync("cuMemcpy", dst, src, bytes, CU_STREAM_LEGACY);
}

SIM_EXPORT CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return CopySync("cuMemcpy", dst, src, bytes, CU_STREAM_PER_THREAD);
}

SIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t bytes) {
  return CopySync("cuMemcpyHtoD", dst, Address(src), bytes, CU_STREAM_LEGACY);
}

SIM_EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void* src, size_t bytes) {
  return CopySync("cuMemcpyHtoD", dst, Address(src), bytes, CU_STREAM_PER_THREAD);
}

SIM_EXPORT CUresult cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t bytes) {
  return CopySync("cuMemcpyDtoH", Address(dst), src, bytes, CU_STREAM_LEGACY);
}

SIM_EXPORT CUresult cuMemcpyDtoH_v2_ptds(void* dst, CUdeviceptr src, size_t bytes) {
  return CopySync("cuMemcpyDtoH", Address(dst), src, bytes, CU_STREAM_PER_THREAD);
}

SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return CopySync("cuMemcpyDtoD", dst, src, bytes, CU_STREAM_LEGACY);
}

SIM_EXPORT CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return CopySync("cuMemcpyDtoD", dst, src, bytes, CU_STREAM_PER_THREAD);
}

SIM_EXPORT CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
                                 size_t bytes) {
  return CopySync("cuMemcpyPeer", dst, src, bytes, CU_STREAM_LEGACY);
}

SIM_EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
                                      size_t bytes) {
  return CopySync("cuMemcpyPeer", dst, src, bytes, CU_STREAM_PER_THREAD);
}

SIM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return CopyAsync("cuMemcpyAsync", dst, src, bytes, stream);
}

SIM_EXPORT CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return CopyAsync("cuMemcpyAsync", dst, src, bytes, sim::PerThread(stream));
}

SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  return CopyAsync("cuMemcpyHtoDAsync", dst, Address(src), bytes, stream);
}

SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void* src, size_t bytes,
                                              CUstream stream) {
  return CopyAsync("cuMemcpyHtoDAsync", dst, Address(src), bytes, sim::PerThread(stream));
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return CopyAsync("cuMemcpyDtoHAsync", Address(dst), src, bytes, stream);
}

SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2_ptsz(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return CopyAsync("cuMemcpyDtoHAsync", Address(dst), src, bytes, sim::PerThread(stream));
}

SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return CopyAsync("cuMemcpyDtoDAsync", dst, src, bytes, stream);
}

SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                                              CUstream stream) {
  return CopyAsync("cuMemcpyDtoDAsync", dst, src, bytes, sim::PerThread(stream));
}

SIM_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
                                      size_t bytes, CUstream stream) {
  return CopyAsync("cuMemcpyPeerAsync", dst, src, bytes, stream);
}

SIM_EXPORT CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
                                           size_t bytes, CUstream stream) {
  return CopyAsync("cuMemcpyPeerAsync", dst, src, bytes, sim::PerThread(stream));
}

SIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count) {
  return Set("cuMemsetD8", dst, value, count, CU_STREAM_LEGACY);
}

SIM_EXPORT CUresult cuMemsetD8_v2_ptds(CUdeviceptr dst, unsigned char value, size_t count) {
  return Set("cuMemsetD8", dst, value, count, CU_STREAM_PER_THREAD);
}

SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return Set("cuMemsetD8Async", dst, value, count, stream);
}

SIM_EXPORT CUresult cuMemsetD8Async_ptsz(CUdeviceptr dst, unsigned char value, size_t count,
                                         CUstream stream) {
  return Set("cuMemsetD8Async", dst, value, count, sim::PerThread(stream));
}

SIM_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count) {
  return Set("cuMemsetD16", dst, value, count, CU_STREAM_LEGACY);
}

SIM_EXPORT CUresult cuMemsetD16_v2_ptds(CUdeviceptr dst, unsigned short value, size_t count) {
  return Set("cuMemsetD16", dst, value, count, CU_STREAM_PER_THREAD);
}

SIM_EXPORT CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream) {
  return Set("cuMemsetD16Async", dst, value, count, stream);
}

SIM_EXPORT CUresult cuMemsetD16Async_ptsz(CUdeviceptr dst, unsigned short value, size_t count,
                                          CUstream stream) {
  return Set("cuMemsetD16Async", dst, value, count, sim::PerThread(stream));
}

SIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t count) {
  return Set("cuMemsetD32", dst, value, count, CU_STREAM_LEGACY);
}

SIM_EXPORT CUresult cuMemsetD32_v2_ptds(CUdeviceptr dst, unsigned int value, size_t count) {
  return Set("cuMemsetD32", dst, value, count, CU_STREAM_PER_THREAD);
}

SIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream) {
  return Set("cuMemsetD32Async", dst, value, count, stream);
}

SIM_EXPORT CUresult cuMemsetD32Async_ptsz(CUdeviceptr dst, unsigned int value, size_t count,
                                          CUstream stream) {
  return Set("cuMemsetD32Async", dst, value, count, sim::PerThread(stream));
}
