// What a value that may be missing is in JSON.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace reprise::cli {

// `as_json` of the value, or null.
template <typename T, typename F = std::identity>
nlohmann::ordered_json OrNull(const std::optional<T>& value, F&& as_json = {}) {
  if (!value) return nullptr;
  return std::invoke(std::forward<F>(as_json), *value);
}

}  // namespace reprise::cli
