// reprise doctor: what would be caught here, and what stands in the way.
#include "cli/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/cuda_driver.h"
#include "cli/json_text.h"
#include "cli/memory_limits.h"
#include "cli/output_folder.h"
#include "cli/preload.h"
#include "cli/quantity.h"
#include "cli/status.h"
#include "cli/subprocess.h"
#include "cli/variables.h"
#include "replay/core/config.h"
#include "replay/saved_plan.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The highest GLIBC_2.x that the library names, as {2, x}; its string table holds them in plain text.
std::pair<int, int> NeededGlibc(const std::string& library) {
  std::pair<int, int> needed{0, 0};
  const absl::StatusOr<std::string> bytes = ReadFile(library);
  if (!bytes.ok()) return needed;
  constexpr std::string_view kTag = "GLIBC_2.";
  for (size_t at = bytes->find(kTag); at != std::string::npos; at = bytes->find(kTag, at + 1)) {
    int minor = 0;
    const char* const digits = bytes->data() + at + kTag.size();
    if (std::from_chars(digits, bytes->data() + bytes->size(), minor).ec != std::errc()) continue;
    needed = std::max(needed, {2, minor});
  }
  return needed;
}

// What a fresh process says that is started with the library in it, empty when all is well. Not this process:
// it has a C++ runtime already, which a job need not have.
std::string PreloadError(const std::string& library) {
  const absl::StatusOr<std::string> preload = NameToPreload(library);
  if (!preload.ok()) return MessageOf(preload.status());
  const Captured run = RunCaptured({"cat", "/proc/self/maps"}, {"LD_PRELOAD=" + *preload});
  if (!run.err.empty()) return FirstLine(run.err);
  if (!run.started || run.exit_status != 0) return "the program did not run";
  const std::string file = fs::path(library).filename().string();
  return run.out.find("/" + file) == std::string::npos ? "the loader passed over it" : "";
}

void CheckPreloadLibrary(const std::string& library, const std::string& name, std::vector<Check>& checks) {
  const std::string error = PreloadError(library);
  if (error.empty()) {
    checks.push_back(Fine(name, library));
  } else {
    checks.push_back(Problem(name, fmt::format("{} cannot be preloaded: {}", library, error),
                             "build it for this machine"));
  }
}

void CheckCore(const std::string& core, std::vector<Check>& checks) {
  if (access(core.c_str(), R_OK) != 0) {
    checks.push_back(Problem("core library", fmt::format("{}: {}", core, strerror(errno)),
                             "put it beside the preload library"));
    return;
  }
  const auto [needed_major, needed_minor] = NeededGlibc(core);
  const std::string glibc =
      fmt::format("GLIBC_{}.{} needed, {} present", needed_major, needed_minor, gnu_get_libc_version());
  const std::string error = PreloadError(core);
  if (error.empty()) {
    checks.push_back(Fine("core library", core));
    checks.push_back(Fine("glibc", glibc));
  } else {
    checks.push_back(Problem("core library", error, "install what it needs, or build it on this machine"));
    checks.push_back(Note("glibc", glibc));
  }
}

void CheckLibraries(bool cuda_required, std::vector<Check>& checks) {
  const absl::StatusOr<std::string> cuda = FindLibrary(kCudaLibrary);
  if (cuda.ok()) {
    CheckPreloadLibrary(*cuda, "CUDA library", checks);
  } else if (cuda_required) {
    checks.push_back(Problem("CUDA library", MessageOf(cuda.status()), "build or install it"));
  }
  const absl::StatusOr<std::string> host = FindLibrary(kHostLibrary);
  if (!host.ok()) {
    checks.push_back(Problem("preload library", MessageOf(host.status()), "build or install it"));
    return;
  }
  CheckPreloadLibrary(*host, "preload library", checks);
  CheckCore(CoreBeside(*host), checks);
}

void CheckLimits(std::vector<Check>& checks) {
  for (const MemoryLimit& limit : MemoryLimits()) {
    if (limit.bytes < Bytes(0)) {
      checks.push_back(Fine(limit.of, "not limited"));
    } else {
      checks.push_back(Problem(
          limit.of, fmt::format("limited to {}; nothing is served under a limit", FormatSize(limit.bytes)),
          limit.lifted_by));
    }
  }
  const std::string overcommit = LineOf("/proc/sys/vm/overcommit_memory");
  if (overcommit == "2") {
    checks.push_back(Note("overcommit", "2: the kernel counts what is committed, and may refuse earlier"));
  } else if (!overcommit.empty()) {
    checks.push_back(Fine("overcommit", overcommit));
  }
  const std::string pages = LineOf("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t begin = pages.find('[');
  const size_t end = pages.find(']');
  if (begin < end && end != std::string::npos) {
    checks.push_back(Fine("huge pages", pages.substr(begin + 1, end - begin - 1)));
  }
}

void CheckVariables(std::vector<Check>& checks) {
  std::string set;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name(*variable, strcspn(*variable, "="));
    if (!name.starts_with("REPRISE_")) continue;
    if (std::ranges::find(kVariables, name, &Variable::name) == std::end(kVariables)) {
      checks.push_back(Note(std::string(name), "is not a variable that Reprise reads"));
      continue;
    }
    set += fmt::format("{}{}", set.empty() ? "" : ", ", *variable);
  }
  if (!set.empty()) checks.push_back(Note("variables", set));
  const replay::Lookup lookup = [](const char* name) { return static_cast<const char*>(getenv(name)); };
  const replay::Config config = replay::ReadConfig(lookup, replay::NamesOfThisProcess(lookup));
  for (const std::string& complaint : config.complaints) {
    checks.push_back(Problem("variables", complaint, "correct or unset it"));
  }
  const std::string disable = EnvironmentOr("REPRISE_DISABLE", "0");
  if (disable != "0") {
    checks.push_back(Problem("REPRISE_DISABLE", "is set: nothing is caught", "unset REPRISE_DISABLE"));
  }
  if (config.mode == replay::Mode::kOff) {
    checks.push_back(Problem("REPRISE_MODE", "is off: nothing is caught", "unset REPRISE_MODE"));
  }
  if (set.empty()) checks.push_back(Fine("variables", "none set"));
}

