#include "profiler/csv_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "absl/strings/escaping.h"
#include "base/numbers.h"

namespace reprise::profiler {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr size_t kLongestLine = size_t{1} << 16;
constexpr size_t kLongestQuote = 40;

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

CsvRows::CsvRows(std::string_view contents, std::string_view name) : rest_(contents), name_(name) {
  if (rest_.substr(0, kByteOrderMark.size()) == kByteOrderMark) rest_.remove_prefix(kByteOrderMark.size());
}

bool CsvRows::Next() {
  while (status_.ok() && !rest_.empty()) {
    ++line_;
    const std::string_view text = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(rest_.size(), text.size() + 1));
    status_ = Split(text);
    if (status_.ok() && (fields_.size() != 1 || !fields_[0].empty())) return true;
  }
  return false;
}

absl::Status CsvRows::Split(std::string_view text) {
  if (text.size() > kLongestLine) {
    return Error(fmt::format("a line of {} bytes; no row is longer than {}", text.size(), kLongestLine));
  }
  if (text.find('\0') != std::string_view::npos) return Error("a NUL byte; this is not a text file");
  fields_.clear();
  while (true) {
    const size_t comma = text.find(',');
    fields_.push_back(Trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return absl::OkStatus();
    text.remove_prefix(comma + 1);
  }
}

absl::Status CsvRows::Error(std::string_view what) const {
  return absl::InvalidArgumentError(fmt::format("{}:{}: {}", name_, line_, what));
}

absl::Status CsvRows::Number(size_t index, std::string_view meaning, int64_t least, int64_t most,
                             int64_t* value) const {
  if (const std::optional<int64_t> number = ParseNumber<int64_t>(fields_[index]);
      number && *number >= least && *number <= most) {
    *value = *number;
    return absl::OkStatus();
  }
  return Error(fmt::format("{} is {}; it must be a whole number from {} to {}", meaning,
                           Quoted(fields_[index]), least, most));
}

absl::Status CsvRows::Number(size_t index, std::string_view meaning, uint64_t* value) const {
  if (const std::optional<uint64_t> number = ParseNumber<uint64_t>(fields_[index])) {
    *value = *number;
    return absl::OkStatus();
  }
  return Error(
      fmt::format("{} is {}; it must be a whole number from 0 to 2^64 - 1", meaning, Quoted(fields_[index])));
}

std::string Quoted(std::string_view text) {
  const bool shortened = text.size() > kLongestQuote;
  if (shortened) text = text.substr(0, kLongestQuote);
  return fmt::format("'{}{}'", absl::CHexEscape(absl::string_view(text.data(), text.size())),
                     shortened ? "..." : "");
}

}  // namespace reprise::profiler
