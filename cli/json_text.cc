#include "cli/json_text.h"

#include <nlohmann/json.hpp>

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kIndent = 2;
constexpr int kOneLine = -1;

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string JsonText(const Json& json) { return Dump(json, kIndent) + "\n"; }

std::string JsonLine(const Json& json) { return Dump(json, kOneLine); }

}  // namespace reprise::cli
