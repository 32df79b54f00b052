// Options that take a size or a time.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/quantity.h"

namespace reprise::cli {

inline CLI::Option* AddSizeOption(CLI::App& command, const std::string& name, std::optional<Bytes>& size,
                                  const std::string& description) {
  const auto parse = [name, &size](const CLI::results_t& words) {
    size = ParseSize(words[0]);
    if (!size) {
      throw CLI::ValidationError(name, "\"" + words[0] + "\" is " +
                                           (IsTooLarge(words[0]) ? "too large: a size is below 8EiB"
                                                                 : "not a size such as 65536 or 1.5GiB"));
    }
    return true;
  };
  return command.add_option(name, parse, description)->type_name("SIZE");
}

inline CLI::Option* AddDurationOption(CLI::App& command, const std::string& name, double& seconds,
                                      const std::string& description) {
  const auto parse = [name, &seconds](const CLI::results_t& words) {
    const std::optional<double> parsed = ParseDuration(words[0]);
    if (!parsed) throw CLI::ValidationError(name, "\"" + words[0] + "\" is not a time such as 10s or 500ms");
    seconds = *parsed;
    return true;
  };
  return command.add_option(name, parse, description)->type_name("TIME");
}

}  // namespace reprise::cli
