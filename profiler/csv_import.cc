#include "profiler/csv_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/numbers.h"
#include "profiler/csv_rows.h"

namespace reprise::profiler {
namespace {

constexpr std::array<std::string_view, 5> kEventColumns{"event", "id", "bytes", "stream", "alignment"};
constexpr size_t kFewestEventColumns = 4;
enum EventColumn : size_t { kKind, kId, kBytes, kStream, kEventAlignment };

enum LifetimeColumn : size_t {
  kName,
  kLower,
  kUpper,
  kSize,
  kAlignment,
  kOffset,
  kGaps,
  kLane,
  kLifetimeColumns
};
struct ColumnName {
  std::string_view name;
  LifetimeColumn column;
};
constexpr std::string_view kInclusiveUpper = "end";
// The planner's largest offset. All blocks may come to lie on top of each other, each at the next multiple of its
// alignment, and above whatever is pinned. It would say so too, but knows no lines.
constexpr uint64_t kMostHeight = (uint64_t{1} << 61) - 1;
// The most that one size, alignment or offset can be then: beside a size there is room for an alignment of at least 1.
constexpr auto kMostOfOne = static_cast<int64_t>(kMostHeight - 1);
constexpr std::array<ColumnName, 14> kColumnNames{{{"id", kName},
                                                   {"buffer", kName},
                                                   {"buffer_id", kName},
                                                   {"lower", kLower},
                                                   {"start", kLower},
                                                   {"begin", kLower},
                                                   {"upper", kUpper},
                                                   {kInclusiveUpper, kUpper},
                                                   {"size", kSize},
                                                   {"alignment", kAlignment},
                                                   {"offset", kOffset},
                                                   {"gaps", kGaps},
                                                   {"lane", kLane},
                                                   {"stream", kLane}}};

std::optional<LifetimeColumn> ColumnNamed(std::string_view name) {
  for (const ColumnName& known : kColumnNames) {
    if (known.name == name) return known.column;
  }
  return std::nullopt;
}

// The first line's error if it has one, otherwise `what` a file needs.
absl::Status HeaderError(const CsvRows& rows, std::string_view what) {
  if (!rows.status().ok()) return rows.status();
  return rows.Error(what);
}

class EventCsv {
 public:
  EventCsv(std::string_view contents, std::string_view name)
      : contents_(contents), name_(name), rows_(contents, name) {}

  absl::StatusOr<std::vector<Event>> Parse() {
    events_.reserve(MostRows(contents_));
    columns_ = rows_.Next() ? rows_.fields().size() : 0;
    if (columns_ < kFewestEventColumns || columns_ > kEventColumns.size() ||
        !std::equal(rows_.fields().begin(), rows_.fields().end(), kEventColumns.begin())) {
      return HeaderError(rows_,
                         "expected the header 'event,id,bytes,stream' or 'event,id,bytes,stream,alignment'");
    }
    while (rows_.Next()) {
      if (absl::Status status = ParseRow(); !status.ok()) return status;
    }
    if (!rows_.status().ok()) return rows_.status();
    return std::move(events_);
  }

 private:
  struct Block {
    BlockId id;
    int64_t alloc_line;
  };

  // As many events as `contents` can be, so that they are stored where they stay.
  static size_t MostRows(std::string_view contents) {
    constexpr std::string_view kShortest = "mark,0,,\n";
    const auto lines = static_cast<size_t>(std::ranges::count(contents, '\n')) + 1;
    return std::min(lines, contents.size() / kShortest.size() + 1);
  }

  absl::Status ParseRow() {
    const size_t fields = rows_.fields().size();
    if (fields != columns_) {
      return rows_.Error(fmt::format("{} fields in place of event,id,bytes,stream{}; {}", fields,
                                     has_alignment() ? ",alignment" : "",
                                     fields < columns_ ? "the row is truncated" : "remove the rest"));
    }
    const std::string_view kind = rows_.fields()[kKind];
    if (kind == "alloc") return ParseAlloc();
    if (kind == "free") return ParseFree();
    if (kind == "mark") return ParseMark();
    return rows_.Error(fmt::format("unknown event {}; it must be alloc, free or mark", Quoted(kind)));
  }

