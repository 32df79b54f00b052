// The page's own source, as embed.py puts it into the program: HTML, style and script in one, cut where a
// report's head and its data go.
#pragma once

#include <string_view>

namespace reprise::cli {

extern const std::string_view kPageBegin;
extern const std::string_view kPageMiddle;
extern const std::string_view kPageEnd;

}  // namespace reprise::cli
