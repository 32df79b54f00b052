#include "replay/cuda/cupti.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace reprise::replay::cuda {
namespace {

// cuptiGetVersion: 18 is CUDA 11.8, 28 is 12.9; from CUDA 13 on it is 130000 and above. Whether a later major
// version keeps the records is not known.
constexpr uint32_t kOldest = 18, kCountedUpTo = 99, kOldestDated = 130000, kFirstUnknown = 140000;

bool Known(uint32_t version) {
  return (version >= kOldest && version <= kCountedUpTo) ||
         (version >= kOldestDated && version < kFirstUnknown);
}

void* Open(std::string* error) {
  for (const int only_loaded : {RTLD_NOLOAD, 0}) {
    for (const char* const name : kCuptiNames) {
      if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | only_loaded)) return library;
      const char* const why = dlerror();
      if (error->empty() && only_loaded == 0 && why != nullptr) *error = why;
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<Cupti> Cupti::Find() {
  std::string error;
  void* const library = Open(&error);
  if (library == nullptr) return absl::NotFoundError(fmt::format("there is no CUPTI ({})", error));
  Cupti cupti;
#define REPRISE_FIND(member, symbol, parameters)                                       \
  cupti.member = reinterpret_cast<Result(*) parameters>(dlsym(library, symbol));       \
  if (cupti.member == nullptr) {                                                       \
    return absl::FailedPreconditionError(fmt::format("this CUPTI has no {}", symbol)); \
  }
  REPRISE_CUPTI_FUNCTIONS(REPRISE_FIND)
#undef REPRISE_FIND
  uint32_t version = 0;
  if (cupti.GetVersion(&version) != kSuccess || !Known(version)) {
    return absl::FailedPreconditionError(fmt::format(
        "CUPTI's version {} is not one whose records are known here (those of CUDA 11.8 to 13)", version));
  }
  return cupti;
}

std::string Cupti::Words(Result result) const {
  const char* text = nullptr;
  return GetResultString(result, &text) == kSuccess && text != nullptr ? text
                                                                       : fmt::format("error {}", result);
}

}  // namespace reprise::replay::cuda
