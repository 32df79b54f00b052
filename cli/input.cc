#include "cli/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/fnv1a.h"
#include "cli/console.h"
#include "cli/rank_files.h"
#include "planner/problem.h"
#include "profiler/lifetimes.h"

namespace reprise::cli {
namespace {

// Small numbers for streams, in order of appearance.
class LaneNumbers {
 public:
  int32_t Of(Stream stream) {
    return numbers_.try_emplace(stream, static_cast<int32_t>(numbers_.size())).first->second;
  }

 private:
  std::map<Stream, int32_t> numbers_;
};

// Of a folder, which a run's output is: what to name in its place.
absl::Status NotReadable(const std::string& path, absl::Status why) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return why;
  const absl::StatusOr<std::vector<std::string>> traces = TracesIn(path);
  const std::string largest = traces.ok() ? LargestTrace(*traces) : "";
  return absl::InvalidArgumentError(fmt::format("{}: is a folder; name a file in it{}", path,
                                                largest.empty() ? "" : fmt::format(", such as {}", largest)));
}

}  // namespace

absl::StatusOr<LoadedInput> LoadInput(const std::string& path) {
  LoadedInput input;
  input.name = path == "-" ? "standard input" : path;
  absl::StatusOr<std::string> contents = ReadFile(path == "-" ? "/dev/stdin" : path);
  if (!contents.ok()) return NotReadable(path, contents.status());
  absl::StatusOr<profiler::Input> parsed = profiler::Parse(*contents, input.name);
  if (!parsed.ok()) return parsed.status();
  input.content = *std::move(parsed);
  input.symbols = Symbols().Name(&input.content.trace.stacks);
  input.hash = fmt::format("fnv1a-64:{:016x}", Fnv1a(*contents));
  for (const std::string& note : input.content.trace.notes) Say(fmt::format("{}: {}", input.name, note));
  return input;
}

absl::StatusOr<LoadedInput> LoadEvents(const std::string& path, std::string_view command) {
  absl::StatusOr<LoadedInput> input = LoadInput(path);
  if (input.ok() && input->is_lifetimes()) {
    return absl::InvalidArgumentError(
        fmt::format("{}:1: a lifetime CSV; {} needs events in order, a trace, an event CSV or a snapshot",
                    input->name, command));
  }
  return input;
}

std::string_view WhyNotWhole(const LoadedInput& input) {
  return input.content.format == profiler::InputFormat::kTrace ? input.content.trace.WhyNotWhole() : "";
}

absl::StatusOr<planner::Problem> ProblemOf(const LoadedInput& input) {
  planner::Problem problem;
  const auto add = [&](Tick lower, Tick upper, Bytes size, Bytes alignment) -> planner::Buffer& {
    return problem.buffers.emplace_back(
        planner::Buffer{lower, upper, size, std::max(alignment, Bytes(1)), {}});
  };
  if (input.is_lifetimes()) {
    for (const profiler::Lifetime& l : input.content.lifetimes) {
      planner::Buffer& buffer = add(l.lower, l.upper, l.size, l.alignment);
      buffer.pinned = l.offset;
      buffer.lane = l.lane;
      for (const profiler::Lifetime::Gap& gap : l.gaps) buffer.gaps.push_back({gap.lower, gap.upper});
    }
  } else {
    LaneNumbers lanes;
    for (const profiler::BlockLifetime& block : profiler::LifetimesOf(input.content.trace.events).blocks) {
      add(block.alloc, block.free, block.bytes, block.alignment).lane = lanes.Of(block.stream);
    }
  }
  if (problem.buffers.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: there is not one allocation in it, nothing to place", input.name));
  }
  const auto name = [&](size_t i) { return fmt::format("buffer {}", NameOfBuffer(input, i)); };
  if (const absl::Status valid = planner::Validate(problem, name); !valid.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", input.name, MessageOf(valid)));
  }
  return problem;
}

std::string NameOfBuffer(const LoadedInput& input, size_t index) {
  return input.is_lifetimes() ? input.content.lifetimes[index].id : fmt::format("{}", index);
}

}  // namespace reprise::cli
