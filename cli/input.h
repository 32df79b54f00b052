// The INPUT of a command: a trace, an event CSV, a lifetime CSV or a pickled snapshot of PyTorch's allocator,
// from a file or, under `-`, from stdin.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/symbols.h"
#include "planner/types.h"
#include "profiler/load.h"

namespace reprise::cli {

struct LoadedInput {
  std::string name;  // as the user named it
  std::string hash;  // of the file's bytes: "fnv1a-64:" and 16 hexadecimal digits
  profiler::Input content;
  SymbolCounts symbols{};  // of the native frames, which have their names as far as they can be told

  bool is_lifetimes() const { return content.format == profiler::InputFormat::kLifetimeCsv; }
};

// Says on stderr what the reader noted (a trace cut short). Errors name the file and the line or byte. InvalidArgument
// too where it has neither an allocation nor a time line: of what is not there every figure would be 0, and pass for one
// that was measured.
absl::StatusOr<LoadedInput> LoadInput(const std::string& path);

// With an allocation in it, as all need but who can show a time line alone.
absl::StatusOr<LoadedInput> LoadAllocations(const std::string& path);

// Of those that have events in their order: InvalidArgument says of a lifetime CSV that `command` needs them.
absl::StatusOr<LoadedInput> LoadEvents(const std::string& path, std::string_view command);

// Why the job's peak may not be in the input, a clause; empty: it is, or the input is a list that does not tell.
std::string_view WhyNotWhole(const LoadedInput& input);

// By how much the job's live peak may be above the input's; nullopt: by anything, it may have been at another time.
std::optional<Bytes> Unseen(const LoadedInput& input);

// What there is to place. Of lifetimes: they, in the file's order. Of events: all blocks in order of
// allocation, over the whole stream, a tick being the index of an event. InvalidArgument: there is no block,
// or what the planner cannot take, the buffer named as in the file.
absl::StatusOr<planner::Problem> ProblemOf(const LoadedInput& input);

// Whether there is such a problem. Of events that is asked without one: it takes more memory than they do.
absl::Status CheckProblem(const LoadedInput& input);

// The planner's lower bound of the problem. The same errors, and of events the same way.
absl::StatusOr<Bytes> LowerBoundOf(const LoadedInput& input);

// The id of the problem's buffer `index` for people: as a lifetime CSV spells it, else its number.
std::string NameOfBuffer(const LoadedInput& input, size_t index);

}  // namespace reprise::cli
