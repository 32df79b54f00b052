// Modules of PTX without kernels: what their variables take of the device's memory is all there is of them.
#include "tests/simcuda/driver/modules.h"

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
  return sim::Enter("cuModuleLoadData", sim::Needs::kContext, [&](sim::Call& call) {
    if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto* const text = static_cast<const char*>(image);
    if (strncmp(text, ".version", strlen(".version")) != 0)
      return sim::NotSimulated("images of modules that are not PTX");
    if (strstr(text, ".entry") != nullptr) return sim::NotSimulated("kernels do not run here");
    auto loaded = std::make_unique<sim::Module>();
    loaded->context = call.context;
    loaded->bytes = sim::BytesOfVariables(text);
    if (loaded->bytes != 0) {
      const auto physical = sim::TakePhysical(call.sim, call.context->device, loaded->bytes);
      if (!physical) return CUDA_ERROR_OUT_OF_MEMORY;
      loaded->physical = *physical;
    }
    *module = reinterpret_cast<CUmodule>(loaded.get());
    call.sim.modules[*module] = std::move(loaded);
    return CUDA_SUCCESS;
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
