#include "cli/report/payload.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"

namespace reprise::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

constexpr size_t kAligned = 8;  // a typed array of doubles begins at a multiple of it
constexpr int kRawDeflate = -15;
constexpr int kLevel = 6;
constexpr int kMemory = 8;

void Align(std::string& bytes) { bytes.resize((bytes.size() + kAligned - 1) / kAligned * kAligned); }

absl::StatusOr<std::string> Deflate(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kRawDeflate, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::InternalError("zlib does not begin");
  }
  std::string deflated;
  std::string chunk(size_t{1} << 18, '\0');
  const char* next = bytes.data();
  size_t left = bytes.size();
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0 && left > 0) {
      const size_t some = std::min(left, size_t{1} << 28);  // zlib counts in 32 bits
      // NOLINTNEXTLINE(performance-no-int-to-ptr): zlib does not write there
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next));
      stream.avail_in = static_cast<uInt>(some);
      next += some;
      left -= some;
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
    deflated.append(chunk, 0, chunk.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return absl::InternalError("zlib does not end");
  return deflated;
}

}  // namespace

void Payload::Add(std::string_view name, const std::vector<uint32_t>& column) {
  Add(name, "u32", column.data(), column.size() * sizeof(uint32_t), column.size());
}

void Payload::Add(std::string_view name, const std::vector<double>& column) {
  Add(name, "f64", column.data(), column.size() * sizeof(double), column.size());
}

void Payload::Add(std::string_view name, std::string_view type, const void* data, size_t bytes,
                  size_t count) {
  directory_ += fmt::format(R"({}"{}":{{"type":"{}","at":{},"count":{}}})", directory_.empty() ? "" : ",",
                            name, type, columns_.size(), count);
  if (bytes > 0) columns_.append(static_cast<const char*>(data), bytes);
  Align(columns_);
}

absl::StatusOr<std::string> Payload::Pack(std::string_view text) const {
  std::string bytes;
  const auto length = static_cast<uint32_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes.append(text);
  Align(bytes);
  bytes += columns_;
  const absl::StatusOr<std::string> deflated = Deflate(bytes);
  if (!deflated.ok()) return deflated.status();
  return absl::Base64Escape(*deflated);
}

}  // namespace reprise::cli
