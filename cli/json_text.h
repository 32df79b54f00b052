// JSON as the command prints it. Names come from outside: what is not UTF-8 in them is replaced.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace reprise::cli {

// On several lines, the last one ended.
std::string JsonText(const nlohmann::ordered_json& json);

// On one line that is not ended.
std::string JsonLine(const nlohmann::ordered_json& json);

}  // namespace reprise::cli
