#include "replay/core/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/exceptions.h"
#include "base/files.h"
#include "base/fnv1a.h"
#include "base/own_threads.h"
#include "replay/core/log.h"
#include "replay/core/plan_cache.h"

namespace reprise::replay {
namespace {

// A process that held less, followed no plan and was not asked to record says nothing at exit: the helpers of
// a job (compilers, loaders) have their stderr read by others.
constexpr Bytes kWorthASummary{64 * kMiB.count()};

// For the disk to take a summary that is just being written. One that is full or far away takes its time, and would for
// the last summary too; one that is gone must not keep the process for ever.
constexpr std::chrono::seconds kPatienceForFile{30};

// Spent when a run has learnt something.
constexpr double kSecondsToSave = 0.25;

// By this thread: once the main one has ended, the process by itself has none. Empty where /proc does not tell.
std::vector<std::string> CommandWords() {
  std::ifstream file("/proc/thread-self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// One line, for people.
std::string CommandLine(const std::vector<std::string>& words) {
  std::string line = fmt::format("{}", fmt::join(words, " "));
  std::replace(line.begin(), line.end(), '\n', ' ');
  if (line.size() > 120) line = line.substr(0, 117) + "...";
  return line;
}

// The name that plans of a device are left under.
std::string PlansName(int device) { return device == 0 ? "plans" : fmt::format("plans-device{}", device); }

// The plans of a device, where the user has named those of the first: beside them, as they were left.
std::string PlansOf(const std::string& named, int device) {
  const std::filesystem::path path(named);
  const std::string name = path.filename().string();
  const std::string first = PlansName(0) + ".";
  if (!name.starts_with(first)) return named;
  const std::filesystem::path own = path.parent_path() / (PlansName(device) + name.substr(first.size() - 1));
  std::error_code error;
  return std::filesystem::exists(own, error) ? own.string() : named;
}

// Only what this process has left there itself, `left` is the hash of it: a job may have a summary.json of its own, and
// write it into the same folder. By what is in it, as not every file system tells reliably which file it is.
absl::Status ReplaceOwn(const std::string& path, std::string_view text, std::optional<uint64_t>& left) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    const absl::StatusOr<std::string> there = ReadRegularFile(path, kMostPlanBytes);
    if (left && !there.ok()) return there.status();
    if (!left || Fnv1a(*there) != *left)
      return absl::AlreadyExistsError(fmt::format("{} is there already, and not as it was left", path));
  }
  absl::Status written = ReplaceFile(path, text);
  if (written.ok()) left = Fnv1a(text);
  return written;
}

absl::Status Expect(const std::string& path, const JobSignature& job, Engine& engine) {
  const absl::StatusOr<std::string> text = ReadRegularFile(path, kMostPlanBytes);
  if (!text.ok()) return text.status();
  const absl::StatusOr<SavedPlan> saved = ParseSavedPlan(*text, path);
  if (!saved.ok()) return saved.status();
  if (absl::Status same = CheckIsFor(*saved, job); !same.ok()) return same;
  absl::StatusOr<std::vector<Sequence::Expected>> plans = ToExpect(*saved);
  if (!plans.ok()) return plans.status();
  return engine.Expect(engine.Lock(), *std::move(plans));
}

}  // namespace

std::unique_ptr<CoreSession> CoreSession::Open(const reprise_stderr& stderr_at_start,
                                               const reprise_cpus* cpus_at_start) {
  const Lookup environment = [](const char* name) { return static_cast<const char*>(getenv(name)); };
  ProcessNames names = NamesOfThisProcess(environment);
  Config config = ReadConfig(environment, names);
  BeginLog(config.log, stderr_at_start);
  for (const std::string& complaint : config.complaints) Log(LogLevel::kWarn, complaint);
  if (config.mode == Mode::kOff) return nullptr;
  if (cpus_at_start != nullptr) SetProcessCpus(cpus_at_start->mask, cpus_at_start->bytes);
  // What they mean now, before the job goes to another folder.
  for (std::string* const path : {&config.out, &config.plan, &config.cache}) {
    if (!path->empty()) *path = AbsolutePath(*path);
  }
  std::unique_ptr<CoreSession> session(new CoreSession(std::move(config), std::move(names), CommandWords()));
  if (!session->config_.cache.empty() && session->names_.launched.OneOfMany()) {
    session->solves_ = std::make_unique<SharedSolves>(session->config_.cache + "/solves");
  }
  return session;
}

Solver CoreSession::EngineSolver() const {
  if (solves_ == nullptr) return planner::Solve;
  return [solves = solves_.get()](const planner::Problem& problem, const planner::Budget& budget) {
    return solves->Solve(problem, budget);
  };
}

bool CoreSession::InItsProcess() const { return !abandoned_ && getpid() == names_.pid; }

// Whatever is wrong with files costs one line, and the files.
bool CoreSession::OpenFolder() {
  if (config_.out.empty() || std::exchange(folder_tried_, true)) return out_.has_value();
  absl::StatusOr<OutputDir> out = OutputDir::Open(config_.out, names_.pid, config_.label);
  if (out.ok()) {
    out_ = *std::move(out);
    only_claimed_ = true;
  } else {
    Log(LogLevel::kWarn, std::string(out.status().message()) + "; going on without files");
  }
  return out_.has_value();
}

std::string CoreSession::TracePath(int device) const {
  return device == 0 ? out_->trace_path() : out_->PathOf(fmt::format("trace-device{}", device), ".reprise");
}

// Without files there is nothing that would keep them.
void CoreSession::BeginStacks(int* (*depth)()) {
  if (config_.stacks == Stacks::kOff || config_.out.empty()) return;
  stacks_ = std::make_unique<StackSource>(config_.stacks, depth);
}

std::unique_ptr<CoreTrace> CoreSession::BeginTrace(int device, Bytes threshold, Bytes granule,
                                                   std::function<Bytes()> passed) {
  const WriteSignalsHeld signals_held;  // its first blocks are written here, on a thread of the job
  try {
    return TryToBeginTrace(device, threshold, granule, std::move(passed));
  } catch (...) {
    Log(LogLevel::kWarn, "no memory for a trace; going on without a trace");
    return nullptr;
  }
}

std::unique_ptr<CoreTrace> CoreSession::TryToBeginTrace(int device, Bytes threshold, Bytes granule,
                                                        std::function<Bytes()> passed) {
  if (!OpenFolder()) return nullptr;
  CoreTrace::Options options;
  options.path = TracePath(device);
  if (const absl::Status claimed = device == 0 ? absl::OkStatus() : OutputDir::Claim(options.path);
      !claimed.ok()) {
    Log(LogLevel::kWarn, std::string(claimed.message()) + "; going on without a trace");
    return nullptr;
  }
  options.metadata.reprise_version = REPRISE_VERSION;
  options.metadata.command = command_;
  options.metadata.host = names_.host;
  options.metadata.run = config_.run;
  options.metadata.job = names_.launched.job;
  options.metadata.step = names_.launched.step;
  options.metadata.started = UtcNow();
  options.metadata.pid = names_.pid;
  options.metadata.threshold = threshold;
  options.metadata.granule = granule;
  options.metadata.device = device;
  options.metadata.rank = names_.launched.rank;
  options.metadata.world_size = names_.launched.world_size;
  options.until_planned = config_.mode == Mode::kServe;
  options.passed = std::move(passed);
  options.stacks = stacks_.get();
  options.with_activities = config_.timeline;
  if (config_.timeline) options.names = &activity_names();
  options.activity_limit = config_.trace_limit;
  if (options.until_planned) options.limit = config_.trace_limit;
  absl::StatusOr<std::unique_ptr<CoreTrace>> trace = CoreTrace::Begin(options);
  if (trace.ok()) {
    if (device == 0) only_claimed_ = false;
    return *std::move(trace);
  }
  if (device != 0) unlink(options.path.c_str());
  Log(LogLevel::kWarn, std::string(trace.status().message()) + "; going on without a trace");
  return nullptr;
}

JobSignature CoreSession::Signature(const std::string& kind, int device) const {
  return {.command = command_,
          .device = kind,
          .ordinal = device,
          .world_size = std::max(1, names_.launched.world_size)};
}

PlansSummary CoreSession::ExpectPlans(Engine& engine, const std::string& kind, int device) const {
  PlansSummary plans;
  if (config_.mode != Mode::kServe) return plans;
  const JobSignature job = Signature(kind, device);
  absl::Status used;
  if (!config_.plan.empty()) {
    plans.read = PlansOf(config_.plan, device);
  } else if (!config_.cache.empty()) {
    const PlanCache cache(config_.cache, job, names_.launched.rank);
    const absl::StatusOr<std::string> found = cache.Find();
    if (absl::IsNotFound(found.status())) return plans;
    plans.read = found.ok() ? *found : cache.EntryPath();
    used = found.status();
  } else {
    return plans;
  }
  if (used.ok()) used = Expect(plans.read, job, engine);
  if (!used.ok()) {
    // Wherever this stands the file is named beside it, and ranks with the same reason are counted together.
    plans.refused = std::string(used.message());
    if (const std::string name = plans.read + ": "; plans.refused.starts_with(name))
      plans.refused.erase(0, name.size());
    Log(LogLevel::kWarn, fmt::format("the plans in {} are not used: {}", plans.read, plans.refused));
  }
  return plans;
}

bool CoreSession::LeavePlans(const std::vector<Sequence::Known>& known, const std::string& kind, int device,
                             PlansSummary& plans) const {
  if (known.empty() || command_.empty() || (!out_ && config_.cache.empty())) return false;
  const JobSignature job = Signature(kind, device);
  const auto not_kept = [&plans](const absl::Status& why) {
    if (plans.not_kept.emplace(why.message()).second)
      Log(LogLevel::kWarn, std::string(why.message()) + "; the plans are not kept there");
  };
  std::string text;
  bool laid = false;  // or known to be laid by another rank
  std::string in_cache;
  if (!config_.cache.empty()) {
    const PlanCache cache(config_.cache, job, names_.launched.rank);
    absl::StatusOr<PlanCache::Left> left = cache.Leave(known, kSecondsToSave);
    laid = left.ok();
    if (left.ok()) {
      text = std::move(left->text);
      in_cache = left->path;
    } else {
      not_kept(left.status());
    }
  }
  if (!laid) {
    const SavedPlan saved = MakeSavedPlan(job, known, kSecondsToSave);
    if (!saved.cycles.empty()) text = FormatSavedPlan(saved);
  }
  if (out_ && !text.empty()) {
    const std::string path = out_->PathOf(PlansName(device), ".json");
    const absl::Status written = ReplaceOwn(path, text, plans.left_beside);
    if (written.ok())
      plans.beside = path;
    else
      not_kept(written);
  }
  plans.written = in_cache.empty() ? plans.beside : in_cache;
  return !text.empty() && !plans.written.empty();
}

Summary CoreSession::NewSummary() const {
  Summary summary;
  summary.mode = config_.mode;
  summary.pid = names_.pid;
  summary.host = names_.host;
  summary.run = config_.run;
  summary.launched = names_.launched;
  summary.files = !config_.out.empty();
  summary.started = started_;
  summary.ended = WallSeconds();
  summary.command = CommandLine(command_);
  summary.capacity = config_.capacity;
  if (solves_ != nullptr) summary.solves = {solves_->solved(), solves_->taken(), solves_->lost()};
  return summary;
}

TraceSummary CoreSession::FinishTrace(int device, CoreTrace& trace) const {
  const absl::Status finished = trace.Finish();
  TraceSummary summary = SummaryOf(device, trace);
  if (!finished.ok() && summary.counters.stopped.empty()) {
    summary.counters.stopped = std::string(finished.message());
  }
  return summary;
}

void CoreSession::BeginInterim(std::function<void()> on_thread, std::function<Summary()> so_far) {
  if (config_.out.empty()) return;
  interim_ = std::make_unique<InterimSummary>(std::move(on_thread),
                                              [this, so_far = std::move(so_far)] { WriteInterim(so_far); });
}

// One that cannot be had or written is no loss yet: the last one says what is wrong.
void CoreSession::WriteInterim(const std::function<Summary()>& so_far) {
  const bool completed = Completes([&] {
    if (!out_) return;
    Summary summary = so_far();
    summary.running = true;
    const std::lock_guard lock(summary_file_);
    if (!summary.complete || reported_) return;
    const absl::Status written = ReplaceOwn(out_->summary_path(), SummaryJson(summary), summary_left_);
    if (written.ok())
      interim_left_ = true;
    else
      Log(LogLevel::kInfo, std::string(written.message()));
  });
  if (!completed) Log(LogLevel::kInfo, "no memory to write a summary with; there will be one at the end");
}

void CoreSession::WriteLast(const Summary& summary) {
  const auto stays = [this](const char* why) {
    Log(LogLevel::kWarn, fmt::format("{} stays as it was some time before: {}", out_->summary_path(), why));
  };
  const std::unique_lock lock(summary_file_, kPatienceForFile);
  if (!lock.owns_lock()) {
    stays("writing it takes too long");
    return;
  }
  reported_ = true;
  if (!summary.complete && interim_left_) {
    stays("what was counted since could not be read");
    return;
  }
  const absl::Status written = ReplaceOwn(out_->summary_path(), SummaryJson(summary), summary_left_);
  if (!written.ok()) Log(LogLevel::kWarn, std::string(written.message()));
}

void CoreSession::Report(const Summary& summary) {
  if (OpenFolder()) {
    WriteLast(summary);
    if (only_claimed_) unlink(out_->trace_path().c_str());
  }
  const bool worth = summary.mode == Mode::kRecord || summary.counters.plans > 0 || !summary.complete ||
                     summary.host_counters.errors > 0 || summary.counters.live_peak >= kWorthASummary ||
                     !summary.devices.empty();
  const bool wrong = !summary.complete || summary.host_counters.errors > 0;
  const bool speaks = worth && (!config_.quiet_rank || wrong);
  LogText(speaks ? LogLevel::kWarn : LogLevel::kInfo, SummaryText(summary));
}

}  // namespace reprise::replay
