// reprise diff: what the peak of one input has that another has not.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/printable.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/input_stats.h"
#include "cli/json_text.h"
#include "cli/or_null.h"
#include "cli/quantity.h"
#include "cli/status.h"
#include "profiler/site_labels.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRowsShown = 20;  // for people; all under --json

struct DiffOptions {
  std::string before, after;
  std::optional<std::string> fail_above;  // a size or a percentage, as LimitOf reads them; nullopt: never
  bool json = false;
};

// What is live at the peak under one name, before and after.
struct DiffRow {
  std::string name;
  Bytes size{};  // of each block; 0: the row is a site's
  Bytes before, after;
  Bytes change() const { return after - before; }
};

// Sites that are on both sides are compared; of the others, those of one function are taken together, so that
// a line that has moved is no site that is new and one that is gone.
std::vector<DiffRow> RowsBySite(const InputStats& before, const InputStats& after) {
  std::map<std::string, DiffRow> rows;
  const auto add = [](const InputStats& stats, Bytes DiffRow::*side, std::map<std::string, DiffRow>& sums,
                      const auto& name, const auto& wanted) {
    for (const profiler::SiteBytes& at : stats.sites_at_peak) {
      const profiler::Site& site = stats.sites.sites[at.site];
      if (!wanted(site)) continue;
      DiffRow& row = sums[name(site)];
      row.name = name(site);
      row.*side += at.bytes;
    }
  };
  const auto label = [](const profiler::Site& site) { return site.label; };
  const auto all = [](const profiler::Site&) { return true; };
  add(before, &DiffRow::before, rows, label, all);
  add(after, &DiffRow::after, rows, label, all);
  const auto one_side = [&](const profiler::Site& site) {
    const DiffRow& row = rows[site.label];
    return row.before == Bytes(0) || row.after == Bytes(0);
  };
  std::map<std::string, DiffRow> moved;
  add(before, &DiffRow::before, moved, profiler::LabelWithoutLine, one_side);
  add(after, &DiffRow::after, moved, profiler::LabelWithoutLine, one_side);
  std::vector<DiffRow> found;
  for (const auto& [name, row] : rows) {
    if (row.before > Bytes(0) && row.after > Bytes(0)) found.push_back(row);
  }
  for (const auto& [name, row] : moved) found.push_back(row);
  return found;
}

std::vector<DiffRow> RowsBySize(const InputStats& before, const InputStats& after) {
  std::map<Bytes, DiffRow> rows;
  for (const profiler::SizeCount& c : before.stats.at_peak) rows[c.size].before = c.size * c.blocks;
  for (const profiler::SizeCount& c : after.stats.at_peak) rows[c.size].after = c.size * c.blocks;
  std::vector<DiffRow> found;
  std::map<std::string, int> alike;
  for (const auto& [size, row] : rows) ++alike[FormatSize(size)];
  for (auto& [size, row] : rows) {
    row.size = size;
    row.name = fmt::format("blocks of {}", FormatSize(size));
    if (alike[FormatSize(size)] > 1) row.name += fmt::format(" ({} B)", size.count());
    found.push_back(row);
  }
  return found;
}

std::string_view KindOf(const DiffRow& row) {
  if (row.before == Bytes(0)) return "new";
  if (row.after == Bytes(0)) return "gone";
  return row.change() == Bytes(0) ? "same" : "changed";
}

// The most that the peak may grow by. nullopt: `text` is neither a size nor a percentage.
std::optional<double> LimitOf(const std::string& text, Bytes before) {
  if (const std::optional<double> percent = ParsePercent(text)) {
    return static_cast<double>(before.count()) * *percent / 100;
  }
  const std::optional<Bytes> size = text == "0" ? Bytes(0) : ParseSize(text);
  return size ? std::optional(static_cast<double>(size->count())) : std::nullopt;
}

// How many the file has, of which only that one is read.
size_t DevicesIn(const LoadedInput& input) {
  return std::max(input.content.snapshot.devices, input.content.kineto.devices);
}

bool HadAChoice(const LoadedInput& before, const LoadedInput& after) {
  return std::max(DevicesIn(before), DevicesIn(after)) > 1;
}

// That of several devices another one was read than on the other side, a clause; empty: not as far as is known. Where neither
// had a choice, the job may have been given another device.
std::string DevicesApart(const LoadedInput& before, const LoadedInput& after) {
  const std::optional<int64_t> was = DeviceOf(before), is = DeviceOf(after);
  if (!HadAChoice(before, after) || !was || !is || *was == *is) return "";
  return fmt::format("{}: of device {}, and {} of device {}", after.name, *is, before.name, *was);
}

