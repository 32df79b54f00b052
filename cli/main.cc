// The `reprise` command: hands the command line to the subcommand that it names.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/shell.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/status.h"
#include "cli/variables.h"

namespace reprise::cli {
namespace {

constexpr size_t kNameWidth = 20;  // a longer name has a line of its own

std::string VariableRows() {
  std::string rows;
  for (const auto& [name, meaning] : kVariables) {
    rows += name.size() <= kNameWidth ? fmt::format("  {:<{}} {}\n", name, kNameWidth, meaning)
                                      : fmt::format("  {}\n  {:<{}} {}\n", name, "", kNameWidth, meaning);
  }
  return rows;
}

std::string Footer() {
  return fmt::format(R"(
Environment of a job under Reprise (set by reprise run, or by hand with LD_PRELOAD):
{}
Sizes are binary: 65536, 64K, 64KB and 64KiB are the same. Exit status: 0 fine, 1 a negative finding, 2 usage,
output that cannot be written (a full or closed stdout too) or a limit of the machine, 3 bad input, or one without an
allocation, 4 does not fit the capacity, 5 out of time without a placement.

Example:
  reprise run --host -- python train.py)",
                     VariableRows());
}

// How many letters to insert, drop or replace to make one word of the other (Levenshtein).
size_t Distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::vector<std::string> CommandNames(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

int FailUnknownCommand(const std::vector<std::string>& names, const std::string& word) {
  std::string nearest;
  size_t best = 3;  // letters; further away it is no slip of the finger
  for (const std::string& name : names) {
    const size_t distance = Distance(word, name);
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  Say(fmt::format("there is no command \"{}\"{}", word,
                  nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest)));
  SayNext("--help");
  return kUsage;
}

// CLI11 takes "[a,b]" for a list, and to people it is the name of a file; and "-@8", standard input and its batch, for
// an option. A word that it is to leave alone gets an end, or a beginning, that no word has, until it is a value.
constexpr char kWordsEnd = '\0';

void KeepWhole(std::vector<std::string>& words) {
  for (std::string& word : words) {
    if (word.starts_with('[')) word += kWordsEnd;
    if (word.starts_with("-@")) word.insert(word.begin(), kWordsEnd);
  }
}

std::string AsGiven(std::string value) {
  std::erase(value, kWordsEnd);
  return value;
}

int ReportParse(CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) return Finish(app.help(), kFine);
  if (dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr) {
    return Finish(fmt::format("{}\n", error.what()), kFine);
  }
  Say(AsGiven(error.what()));
  const std::vector<CLI::App*> named = app.get_subcommands();
  SayNext(named.empty() ? "--help" : named.back()->get_name() + " --help");
  return kUsage;
}

// Without what KeepWhole added. In a script an empty value is a variable that is not set: it leaves no
// option out and names no file.
void TakeValuesAsGiven(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_type_size_max() == 0) continue;  // a flag
      option->transform(AsGiven);
      option->check(
          [](const std::string& value) {
            return value.empty() ? "an empty name or value; is a variable not set?" : "";
          },
          "");
    }
  }
}

int Main(std::vector<std::string> words) {
  // The job's own command line is not for CLI11 to understand.
  std::vector<std::string> job;
  if (!words.empty() && (words[0] == "run" || words[0] == "slurm")) {
    const auto dashes = std::find(words.begin(), words.end(), "--");
    job.assign(dashes, words.end());
    if (!job.empty()) job.erase(job.begin());
    words.erase(dashes, words.end());
  }

  int exit_status = kFine;
  CLI::App app(
      "Watches a training job's memory, plans where every block should lie, and serves it from one slab.",
      "reprise");
  app.set_version_flag("--version", "reprise " REPRISE_VERSION, "Print the version and exit");
  app.footer(Footer());
  app.require_subcommand(1);
  AddRun(app, job, exit_status);
  AddSlurm(app, words, job, exit_status);
  AddMerge(app, exit_status);
  AddPlan(app, exit_status);
  AddCheck(app, exit_status);
  AddSimulate(app, exit_status);
  AddStats(app, exit_status);
  AddCompare(app, exit_status);
  AddFit(app, exit_status);
  AddDiff(app, exit_status);
  AddReport(app, exit_status);
  AddConvert(app, exit_status);
  AddDoctor(app, exit_status);
  TakeValuesAsGiven(app);

  const std::vector<std::string> names = CommandNames(app);
  const bool names_command = words.empty() || words[0].empty() || words[0][0] == '-' ||
                             std::find(names.begin(), names.end(), words[0]) != names.end();
  if (!names_command) return FailUnknownCommand(names, words[0]);
  KeepWhole(words);
  try {
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return ReportParse(app, error);
  }
  return exit_status;
}

// A limit on the size of files (ulimit -f) is an error of the write, which cleans up and says so. The signal
// is caught and not ignored: a job that we start has its default again, or ignores it as whoever started us.
void SurviveLimitOnFiles() {
  if (std::signal(SIGXFSZ, [](int) {}) == SIG_IGN) std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace
}  // namespace reprise::cli

int main(int count, char** words) {
  reprise::cli::SurviveLimitOnFiles();
  try {
    return reprise::cli::Main({words + 1, words + count});
  } catch (const std::bad_alloc&) {
    std::string command;
    for (int i = 1; i < count; ++i) command += (i == 1 ? "" : " ") + reprise::ShellQuoted(words[i]);
    reprise::cli::Say(command + ": out of memory; free some, or raise the limit on it (ulimit -v)");
    return reprise::cli::kUsage;
  } catch (const std::exception& error) {
    reprise::cli::Say(error.what());
    return reprise::cli::kUsage;
  }
}