// The nearest folder on the way to `path` that is there.
fs::path NearestFolder(fs::path path) {
  std::error_code error;
  path = fs::absolute(path, error);
  while (!path.empty() && path != path.root_path() && !fs::exists(path, error)) path = path.parent_path();
  return path;
}

// Why no file can be made in what should be a folder; empty: one can.
std::string WhyNoFilesIn(const fs::path& folder) {
  const std::string shown = folder.lexically_normal().string();
  std::error_code error;
  if (!fs::is_directory(folder, error)) return fmt::format("{} is not a folder", shown);
  const int why = WhyNotWritable(folder.string());
  return why == 0 ? "" : fmt::format("{} cannot be written to ({})", shown, strerror(why));
}

void CheckOutput(std::vector<Check>& checks) {
  constexpr const char* kAdvice = "name another place with --out or REPRISE_OUT";
  const std::string out = EnvironmentOr("REPRISE_OUT", "reprise-out");
  // What a pattern expands to is not known here; the folder above it is.
  const fs::path named = out.substr(0, out.find('%'));
  const fs::path folder =
      NearestFolder(out.find('%') == std::string::npos ? named : named.parent_path() / ".");
  if (const std::string why = WhyNoFilesIn(folder); !why.empty()) {
    checks.push_back(Problem("output folder", why, kAdvice));
  } else {
    checks.push_back(
        Fine("output folder", fmt::format("{} can be written", folder.lexically_normal().string())));
  }
}

absl::StatusOr<replay::SavedPlan> ReadPlans(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadRegularFile(path, replay::kMostPlanBytes);
  return text.ok() ? replay::ParseSavedPlan(*text, path) : text.status();
}

// Where the plans of an earlier run are, and where they are to be kept.
void CheckPlans(std::vector<Check>& checks) {
  if (const std::string path = EnvironmentOr("REPRISE_PLAN", ""); !path.empty()) {
    const absl::StatusOr<replay::SavedPlan> plans = ReadPlans(path);
    checks.push_back(
        plans.ok() ? Fine("REPRISE_PLAN", fmt::format("{}, of {}", path, fmt::join(plans->job.command, " ")))
                   : Problem("REPRISE_PLAN", MessageOf(plans.status()),
                             "name the plans.json that an earlier run has left, or unset it"));
  }
  if (const std::string cache = EnvironmentOr("REPRISE_CACHE", ""); !cache.empty()) {
    if (const std::string why = WhyNoFilesIn(NearestFolder(cache)); !why.empty())
      checks.push_back(Problem("REPRISE_CACHE", why, "name another folder, or unset it"));
  }
}

std::string_view WordFor(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFine:
      return "fine";
    case Verdict::kNote:
      return "note";
    case Verdict::kProblem:
      break;
  }
  return "problem";
}

std::string ChecksText(const std::vector<Check>& checks) {
  std::string text;
  for (const Check& check : checks) {
    text += fmt::format("{:<8} {:<16} {}\n", WordFor(check.verdict), check.name, Printable(check.found));
    if (!check.advice.empty()) text += fmt::format("{:<25} do: {}\n", "", Printable(check.advice));
  }
  return text;
}

std::string ChecksJson(const std::vector<Check>& checks, bool ready) {
  Json list = Json::array();
  for (const Check& check : checks) {
    list.push_back({{"check", check.name},
                    {"verdict", WordFor(check.verdict)},
                    {"found", check.found},
                    {"advice", check.advice}});
  }
  const Json json = {{"ready", ready}, {"checks", list}};
  return JsonText(json);
}

int Doctor(bool json) {
  std::vector<Check> checks;
  const bool cuda = HasCudaDriver();
  CheckLibraries(cuda, checks);
  CheckLimits(checks);
  CheckOtherPreloads(checks);
  CheckVariables(checks);
  CheckOutput(checks);
  CheckPlans(checks);
  CheckLauncher(checks);
  CheckCuda(cuda, checks);
  CheckFrameworks(checks);
  CheckStacks(checks);
  const bool ready = std::none_of(checks.begin(), checks.end(),
                                  [](const Check& check) { return check.verdict == Verdict::kProblem; });
  const int exit_status =
      Finish(json ? ChecksJson(checks, ready) : ChecksText(checks), ready ? kFine : kNegative);
  if (!json) SayNext(!ready ? "doctor" : cuda ? "run -- COMMAND" : "run --host -- COMMAND");
  return exit_status;
}

}  // namespace

void AddDoctor(CLI::App& app, int& exit_status) {
  CLI::App* const command =
      app.add_subcommand("doctor", "Say what would be caught here, and what stands in the way");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON object");
  command->footer(
      "Status 1: something stands in the way; each such line says what to do.\n\nExample:\n  reprise doctor");
  command->callback([json, &exit_status] { exit_status = Doctor(*json); });
}

}  // namespace reprise::cli
