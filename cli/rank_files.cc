#include "cli/rank_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "cli/merge.h"
#include "profiler/trace_reader.h"
#include "replay/core/rank_summaries.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSummaryBegin = "summary";
constexpr std::string_view kTraceBegin = "trace";
constexpr std::string_view kTraceEnd = ".reprise";
constexpr std::string_view kSummaryEnd = ".json";

// The number behind `word` in "rank3.restart1"; `otherwise` where there is none, or more than any job counts to:
// that was named by somebody else.
int NumberBehind(std::string_view text, std::string_view word, int otherwise) {
  const size_t at = text.find(word);
  if (at == text.npos) return otherwise;
  int number = otherwise;
  std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number < replay::kMostRanks ? number : otherwise;
}

bool IsBetween(std::string_view name, std::string_view begin, std::string_view end) {
  return name.size() >= begin.size() + end.size() && name.starts_with(begin) && name.ends_with(end);
}

// What the names of a process's files have in common: ".rank3", ".4711", "". Of its summary or a trace.
std::string CommonPart(std::string_view name) {
  if (IsSummary(name)) {
    name.remove_prefix(kSummaryBegin.size());
    name.remove_suffix(kSummaryEnd.size());
    return std::string(name);
  }
  name.remove_prefix(kTraceBegin.size());
  name.remove_suffix(kTraceEnd.size());
  if (name.starts_with("-device")) name.remove_prefix(std::min(name.find('.'), name.size()));
  return std::string(name);
}

// The rank that a trace says it is of; -1: of none, or that cannot be read. Where each rank has a folder of its own
// their files have the same names.
int RankIn(const std::string& trace) {
  const absl::StatusOr<profiler::TraceMetadata> metadata = profiler::ReadTraceMetadata(trace);
  if (!metadata.ok() || metadata->rank < 0 || metadata->rank >= replay::kMostRanks) return -1;
  return metadata->rank > 0 || metadata->world_size > 1 ? static_cast<int>(metadata->rank) : -1;
}

class Files {
 public:
  void Add(const fs::path& path) {
    const std::string name = path.filename().string();
    if (IsSummary(name)) {
      Of(path, CommonPart(name)).summary = path.string();
    } else if (IsTrace(name)) {
      std::error_code error;
      if (fs::file_size(path, error) == 0 || error) return;
      AddTrace(path, Of(path, CommonPart(name)).traces);
    }
  }

  void AddBelow(const std::string& folder) {
    std::error_code error;
    // The walk passes over what may not be read, and where that is its beginning it has no error either.
    if (access(folder.c_str(), R_OK | X_OK) != 0) {
      errors_.push_back(fmt::format("{}: {}", folder, strerror(errno)));
      return;
    }
    fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
    for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
      std::error_code of_entry;
      if (it->is_regular_file(of_entry)) Add(it->path());
      // Passed over by the walk, which goes on.
      if (it->is_directory(of_entry) && access(it->path().c_str(), R_OK | X_OK) != 0)
        errors_.push_back(fmt::format("{}: {}", it->path().string(), strerror(errno)));
    }
    if (error) errors_.push_back(fmt::format("{}: {}", folder, error.message()));
  }

  // A file by its own name, whatever that is, and what lies beside it.
  void AddNamed(const fs::path& path) {
    const std::string name = path.filename().string();
    if (!IsSummary(name) && !IsTrace(name)) {
      if (!name.ends_with(kTraceEnd)) Of(path, fmt::format("/{}", name)).summary = path.string();
      return;
    }
    Add(path);
    const auto [first, last] = Beside(path.parent_path()).equal_range(CommonPart(name));
    for (auto it = first; it != last; ++it) Add(path.parent_path() / it->second);
  }

  FilesBelow Take() && {
    FilesBelow below;
    for (auto& [name, files] : files_) {
      files.rank = NumberBehind(name.second, ".rank", -1);
      files.restart = NumberBehind(name.second, "restart", 0);
      std::ranges::sort(files.traces, {}, [](const std::string& trace) {
        return std::pair(fs::path(trace).filename().string().size(), trace);
      });
      if (files.rank < 0 && files.summary.empty() && !files.traces.empty())
        files.rank = RankIn(files.traces.front());
      below.processes.push_back(std::move(files));
    }
    below.errors = std::move(errors_);
    return below;
  }

 private:
  RankFiles& Of(const fs::path& path, const std::string& common) {
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    return files_[{folder.lexically_normal().string(), common}];
  }

  // Once, under whatever path: a trace may be named itself, and lie beside another one that is.
  static void AddTrace(const fs::path& path, std::vector<std::string>& traces) {
    const auto same = [&](const std::string& known) { return fs::path(known).filename() == path.filename(); };
    if (std::ranges::none_of(traces, same)) traces.push_back(path.string());
  }

  // By what they have in common, the names of a folder's summaries and traces. Read once: all of a job's
  // ranks may be named.
  const std::multimap<std::string, std::string>& Beside(const fs::path& folder) {
    const auto [it, added] = beside_.try_emplace(folder.string());
    if (!added) return it->second;
    std::error_code error;
    fs::directory_iterator entry(folder.empty() ? fs::path(".") : folder, error);
    for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (IsSummary(name) || IsTrace(name)) it->second.emplace(CommonPart(name), name);
    }
    return it->second;
  }

  std::map<std::pair<std::string, std::string>, RankFiles> files_;  // by folder and common part
  std::map<std::string, std::multimap<std::string, std::string>> beside_;
  std::vector<std::string> errors_;
};

}  // namespace

