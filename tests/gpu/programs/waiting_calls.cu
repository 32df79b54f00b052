// Which calls of the driver do not return before a kernel that runs: of a stream that does not block, and of the legacy
// default stream; and some answers that the headers leave open. One JSON object on stdout. A kernel that spins ends by
// itself soon, whatever happens.
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr unsigned long long kSpins = 60'000'000;  // ns, longer than any of these calls takes by itself

struct Flags {
  volatile int began, go, ended;
};

__global__ void Spin(Flags* flags) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  flags->began = 1;
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (flags->go == 0 && now - begin < kSpins);
  if (flags->go == 0) flags->ended = 1;
}

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: CUDA error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

#define CHECK(call) Check(call, #call)

Flags* flags = nullptr;
bool first = true;

// Calls once while nothing runs and once beside a kernel on `stream`.
void Try(const std::string& name, CUstream stream, const std::function<CUresult()>& call,
         const std::function<void()>& prepare = {}, const std::function<void()>& finish = {}) {
  double took[2];
  CUresult result = CUDA_SUCCESS;
  bool waited = false;
  for (const bool beside : {false, true}) {
    if (prepare) prepare();
    CHECK(cuCtxSynchronize());
    flags->began = flags->go = flags->ended = 0;
    if (beside) {
      Spin<<<1, 1, 0, stream>>>(flags);
      while (flags->began == 0) {
      }
    }
    const auto began = std::chrono::steady_clock::now();
    result = call();
    took[beside] =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
    waited = flags->ended != 0;
    flags->go = 1;
    CHECK(cuCtxSynchronize());
    if (finish) finish();
  }
  std::printf("%s{\"call\": \"%s\", \"result\": %d, \"waits\": %s, \"idle_us\": %.1f, \"beside_us\": %.1f}",
              first ? "" : ",\n", name.c_str(), static_cast<int>(result), waited ? "true" : "false", took[0],
              took[1]);
  first = false;
}

void TryMapped(CUstream stream, CUdevice device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  constexpr size_t kBytes = 2 << 20;
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle handle = 0;
  const auto reserve = [&] { return cuMemAddressReserve(&at, kBytes, 0, 0, 0); };
  const auto create = [&] { return cuMemCreate(&handle, kBytes, &prop, 0); };
  const auto map = [&] { return cuMemMap(at, kBytes, 0, handle, 0); };
  const auto set_access = [&] { return cuMemSetAccess(at, kBytes, &access, 1); };
  const auto unmap = [&] { return cuMemUnmap(at, kBytes); };
  const auto release = [&] { return cuMemRelease(handle); };
  const auto free = [&] { return cuMemAddressFree(at, kBytes); };
  const std::vector<std::pair<const char*, std::function<CUresult()>>> steps = {
      {"cuMemAddressReserve", reserve}, {"cuMemCreate", create}, {"cuMemMap", map},
      {"cuMemSetAccess", set_access},   {"cuMemUnmap", unmap},   {"cuMemRelease", release},
      {"cuMemAddressFree", free},
  };
  for (size_t step = 0; step < steps.size(); ++step) {
    Try(
        steps[step].first, stream, steps[step].second,
        [&] {
          for (size_t i = 0; i < step; ++i) CHECK(steps[i].second());
        },
        [&] {
          for (size_t i = step + 1; i < steps.size(); ++i) CHECK(steps[i].second());
        });
  }
}

void TryBlocks(CUstream stream, CUstream other) {
  CUdeviceptr at = 0;
  for (const size_t kib : {1, 128, 4096, 65536, 1048576}) {
    const auto name = [&](const std::string& call) { return call + " of " + std::to_string(kib) + " KiB"; };
    const auto get = [&] { return cuMemAlloc(&at, kib << 10); };
    const auto give = [&] { return cuMemFree(at); };
    Try(name("cuMemAlloc"), stream, get, {}, [&] { CHECK(give()); });
    Try(name("cuMemFree"), stream, give, [&] { CHECK(get()); });
    const auto get_async = [&] { return cuMemAllocAsync(&at, kib << 10, other); };
    const auto give_async = [&] { return cuMemFreeAsync(at, other); };
    Try(name("cuMemAllocAsync"), stream, get_async, {}, [&] { CHECK(give_async()); });
    Try(name("cuMemFreeAsync"), stream, give_async, [&] { CHECK(get_async()); });
    Try(name("cuMemFree, of a pool's block,"), stream, give, [&] { CHECK(get_async()); });
    CHECK(cuStreamSynchronize(other));
  }
}

