// Writes events as the event CSV of csv_import.h, with a column for the alignment where any block has one. Thread and
// time have no column there and are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profiler/types.h"

namespace reprise::profiler {

std::string ToEventCsv(const std::vector<Event>& events);

}  // namespace reprise::profiler
