// The part of doctor about CUDA: what is there, and who else hooks it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_split.h"
#include "cli/cuda_driver.h"
#include "cli/doctor.h"
#include "cli/frameworks.h"
#include "cli/preload.h"
#include "cli/quantity.h"
#include "cli/subprocess.h"
#include "replay/cuda/cupti.h"

namespace reprise::cli {
namespace {

constexpr const char* kSystemPreloads = "/etc/ld.so.preload";

void CheckToolkit(std::vector<Check>& checks) {
  const Captured compiler = RunCaptured({"nvcc", "--version"}, {});
  std::vector<std::string> found;
  const size_t release = compiler.out.find("release ");
  if (release != std::string::npos) {
    found.push_back("nvcc " +
                    compiler.out.substr(release + 8, compiler.out.find(',', release) - release - 8));
  }
  for (const char* const runtime : {"libcudart.so.13", "libcudart.so.12"}) {
    if (LoaderError(runtime).empty()) found.emplace_back(runtime);
  }
  checks.push_back(Note("CUDA toolkit", found.empty()
                                            ? "none on PATH or in the loader's folders; none is needed"
                                            : fmt::format("{}", fmt::join(found, ", "))));
}

// What --timeline would find, if the job has not loaded one of its own.
void CheckCupti(std::vector<Check>& checks) {
  for (const char* const name : replay::cuda::kCuptiNames) {
    if (!LoaderError(name).empty()) continue;
    checks.push_back(Fine("CUPTI", fmt::format("{}: for --timeline", name)));
    return;
  }
  checks.push_back(
      Note("CUPTI",
           "none in the loader's folders; --timeline needs one, unless the job brings its own as PyTorch "
           "does"));
}

// Which of the functions that we care about the library itself defines.
std::vector<std::string> Hooked(const std::string& library) {
  const Captured asked = RunInFork([&library] {
    void* const opened = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (opened == nullptr) return 1;
    Dl_info ours{};
    for (const char* const name : {"dlsym", "cuGetProcAddress", "cuGetProcAddress_v2", "cuMemAlloc_v2",
                                   "cudaMalloc", "posix_memalign", "free"}) {
      void* const function = dlsym(opened, name);
      const bool is_own = function != nullptr && dladdr(function, &ours) != 0 &&
                          std::string_view(ours.dli_fname).ends_with(library.substr(library.rfind('/') + 1));
      if (is_own) dprintf(STDOUT_FILENO, "%s\n", name);
    }
    return 0;
  });
  return absl::StrSplit(asked.out, '\n', absl::SkipEmpty());
}

void CheckPreloads(const std::string& where, const std::string& libraries, std::vector<Check>& checks) {
  const std::vector<std::string> paths =
      absl::StrSplit(libraries, absl::ByAnyChar(" \t\n:"), absl::SkipEmpty());
  if (paths.empty()) {
    checks.push_back(Fine(where, "names no library"));
    return;
  }
  for (const std::string& path : paths) {
    const std::string file = path.substr(path.rfind('/') + 1);
    // In a container the path that was set outside may lead nowhere.
    if (path.find('/') != path.npos && access(path.c_str(), R_OK) != 0) {
      checks.push_back(Problem(where, fmt::format("{}: {}; jobs start without it", path, strerror(errno)),
                               "make it visible here under that path, or unset " + where));
      continue;
    }
    if (file == kHostLibrary || file == kCudaLibrary) {
      checks.push_back(Fine(where, path + " is Reprise"));
      continue;
    }
    const std::vector<std::string> hooked = Hooked(path);
    if (hooked.empty()) {
      checks.push_back(Note(where, fmt::format("{} hooks nothing that we do; ours is put before it", path)));
    } else {
      checks.push_back(
          Note(where, fmt::format("{} hooks {} too; ours is called first", path, fmt::join(hooked, ", ")),
               "if a job goes wrong, run it without"));
    }
  }
}

}  // namespace

void CheckOtherPreloads(std::vector<Check>& checks) {
  CheckPreloads("LD_PRELOAD", EnvironmentOr("LD_PRELOAD", ""), checks);
  const absl::StatusOr<std::string> everywhere = ReadFile(kSystemPreloads);
  if (everywhere.ok()) CheckPreloads(kSystemPreloads, *everywhere, checks);
}

void CheckCuda(bool driver, std::vector<Check>& checks) {
  if (!driver) {
    checks.push_back(Note("CUDA driver", "none here: only the host's memory can be caught, with --host"));
    return;
  }
  const CudaDriver asked = AskCudaDriver();
  const std::string version =
      asked.version == 0 ? "of unknown version"
                         : fmt::format("for CUDA {}.{}", asked.version / 1000, asked.version % 1000 / 10);
  if (!asked.error.empty()) {
    checks.push_back(Note("CUDA driver", fmt::format("{}; {}", version, asked.error), "look at nvidia-smi"));
  } else {
    checks.push_back(Fine("CUDA driver", version));
  }
  for (size_t i = 0; i < asked.devices.size(); ++i) {
    const CudaDriver::Device& device = asked.devices[i];
    const std::string name = fmt::format("device {}", i);
    const std::string found = fmt::format("{}, {}", device.name, FormatSize(device.memory));
    checks.push_back(
        device.has_pools
            ? Fine(name, found)
            : Note(name, found + "; it has no memory pools, which what run sets needs", InsteadOfPools()));
  }
  CheckToolkit(checks);
  CheckCupti(checks);
}

}  // namespace reprise::cli
