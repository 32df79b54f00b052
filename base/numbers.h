// Whole numbers as text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace reprise {

// nullopt: `text` is not, as a whole, a number in decimal that fits. No space and no plus is taken for a part of one, and
// no minus where Int has none.
template <typename Int>
std::optional<Int> ParseNumber(std::string_view text) {
  Int number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace reprise
