// How much of the job a page on one input is about.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/input.h"

namespace reprise::cli {

// A sentence or two, of an input with so many allocations. `summary` is that of the run, anything else where
// there is none; nothing in words is taken from it where the page is redacted.
std::string Coverage(const LoadedInput& input, int64_t allocs, const nlohmann::ordered_json& summary,
                     bool redacted);

// The job's live peak: that of the input, or what the summary of its run has above it.
Bytes JobsPeak(const LoadedInput& input, Bytes peak, const nlohmann::ordered_json& summary);

}  // namespace reprise::cli