std::string DeviceText(const LoadedInput& input) {
  const std::optional<int64_t> device = DeviceOf(input);
  if (!device) return "not said";
  const size_t devices = DevicesIn(input);
  return devices > 1 ? fmt::format("{} of {}", *device, devices) : fmt::format("{}", *device);
}

std::string DeviceRow(const LoadedInput& before, const LoadedInput& after) {
  if (!HadAChoice(before, after)) return "";
  return fmt::format("device     {:>12} -> {:>12}\n", DeviceText(before), DeviceText(after));
}

std::string ResultJson(const MeasuredInput& before, const MeasuredInput& after, bool by_site,
                       const std::vector<DiffRow>& rows, bool failed) {
  const auto side = [](const MeasuredInput& input) {
    return Json{{"input", input.input.name},
                {"device", OrNull(DeviceOf(input.input))},
                {"devices", DevicesIn(input.input)},
                {"live_peak", input.stats.live_peak.count()},
                {"whole", WhyNotWhole(input.input).empty()}};
  };
  Json json = {{"before", side(before)},
               {"after", side(after)},
               {"change", (after.stats.live_peak - before.stats.live_peak).count()},
               {"failed", failed},
               {"by", by_site ? "site" : "size"},
               {"rows", Json::array()}};
  for (const DiffRow& row : rows) {
    json["rows"].push_back({{"name", row.name},
                            {"kind", KindOf(row)},
                            {"before", row.before.count()},
                            {"after", row.after.count()},
                            {"change", row.change().count()}});
    if (!by_site) json["rows"].back()["size"] = row.size.count();
  }
  return JsonText(json);
}

std::string ResultText(const MeasuredInput& before, const MeasuredInput& after, bool by_site,
                       const std::vector<DiffRow>& rows) {
  const Bytes was = before.stats.live_peak, is = after.stats.live_peak;
  const double share = static_cast<double>((is - was).count()) / static_cast<double>(was.count());
  std::string text = fmt::format("live peak  {:>12} -> {:>12}  {} ({:+.2f} %)\n", FormatSize(was),
                                 FormatSize(is), FormatSignedSize(is - was, "+"), 100 * share);
  text += DeviceRow(before.input, after.input);
  text += fmt::format("at the peak, by {}\n", by_site ? "site" : "size");
  size_t shown = 0, same = 0;
  for (const DiffRow& row : rows) {
    if (row.change() == Bytes(0)) {
      ++same;
    } else if (shown++ < kRowsShown) {
      text += fmt::format("  {:<7} {:>12} -> {:>12}  {:>13}  {}\n", KindOf(row), FormatSize(row.before),
                          FormatSize(row.after), FormatSignedSize(row.change(), "+"), Printable(row.name));
    }
  }
  if (shown > kRowsShown)
    text += fmt::format("  and {} more that differ; all of them with --json\n", shown - kRowsShown);
  return text + fmt::format("  {} are the same\n", same);
}

absl::StatusOr<MeasuredInput> WithPeak(const std::string& path) {
  absl::StatusOr<MeasuredInput> measured = Measured(LoadAllocations(path));
  // All is known of it, and the other one is as large.
  if (measured.ok()) measured->input.content.trace.events = std::vector<profiler::Event>();
  return measured;
}

std::string_view HowToRecordAll(const LoadedInput& input) {
  const profiler::Trace& trace = input.content.trace;
  if (trace.WhyEnded().empty() && trace.dropped == 0 && trace.passed > Bytes(0)) {
    return "its summary counts them: record it without --capacity, with an allocation before there are other "
           "threads";
  }
  return input.content.format == profiler::InputFormat::kSnapshot && !input.content.snapshot.converted
             ? "switch the history on before the job's first allocation, with room for all of its entries"
             : "record all of the job, to its end and with --mode record";
}

// From how large on blocks were recorded; 0: the input does not say.
Bytes ThresholdOf(const MeasuredInput& input) { return input.input.content.trace.metadata.threshold; }

// Which of two traces leaves out blocks that the other has, a clause; empty: neither, as far as they say.
std::string ThresholdsApart(const MeasuredInput& before, const MeasuredInput& after) {
  const auto& [low, high] = std::minmax(before, after, [](const MeasuredInput& a, const MeasuredInput& b) {
    return ThresholdOf(a) < ThresholdOf(b);
  });
  if (ThresholdOf(low) == Bytes(0) || ThresholdOf(low) == ThresholdOf(high)) return "";
  return fmt::format("{}: blocks under {} were not recorded, in {} those from {} on were", high.input.name,
                     FormatSize(ThresholdOf(high)), low.input.name, FormatSize(ThresholdOf(low)));
}

