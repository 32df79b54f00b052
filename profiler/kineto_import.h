// Reads the memory events of a trace that PyTorch's profiler exported (profile_memory=True): instant events
// named
// "[memory]" whose args say Bytes (negative: freed), Addr, Device Type and Device Id. Everything else in the
// file is passed over, and never kept.
//
// As of a snapshot, the trace is a window: what is freed in it and was not allocated in it is taken as
// allocated first. Such a trace has no streams and, for the allocations themselves, no stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profiler/types.h"

namespace reprise::profiler {

struct KinetoTrace {
  std::vector<Event> events;  // a consistent sequence (event_check.h)
  int64_t device = 0;         // as the trace numbers it: the host is mostly -1
  size_t devices = 1;         // of which that is the one
  // By how much the job's live peak may be above that of the events. nullopt: by anything.
  std::optional<Bytes> unseen{};
  std::vector<std::string> notes{};

  // Why it may be, a clause; empty: it is not.
  std::string_view WhyNotWhole() const;
};

// Whether the first character that is no blank begins a JSON object or array.
bool LooksLikeJson(std::string_view contents);

// Of the device with the largest live peak; a note names the others. InvalidArgument: no JSON, or no such event in
// it, or sizes that sum to more than 2^62. Memory linear in the file.
absl::StatusOr<KinetoTrace> ParseKineto(std::string_view contents, std::string_view name);

}  // namespace reprise::profiler
