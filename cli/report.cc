// reprise report: one offline page.
#include "cli/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/shell.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/input.h"
#include "cli/merge.h"
#include "cli/options.h"
#include "cli/rank_files.h"
#include "cli/ranks_report.h"
#include "cli/report/findings.h"
#include "cli/report/page.h"
#include "cli/report/page_source.h"
#include "cli/report/redact.h"
#include "cli/status.h"
#include "profiler/trace_format.h"
#include "replay/core/rank_summaries.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

// Of a folder the main trace. Another input is one itself.
absl::StatusOr<std::string> TraceOf(const std::string& input) {
  std::error_code error;
  if (!fs::is_directory(input, error)) return input;
  const absl::StatusOr<std::vector<std::string>> traces = TracesIn(input);
  if (!traces.ok()) return traces.status();
  std::string main = MainTrace(*traces);
  if (main.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: a folder without a trace{}", input, traces->empty() ? "" : " that can be read"));
  }
  if (traces->size() > 1) {
    Say(fmt::format("{}: {} traces in it; the page is on {}", input, traces->size(),
                    fs::path(main).filename().string()));
  }
  return main;
}

// Of the run that left the trace, as far as `merge` would take it too.
struct RunCounters {
  std::string text;     // of the summary; empty: there is none, or none that can be read and is of this run
  std::string lacking;  // what is left out of them
  std::string error;
};

// Files that were copied together may have names that match. What one of the two does not say tells nothing.
bool IsOfAnother(const replay::ProcessSummary& summary, const profiler::TraceMetadata& trace) {
  const auto differ = [](const auto& a, const auto& b, const auto& unknown) {
    return a != unknown && b != unknown && a != b;
  };
  const std::string none;
  return differ(int64_t{summary.pid}, trace.pid, int64_t{0}) || differ(summary.run, trace.run, none) ||
         differ(summary.host, trace.host, none);
}

RunCounters CountersOf(const std::string& summary, const profiler::TraceMetadata& trace) {
  if (summary.empty()) return {};
  absl::StatusOr<std::string> text = ReadSummaryFile(summary);
  const absl::StatusOr<replay::ProcessSummary> process =
      text.ok() ? replay::ParseSummary(*text, summary) : text.status();
  if (!process.ok()) return {"", "the run's counters: no summary can be read", MessageOf(process.status())};
  if (IsOfAnother(*process, trace))
    return {"", "the run's counters: the summary beside the trace is of another process", ""};
  if (!process->running) return {*std::move(text), "", ""};
  return {*std::move(text),
          fmt::format("the run's counters after {}: it was killed since, ended by _exit, or still runs",
                      Utc(process->ended)),
          ""};
}

std::string DefaultOutput(const std::string& input, const std::string& trace) {
  std::error_code error;
  if (fs::is_directory(input, error)) return (fs::path(input) / "report.html").string();
  if (IsHandedOpen(trace)) return "report.html";
  return fs::path(trace).replace_extension(".html").string();
}

// What comes after the page on ranks: merge has nothing to say where none has left a summary.
std::string NextOfRanks(const std::vector<std::string>& inputs, const MergedSummaries& merged,
                        const FilesBelow& files) {
  if (merged.files > 0) {
    std::string words = "merge";
    for (const std::string& input : inputs) words += " " + QuotedFile(input);
    return words;
  }
  const auto first =
      std::ranges::find_if(files.processes, [](const RankFiles& each) { return !each.traces.empty(); });
  return fmt::format("stats {}", QuotedFile(first->traces.front()));
}

int ReportOnRanks(const std::vector<std::string>& inputs, const ReportOptions& options,
                  MergedSummaries merged, const FilesBelow& files) {
  for (const std::string& error : merged.errors) Say(error);
  const bool unread = !merged.errors.empty();
  RanksReportOptions ranks = {
      .input = fmt::format("{}", fmt::join(inputs, ", ")),
      .output = options.output.empty() ? DefaultOutput(inputs[0], "-") : options.output,
      .redact = options.redact,
      .capacity = options.capacity,
      .seconds = options.seconds};
  const std::string next = NextOfRanks(inputs, merged, files);
  const absl::StatusOr<bool> all_read = WriteRanksReport(std::move(merged), files, ranks);
  if (!all_read.ok()) return Fail(all_read.status(), kUsage);
  SayNext(next);
  return unread || !*all_read ? kBadInput : kFine;
}

