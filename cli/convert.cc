// reprise convert: an input in the format of another tool.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/input_stats.h"
#include "cli/quantity.h"
#include "cli/status.h"
#include "profiler/csv_export.h"
#include "profiler/exports.h"
#include "replay/models/models.h"
#include "replay/models/run_model.h"

namespace reprise::cli {
namespace {

struct ConvertOptions {
  std::string input, output;
  std::string format;  // empty: by the output's name
};

struct Format {
  std::string_view name;
  std::string_view ending;  // of a file's name
};
// A longer ending stands before one that it ends in.
constexpr Format kFormats[] = {{"lifetimes", ".lifetimes.csv"},
                               {"events", ".csv"},
                               {"speedscope", ".speedscope.json"},
                               {"json", ".json"},
                               {"perfetto", ".perfetto-trace"},
                               {"perfetto", ".pftrace"},
                               {"folded", ".folded"},
                               {"snapshot", ".pickle"}};

std::string FormatOf(const ConvertOptions& options) {
  if (!options.format.empty()) return options.format;
  for (const Format& format : kFormats) {
    if (options.output.ends_with(format.ending)) return std::string(format.name);
  }
  return "";
}

// Whether a command of ours reads it.
bool IsInput(std::string_view format) {
  return format == "events" || format == "lifetimes" || format == "snapshot";
}

// Whether what it writes counts, read again, as all of the job, be it that or not.
bool IsTakenForWhole(std::string_view format) { return format == "events" || format == "lifetimes"; }

// Whether what it writes is of use for what the device did alone.
bool ShowsTimeLine(std::string_view format) { return format == "perfetto" || format == "json"; }

bool IsAlloc(const profiler::Event& event) { return event.kind == profiler::EventKind::kAlloc; }

// Places for a snapshot: those of a plain arena. An input's own addresses would be one segment with holes of
// terabytes. InvalidArgument: there is none for a block, which a snapshot would then be without.
absl::StatusOr<std::vector<Offset>> Places(const LoadedInput& input,
                                           const std::vector<profiler::Event>& events) {
  replay::Track track;
  for (const replay::ModelInfo& model : replay::Models()) {
    if (model.name == "plain-arena")
      replay::RunModel(events, *model.make(Bytes(0)), {.track = &track, .stop = {}});
  }
  track.offsets.resize(events.size(), replay::Track::kNowhere);
  for (size_t i = 0; i < events.size(); ++i) {
    if (!IsAlloc(events[i]) || track.offsets[i] != replay::Track::kNowhere) continue;
    const std::string block =
        input.is_lifetimes()
            ? fmt::format("buffer {}", NameOfBuffer(input, static_cast<size_t>(events[i].id)))
            : fmt::format("event {}", i);
    return absl::InvalidArgumentError(
        fmt::format("{}: {}: there is no place for a block of {} in a snapshot; choose another format",
                    input.name, block, FormatSize(events[i].bytes)));
  }
  return std::move(track.offsets);
}

absl::StatusOr<std::string> Converted(const LoadedInput& input, std::string_view format) {
  // As events they would lose what no event says: where they are pinned, and the one place of a buffer with gaps.
  if (format == "lifetimes" && input.is_lifetimes()) {
    return profiler::ToLifetimeCsv(input.content.lifetimes);
  }
  const Timeline of_lifetimes = TimelineOf(input.content.lifetimes);
  const std::vector<profiler::Event>& events =
      input.is_lifetimes() ? of_lifetimes.events : input.content.trace.events;
  // What no command of ours would take is not written.
  if (IsInput(format)) {
    if (const absl::Status placeable = CheckProblem(input); !placeable.ok()) return placeable;
  }
  const profiler::StackTable& stacks = input.content.trace.stacks;
  if (format == "events") return profiler::ToEventCsv(events);
  if (format == "lifetimes") return profiler::ToLifetimeCsv(events);
  const std::vector<profiler::Activity>& activities = input.content.trace.activities;
  if (format == "json") return profiler::ToJson(events, stacks, activities);
  if (format == "folded") return profiler::ToFolded(events, stacks);
  if (format == "speedscope") return profiler::ToSpeedscope(events, stacks, input.name);
  if (format == "perfetto") return profiler::ToPerfetto(events, stacks, activities);
  const absl::StatusOr<std::vector<Offset>> places = Places(input, events);
  if (!places.ok()) return places.status();
  return profiler::ToSnapshot(events, stacks, *places, WhyNotWhole(input).empty());
}

// What events do not say of a lifetime CSV, a clause; empty: they say all of it.
std::string LostAsEvents(const std::vector<profiler::Lifetime>& lifetimes) {
  size_t gaps = 0, pinned = 0;
  for (const profiler::Lifetime& lifetime : lifetimes) {
    gaps += lifetime.gaps.size();
    pinned += lifetime.offset ? 1 : 0;
  }
  std::string lost;
  if (gaps > 0) {
    lost = fmt::format(
        "each of its {} gaps is a free and a new allocation there, so that a block may lie at "
        "several offsets",
        gaps);
  }
  if (pinned > 0) lost += fmt::format("{}the offset of {} is not kept", gaps > 0 ? "; " : "", pinned);
  return lost;
}

// What a person does with it next.
std::string_view OpenedBy(std::string_view format) {
  if (format == "perfetto") return "open it in ui.perfetto.dev";
  if (format == "speedscope") return "open it in speedscope";
  if (format == "folded") return "give it to flamegraph.pl, or open it in speedscope";
  if (format == "snapshot") return "open it in PyTorch's memory_viz; its addresses are made up";
  return "";
}

int Convert(const ConvertOptions& options) {
  const std::string format = FormatOf(options);
  if (format.empty()) {
    return Fail(fmt::format("{}: no known ending; name a format with --to", options.output), kUsage);
  }
  const absl::StatusOr<LoadedInput> input =
      ShowsTimeLine(format) ? LoadInput(options.input) : LoadAllocations(options.input);
  if (!input.ok()) return Fail(input.status(), kBadInput);
  const absl::StatusOr<std::string> converted = Converted(*input, format);
  if (!converted.ok()) return Fail(converted.status(), kBadInput);
  if (const absl::Status written = WriteOutput(options.output, *converted, {options.input}); !written.ok()) {
    return Fail(written, kUsage);
  }
  if (const std::string_view why = WhyNotWhole(*input); !why.empty() && IsTakenForWhole(format)) {
    Say(fmt::format("{}: {}; a CSV does not say so, and counts as all of the job", input->name, why));
  }
  if (const std::string lost = LostAsEvents(input->content.lifetimes);
      !lost.empty() && IsInput(format) && format != "lifetimes") {
    Say(fmt::format("{}: {}", input->name, lost));
  }
  if (options.output == "-") return kFine;
  Say(fmt::format("wrote {}, {}, as {}", options.output,
                  FormatSize(Bytes(static_cast<int64_t>(converted->size()))), format));
  if (const std::string_view opened = OpenedBy(format); !opened.empty()) Say(opened);
  SayNextOf("stats", IsInput(format) ? options.output : options.input);
  return kFine;
}

}  // namespace

void AddConvert(CLI::App& app, int& exit_status) {
  CLI::App* const command = app.add_subcommand("convert", "Write an input in the format of another tool");
  const auto options = std::make_shared<ConvertOptions>();
  command
      ->add_option("INPUT", options->input,
                   "Trace, event CSV, lifetime CSV, snapshot or PyTorch profiler trace; - for standard input")
      ->required();
  command
      ->add_option("OUT", options->output,
                   "The file to write, replaced if it is there; - for standard output")
      ->required();
  command
      ->add_option("--to", options->format,
                   "events, lifetimes, json, perfetto, speedscope, folded or snapshot; "
                   "by default what the ending of OUT says")
      ->check(CLI::IsMember({"events", "lifetimes", "json", "perfetto", "speedscope", "folded", "snapshot"}))
      ->type_name("FORMAT");
  command->footer(
      "Endings: .csv events, .lifetimes.csv lifetimes, .json, .speedscope.json, .perfetto-trace or .pftrace, "
      ".folded, "
      ".pickle snapshot.\n\nExample:\n  reprise convert reprise-out/trace.reprise job.perfetto-trace");
  command->callback([options, &exit_status] { exit_status = Convert(*options); });
}

}  // namespace reprise::cli