  absl::Status ParseAlloc() {
    uint64_t id, stream;
    int64_t bytes, alignment = 0;
    if (absl::Status s = rows_.Number(kId, "id", &id); !s.ok()) return s;
    if (absl::Status s = rows_.Number(kBytes, "bytes", 1, kMostOfOne, &bytes); !s.ok()) return s;
    if (absl::Status s = rows_.Number(kStream, "stream", &stream); !s.ok()) return s;
    if (has_alignment() && !rows_.fields()[kEventAlignment].empty()) {
      absl::Status s = rows_.Number(kEventAlignment, "alignment", 1, kMostOfOne, &alignment);
      if (!s.ok()) return s;
    }
    const Block block{BlockId(next_id_++), rows_.line()};
    const auto [it, added] = live_.try_emplace(id, block);
    if (!added) {
      return rows_.Error(fmt::format("id {} is live since line {}; free it before it is used again", id,
                                     it->second.alloc_line));
    }
    stacked_ += static_cast<uint64_t>(bytes) + static_cast<uint64_t>(std::max<int64_t>(alignment, 1));
    if (stacked_ > kMostHeight) {
      return rows_.Error(
          "all blocks on top of each other, each with room to be aligned, end above the largest offset "
          "2^61 - 1; check the sizes");
    }
    events_.push_back(
        {.id = block.id, .bytes = Bytes(bytes), .alignment = Bytes(alignment), .stream = Stream(stream)});
    return absl::OkStatus();
  }

  absl::Status ParseFree() {
    uint64_t id, stream;
    if (absl::Status s = rows_.Number(kId, "id", &id); !s.ok()) return s;
    if (absl::Status s = OptionalNumber(kBytes, "bytes"); !s.ok()) return s;
    if (absl::Status s = rows_.Number(kStream, "stream", &stream); !s.ok()) return s;
    if (absl::Status s = OptionalNumber(kEventAlignment, "alignment"); !s.ok()) return s;
    const auto it = live_.find(id);
    if (it == live_.end()) return FreeOfNone(id);
    events_.push_back({.kind = EventKind::kFree, .id = it->second.id, .stream = Stream(stream)});
    live_.erase(it);
    return absl::OkStatus();
  }

  // Looks for the row that has freed it before: to keep the ids of all that is gone would cost more than
  // everything else, for this one message.
  absl::Status FreeOfNone(uint64_t id) const {
    int64_t freed = 0;
    CsvRows rows(contents_, name_);
    while (rows.Next() && rows.line() < rows_.line()) {
      if (rows.fields()[kKind] == "free" && ParseNumber<uint64_t>(rows.fields()[kId]) == id) {
        freed = rows.line();
      }
    }
    if (freed != 0) {
      return rows_.Error(
          fmt::format("id {} was already freed on line {}; remove one of the rows", id, freed));
    }
    return rows_.Error(fmt::format(
        "free of id {}, which no line before allocates; remove the row, or add the allocation", id));
  }

  absl::Status ParseMark() {
    uint64_t number;
    if (absl::Status s = rows_.Number(kId, "the mark's number", &number); !s.ok()) return s;
    if (absl::Status s = OptionalNumber(kBytes, "bytes"); !s.ok()) return s;
    if (absl::Status s = OptionalNumber(kStream, "stream"); !s.ok()) return s;
    if (absl::Status s = OptionalNumber(kEventAlignment, "alignment"); !s.ok()) return s;
    events_.push_back({.kind = EventKind::kMark, .id = BlockId(number)});
    return absl::OkStatus();
  }

  bool has_alignment() const { return columns_ > kEventAlignment; }

  // A field that has no meaning in its row: not there, empty, or at least a number.
  absl::Status OptionalNumber(size_t index, std::string_view meaning) const {
    uint64_t ignored;
    return index >= columns_ || rows_.fields()[index].empty() ? absl::OkStatus()
                                                              : rows_.Number(index, meaning, &ignored);
  }

  const std::string_view contents_;
  const std::string_view name_;
  CsvRows rows_;
  size_t columns_ = 0;
  absl::flat_hash_map<uint64_t, Block> live_;  // by the file's ids
  uint64_t next_id_ = 0;
  uint64_t stacked_ = 0;
  std::vector<Event> events_;
};

class LifetimeCsv {
 public:
  LifetimeCsv(std::string_view contents, std::string_view name) : rows_(contents, name) {}

