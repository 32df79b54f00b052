#include "cli/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

namespace reprise::cli {
namespace {

// The number at the head of `text`, 0 or more, and what follows it. nullopt: no plain decimal number there.
std::optional<std::pair<double, std::string_view>> SplitNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value) || std::signbit(value)) return std::nullopt;
  return std::pair(value, text.substr(static_cast<size_t>(end - text.data())));
}

}  // namespace

std::optional<Bytes> ParseSize(std::string_view text) {
  const auto number = SplitNumber(text);
  if (!number || number->first == 0) return std::nullopt;
  const auto shift = ShiftOfSize(number->second);
  if (!shift) return std::nullopt;
  // Whole numbers exactly: a double has 53 bits.
  if (const auto whole = ParseWholeSize(text)) return whole;
  const double bytes = std::ldexp(number->first, *shift);
  if (bytes < 1 || bytes >= 0x1p63) return std::nullopt;
  return Bytes(static_cast<int64_t>(bytes));
}

bool IsTooLarge(std::string_view text) {
  const auto number = SplitNumber(text);
  const auto shift = number ? ShiftOfSize(number->second) : std::nullopt;
  return shift && std::ldexp(number->first, *shift) >= 0x1p63;
}

std::optional<double> ParseDuration(std::string_view text) {
  const auto number = SplitNumber(text);
  if (!number || number->first == 0) return std::nullopt;
  const auto& [value, unit] = *number;
  const auto seconds = [&value = value](double factor) { return std::min(value * factor, kForEver); };
  if (unit.empty() || unit == "s") return seconds(1);
  if (unit == "ms") return seconds(0.001);
  if (unit == "m") return seconds(60);
  if (unit == "h") return seconds(3600);
  return std::nullopt;
}

std::optional<double> ParsePercent(std::string_view text) {
  const auto number = SplitNumber(text);
  if (!number || number->second != "%") return std::nullopt;
  return number->first;
}

std::string FormatSignedSize(Bytes bytes, std::string_view otherwise) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();  // the least there is has no opposite
  const Bytes size(std::abs(std::max(bytes.count(), -kMost)));
  return fmt::format("{}{}", bytes < Bytes(0) ? "-" : otherwise, FormatSize(size));
}

std::string FormatDuration(double seconds) {
  constexpr double kReadsAsNone = 0.00005;  // to one place of a millisecond
  if (seconds > 0 && seconds < kReadsAsNone) return fmt::format("{:.1g} ms", 1000 * seconds);
  return seconds < 1 ? fmt::format("{:.1f} ms", 1000 * seconds) : fmt::format("{:.2f} s", seconds);
}

std::string FormatShare(double share) { return fmt::format("{:.2f} %", 100 * share); }

}  // namespace reprise::cli
