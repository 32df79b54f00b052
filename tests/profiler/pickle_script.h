// Writes pickles by hand, opcode by opcode, as Python's pickler would write data: for tests that need exact
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::profiler {

inline std::string Little(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

inline std::string PickledInt(int64_t value) {
  return std::string("\x8a\x08").append(Little(static_cast<uint64_t>(value), 8));
}
inline std::string PickledString(std::string_view text) {
  return std::string("X").append(Little(text.size(), 4)).append(text);
}
inline std::string PickledList(const std::vector<std::string>& items) {
  std::string text = "](";
  for (const std::string& item : items) text += item;
  return text += 'e';
}
inline std::string PickledDict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string text = "}(";
  for (const auto& [key, value] : items) text += PickledString(key) += value;
  return text += 'u';
}
inline std::string Pickled(std::string_view value) {
  return std::string("\x80\x04").append(value).append(".");
}

}  // namespace reprise::profiler
