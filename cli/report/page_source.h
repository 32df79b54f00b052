// A page's own source, as embed.py puts it into the program: HTML, style and script in one, cut where a
// report's head and its data go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace reprise::cli {

struct PageSource {
  std::string_view begin;
  std::string_view middle;
  std::string_view end;
};

extern const PageSource kReportPage;
extern const PageSource kRanksPage;

// To the file, whole or not at all and not over one of the `inputs`, or to standard output for `-`; says so.
absl::Status WritePage(const std::string& path, std::string_view page,
                       const std::vector<std::string>& inputs);

// The page with `head`, a JSON text, and `data`, in base64, where they go.
std::string WholePage(const PageSource& source, std::string_view head, std::string_view data);

}  // namespace reprise::cli
