// Plays one scenario: scenarios NAME, or `warm` and the name, to train first. Without a name: lists them, with
// --alone those that are not to be played beside others on one device.
#include <cstdlib>
#include <cstring>

#include "tests/cuda/scenarios/scenario.h"

std::vector<Scenario>& Scenario::All() {
  static std::vector<Scenario> all;
  return all;
}

int Report(const char* call, int result) {
  std::printf("%s: %d\n", call, result);
  std::fflush(stdout);
  return result;
}

void Note(const char* what, int64_t value) {
  std::printf("%s = %lld\n", what, static_cast<long long>(value));
  std::fflush(stdout);
}

namespace {

// For what a scenario needs and does not ask about.
void Need(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", what, static_cast<int>(result));
  std::exit(3);
}
#define NEED(call) Need(call, #call)

CUcontext main_context;

}  // namespace

CUcontext MainContext() { return main_context; }

CUcontext PrimaryContext(CUdevice device) {
  CUcontext context;
  NEED(cuDevicePrimaryCtxRetain(&context, device));
  NEED(cuCtxSetCurrent(context));
  return context;
}

CUcontext NewContext(CUdevice device) {
  CUcontext context;
#if CUDA_VERSION >= 13000
  NEED(cuCtxCreate(&context, nullptr, 0, device));
#else
  NEED(cuCtxCreate(&context, 0, device));
#endif
  return context;
}

CUstream NewStream() {
  CUstream stream;
  NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

CUevent NewEvent() {
  CUevent event;
  NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

CUmemoryPool DefaultPool(CUdevice device) {
  CUmemoryPool pool;
  NEED(cuDeviceGetDefaultMemPool(&pool, device));
  return pool;
}

CUmemPoolProps PlainPool(CUdevice device) {
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return props;
}

CUmemoryPool NewPool(CUdevice device, size_t most_bytes) {
  CUmemPoolProps props = PlainPool(device);
  props.maxSize = most_bytes;
  CUmemoryPool pool = nullptr;
  DO(cuMemPoolCreate(&pool, &props));
  return pool;
}

cuuint64_t PoolAttribute(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  const CUresult result = cuMemPoolGetAttribute(pool, attribute, &value);
  if (result != CUDA_SUCCESS) DO(result);
  return value;
}

bool TwoDevices() {
  int devices = 0;
  cuDeviceGetCount(&devices);
  NOTE(devices >= 2);
  return devices >= 2;
}

size_t DeviceBytes() {
  static const size_t left = [] {
    size_t unused = 0;
    size_t total = 0;
    NEED(cuMemGetInfo(&unused, &total));
    return unused;
  }();
  return left;
}

void EndCapture(CUstream captured) {
  CUgraph graph = nullptr;
  if (DO(cuStreamEndCapture(captured, &graph)) == 0) DO(cuGraphDestroy(graph));
}

void CheckInfo(size_t held) {
  size_t unused = 0;
  size_t total = 0;
  DO(cuMemGetInfo(&unused, &total));
  std::printf("memory: total %zu MiB, free + held <= total: %d\n", total / kMiB, unused + held <= total);
}

void CheckBytes() {
  DO(cuCtxSynchronize());
  NOTE(WorkCorruptedBytes());
}

void Train(const Training& training) {
  constexpr size_t kSizes[] = {1 * kMiB, 96 * kKiB, 3 * kMiB, 512 * kKiB, 2 * kMiB + 512, 64 * kKiB};
  constexpr int kLayers = 12;
  const auto take = [&](CUdeviceptr* block, size_t bytes) {
    NEED(training.synchronous ? cuMemAlloc(block, bytes) : cuMemAllocAsync(block, bytes, training.stream));
    NEED(FillPieces(*block, bytes, *block, training.stream));
  };
  const auto give = [&](CUdeviceptr block, size_t bytes) {
    NEED(VerifyPieces(block, bytes, block, training.stream));
    NEED(training.synchronous ? cuMemFree(block) : cuMemFreeAsync(block, training.stream));
  };
  for (int i = 0; i < training.iterations; ++i) {
    CUdeviceptr activation[kLayers];
    const auto bytes = [&](int layer) { return kSizes[layer % 6] + layer * 4 * kKiB; };
    for (int layer = 0; layer < kLayers; ++layer) take(&activation[layer], bytes(layer));
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      CUdeviceptr gradient;
      take(&gradient, bytes(layer) + 512);
      give(activation[layer], bytes(layer));
      give(gradient, bytes(layer) + 512);
    }
    NEED(cuStreamSynchronize(training.stream));
  }
}

int main(int count, char** arguments) {
  const bool warm = count > 2 && std::strcmp(arguments[1], "warm") == 0;
  const bool lists_alone = count > 1 && std::strcmp(arguments[1], "--alone") == 0;
  const char* const name = count > 1 && !lists_alone ? arguments[count - 1] : nullptr;
  for (const Scenario& scenario : Scenario::All()) {
    if (!name && scenario.alone >= lists_alone) std::printf("%s\n", scenario.name);
    if (!name || std::strcmp(scenario.name, name) != 0) continue;
    NEED(cuInit(0));
    main_context = PrimaryContext(0);
    if (warm) {
      const CUstream stream = NewStream();
      Train({stream, /*synchronous=*/false, 60});
      Train({stream, /*synchronous=*/true, 16});  // twice what a plan takes; on a GPU each round is slow
      NEED(cuStreamDestroy(stream));
    }
    scenario.play();
    return 0;
  }
  return name ? 2 : 0;
}
