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
#include "planner/bound.h"
#include "planner/problem.h"
#include "profiler/lifetimes.h"
#include "profiler/live_allocations.h"

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

// As the planner takes it: what asks for no alignment lies anywhere.
Bytes AlignmentOf(const profiler::Event& alloc) { return std::max(alloc.alignment, Bytes(1)); }

// All that may still be wrong with the problem of consistent events (planner::Validate): there is no block, or
// too much of them for an offset.
bool CanBePlaced(const std::vector<profiler::Event>& events) {
  int64_t left = planner::kMostHeight;
  for (const profiler::Event& event : events) {
    if (event.kind != profiler::EventKind::kAlloc) continue;
    for (const Bytes part : {event.bytes, AlignmentOf(event)}) {
      if (part.count() > left) return false;
      left -= part.count();
    }
  }
  return left < planner::kMostHeight;
}

bool HasAllocation(const LoadedInput& input) {
  const auto is_alloc = [](const profiler::Event& event) {
    return event.kind == profiler::EventKind::kAlloc;
  };
  return !input.content.lifetimes.empty() || std::ranges::any_of(input.content.trace.events, is_alloc);
}

absl::Status NothingIn(const LoadedInput& input) {
  return absl::InvalidArgumentError(fmt::format("{}: there is not one allocation in it", input.name));
}

// One block after another, without a problem of them all.
Bytes LowerBoundOfEvents(const std::vector<profiler::Event>& events) {
  planner::Grains grains;
  for (const profiler::Event& event : events) {
    if (event.kind == profiler::EventKind::kAlloc) grains.Add(AlignmentOf(event).count());
  }
  planner::RunningBound running(grains);
  profiler::LiveAllocations live;
  for (const profiler::Event& event : events) {
    const profiler::Event* alloc = live.Add(event).alloc;
    if (alloc == nullptr) continue;
    if (event.kind == profiler::EventKind::kAlloc) {
      running.Start(alloc->bytes, AlignmentOf(*alloc));
    } else {
      running.Stop(alloc->bytes, AlignmentOf(*alloc));
    }
  }
  return running.bound();
}

// Of a folder, which a run's output is: what to name in its place.
absl::Status NotReadable(const std::string& path, absl::Status why) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return why;
  const absl::StatusOr<std::vector<std::string>> traces = TracesIn(path);
  const std::string main = traces.ok() ? MainTrace(*traces) : "";
  return absl::InvalidArgumentError(fmt::format("{}: is a folder; name a file in it{}", path,
                                                main.empty() ? "" : fmt::format(", such as {}", main)));
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
  if (!HasAllocation(input) && input.content.trace.activities.empty()) return NothingIn(input);
  return input;
}

absl::StatusOr<LoadedInput> LoadAllocations(const std::string& path) {
  absl::StatusOr<LoadedInput> input = LoadInput(path);
  if (input.ok() && !HasAllocation(*input)) return NothingIn(*input);
  return input;
}

absl::StatusOr<LoadedInput> LoadEvents(const std::string& path, std::string_view command) {
  absl::StatusOr<LoadedInput> input = LoadAllocations(path);
  if (input.ok() && input->is_lifetimes()) {
    return absl::InvalidArgumentError(
        fmt::format("{}:1: a lifetime CSV; {} needs events in order, a trace, an event CSV or a snapshot",
                    input->name, command));
  }
  return input;
}

std::string_view WhyNotWhole(const LoadedInput& input) {
  const profiler::Input& content = input.content;
  switch (content.format) {
    case profiler::InputFormat::kTrace:
      return content.trace.WhyNotWhole();
    case profiler::InputFormat::kSnapshot:
      return content.snapshot.WhyNotWhole();
    case profiler::InputFormat::kKineto:
      return content.kineto.WhyNotWhole();
    case profiler::InputFormat::kEventCsv:
    case profiler::InputFormat::kLifetimeCsv:
      break;
  }
  return "";
}

std::optional<Bytes> Unseen(const LoadedInput& input) {
  if (WhyNotWhole(input).empty()) return Bytes(0);
  if (input.content.format == profiler::InputFormat::kSnapshot) return input.content.snapshot.unseen;
  if (input.content.format == profiler::InputFormat::kKineto) return input.content.kineto.unseen;
  const profiler::Trace& trace = input.content.trace;
  return trace.WhyEnded().empty() && trace.dropped == 0 ? std::optional(trace.passed) : std::nullopt;
}

absl::StatusOr<planner::Problem> ProblemOf(const LoadedInput& input) {
  planner::Problem problem;
  const auto add = [&](Tick lower, Tick upper, Bytes size, Bytes alignment) -> planner::Buffer& {
    return problem.buffers.emplace_back(planner::Buffer{lower, upper, size, alignment, {}});
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
    const std::vector<profiler::Event>& events = input.content.trace.events;
    const std::vector<profiler::BlockLifetime> blocks = profiler::LifetimesOf(events);
    problem.buffers.reserve(blocks.size());
    for (const profiler::BlockLifetime& block : blocks) {
      const profiler::Event& alloc = events[static_cast<size_t>(block.alloc.count())];
      add(block.alloc, block.free, alloc.bytes, AlignmentOf(alloc)).lane = lanes.Of(alloc.stream);
    }
  }
  const auto name = [&](size_t i) { return fmt::format("buffer {}", NameOfBuffer(input, i)); };
  if (const absl::Status valid = planner::Validate(problem, name); !valid.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", input.name, MessageOf(valid)));
  }
  return problem;
}

absl::Status CheckProblem(const LoadedInput& input) {
  if (!input.is_lifetimes() && CanBePlaced(input.content.trace.events)) return absl::OkStatus();
  return ProblemOf(input).status();
}

absl::StatusOr<Bytes> LowerBoundOf(const LoadedInput& input) {
  const std::vector<profiler::Event>& events = input.content.trace.events;
  if (!input.is_lifetimes() && CanBePlaced(events)) return LowerBoundOfEvents(events);
  const absl::StatusOr<planner::Problem> problem = ProblemOf(input);
  if (!problem.ok()) return problem.status();
  return planner::LowerBound(*problem);
}

std::string NameOfBuffer(const LoadedInput& input, size_t index) {
  return input.is_lifetimes() ? input.content.lifetimes[index].id : fmt::format("{}", index);
}

}  // namespace reprise::cli