  absl::StatusOr<std::vector<Lifetime>> Parse() {
    if (absl::Status status = ParseHeader(); !status.ok()) return status;
    while (rows_.Next()) {
      if (absl::Status status = ParseRow(); !status.ok()) return status;
    }
    if (!rows_.status().ok()) return rows_.status();
    return std::move(lifetimes_);
  }

 private:
  absl::Status ParseHeader() {
    if (!rows_.Next()) return HeaderError(rows_, "expected the header 'id,lower,upper,size'");
    columns_ = rows_.fields().size();
    for (size_t i = 0; i < columns_; ++i) {
      const std::string_view name = rows_.fields()[i];
      const std::optional<LifetimeColumn> column = ColumnNamed(name);
      if (!column) {
        return rows_.Error(
            fmt::format("column {} is not supported; remove it, or name it id, lower, upper, size, "
                        "alignment, offset, gaps or lane",
                        Quoted(name)));
      }
      if (index_[*column])
        return rows_.Error(fmt::format("column {} says again what another one says", Quoted(name)));
      index_[*column] = i;
      if (name == kInclusiveUpper) inclusive_ = true;
    }
    if (index_[kName] && index_[kLower] && index_[kUpper] && index_[kSize]) return absl::OkStatus();
    return rows_.Error("a column is missing; expected the header 'id,lower,upper,size'");
  }

  absl::Status ParseRow() {
    const size_t fields = rows_.fields().size();
    if (fields != columns_) {
      return rows_.Error(fmt::format("{} fields where the header has {}; {}", fields, columns_,
                                     fields < columns_ ? "the row is truncated" : "remove the rest"));
    }
    int64_t lower, upper, size, alignment = 1;
    if (absl::Status s = rows_.Number(*index_[kLower], "lower", 0, kMostCsvNumber, &lower); !s.ok()) return s;
    const std::string_view upper_name = inclusive_ ? kInclusiveUpper : "upper";
    const int64_t most = inclusive_ ? kMostCsvNumber - 1 : kMostCsvNumber;
    if (absl::Status s = rows_.Number(*index_[kUpper], upper_name, 0, most, &upper); !s.ok()) return s;
    if (absl::Status s = rows_.Number(*index_[kSize], "size", 1, kMostOfOne, &size); !s.ok()) return s;
    if (index_[kAlignment]) {
      absl::Status s = rows_.Number(*index_[kAlignment], "alignment", 1, kMostOfOne, &alignment);
      if (!s.ok()) return s;
    }
    if (inclusive_) ++upper;
    if (upper <= lower) {
      return rows_.Error(fmt::format("the lifetime [{}, {}) is empty; {} must be {} lower", lower, upper,
                                     upper_name, inclusive_ ? "at least" : "above"));
    }
    if (absl::Status s = CheckName(); !s.ok()) return s;
    if (size > kMostCsvNumber - total_) return rows_.Error("the sizes sum to more than 2^62; check them");
    total_ += size;
    lifetimes_.push_back({.id = std::string(rows_.fields()[*index_[kName]]),
                          .lower = Tick(lower),
                          .upper = Tick(upper),
                          .size = Bytes(size),
                          .alignment = Bytes(alignment)});
    if (absl::Status s = ParseRest(lifetimes_.back()); !s.ok()) return s;
    return CheckHeight(lifetimes_.back());
  }

  absl::Status CheckHeight(const Lifetime& lifetime) {
    const auto size = static_cast<uint64_t>(lifetime.size.count());
    const uint64_t padded = size + static_cast<uint64_t>(lifetime.alignment.count());
    if (lifetime.offset) {
      highest_pinned_ = std::max(highest_pinned_, static_cast<uint64_t>(lifetime.offset->count()) + size);
    } else {
      stacked_ += padded;
    }
    if (padded <= kMostHeight && highest_pinned_ + stacked_ <= kMostHeight) return absl::OkStatus();
    return rows_.Error(
        "all blocks on top of each other, each with room to be aligned, end above the largest offset "
        "2^61 - 1; check sizes, alignments and offsets");
  }

