// The figures of an input for machines.
#pragma once

#include <string>

#include "cli/input_stats.h"

namespace reprise::cli {

// One object on one line, so that several inputs give JSON lines.
std::string StatsJson(const LoadedInput& input, const InputStats& result);

}  // namespace reprise::cli
