// All models, by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "replay/models/model.h"

namespace reprise::replay {

struct ModelInfo {
  std::string_view name;
  std::string_view meaning;                                 // for people, a few words
  std::unique_ptr<AllocatorModel> (*make)(Bytes capacity);  // 0: no limit
};

std::span<const ModelInfo> Models();

}  // namespace reprise::replay