// `errors`: what else was wrong where the input is.
int ReportOnOne(const ReportOptions& options, const std::vector<std::string>& errors) {
  const absl::StatusOr<Report> report = MakeReport(options);
  const std::string said = report.ok() ? report->summary_error : MessageOf(report.status());
  for (const std::string& error : errors) {
    if (error != said) Say(error);
  }
  if (!report.ok()) return Fail(report.status(), kBadInput);
  if (const absl::Status written = WriteReport(*report); !written.ok()) return Fail(written, kUsage);
  SayNextOf("stats", report->trace);
  return errors.empty() && report->summary_error.empty() ? kFine : kBadInput;
}

// Of several inputs and of a folder with several ranks: one page on them all.
int ReportOn(const std::vector<std::string>& inputs, ReportOptions options) {
  std::error_code error;
  std::vector<std::string> errors;
  if (inputs.size() > 1 || fs::is_directory(inputs[0], error)) {
    const FilesBelow files = FilesOfRanks(inputs);
    MergedSummaries merged = MergeBelow(files);
    if (HasRanks(merged, files)) return ReportOnRanks(inputs, options, std::move(merged), files);
    if (inputs.size() > 1) {
      for (const std::string& folder : files.errors) Say(folder);
      for (const std::string& input : inputs) {
        if (input == "-" || fs::exists(input, error)) continue;
        if (const auto read = ReadFile(input); !read.ok()) return Fail(read.status(), kBadInput);
      }
      return Fail(fmt::format("{}: no ranks in them; a report is on one input, or on a job's ranks",
                              fmt::join(inputs, ", ")),
                  kBadInput);
    }
    errors = std::move(merged.errors);
  }
  options.input = inputs[0];
  return ReportOnOne(options, errors);
}

}  // namespace

absl::StatusOr<Report> MakeReport(const ReportOptions& options) {
  const absl::StatusOr<std::string> trace = TraceOf(options.input);
  if (!trace.ok()) return trace.status();
  absl::StatusOr<LoadedInput> input = LoadAllocations(*trace);
  if (!input.ok()) return input.status();
  PageOptions page{.redacted = options.redact, .capacity = options.capacity, .created = UtcNow()};
  RunCounters counters = CountersOf(SummaryBeside(*trace), input->content.trace.metadata);
  page.summary = std::move(counters.text);
  if (options.redact) Redact(*input);
  absl::StatusOr<Findings> findings = Gather(*input, options.capacity, {.seconds = options.seconds});
  if (!findings.ok()) return findings.status();
  if (!counters.lacking.empty()) findings->left_out.push_back(std::move(counters.lacking));
  return Report{.trace = *trace,
                .output = options.output.empty() ? DefaultOutput(options.input, *trace) : options.output,
                .input = *std::move(input),
                .findings = *std::move(findings),
                .page = std::move(page),
                .summary_error = std::move(counters.error)};
}

absl::Status WriteReport(const Report& report) {
  const absl::StatusOr<std::string> page = PageOf(report.input, report.findings, report.page);
  if (!page.ok()) return page.status();
  if (!report.summary_error.empty()) Say(report.summary_error);
  for (const std::string& what : report.findings.left_out) Say(fmt::format("left out: {}", what));
  return WritePage(report.output, *page, {report.trace, SummaryBeside(report.trace)});
}

void AddReport(CLI::App& app, int& exit_status) {
  CLI::App* const command = app.add_subcommand("report", "Write one offline HTML page on an input");
  const auto options = std::make_shared<ReportOptions>();
  const auto inputs = std::make_shared<std::vector<std::string>>();
  command
      ->add_option(
          "INPUT", *inputs,
          "Trace, event CSV, lifetime CSV, snapshot, or the output folder of a run; - for standard input. "
          "Of a folder with several ranks, or of several folders: one page on all ranks")
      ->required();
  command
      ->add_option(
          "-o", options->output,
          "The page, replaced if it is there; by default beside the input, in a run's folder report.html")
      ->type_name("FILE");
  command->add_flag("--redact", options->redact,
                    "Number paths, functions and libraries; leave out host, command and file name. What "
                    "stays: how names of known frameworks begin (libtorch, at::), and the process's number");
  AddSizeOption(*command, "--capacity", options->capacity,
                "Try for each allocator whether that much is enough");
  AddDurationOption(
      *command, "--time-limit", options->seconds,
      "The most time for planning and for other allocators, 30s by default; what does not end is left "
      "out and named");
  command->footer(
      "The page needs no network and no other file. The figures on it are those of stats and "
      "compare.\nStatus 3: an input cannot be read, or a summary beside it; the page is then without that "
      "one.\n\nExample:\n"
      "  reprise report reprise-out -o job.html");
  command->callback([inputs, options, &exit_status] { exit_status = ReportOn(*inputs, *options); });
}

}  // namespace reprise::cli
