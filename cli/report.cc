// reprise report: one offline page.
#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/report/findings.h"
#include "cli/report/page.h"
#include "cli/report/redact.h"
#include "cli/status.h"
#include "profiler/read_file.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// What there is of a run: its trace, and the summary beside it.
struct Source {
  std::string trace;
  std::string summary;  // empty: none
};

// The largest trace of a folder: a job's processes leave one each.
absl::StatusOr<Source> SourceOf(const std::string& input) {
  std::error_code error;
  if (!fs::is_directory(input, error)) return Source{.trace = input, .summary = ""};
  std::string best;
  uintmax_t most = 0;
  int traces = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(input, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("trace") || !name.ends_with(".reprise")) continue;
    ++traces;
    const uintmax_t size = entry.file_size(error);
    if (best.empty() || size > most || (size == most && name < best)) {
      best = name;
      most = size;
    }
  }
  if (best.empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: a folder without a trace", input));
  }
  if (traces > 1) Say(fmt::format("{}: {} traces in it; {} is the largest", input, traces, best));
  const std::string folder = input.ends_with('/') ? input : input + "/";
  std::string summary = best;
  summary.replace(0, 5, "summary");
  summary.replace(summary.size() - 8, 8, ".json");
  return Source{folder + best, fs::exists(folder + summary, error) ? folder + summary : ""};
}

// The summary that a run left beside a trace that is named itself.
std::string SummaryBeside(const std::string& trace) {
  const fs::path path(trace);
  std::string name = path.filename().string();
  if (!name.starts_with("trace") || !name.ends_with(".reprise")) return "";
  name.replace(0, 5, "summary");
  name.replace(name.size() - 8, 8, ".json");
  std::error_code error;
  const std::string summary = (path.parent_path() / name).string();
  return fs::exists(summary, error) ? summary : "";
}

std::string DefaultOutput(const std::string& input, const std::string& trace) {
  std::error_code error;
  if (fs::is_directory(input, error)) return (fs::path(input) / "report.html").string();
  if (trace == "-") return "report.html";
  return fs::path(trace).replace_extension(".html").string();
}

// Beside the target and then in its place, so that nobody ever opens half a page.
absl::Status WriteWhole(const std::string& path, const std::string& page) {
  const std::string beside = path + ".part";
  {
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    out << page;
    out.close();
    if (!out) return absl::ErrnoToStatus(errno, fmt::format("cannot write {}", beside));
  }
  std::error_code error;
  fs::rename(beside, path, error);
  if (!error) return absl::OkStatus();
  fs::remove(beside, error);
  return absl::UnknownError(fmt::format("cannot write {}", path));
}

int Report(const ReportOptions& options) {
  std::string written;
  const absl::Status status = WriteReport(options, &written);
  if (absl::IsUnknown(status) || absl::IsInternal(status)) return Fail(status, kUsage);
  if (!status.ok()) return Fail(status, kBadInput);
  SayNext(fmt::format("stats {}", ShellQuoted(options.input)));
  return kFine;
}

}  // namespace

absl::Status WriteReport(const ReportOptions& options, std::string* written) {
  absl::StatusOr<Source> source = SourceOf(options.input);
  if (!source.ok()) return source.status();
  if (source->summary.empty()) source->summary = SummaryBeside(source->trace);
  absl::StatusOr<LoadedInput> input = LoadInput(source->trace);
  if (!input.ok()) return input.status();
  PageOptions page_options{.redacted = options.redact, .capacity = options.capacity, .created = Now()};
  if (!source->summary.empty()) {
    const absl::StatusOr<std::string> summary = profiler::ReadFile(source->summary);
    if (summary.ok()) page_options.summary = *summary;
  }
  if (options.redact) Redact(*input);
  const absl::StatusOr<Findings> findings = Gather(*input, options.capacity, {.seconds = options.seconds});
  if (!findings.ok()) return findings.status();
  const absl::StatusOr<std::string> page = PageOf(*input, *findings, page_options);
  if (!page.ok()) return page.status();
  const std::string output =
      options.output.empty() ? DefaultOutput(options.input, source->trace) : options.output;
  if (absl::Status status = WriteWhole(output, *page); !status.ok()) {
    return absl::UnknownError(status.message());
  }
  for (const std::string& what : findings->left_out) Say(fmt::format("left out: {}", what));
  Say(fmt::format("wrote {}, {}", output, FormatSize(Bytes(static_cast<int64_t>(page->size())))));
  *written = output;
  return absl::OkStatus();
}

void AddReport(CLI::App& app, int& exit_status) {
  CLI::App* const command = app.add_subcommand("report", "Write one offline HTML page on an input");
  const auto options = std::make_shared<ReportOptions>();
  command
      ->add_option(
          "INPUT", options->input,
          "Trace, event CSV, lifetime CSV, snapshot, or the output folder of a run; - for standard input")
      ->required();
  command
      ->add_option(
          "-o", options->output,
          "The page, replaced if it is there; by default beside the input, in a run's folder report.html")
      ->type_name("FILE");
  command->add_flag("--redact", options->redact,
                    "Number paths, functions and libraries; leave out host, command and file name");
  AddSizeOption(*command, "--capacity", options->capacity,
                "Try for each allocator whether that much is enough");
  AddDurationOption(
      *command, "--time-limit", options->seconds,
      "The most time for planning and for other allocators, 30s by default; what does not end is left "
      "out and named");
  command->footer(
      "The page needs no network and no other file. The figures on it are those of stats and "
      "compare.\n\nExample:\n"
      "  reprise report reprise-out -o job.html");
  command->callback([options, &exit_status] { exit_status = Report(*options); });
}

}  // namespace reprise::cli
