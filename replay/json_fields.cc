#include "replay/json_fields.h"

#include <fmt/format.h>

#include <utility>

namespace reprise::replay {

using nlohmann::json;

JsonFields::JsonFields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) Complain("is not an object");
}

const json* JsonFields::Find(const char* name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

const json* JsonFields::Any(const char* name) {
  const json* const value = Find(name);
  if (value == nullptr) Complain(fmt::format("has no \"{}\"", name));
  return value;
}

const json& JsonFields::Array(const char* name, size_t most) {
  static const json& none = *new json(json::array());  // never destroyed: plans are read at exit too
  const json* const value = Any(name);
  if (value == nullptr) return none;
  if (value->is_array() && value->size() <= most) return *value;
  ComplainOf(name, fmt::format("is not a list of at most {}", most));
  return none;
}

std::string JsonFields::Text(const char* name) { return Any(name) == nullptr ? "" : TextOr(name, ""); }

std::string JsonFields::TextOr(const char* name, std::string otherwise) {
  const json* const value = Find(name);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  ComplainOf(name, "is not a text");
  return otherwise;
}

int64_t JsonFields::Number(const char* name, int64_t least, int64_t most) {
  const json* const value = Any(name);
  return value == nullptr ? least : Number(*value, name, least, most);
}

int64_t JsonFields::Number(const json& value, std::string_view name, int64_t least, int64_t most) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(most));
  if (fits && value.get<int64_t>() >= least && value.get<int64_t>() <= most) return value.get<int64_t>();
  ComplainOf(name, fmt::format("is not a whole number from {} to {}", least, most));
  return least;
}

int64_t JsonFields::NumberOr(const char* name, int64_t otherwise, int64_t least, int64_t most) {
  const json* const value = Find(name);
  return value == nullptr ? otherwise : Number(*value, name, least, most);
}

double JsonFields::RealOr(const char* name, double otherwise, double least, double most) {
  const json* const value = Find(name);
  if (value == nullptr) return otherwise;
  const double real = value->is_number() ? value->get<double>() : least - 1;
  if (real >= least && real <= most) return real;
  ComplainOf(name, fmt::format("is not a number from {} to {}", least, most));
  return otherwise;
}

bool JsonFields::TruthOr(const char* name, bool otherwise) {
  const json* const value = Find(name);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  ComplainOf(name, "is neither true nor false");
  return otherwise;
}

void JsonFields::ComplainOf(std::string_view name, std::string_view what) {
  if (error_.empty()) error_ = fmt::format("{}'s field \"{}\" {}", where_, name, what);
}

void JsonFields::Complain(std::string_view what) {
  if (error_.empty()) error_ = fmt::format("{} {}", where_, what);
}

}  // namespace reprise::replay
