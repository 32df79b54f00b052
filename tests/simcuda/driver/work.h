// From a stream's handle to queued work: what the functions of the API have in common.
#pragma once

#include <string>

#include "tests/simcuda/driver/simulator.h"

namespace sim {

// Adds a stream to a context.
std::shared_ptr<Stream> MakeStream(Simulator& sim, Context& context, unsigned flags, int priority);

// The stream behind a handle, the three special ones included; what is wrong if there is none.
CUresult FindStream(Call& call, const char* function, CUstream handle, Stream** stream);

// Queues work, or captures it if the stream is capturing.
CUresult Submit(Call& call, Stream& stream, Work work);

// Enter for a function that takes a stream.
template <typename Body>
CUresult OnStream(const char* function, CUstream handle, Body&& body) {
  return Enter(function, Needs::kDriver, [&](Call& call) {
    Stream* stream = nullptr;
    if (CUresult error = FindStream(call, function, handle, &stream); error != CUDA_SUCCESS) return error;
    return body(call, *stream);
  });
}

// The host waits. Answers the context's sticky error, which the work may have brought about.
CUresult WaitFor(Call& call, const std::vector<uint64_t>& operations, const Context& context);
CUresult WaitForContext(Call& call, const Context& context);
CUresult WaitForStream(Call& call, Stream& stream);

// For work that is running: reads or writes device memory on behalf of `context`. Copies reach every device's
// memory, kernels only what they were given access to. An illegal access is said, counted, and sticks to the
// context.
enum class Access { kCopyRead, kCopyWrite, kKernelRead, kKernelWrite };
bool Touch(Context& context, uint64_t address, uint64_t bytes, Access access,
           const std::function<void(char*, uint64_t)>& visit);

// `_ptsz` names: the default stream is the thread's own.
inline CUstream PerThread(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

}  // namespace sim