// Whether the peak has grown by more than `limit`. InvalidArgument: not by what is seen, which is not enough to say so.
absl::StatusOr<bool> HasGrownAbove(double limit, const MeasuredInput& before, const MeasuredInput& after) {
  const Bytes grown = after.stats.live_peak - before.stats.live_peak;
  if (static_cast<double>(grown.count()) > limit) return true;
  const std::optional<Bytes> unseen = Unseen(after.input);
  if (!unseen || static_cast<double>((grown + *unseen).count()) > limit) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}, so that nothing says how far the job's peak grew; {}, or leave out --fail-above",
                    after.input.name, WhyNotWhole(after.input), HowToRecordAll(after.input)));
  }
  const std::string thresholds = ThresholdsApart(before, after);
  if (!thresholds.empty() && ThresholdOf(after) > ThresholdOf(before)) {
    return absl::InvalidArgumentError(
        fmt::format("{}, so that nothing says how far the job's peak grew; record both with the "
                    "same --threshold, or leave out --fail-above",
                    thresholds));
  }
  if (const std::string devices = DevicesApart(before.input, after.input); !devices.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}, so that nothing says how far the peak of either grew; record both on one device, or "
                    "leave out --fail-above",
                    devices));
  }
  return false;
}

int Diff(const DiffOptions& options) {
  absl::StatusOr<MeasuredInput> before = WithPeak(options.before);
  if (!before.ok()) return Fail(before.status(), kBadInput);
  absl::StatusOr<MeasuredInput> after = WithPeak(options.after);
  if (!after.ok()) return Fail(after.status(), kBadInput);
  bool failed = false;
  if (options.fail_above) {
    const absl::StatusOr<bool> grown =
        HasGrownAbove(*LimitOf(*options.fail_above, before->stats.live_peak), *before, *after);
    if (!grown.ok()) return Fail(grown.status(), kBadInput);
    failed = *grown;
  }
  for (const std::string& apart :
       {ThresholdsApart(*before, *after), DevicesApart(before->input, after->input)}) {
    if (!apart.empty()) Say(apart);
  }
  const bool by_site = !before->sites_at_peak.empty() && !after->sites_at_peak.empty();
  if (by_site) profiler::TellApart(std::array{&before->sites, &after->sites});
  std::vector<DiffRow> rows = by_site ? RowsBySite(*before, *after) : RowsBySize(*before, *after);
  std::stable_sort(rows.begin(), rows.end(), [](const DiffRow& a, const DiffRow& b) {
    return std::abs(a.change().count()) > std::abs(b.change().count());
  });
  const int exit_status = Finish(options.json ? ResultJson(*before, *after, by_site, rows, failed)
                                              : ResultText(*before, *after, by_site, rows),
                                 failed ? kNegative : kFine);
  if (failed) {
    Say(fmt::format("the live peak has grown by {}, more than {}",
                    FormatSize(after->stats.live_peak - before->stats.live_peak), *options.fail_above));
  }
  if (!options.json) SayNextOf("report", options.after);
  return exit_status;
}

}  // namespace

void AddDiff(CLI::App& app, int& exit_status) {
  CLI::App* const command =
      app.add_subcommand("diff", "Show what has changed at the peak between two inputs");
  const auto options = std::make_shared<DiffOptions>();
  command->add_option("BEFORE", options->before, "Trace, event CSV, lifetime CSV or snapshot")->required();
  command->add_option("AFTER", options->after, "The same of the later job")->required();
  const auto limit = [options](const CLI::results_t& words) {
    if (!LimitOf(words[0], Bytes(0))) {
      throw CLI::ValidationError("--fail-above", "\"" + words[0] +
                                                     "\" is neither a size such as 100MiB nor a "
                                                     "share such as 5%");
    }
    options->fail_above = words[0];
    return true;
  };
  command
      ->add_option("--fail-above", limit,
                   "Status 1 if the live peak has grown by more: a size, or a percentage such as 5%")
      ->type_name("LIMIT");
  command->add_flag("--json", options->json, "Print one JSON object, sizes in bytes");
  command->footer(
      "By site where both inputs have stacks, by size of the blocks otherwise.\nStatus 3: an input cannot be "
      "read or has no allocation; with --fail-above also where AFTER is a trace or a snapshot "
      "that does not hold enough of its job to say, or a trace with a higher threshold than "
      "BEFORE, or where of several devices another one is read of each.\n\nExample:\n"
      "  reprise diff main.reprise branch.reprise --fail-above 2%");
  command->callback([options, &exit_status] { exit_status = Diff(*options); });
}

}  // namespace reprise::cli
