// Sizes, times and shares, as people write and read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/sizes.h"
#include "base/units.h"

namespace reprise::cli {

// "1048576", "64K", "64KB", "64KiB", "1.5GiB": all binary, as in the environment variables of the preload
// library. nullopt: not a size above 0, or more than fits.
std::optional<Bytes> ParseSize(std::string_view text);

// Whether it is a size, and more than fits.
bool IsTooLarge(std::string_view text);

// About a year, in seconds: what is longer would overflow clocks.
inline constexpr double kForEver = 3e7;

// "10s", "500ms", "2m", "1.5h", "10" (seconds), in seconds, kForEver at most. nullopt: not a time, or not
// above 0.
std::optional<double> ParseDuration(std::string_view text);

// "5%", "0.5%", as 5, 0.5. nullopt: not a percentage, or below 0.
std::optional<double> ParsePercent(std::string_view text);

// As FormatSize, with a minus in front where it is below 0, else with `otherwise`.
std::string FormatSignedSize(Bytes bytes, std::string_view otherwise = "");

// "12.3 ms", "1.24 s".
std::string FormatDuration(double seconds);

// "98.76 %".
std::string FormatShare(double share);

}  // namespace reprise::cli