  // The columns that few files have.
  absl::Status ParseRest(Lifetime& lifetime) {
    int64_t number;
    if (index_[kOffset] && !rows_.fields()[*index_[kOffset]].empty()) {
      if (absl::Status s = rows_.Number(*index_[kOffset], "offset", 0, kMostOfOne, &number); !s.ok())
        return s;
      lifetime.offset = Offset(number);
    }
    if (index_[kLane]) {
      constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
      if (absl::Status s = rows_.Number(*index_[kLane], "lane", 0, kMost, &number); !s.ok()) return s;
      lifetime.lane = static_cast<int32_t>(number);
    }
    return index_[kGaps] ? ParseGaps(rows_.fields()[*index_[kGaps]], lifetime) : absl::OkStatus();
  }

  absl::Status ParseGaps(std::string_view text, Lifetime& lifetime) {
    Tick from = lifetime.lower;
    while (!text.empty()) {
      const std::string_view gap = text.substr(0, text.find(' '));
      text.remove_prefix(std::min(gap.size() + 1, text.size()));
      if (gap.empty()) continue;
      const size_t dash = gap.find('-');
      if (gap.find('@') != gap.npos) {
        return rows_.Error(
            fmt::format("gap {} keeps a window of the buffer in use, which is not supported; leave the "
                        "gap out, or divide the buffer",
                        Quoted(gap)));
      }
      const auto lower = ParseNumber<int64_t>(gap.substr(0, dash));
      auto upper = dash == gap.npos ? std::nullopt : ParseNumber<int64_t>(gap.substr(dash + 1));
      if (!lower || !upper)
        return rows_.Error(fmt::format("gap {} is not of the form LOWER-UPPER", Quoted(gap)));
      if (inclusive_ && *upper < kMostCsvNumber) ++*upper;
      if (*lower <= from.count() || *upper <= *lower || *upper >= lifetime.upper.count()) {
        return rows_.Error(fmt::format(
            "gap {} is empty, not after the one before it, or not strictly within the lifetime [{}, {})",
            Quoted(gap), lifetime.lower.count(), lifetime.upper.count()));
      }
      lifetime.gaps.push_back({Tick(*lower), Tick(*upper)});
      from = Tick(*upper);
    }
    return absl::OkStatus();
  }

  absl::Status CheckName() {
    const std::string_view name = rows_.fields()[*index_[kName]];
    if (name.empty()) return rows_.Error("the id is empty");
    const auto [it, added] = line_of_.try_emplace(name, rows_.line());
    if (added) return absl::OkStatus();
    return rows_.Error(fmt::format("id {} was used on line {}; ids must differ", Quoted(name), it->second));
  }

  CsvRows rows_;
  std::array<std::optional<size_t>, kLifetimeColumns> index_;  // where a column stands
  size_t columns_ = 0;
  bool inclusive_ = false;
  int64_t total_ = 0;
  uint64_t stacked_ = 0;  // what is not pinned, alignments included
  uint64_t highest_pinned_ = 0;
  absl::flat_hash_map<std::string_view, int64_t> line_of_;
  std::vector<Lifetime> lifetimes_;
};

std::vector<std::string_view> FirstFields(std::string_view contents) {
  CsvRows rows(contents, "");
  return rows.Next() ? rows.fields() : std::vector<std::string_view>();
}

}  // namespace

bool LooksLikeEventCsv(std::string_view contents) {
  const auto fields = FirstFields(contents);
  return std::find(fields.begin(), fields.end(), kEventColumns[kKind]) != fields.end();
}

bool LooksLikeLifetimeCsv(std::string_view contents) {
  const auto fields = FirstFields(contents);
  return std::any_of(fields.begin(), fields.end(),
                     [](std::string_view name) { return ColumnNamed(name).has_value(); });
}

absl::StatusOr<std::vector<Event>> ParseEventCsv(std::string_view contents, std::string_view name) {
  return EventCsv(contents, name).Parse();
}

absl::StatusOr<std::vector<Lifetime>> ParseLifetimeCsv(std::string_view contents, std::string_view name) {
  return LifetimeCsv(contents, name).Parse();
}

}  // namespace reprise::profiler
