#include "profiler/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/files.h"
#include "profiler/pickle.h"

namespace reprise::profiler {
namespace {

constexpr std::string_view kExpected =
    "expected a Reprise trace, an event CSV (header event,id,bytes,stream), a lifetime CSV (header "
    "id,lower,upper,size), a pickled snapshot of torch.cuda.memory or a trace of PyTorch's profiler";

constexpr std::pair<std::string_view, std::string_view> kCompressed[] = {
    {"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"\xfd\x37zXZ", "xz"}};

bool LooksLikeTrace(std::string_view contents) {
  const std::string_view begin = contents.substr(0, kTraceMagic.size());
  return begin == kTraceMagic.substr(0, begin.size());
}

// As Python writes a dict or a list under protocol 0 or 1, which have no number of it at their begin.
bool LooksLikeEarlyPickle(std::string_view contents) {
  using namespace std::string_view_literals;
  const auto begins = [&](std::string_view begin) { return contents.starts_with(begin); };
  return contents.ends_with('.') &&
         std::ranges::any_of(std::array{"(dp0\n"sv, "(lp0\n"sv, "}q\0"sv, "]q\0"sv}, begins);
}

absl::StatusOr<Input> ParseAsTrace(std::string_view contents, std::string_view name) {
  absl::StatusOr<Trace> trace = ParseTrace(contents, name);
  if (!trace.ok()) return trace.status();
  return Input{.format = InputFormat::kTrace, .trace = *std::move(trace), .lifetimes = {}};
}

absl::StatusOr<Input> ParseAsEvents(std::string_view contents, std::string_view name) {
  absl::StatusOr<std::vector<Event>> events = ParseEventCsv(contents, name);
  if (!events.ok()) return events.status();
  Input input{.format = InputFormat::kEventCsv, .trace = {}, .lifetimes = {}};
  input.trace.events = *std::move(events);
  input.trace.closed = true;
  return input;
}

absl::StatusOr<Input> ParseAsLifetimes(std::string_view contents, std::string_view name) {
  absl::StatusOr<std::vector<Lifetime>> lifetimes = ParseLifetimeCsv(contents, name);
  if (!lifetimes.ok()) return lifetimes.status();
  Input input{.format = InputFormat::kLifetimeCsv, .trace = {}, .lifetimes = *std::move(lifetimes)};
  input.trace.closed = true;
  return input;
}

absl::StatusOr<Input> ParseAsSnapshot(std::string_view contents, std::string_view name) {
  absl::StatusOr<Snapshot> snapshot = ParseSnapshot(contents, name);
  if (!snapshot.ok()) return snapshot.status();
  Input input{.format = InputFormat::kSnapshot, .trace = {}, .snapshot = *std::move(snapshot)};
  input.trace.events = std::exchange(input.snapshot.events, {});
  input.trace.stacks = std::exchange(input.snapshot.stacks, {});
  input.trace.notes = std::exchange(input.snapshot.notes, {});
  input.trace.closed = true;
  return input;
}

absl::StatusOr<Input> ParseAsKineto(std::string_view contents, std::string_view name) {
  absl::StatusOr<KinetoTrace> kineto = ParseKineto(contents, name);
  if (!kineto.ok()) return kineto.status();
  Input input{.format = InputFormat::kKineto, .trace = {}, .kineto = *std::move(kineto)};
  input.trace.events = std::exchange(input.kineto.events, {});
  input.trace.notes = std::exchange(input.kineto.notes, {});
  input.trace.closed = true;
  return input;
}

}  // namespace

absl::StatusOr<Input> Parse(std::string_view contents, std::string_view name) {
  if (contents.empty())
    return absl::InvalidArgumentError(fmt::format("{}: the file is empty; {}", name, kExpected));
  if (LooksLikeTrace(contents)) return ParseAsTrace(contents, name);
  if (LooksLikePickle(contents)) return ParseAsSnapshot(contents, name);
  if (LooksLikeJson(contents)) return ParseAsKineto(contents, name);
  if (LooksLikeEventCsv(contents)) return ParseAsEvents(contents, name);
  if (LooksLikeLifetimeCsv(contents)) return ParseAsLifetimes(contents, name);
  for (const auto& [magic, program] : kCompressed) {
    if (contents.starts_with(magic)) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: compressed by {}; read what is in it: {} -dc FILE | reprise ... -", name, program, program));
    }
  }
  if (LooksLikeEarlyPickle(contents)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: a pickle of protocol 0 or 1; save it with protocol 2 or later", name));
  }
  return absl::InvalidArgumentError(fmt::format("{}:1: an unknown format; {}", name, kExpected));
}

absl::StatusOr<Input> Load(const std::string& path) {
  const absl::StatusOr<std::string> contents = ReadFile(path);
  if (!contents.ok()) return contents.status();
  return Parse(*contents, path);
}

}  // namespace reprise::profiler