bool IsSummary(std::string_view name) { return IsBetween(name, kSummaryBegin, kSummaryEnd); }
bool IsTrace(std::string_view name) { return IsBetween(name, kTraceBegin, kTraceEnd); }
bool IsPlans(std::string_view name) { return IsBetween(name, "plans", ".json"); }

FilesBelow FilesOfRanks(const std::vector<std::string>& inputs) {
  Files files;
  std::error_code error;
  for (const std::string& input : inputs) {
    if (fs::is_directory(input, error))
      files.AddBelow(input);
    else
      files.AddNamed(input);
  }
  return std::move(files).Take();
}

absl::StatusOr<std::vector<std::string>> TracesIn(const std::string& folder) {
  std::vector<std::string> traces;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    if (IsTrace(entry->path().filename().string())) traces.push_back(entry->path().string());
  }
  if (error) return absl::InvalidArgumentError(fmt::format("{}: {}", folder, error.message()));
  std::ranges::sort(traces);
  return traces;
}

std::string MainTrace(const std::vector<std::string>& traces) {
  struct Candidate {
    std::string trace;
    Bytes peak;
    uintmax_t size;
  };
  std::vector<Candidate> candidates;
  bool peaks_known = true;
  for (const std::string& trace : traces) {
    std::error_code error;
    const uintmax_t size = fs::file_size(trace, error);
    if (error) continue;
    const absl::StatusOr<replay::ProcessSummary> summary = ReadSummary(SummaryBeside(trace));
    peaks_known = peaks_known && summary.ok();
    candidates.push_back({trace, summary.ok() ? summary->live_peak : Bytes(0), size});
  }
  const auto main = std::ranges::max_element(candidates, {}, [&](const Candidate& each) {
    return std::pair(peaks_known ? each.peak : Bytes(0), each.size);
  });
  return main == candidates.end() ? "" : main->trace;
}

std::string SummaryBeside(const std::string& trace) {
  const fs::path path(trace);
  const std::string name = path.filename().string();
  if (!IsTrace(name)) return "";
  const fs::path summary =
      path.parent_path() / fmt::format("{}{}{}", kSummaryBegin, CommonPart(name), kSummaryEnd);
  std::error_code error;
  return fs::is_regular_file(summary, error) ? summary.string() : "";
}

std::vector<std::string> SummariesOf(const FilesBelow& files) {
  std::vector<std::string> summaries;
  for (const RankFiles& process : files.processes) {
    if (!process.summary.empty()) summaries.push_back(process.summary);
  }
  return summaries;
}

}  // namespace reprise::cli
