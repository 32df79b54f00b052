// "Kernels" of the simulator's own, its counters, and the refusal of all other kernels.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tests/simcuda/driver/work.h"

namespace {

using sim::Access;
using sim::Call;
using sim::Context;
using sim::Enter;
using sim::Needs;
using sim::Stream;

// The pattern is a sequence of words; each is scrambled from the seed and its place, so that neither shifted
// nor older contents pass for right.
uint64_t Word(uint64_t seed, uint64_t place) {
  uint64_t word = seed * 0x9e3779b97f4a7c15 + place;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  return word ^ word >> 27;
}

// Walks a range word by word, over the ends of its pieces.
template <typename OnBytes>
void Walk(uint64_t seed, uint64_t* at, uint64_t size, OnBytes&& on_bytes) {
  for (uint64_t done = 0; done < size;) {
    uint64_t word = Word(seed, *at / sizeof word);
    uint64_t skip = *at % sizeof word;
    uint64_t part = std::min<uint64_t>(sizeof word - skip, size - done);
    on_bytes(done, reinterpret_cast<const char*>(&word) + skip, part);
    done += part;
    *at += part;
  }
}

void Fill(Context& context, uint64_t to, uint64_t bytes, uint64_t seed) {
  uint64_t at = 0;
  sim::Touch(context, to, bytes, Access::kKernelWrite, [&](char* memory, uint64_t size) {
    Walk(seed, &at, size,
         [&](uint64_t done, const char* pattern, uint64_t part) { memcpy(memory + done, pattern, part); });
  });
}

uint64_t Differences(const char* a, const char* b, uint64_t size) {
  if (memcmp(a, b, size) == 0) return 0;
  uint64_t count = 0;
  for (uint64_t i = 0; i < size; ++i) count += a[i] != b[i];
  return count;
}

void Verify(Context& context, uint64_t from, uint64_t bytes, uint64_t seed) {
  uint64_t at = 0;
  uint64_t wrong = 0;
  sim::Touch(context, from, bytes, Access::kKernelRead, [&](const char* memory, uint64_t size) {
    Walk(seed, &at, size, [&](uint64_t done, const char* pattern, uint64_t part) {
      wrong += Differences(memory + done, pattern, part);
    });
  });
  sim::TheSimulator().counters.corrupted_bytes += wrong;
}

CUresult Launch(const char* function, CUstream handle, std::function<void(Context&)> kernel,
                std::function<bool()> ready) {
  return sim::OnStream(function, handle, [&](Call& call, Stream& stream) {
    sim::Work work;
    work.type = CU_GRAPH_NODE_TYPE_KERNEL;
    work.name = function;
    work.run = std::move(kernel);
    work.ready = std::move(ready);
    return sim::Submit(call, stream, std::move(work));
  });
}

template <typename Ask>
uint64_t Look(Ask&& ask) {
  sim::Lock lock(sim::TheMutex());
  return ask(sim::TheSimulator());
}

template <typename Ask>
uint64_t LookAtDevice(CUdevice device, Ask&& ask) {
  return Look([&](sim::Simulator& sim) -> uint64_t {
    return sim.HasDevice(device) ? ask(sim.devices[device]->physical) : 0;
  });
}

}  // namespace

CUresult simFill(CUdeviceptr dst, size_t bytes, unsigned long long seed, CUstream stream) {
  return Launch(
      "simFill", stream, [=](Context& context) { Fill(context, dst, bytes, seed); }, nullptr);
}

CUresult simVerify(CUdeviceptr src, size_t bytes, unsigned long long seed, CUstream stream) {
  return Launch(
      "simVerify", stream, [=](Context& context) { Verify(context, src, bytes, seed); }, nullptr);
}

CUresult simSpinUntil(const volatile int* flag, CUstream stream) {
  if (flag == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Launch("simSpinUntil", stream, nullptr, [=] { return *flag != 0; });
}

void simObserve(simObserver observer) {
  sim::Lock lock(sim::TheMutex());
  sim::TheSimulator().observer = observer;
}

static void ObserveRange(int kind, unsigned range, const char* name) {
  simActivity activity = {};
  activity.kind = kind;
  activity.name = name;
  activity.range = range;
  activity.thread = static_cast<unsigned>(gettid());
  activity.begin = activity.end = sim::WallClock();
  sim::Lock lock(sim::TheMutex());
  if (sim::TheSimulator().observer != nullptr) sim::TheSimulator().observer(&activity);
}

unsigned simRangeBegin(const char* name) {
  static std::atomic<unsigned> last{0};
  const unsigned range = ++last;
  ObserveRange(SIM_ACTIVITY_RANGE_BEGIN, range, name);
  return range;
}

void simRangeEnd(unsigned range) { ObserveRange(SIM_ACTIVITY_RANGE_END, range, nullptr); }

unsigned long long simCorruptedBytes() {
  return Look([](const sim::Simulator& sim) { return sim.counters.corrupted_bytes; });
}

unsigned long long simIllegalAccesses() {
  return Look([](const sim::Simulator& sim) { return sim.counters.illegal_accesses; });
}

unsigned long long simHostSynchronizations() {
  return Look([](const sim::Simulator& sim) { return sim.counters.host_synchronizations; });
}

unsigned long long simEventWaits() {
  return Look([](const sim::Simulator& sim) { return sim.counters.event_waits; });
}

unsigned long long simAllQueuedOperations() {
  return Look([](const sim::Simulator& sim) { return sim.executor.Queued(); });
}

unsigned long long simQueuedOperations(CUstream stream) {
  uint64_t queued = 0;
  sim::OnStream("simQueuedOperations", stream, [&](Call&, Stream& found) {
    queued = found.queue.size();
    return CUDA_SUCCESS;
  });
  return queued;
}

unsigned long long simRunSome(unsigned long long count) {
  sim::Lock lock(sim::TheMutex());
  return sim::TheSimulator().executor.RunSome(count, lock);
}

void simReseed(unsigned long long seed) {
  sim::Lock lock(sim::TheMutex());
  sim::TheSimulator().executor.Reseed(seed);
}

unsigned long long simPhysicalBytes(CUdevice device) {
  return LookAtDevice(device, [](const sim::Physical& memory) { return memory.used(); });
}

unsigned long long simPeakPhysicalBytes(CUdevice device) {
  return LookAtDevice(device, [](const sim::Physical& memory) { return memory.peak(); });
}

unsigned long long simHostPhysicalBytes() {
  return Look([](sim::Simulator& sim) { return sim.host().used(); });
}

unsigned long long simPeakHostPhysicalBytes() {
  return Look([](sim::Simulator& sim) { return sim.host().peak(); });
}

void simResetPeakPhysicalBytes(CUdevice device) {
  LookAtDevice(device, [](sim::Physical& memory) {
    memory.ResetPeak();
    return memory.peak();
  });
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void** kernelParams, void** extra) {
  return Enter("cuLaunchKernel", Needs::kContext,
               [&](Call&) { return sim::NotSimulated("kernels do not run here"); });
}
