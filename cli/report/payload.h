// The page's data: columns of numbers and a text, deflated and in base64.
//
//   u32 length of the text (little-endian, as all of it) | text | padding to 8 bytes | columns, each padded
//   to 8 bytes
//
// The text is JSON and has the directory, so the columns begin behind a text that names where each begins,
// counted from the first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise::cli {

class Payload {
 public:
  void Add(std::string_view name, const std::vector<uint32_t>& column);
  void Add(std::string_view name, const std::vector<double>& column);
  // {"NAME":{"type":"u32","at":BYTE,"count":N},...}
  std::string Directory() const { return "{" + directory_ + "}"; }
  // Base64 of the raw deflate stream. Internal: zlib refuses.
  absl::StatusOr<std::string> Pack(std::string_view text) const;

 private:
  void Add(std::string_view name, std::string_view type, const void* data, size_t bytes, size_t count);

  std::string directory_;
  std::string columns_;
};

}  // namespace reprise::cli
