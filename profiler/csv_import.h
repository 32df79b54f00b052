// Reads the two CSV formats that tools exchange.
//
//   event CSV     header event,id,bytes,stream, or with a fifth column, alignment
//                 alloc,ID,BYTES,STREAM   free,ID,,STREAM   mark,NUMBER,,
//                 An id may be used again after its free. The alignment is an alloc's, at least 1; empty when none was
//                 asked for.
//   lifetime CSV  one row a buffer under named columns, after MiniMalloc (github.com/google/minimalloc):
//                 id (or buffer, buffer_id), lower (start, begin), upper, size, and optionally
//                   alignment    at least 1
//                   offset       where the buffer is pinned; empty when it is not
//                   gaps         ranges of ticks within the lifetime in which the buffer is not in use, as
//                                LOWER-UPPER, ascending, separated by blanks
//                   lane         (or stream) the number of the stream of execution that uses it
//                 Lifetimes and gaps are half-open [lower, upper); under `end` in place of `upper` the last
//                 tick is included in both.
//
// Both: comma-separated, no quotes, blanks around fields and empty lines ignored, a byte-order mark, CRLF and
// a missing last line end accepted. Every error is InvalidArgument and names file, line and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "profiler/types.h"

namespace reprise::profiler {

struct Lifetime {
  struct Gap {
    Tick lower;
    Tick upper;
  };
  std::string id;  // as the file spells it; unique
  Tick lower;      // >= 0
  Tick upper;      // > lower
  Bytes size;      // > 0
  Bytes alignment{1};
  std::optional<Offset> offset{};  // >= 0
  std::vector<Gap> gaps{};         // ascending, apart, strictly within the lifetime
  int32_t lane = 0;                // >= 0
};

// Whether the first line is the header of one or the other.
bool LooksLikeEventCsv(std::string_view contents);
bool LooksLikeLifetimeCsv(std::string_view contents);

// A consistent sequence (event_check.h); blocks are numbered anew from 0 in order of allocation.
absl::StatusOr<std::vector<Event>> ParseEventCsv(std::string_view contents, std::string_view name);
// In the file's order. The sizes sum to at most 2^62; what is not pinned, alignments included, fits on top of
// whatever is pinned below the planner's largest offset 2^61 - 1.
absl::StatusOr<std::vector<Lifetime>> ParseLifetimeCsv(std::string_view contents, std::string_view name);

}  // namespace reprise::profiler
