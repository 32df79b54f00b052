// All models, by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/units.h"
#include "replay/models/model.h"

namespace reprise::replay {

struct ModelInfo {
  std::string_view name;
  std::string_view meaning;  // for people, a few words
  Bytes most_added;          // to one request: by the segment that it opens, or by what is not split off
  std::unique_ptr<AllocatorModel> (*make)(Bytes capacity);  // 0: no limit
};

std::span<const ModelInfo> Models();

}  // namespace reprise::replay
