// The lines of a CSV file, split into fields, and the numbers in them. Shared by the importers; every error
// names file and line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace reprise::profiler {

inline constexpr int64_t kMostCsvNumber = int64_t{1}
                                          << 62;  // sums and roundings of such numbers stay in range

// Of UTF-8: some programs begin text files with it, and it is no part of the text.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class CsvRows {
 public:
  // Both must outlive the object, and the fields point into `contents`.
  CsvRows(std::string_view contents, std::string_view name);

  // Advances to the next line that is not blank. False at the end and on an error, which status() tells
  // apart: a line longer than any row can be, or one with a NUL byte.
  bool Next();
  const absl::Status& status() const { return status_; }

  const std::vector<std::string_view>& fields() const { return fields_; }  // of the current line, trimmed
  int64_t line() const { return line_; }                                   // from 1

  // InvalidArgument: "NAME:LINE: what".
  absl::Status Error(std::string_view what) const;
  // Reads field `index` as a whole number in [least, most]; `meaning` names the column in the error.
  absl::Status Number(size_t index, std::string_view meaning, int64_t least, int64_t most,
                      int64_t* value) const;
  absl::Status Number(size_t index, std::string_view meaning, uint64_t* value) const;

 private:
  absl::Status Split(std::string_view text);

  std::string_view rest_;
  const std::string_view name_;
  std::vector<std::string_view> fields_;
  int64_t line_ = 0;
  absl::Status status_;
};

// Untrusted text for a message: in quotes, escaped, shortened.
std::string Quoted(std::string_view text);

}  // namespace reprise::profiler
