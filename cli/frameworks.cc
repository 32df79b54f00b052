#include "cli/frameworks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/cuda_driver.h"

namespace reprise::cli {
namespace {

constexpr std::string_view kEveryTensor = "every tensor is a stream-ordered call";
constexpr std::string_view kWithWait = "every tensor is a call, and every free waits for the device";
constexpr std::string_view kSegments = "only whole segments are seen";
constexpr std::string_view kMapped = "the framework maps memory itself";

struct Meaning {
  std::string_view part;  // of the value; empty: any value
  std::string_view says;
};

// `value` is what we set; empty: another way for the user to choose, which we leave alone. Of `meanings` the
// first whose part is in the user's value counts.
struct Setting {
  std::string_view framework;
  std::string_view name;
  std::string_view value;
  std::vector<Meaning> meanings;
};

const std::vector<Setting>& Variables() {
  static const auto* const variables = new std::vector<Setting>{
      {"PyTorch",
       "PYTORCH_CUDA_ALLOC_CONF",
       "backend:cudaMallocAsync",
       {{"backend:cudaMallocAsync", kEveryTensor}, {"expandable_segments:True", kMapped}, {"", kSegments}}},
      {"PyTorch",
       "PYTORCH_ALLOC_CONF",
       "",
       {{"backend:cudaMallocAsync", kEveryTensor}, {"expandable_segments:True", kMapped}, {"", kSegments}}},
      {"PyTorch", "PYTORCH_NO_CUDA_MEMORY_CACHING", "", {{"", kWithWait}}},
      {"TensorFlow",
       "TF_GPU_ALLOCATOR",
       "cuda_malloc_async",
       {{"cuda_malloc_async", kEveryTensor}, {"cuda_malloc", kWithWait}, {"", kSegments}}},
      {"JAX",
       "XLA_PYTHON_CLIENT_ALLOCATOR",
       "cuda_async",
       {{"cuda_async", kEveryTensor}, {"platform", kWithWait}, {"vmm", kMapped}, {"", kSegments}}},
      {"JAX memory at start",
       "XLA_PYTHON_CLIENT_PREALLOCATE",
       "false",
       {{"false", "taken as it is needed"}, {"", "taken at once, in large part"}}},
  };
  return *variables;
}

bool IsCaught(std::string_view says) { return says != kSegments && says != kMapped; }

}  // namespace

std::map<std::string, std::string> FrameworkVariables() {
  std::map<std::string_view, bool> chosen;
  for (const Setting& variable : Variables()) {
    chosen[variable.framework] |= getenv(std::string(variable.name).c_str()) != nullptr;
  }
  std::map<std::string, std::string> set;
  for (const Setting& variable : Variables()) {
    if (!chosen[variable.framework] && !variable.value.empty())
      set[std::string(variable.name)] = variable.value;
  }
  return set;
}

std::string InsteadOfPools() {
  return "set PYTORCH_NO_CUDA_MEMORY_CACHING=1, TF_GPU_ALLOCATOR=cuda_malloc or "
         "XLA_PYTHON_CLIENT_ALLOCATOR=platform";
}

std::string WhatOursMayCost() {
  const std::map<std::string, std::string> set = FrameworkVariables();
  const auto pytorch = set.find("PYTORCH_CUDA_ALLOC_CONF");
  if (pytorch == set.end()) return "";
  const std::vector<CudaDriver::Device> devices = AskCudaDriver().devices;
  if (!std::ranges::all_of(devices, &CudaDriver::Device::has_pools)) {
    return fmt::format(
        "the job failed. It was given {}={} and the like, for which a device here has no memory pools; {}",
        pytorch->first, pytorch->second, InsteadOfPools());
  }
  return fmt::format(
      "the job failed. It was given {}={}, with which PyTorch has no CUDA graph trees (torch.compile), CUDA "
      "tensors between processes, memory history or MemPool; if that is why, set {}=backend:native",
      pytorch->first, pytorch->second, pytorch->first);
}

std::vector<Choice> FrameworkChoices() {
  std::vector<Choice> choices;
  for (const Setting& variable : Variables()) {
    const char* const value = getenv(std::string(variable.name).c_str());
    if (value == nullptr) continue;
    for (const Meaning& meaning : variable.meanings) {
      if (std::string_view(value).find(meaning.part) == std::string_view::npos) continue;
      choices.push_back({std::string(variable.framework), fmt::format("{}={}", variable.name, value),
                         std::string(meaning.says), IsCaught(meaning.says)});
      break;
    }
  }
  return choices;
}

bool SawOnlySegments(const std::string& summary_json) {
  const auto summary = nlohmann::json::parse(summary_json, nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object() || !summary.contains("devices") || !summary["devices"].is_array()) return false;
  for (const auto& device : summary["devices"]) {
    const auto found = device.is_object() ? device.find("segments_only") : device.end();
    if (device.is_object() && found != device.end() && *found == true) return true;
  }
  return false;
}

std::vector<std::string> SegmentsAdvice() {
  std::vector<std::string> lines = {
      "only whole segments were seen: the job's framework divides them among its tensors itself"};
  std::string set;
  for (const Setting& variable : Variables()) {
    if (variable.value.empty()) continue;
    set += fmt::format("{}{}={} ({})", set.empty() ? "" : ", ", variable.name, variable.value,
                       variable.framework);
  }
  bool chosen = false;
  for (const Choice& choice : FrameworkChoices()) {
    if (choice.caught) continue;
    lines.push_back(fmt::format("{} is yours and was left as it is: {}", choice.variable, choice.meaning));
    chosen = true;
  }
  lines.push_back(
      fmt::format("set {}{}", chosen ? "" : "inside the job too, if it sets one of these itself: ", set));
  return lines;
}

}  // namespace reprise::cli