void TryOthers(CUstream stream, CUstream other, CUdevice device) {
  CUdeviceptr a = 0, b = 0;
  constexpr size_t kBytes = 4 << 20;
  CHECK(cuMemAlloc(&a, kBytes));
  CHECK(cuMemAlloc(&b, kBytes));
  CUmemoryPool pool;
  CHECK(cuDeviceGetDefaultMemPool(&pool, device));
  cuuint64_t threshold = 0;
  size_t total = 0, left = 0;
  void* host = nullptr;
  CUevent event = nullptr;
  CUstream made = nullptr;
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  Try("cuMemPoolTrimTo", stream, [&] { return cuMemPoolTrimTo(pool, 0); });
  Try("cuMemPoolSetAttribute", stream,
      [&] { return cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold); });
  Try("cuMemGetInfo", stream, [&] { return cuMemGetInfo(&left, &total); });
  Try("cuMemsetD8", stream, [&] { return cuMemsetD8(a, 1, kBytes); });
  Try("cuMemsetD8Async on another stream", stream, [&] { return cuMemsetD8Async(a, 1, kBytes, other); });
  Try("cuMemcpyDtoD", stream, [&] { return cuMemcpyDtoD(a, b, kBytes); });
  Try(
      "cuMemHostAlloc", stream, [&] { return cuMemHostAlloc(&host, kBytes, 0); }, {},
      [&] { CHECK(cuMemFreeHost(host)); });
  Try(
      "cuMemFreeHost", stream, [&] { return cuMemFreeHost(host); },
      [&] { CHECK(cuMemHostAlloc(&host, kBytes, 0)); });
  Try("cuEventRecord on the legacy stream", stream, [&] { return cuEventRecord(event, CU_STREAM_LEGACY); });
  Try("cuEventQuery", stream, [&] { return cuEventQuery(event); });
  Try(
      "cuStreamCreate", stream, [&] { return cuStreamCreate(&made, CU_STREAM_NON_BLOCKING); }, {},
      [&] { CHECK(cuStreamDestroy(made)); });
  Try(
      "cuStreamDestroy", stream, [&] { return cuStreamDestroy(made); },
      [&] { CHECK(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING)); });
  Try("cuEventCreate and cuEventDestroy", stream, [&] {
    CUevent one = nullptr;
    const CUresult result = cuEventCreate(&one, CU_EVENT_DISABLE_TIMING);
    return result == CUDA_SUCCESS ? cuEventDestroy(one) : result;
  });
  CHECK(cuMemFree(a));
  CHECK(cuMemFree(b));
}

// Whether memory counts as one that hardware decompresses into: cuMemAlloc's, and mapped memory that was asked for as such
// (a usage of 2) or was not. -1: there is none.
void TellDecompression(CUdevice device) {
  int algorithms = 0;
  CUdeviceptr at = 0;
  unsigned plain = 0;
  CHECK(cuDeviceGetAttribute(&algorithms, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, device));
  CHECK(cuMemAlloc(&at, 2 << 20));
  CHECK(cuPointerGetAttribute(&plain, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, at));
  CHECK(cuMemFree(at));
  std::printf(",\n\"decompression\": {\"algorithms\": %d, \"cuMemAlloc\": %u", algorithms, plain);
  for (const unsigned short usage : {0, 2}) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    prop.allocFlags.usage = usage;
    CUmemGenericAllocationHandle handle = 0;
    const CUresult made = cuMemCreate(&handle, 2 << 20, &prop, 0);
    int capable = -1;
    if (made == CUDA_SUCCESS) {
      const CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      CHECK(cuMemAddressReserve(&at, 2 << 20, 0, 0, 0));
      CHECK(cuMemMap(at, 2 << 20, 0, handle, 0));
      CHECK(cuMemSetAccess(at, 2 << 20, &access, 1));
      unsigned answer = 0;
      CHECK(cuPointerGetAttribute(&answer, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, at));
      capable = static_cast<int>(answer);
      CHECK(cuMemUnmap(at, 2 << 20));
      CHECK(cuMemRelease(handle));
      CHECK(cuMemAddressFree(at, 2 << 20));
    }
    std::printf(", \"mapped, usage %d\": {\"cuMemCreate\": %d, \"capable\": %d}", usage, made, capable);
  }
  std::printf("}");
}

void TellAnswers(CUstream stream, CUdevice device) {
  CUgreenCtx green = nullptr;
  const auto ask = [&](CUstream of) { return static_cast<int>(cuStreamGetGreenCtx(of, &green)); };
  std::printf(
      "\"cuStreamGetGreenCtx\": {\"of 0\": %d, \"of the legacy stream\": %d, \"of the thread's\": %d, \"of a "
      "stream\": %d}",
      ask(nullptr), ask(CU_STREAM_LEGACY), ask(CU_STREAM_PER_THREAD), ask(stream));
  CUmemoryPool pool;
  CHECK(cuDeviceGetDefaultMemPool(&pool, device));
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemAccess_flags access{};
  const CUresult result = cuMemPoolGetAccess(&access, pool, &location);
  std::printf(",\n\"cuMemPoolGetAccess\": {\"result\": %d, \"flags\": %d}", static_cast<int>(result),
              static_cast<int>(access));
  TellDecompression(device);
  unsigned int flags_of[3] = {9, 9, 9};
  const CUresult results[3] = {cuStreamGetFlags(nullptr, &flags_of[0]),
                               cuStreamGetFlags(CU_STREAM_LEGACY, &flags_of[1]),
                               cuStreamGetFlags(CU_STREAM_PER_THREAD, &flags_of[2])};
  std::printf(
      ",\n\"cuStreamGetFlags\": {\"of 0\": [%d, %u], \"of the legacy stream\": [%d, %u], \"of the "
      "thread's\": [%d, %u]}",
      results[0], flags_of[0], results[1], flags_of[1], results[2], flags_of[2]);
}

}  // namespace

int main() {
  CHECK(cuInit(0));
  CUdevice device;
  CUcontext context;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&flags), sizeof *flags, CU_MEMHOSTALLOC_PORTABLE));
  CUstream apart, other;
  CHECK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  flags->go = 1;
  Spin<<<1, 1, 0, apart>>>(flags);
  CHECK(cuCtxSynchronize());
  std::printf("{");
  TellAnswers(apart, device);
  const std::pair<const char*, CUstream> streams[] = {{"a stream that does not block", apart},
                                                      {"the legacy stream", nullptr}};
  for (const auto& [name, stream] : streams) {
    std::printf(",\n\"beside a kernel on %s\": [\n", name);
    first = true;
    TryMapped(stream, device);
    TryBlocks(stream, other);
    TryOthers(stream, other, device);
    std::printf("]");
  }
  std::printf("}\n");
  return 0;
}
