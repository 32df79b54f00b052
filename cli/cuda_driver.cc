#include "cli/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_split.h"
#include "cli/subprocess.h"

namespace reprise::cli {
namespace {

constexpr char kDriver[] = "libcuda.so.1";
constexpr int kMemoryPoolsSupported = 115;  // CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED

template <typename Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

// Prints `version N`, then `device BYTES POOLS NAME` for each or one `error WORDS`.
int PrintDriver() {
  void* const driver = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return 1;
  int (*get_version)(int*);
  int (*init)(unsigned);
  int (*get_count)(int*);
  int (*get_name)(char*, int, int);
  int (*get_memory)(size_t*, int);
  int (*get_attribute)(int*, int, int);
  if (!Find(driver, "cuDriverGetVersion", get_version) || !Find(driver, "cuInit", init) ||
      !Find(driver, "cuDeviceGetCount", get_count) || !Find(driver, "cuDeviceGetName", get_name) ||
      !Find(driver, "cuDeviceTotalMem_v2", get_memory) ||
      !Find(driver, "cuDeviceGetAttribute", get_attribute)) {
    dprintf(STDOUT_FILENO, "error its functions are not those of a CUDA driver\n");
    return 0;
  }
  int version = 0;
  if (get_version(&version) == 0) dprintf(STDOUT_FILENO, "version %d\n", version);
  int count = 0;
  int result = init(0);
  if (result == 0) result = get_count(&count);
  if (result != 0) dprintf(STDOUT_FILENO, "error cuInit gives CUDA error %d\n", result);
  for (int device = 0; device < count; ++device) {
    char name[128] = "";
    size_t memory = 0;
    int pools = 0;  // also where the driver is older than they are
    get_attribute(&pools, kMemoryPoolsSupported, device);
    if (get_name(name, sizeof name, device) == 0 && get_memory(&memory, device) == 0) {
      dprintf(STDOUT_FILENO, "device %zu %d %s\n", memory, pools != 0 ? 1 : 0, name);
    }
  }
  return 0;
}

}  // namespace

bool HasCudaDriver() { return LoaderError(kDriver).empty(); }

CudaDriver AskCudaDriver() {
  CudaDriver driver;
  const Captured asked = RunInFork(PrintDriver);
  const std::vector<std::string> lines = absl::StrSplit(asked.out, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    const size_t blank = line.find(' ');
    const std::string what = line.substr(0, blank);
    const std::string rest = line.substr(blank + 1);
    if (what == "version") driver.version = atoi(rest.c_str());
    if (what == "error") driver.error = rest;
    if (what == "device") {
      const std::vector<std::string> told = absl::StrSplit(rest, absl::MaxSplits(' ', 2));
      if (told.size() != 3) continue;  // it has ended over it
      driver.devices.push_back({told[2], Bytes(strtoll(told[0].c_str(), nullptr, 10)), told[1] == "1"});
    }
  }
  if (asked.exit_status < 0) driver.error = "the process that asked it did not come back";
  if (driver.error.empty() && driver.devices.empty()) driver.error = "it shows no device";
  return driver;
}

}  // namespace reprise::cli
