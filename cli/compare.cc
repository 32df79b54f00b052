// reprise compare: what other allocators would have reserved for the same job.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/contenders.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/quantity.h"
#include "cli/status.h"
#include "profiler/lifetimes.h"
#include "replay/simulator.h"

namespace reprise::cli {
namespace {

struct CompareOptions {
  std::string input;
  std::optional<Bytes> capacity;
  bool json = false;
};

std::string Line(std::string_view name, std::string_view reserved, std::string_view over,
                 std::string_view fits, std::string_view meaning) {
  return fmt::format("{:<17}{:>13}  {:>14}{}  {}\n", name, reserved, over, fits, meaning);
}

std::string_view YesOrNo(const std::optional<bool>& answer) {
  if (!answer) return "";
  return *answer ? "yes" : "no";
}

std::string ResultText(const CompareOptions& options, Bytes live_peak,
                       const std::vector<Contender>& contenders) {
  const auto fits_cell = [&](std::string_view text) {
    return options.capacity ? fmt::format("  {:>6}", text) : "";
  };
  std::string text = Line("allocator", "reserved peak", "over live peak", fits_cell("fits"), "");
  for (const Contender& c : contenders) {
    if (c.failed) {
      text += Line(c.name, "not known", "", fits_cell(""), c.meaning);
      continue;
    }
    const double over = replay::Share((c.reserved_peak - live_peak).count(), live_peak.count());
    text += Line(c.name, FormatSize(c.reserved_peak), fmt::format("{:+.2f} %", 100 * over),
                 fits_cell(YesOrNo(c.fits)), c.meaning);
  }
  text += fmt::format("live peak {}", FormatSize(live_peak));
  if (options.capacity) text += fmt::format(", capacity {}", FormatSize(*options.capacity));
  return text + "\n";
}

int Compare(const CompareOptions& options) {
  const absl::StatusOr<LoadedInput> input = LoadEvents(options.input, "compare");
  if (!input.ok()) return Fail(input.status(), kBadInput);
  const std::vector<profiler::Event>& events = input->content.trace.events;
  const Bytes live_peak = profiler::LivePeakOf(events).bytes;
  absl::StatusOr<std::vector<Contender>> tried = AllContenders(events, options.capacity);
  if (!tried.ok()) return Fail(fmt::format("{}: {}", input->name, MessageOf(tried.status())), kUsage);
  std::vector<Contender> contenders = *std::move(tried);
  if (input->content.format == profiler::InputFormat::kSnapshot) {
    absl::StatusOr<Contender> recorded = Recorded(input->content.snapshot, live_peak);
    if (recorded.ok()) {
      contenders.insert(contenders.begin(), *std::move(recorded));
    } else if (!options.json) {
      Say(fmt::format("{}: {}; \"as recorded\" is left out", input->name, MessageOf(recorded.status())));
    }
  }

  int exit_status = kFine;
  for (const Contender& c : contenders) {
    if (c.overlaps > 0) {
      Say(fmt::format(
          "{}: live blocks have shared bytes: this is a defect of Reprise, please report it with the "
          "input",
          c.name));
      exit_status = kNegative;
    }
    if (c.failed) Say(fmt::format("{}: {}; its figures are not known", c.name, kNoRoom));
  }
  const bool any_fits = std::any_of(contenders.begin(), contenders.end(),
                                    [](const Contender& c) { return c.fits.value_or(false); });
  if (options.capacity && !any_fits) {
    Say(fmt::format("does not fit: none of them finds room in {} bytes", options.capacity->count()));
    exit_status = std::max<int>(exit_status, kDoesNotFit);
  }
  exit_status = Finish(options.json ? ContendersJson(input->name, options.capacity, live_peak, contenders)
                                    : ResultText(options, live_peak, contenders),
                       exit_status);
  if (!options.json) SayNextOf("simulate", options.input);
  return exit_status;
}

}  // namespace

void AddCompare(CLI::App& app, int& exit_status) {
  CLI::App* const command =
      app.add_subcommand("compare", "Show what other allocators would have reserved for recorded events");
  const auto options = std::make_shared<CompareOptions>();
  command
      ->add_option("INPUT", options->input,
                   "Trace, event CSV or pickled snapshot of torch.cuda.memory; - for standard input")
      ->required();
  AddSizeOption(*command, "--capacity", options->capacity,
                "Say for each whether that much memory is enough; status 4 if it is for none");
  command->add_flag("--json", options->json, "Print one JSON object, sizes in bytes");
  command->footer(
      "The others are models that follow the rules of the real ones; reprise is the engine itself, on a GPU "
      "as they\nare, wherever the input is from. The reserved peak is without a limit; whether a capacity is "
      "enough is tried\nwith it, cached memory given back in need.\n\n"
      "Example:\n  reprise compare reprise-out/trace.reprise --capacity 16GiB");
  command->callback([options, &exit_status] { exit_status = Compare(*options); });
}

}  // namespace reprise::cli
