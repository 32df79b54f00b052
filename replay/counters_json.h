// What the engine has counted, as every report of it names it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "replay/engine.h"

namespace reprise::replay {

// One object; sizes in bytes, shares from 0 to 1.
nlohmann::ordered_json CountersJson(const Counters& c);

}  // namespace reprise::replay
