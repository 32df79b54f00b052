#include "cli/rank_files.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTraceEnd = ".reprise";
constexpr std::string_view kSummaryEnd = ".json";

// The number behind `word` in "rank3.restart1"; `otherwise` where there is none.
int NumberBehind(std::string_view text, std::string_view word, int otherwise) {
  const size_t at = text.find(word);
  if (at == text.npos) return otherwise;
  int number = otherwise;
  std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number;
}

class Files {
 public:
  // By folder and what the names of its files have in common: ".rank3", ".4711", "".
  void Add(const fs::path& path) {
    const std::string name = path.filename().string();
    if (name.starts_with("summary") && name.ends_with(kSummaryEnd)) {
      Of(path, name.substr(7, name.size() - 7 - kSummaryEnd.size())).summary = path.string();
    } else if (name.starts_with("trace") && name.ends_with(kTraceEnd)) {
      std::error_code error;
      if (fs::file_size(path, error) == 0 || error) return;
      std::string common = name.substr(5, name.size() - 5 - kTraceEnd.size());
      if (common.starts_with("-device")) common.erase(0, std::min(common.find('.'), common.size()));
      Of(path, common).traces.push_back(path.string());
    }
  }

  void AddBelow(const std::string& folder) {
    std::error_code error;
    fs::recursive_directory_iterator it(folder, error);
    for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
      std::error_code of_file;
      if (it->is_regular_file(of_file)) Add(it->path());
    }
    if (error) errors_.push_back(fmt::format("{}: {}", folder, error.message()));
  }

  // A file by its own name, whatever that is.
  void AddNamed(const fs::path& path) {
    const std::string name = path.filename().string();
    if (name.ends_with(kTraceEnd)) return Add(path);
    if (!name.starts_with("summary") || !name.ends_with(kSummaryEnd)) {
      Of(path, fmt::format("/{}", name)).summary = path.string();
      return;
    }
    Add(path);
    const std::string common = name.substr(7, name.size() - 7 - kSummaryEnd.size());
    Add(path.parent_path() / fmt::format("trace{}{}", common, kTraceEnd));
  }

  FilesBelow Take() && {
    FilesBelow below;
    for (auto& [name, files] : files_) {
      files.rank = NumberBehind(name.second, ".rank", -1);
      files.restart = NumberBehind(name.second, "restart", 0);
      below.processes.push_back(std::move(files));
    }
    below.errors = std::move(errors_);
    return below;
  }

 private:
  RankFiles& Of(const fs::path& path, const std::string& common) {
    return files_[{path.parent_path().string(), common}];
  }

  std::map<std::pair<std::string, std::string>, RankFiles> files_;
  std::vector<std::string> errors_;
};

}  // namespace

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

std::vector<std::string> SummariesOf(const FilesBelow& files) {
  std::vector<std::string> summaries;
  for (const RankFiles& process : files.processes) {
    if (!process.summary.empty()) summaries.push_back(process.summary);
  }
  return summaries;
}

}  // namespace reprise::cli
