// Modules of PTX without kernels: what their variables take of the device's memory is all there is of them.
#include "tests/simcuda/driver/modules.h"

#include <algorithm>
#include <cstring>
#include <regex>

#include "tests/simcuda/driver/pools.h"

namespace sim {
namespace {

uint64_t BytesOfVariables(const std::string& text) {
  static const std::regex variable(R"(\.global[^;\[]*\.b8[^;\[]*\[([0-9]+)\]\s*;)");
  uint64_t bytes = 0;
  for (std::sregex_iterator found(text.begin(), text.end(), variable), end; found != end; ++found)
    bytes += strtoull((*found)[1].str().c_str(), nullptr, 10);
  return RoundUp(bytes, kPageGrain);
}

void Unload(Simulator& sim, const Module& module) {
  if (module.bytes != 0) sim.devices[module.context->device]->physical.Give(module.physical, module.bytes);
}

// What a compilation says, and the option that tells how much room there is for it, and then how much of that was filled.
constexpr char kLog[] = "simulated";
struct Log {
  char* buffer = nullptr;
  void** bytes = nullptr;
};

CUresult LogAsked(unsigned count, const CUjit_option* options, void** values, Log* log) {
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_INFO_LOG_BUFFER) {
      log->buffer = static_cast<char*>(values[i]);
    } else if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) {
      log->bytes = &values[i];
    } else if (options[i] != CU_JIT_LOG_VERBOSE) {
      return NotSimulated("another option of a compilation than its log");
    }
  }
  return CUDA_SUCCESS;
}

// Nothing, of one that has failed.
void Fill(const Log& log, bool loaded) {
  if (log.bytes == nullptr) return;
  const size_t filled = loaded ? std::min(reinterpret_cast<size_t>(*log.bytes), sizeof kLog) : 0;
  if (log.buffer != nullptr) memcpy(log.buffer, kLog, filled);
  *log.bytes = reinterpret_cast<void*>(filled);
}

CUresult Load(Call& call, CUmodule* module, const void* image) {
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* const text = static_cast<const char*>(image);
  if (strncmp(text, ".version", strlen(".version")) != 0)
    return NotSimulated("images of modules that are not PTX");
  if (strstr(text, ".entry") != nullptr) return NotSimulated("kernels do not run here");
  auto loaded = std::make_unique<Module>();
  loaded->context = call.context;
  loaded->bytes = BytesOfVariables(text);
  if (loaded->bytes != 0) {
    const auto physical = TakePhysical(call.sim, call.context->device, loaded->bytes);
    if (!physical) return CUDA_ERROR_OUT_OF_MEMORY;
    loaded->physical = *physical;
  }
  *module = reinterpret_cast<CUmodule>(loaded.get());
  call.sim.modules[*module] = std::move(loaded);
  return CUDA_SUCCESS;
}

}  // namespace

void EndModulesIn(Simulator& sim, const Context& context) {
  std::erase_if(sim.modules, [&](const auto& entry) {
    if (entry.second->context != &context) return false;
    Unload(sim, *entry.second);
    return true;
  });
}

}  // namespace sim

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return sim::Enter("cuModuleLoadData", sim::Needs::kContext,
                    [&](sim::Call& call) { return sim::Load(call, module, image); });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
  return sim::Enter("cuModuleLoadDataEx", sim::Needs::kContext, [&](sim::Call& call) {
    sim::Log log;
    if (CUresult error = sim::LogAsked(numOptions, options, optionValues, &log); error != CUDA_SUCCESS)
      return error;
    const CUresult result = sim::Load(call, module, image);
    sim::Fill(log, result == CUDA_SUCCESS);
    return result;
  });
}

CUresult cuModuleUnload(CUmodule hmod) {
  return sim::Enter("cuModuleUnload", sim::Needs::kContext, [&](sim::Call& call) {
    const auto found = call.sim.modules.find(hmod);
    if (found == call.sim.modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    sim::Unload(call.sim, *found->second);
    call.sim.modules.erase(found);
    return CUDA_SUCCESS;
  });
}
