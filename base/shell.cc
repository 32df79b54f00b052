#include "base/shell.h"

#include "fmt/format.h"

namespace reprise {

std::string ShellQuoted(std::string_view word) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string QuotedFile(std::string_view name) {
  return ShellQuoted(fmt::format("{}{}", name.starts_with('-') ? "./" : "", name));
}

}  // namespace reprise
