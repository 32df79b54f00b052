#include "base/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <system_error>

namespace reprise {

std::optional<int> ShiftOfSize(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 0;
  const size_t letter = std::string_view("KMGTPEkmgtpe").find(suffix[0]);
  suffix.remove_prefix(1);
  if (letter == std::string_view::npos || !(suffix.empty() || suffix == "B" || suffix == "iB")) {
    return std::nullopt;
  }
  return 10 * (static_cast<int>(letter % 6) + 1);
}

std::optional<Bytes> ParseWholeSize(std::string_view text) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc()) return std::nullopt;
  const auto shift = ShiftOfSize(text.substr(static_cast<size_t>(end - text.data())));
  if (!shift || count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) >> *shift)
    return std::nullopt;
  return Bytes(static_cast<int64_t>(count << *shift));
}

bool IsMoreThanFits(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return digits > 0 && ShiftOfSize(text.substr(digits)) && !ParseWholeSize(text);
}

std::string FormatSize(Bytes bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  constexpr double kReadsAs1024 = 1024 - 0.005;  // to two places
  if (bytes < kKiB) return fmt::format("{} B", bytes.count());
  double value = static_cast<double>(bytes.count()) / 1024;
  size_t unit = 0;
  while (value >= kReadsAs1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

}  // namespace reprise
