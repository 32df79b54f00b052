// Sizes as people write and read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace reprise {

// How many bits a suffix shifts by: "", "B", "K", "KB", "KiB" and so on up to E, all binary, any case of the letter.
std::optional<int> ShiftOfSize(std::string_view suffix);

// "4096", "64K", "64KB", "64KiB", as the preload library reads them. nullopt: not a size, or more than fits.
std::optional<Bytes> ParseWholeSize(std::string_view text);

// Whether that is because it is more than 2^63 - 1 bytes.
bool IsMoreThanFits(std::string_view text);

// "61.20 GiB", "512 B".
std::string FormatSize(Bytes bytes);

}  // namespace reprise
