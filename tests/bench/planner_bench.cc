// What the planner reaches, as one table: instance, buffers, bound, slab, gap, proof, seconds, peak memory.
//
//   planner_bench DIR [--only SECTION,...] [--without RULE | --ablation] [--steps] [--seeds N]
//
// DIR holds minimalloc/, lifetimes/ and events/. Every row is a process of its own, so that the peak of its
// memory is its own; the clock runs from the problem in memory to the answer, checks included; reading and
// making are not counted. Every placement is judged by the independent validator; one that fails it ends the
// run with status 1.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "planner/bound.h"
#include "planner/portfolio.h"
#include "planner/validator.h"
#include "profiler/iteration.h"
#include "profiler/load.h"
#include "profiler/period_finder.h"
#include "replay/planning.h"
#include "tests/bench/instances.h"
#include "tests/bench/lifetimes_generator.h"

namespace reprise::planner {
namespace {

namespace fs = std::filesystem;

struct Options {
  fs::path folder;
  std::vector<std::string> only;
  Rules rules;
  int seeds = 3;
  bool in_steps = false;  // budgets count steps
};

// One row, small enough for one write into a pipe.
struct Row {
  bool solved = false;
  bool valid = false;
  int64_t buffers = 0;
  int64_t steps = 0;
  int64_t bound = 0;
  int64_t slab = 0;
  bool fits = false;
  bool proven = false;
  double seconds = 0;
  char solver[40] = "";
};

struct Task {
  std::string name;
  std::function<Problem()> make;
  double seconds = 1;  // the budget
};

// With `in_steps` the budget counts steps, so that the row says the same whatever else the machine does.
Row Measure(const Task& task, const Rules& rules, bool in_steps) {
  constexpr double kStepsPerSecond = 1e7;
  const Problem problem = task.make();
  Budget budget;
  budget.seconds = in_steps ? 3600 : task.seconds;
  if (in_steps) budget.steps = static_cast<int64_t>(kStepsPerSecond * task.seconds);
  budget.rules = rules;
  budget.threads = kMostThreads;
  const auto begin = std::chrono::steady_clock::now();
  const absl::StatusOr<Solution> solution = Solve(problem, budget);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  Row row;
  row.buffers = static_cast<int64_t>(problem.buffers.size());
  row.seconds = taken.count();
  if (!solution.ok()) return row;
  row.solved = true;
  row.steps = solution->steps;
  row.valid = CheckPlacement(problem, solution->placement).ok();
  row.bound = solution->lower_bound.count();
  row.slab = solution->placement.slab.count();
  row.fits = problem.capacity && solution->placement.slab <= *problem.capacity;
  row.proven = solution->proven_optimal;
  std::snprintf(row.solver, sizeof row.solver, "%s", solution->solver.c_str());
  return row;
}

// What the rows of a section come to together.
struct Totals {
  int rows = 0;
  int reached = 0;  // the bound, or the capacity
  double gaps = 0;
  int64_t steps = 0;
};

class Table {
 public:
  // A quiet one only adds up.
  Table(const Options& options, bool quiet) : options_(options), quiet_(quiet) {
    if (!quiet) PrintHead();
  }

  static void PrintHead() {
    std::printf("%-40s %9s %16s %16s %11s %-8s %9s %11s  %s\n", "instance", "buffers", "bound", "slab", "gap",
                "proof", "seconds", "memory", "found by");
  }

  // Solves in a child and prints the row.
  Row Add(const Task& task) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const Row row = Measure(task, options_.rules, options_.in_steps);
      _exit(write(ends[1], &row, sizeof row) == sizeof row ? 0 : 1);
    }
    close(ends[1]);
    Row row;
    const bool read_all = read(ends[0], &row, sizeof row) == sizeof row;
    close(ends[0]);
    rusage usage{};
    int status = 0;
    wait4(child, &status, 0, &usage);
    if (!read_all || status != 0 || !row.valid) failed_ = true;
    ++totals_.rows;
    totals_.reached += row.proven || row.fits;
    totals_.gaps += Gap(Bytes(row.slab), Bytes(row.bound));
    totals_.steps += row.steps;
    if (!quiet_) Print(task, row, static_cast<double>(usage.ru_maxrss) / 1024);
    return row;
  }

  void Title(const std::string& title) {
    if (!quiet_) std::printf("\n-- %s\n", title.c_str());
  }
  void Sum(const char* name, double seconds) {
    if (!quiet_) std::printf("%-40s %81.3f\n", name, seconds);
  }
  const Totals& totals() const { return totals_; }
  bool failed() const { return failed_; }

 private:
  void Print(const Task& task, const Row& row, double mebibytes) {
    if (!row.solved) {
      std::printf("%-40s %9ld no placement\n", task.name.c_str(), static_cast<long>(row.buffers));
      return;
    }
    const char* proof = !row.valid ? "INVALID" : row.proven ? "optimal" : row.fits ? "fits" : "-";
    std::printf("%-40s %9ld %16ld %16ld %9.4f %% %-8s %9.3f %7.1f MiB  %s\n", task.name.c_str(),
                static_cast<long>(row.buffers), static_cast<long>(row.bound), static_cast<long>(row.slab),
                100 * Gap(Bytes(row.slab), Bytes(row.bound)), proof, row.seconds, mebibytes, row.solver);
    std::fflush(stdout);
  }

  const Options& options_;
  const bool quiet_;
  bool failed_ = false;
  Totals totals_;
};

std::vector<fs::path> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Problem ReadLifetimes(const fs::path& path) {
  const absl::StatusOr<profiler::Input> input = profiler::Load(path.string());
  if (!input.ok()) {
    std::fprintf(stderr, "%s\n", std::string(input.status().message()).c_str());
    std::exit(1);
  }
  Problem problem;
  for (const profiler::Lifetime& l : input->lifetimes) {
    problem.buffers.push_back({.lower = l.lower, .upper = l.upper, .size = l.size, .alignment = l.alignment});
  }
  return problem;
}

Problem WithCapacity(Problem problem, int64_t capacity) {
  problem.capacity = Bytes(capacity);
  return problem;
}

// The capacity in a name such as A.1048576.csv; 0 when there is none, or the instance is a toy.
int64_t CapacityIn(const fs::path& path) { return std::atoll(path.stem().extension().c_str() + 1); }

struct Decision {
  std::string name;
  fs::path path;
  int64_t capacity;
};

// The eleven as given, and three of them with less room than anybody has shown to be enough.
std::vector<Decision> HardDecisions(const fs::path& folder) {
  const std::map<std::string, int64_t> tighter = {{"C", 1039360}, {"D", 1025000}, {"J", 1040000}};
  std::vector<Decision> decisions;
  for (const fs::path& path : FilesIn(folder / "minimalloc")) {
    const int64_t capacity = CapacityIn(path);
    if (capacity < 1000) continue;
    const std::string name = path.stem().stem().string();
    decisions.push_back({name + " at " + std::to_string(capacity), path, capacity});
    if (const auto it = tighter.find(name); it != tighter.end())
      decisions.push_back({name + " at " + std::to_string(it->second), path, it->second});
  }
  return decisions;
}

void DecideHard(const Options& options, Table& table) {
  table.Title("hard small instances, decided at a capacity");
  double sum = 0;
  for (const Decision& d : HardDecisions(options.folder)) {
    const Row row = table.Add({d.name, [&] { return WithCapacity(ReadLifetimes(d.path), d.capacity); }, 20});
    if (d.capacity == CapacityIn(d.path)) sum += row.seconds;
  }
  table.Sum("A to K at the capacity in their names", sum);
}

void DecideVariants(const Options& options, Table& table) {
  const auto variant = [](const Problem& problem, int seed) {
    const int64_t scale = std::vector<int64_t>{3, 7, 10, 1000}[static_cast<size_t>(seed) % 4];
    Problem changed = Shuffled(Rescaled(problem, scale, 1 + seed), static_cast<uint64_t>(seed));
    return seed % 2 == 1 ? Reversed(changed) : changed;
  };
  for (int seed = 1; seed <= options.seeds; ++seed) {
    table.Title("the same, shuffled and rescaled" + std::string(seed % 2 == 1 ? ", backwards" : "") +
                ", seed " + std::to_string(seed));
    double sum = 0;
    for (const Decision& d : HardDecisions(options.folder)) {
      const Row row = table.Add(
          {d.name, [&] { return variant(WithCapacity(ReadLifetimes(d.path), d.capacity), seed); }, 20});
      if (d.capacity == CapacityIn(d.path)) sum += row.seconds;
    }
    table.Sum("A to K at the capacity in their names", sum);
  }
}

void MinimiseHard(const Options& options, Table& table) {
  table.Title("hard small instances, capacity not told");
  for (const fs::path& path : FilesIn(options.folder / "minimalloc")) {
    table.Add({path.stem().stem().string(), [&] { return ReadLifetimes(path); }, 20});
  }
}

void SolveTraining(const Options& options, Table& table) {
  table.Title("training lifetimes");
  for (const double seconds : {0.5, 2.0}) {
    for (const fs::path& path : FilesIn(options.folder / "lifetimes")) {
      char name[80];
      std::snprintf(name, sizeof name, "%s, %.1f s", path.stem().c_str(), seconds);
      table.Add({name, [&] { return ReadLifetimes(path); }, seconds});
    }
  }
  table.Title("the same, sizes within 1 %, backwards");
  for (const fs::path& path : FilesIn(options.folder / "lifetimes")) {
    table.Add({path.stem().string(),
               [&] {
                 const Problem problem = ReadLifetimes(path);
                 const int64_t n = static_cast<int64_t>(problem.buffers.size());
                 return Reversed(Repeated(problem, {.buffers = n, .jitter = 0.01, .seed = 7}));
               },
               2});
  }
}

std::vector<std::string> BasesOfCycles() {
  return {"synthetic", "gpt_medium_ctx1024", "somas_resnet50", "iopddl_G1"};
}

Problem IterationNamed(const Options& options, const std::string& base) {
  if (base == "synthetic") return SyntheticIteration(96, 1);
  return ReadLifetimes(options.folder / "lifetimes" / (base + ".csv"));
}

void FirstAnswers(const Options& options, Table& table) {
  table.Title("the first answer, after 20 ms, and after 2 s");
  const auto add = [&](const std::string& name, const std::function<Problem()>& make) {
    table.Add({name + ", first", make, 0});
    table.Add({name + ", 20 ms", make, 0.02});
    table.Add({name + ", 2 s", make, 2});
  };
  for (const fs::path& path : FilesIn(options.folder / "lifetimes"))
    add(path.stem().string(),
        [&] { return Repeated(ReadLifetimes(path), {.buffers = 20000, .jitter = 0.05}); });
  for (const std::string& base : BasesOfCycles()) {
    const Problem iteration = IterationNamed(options, base);
    for (const int percent : {30, 90})
      add(base + ", a cycle of " + std::to_string(percent) + " %",
          [&] { return Cycle(iteration, percent / 100.0, 5); });
  }
  add("crowded", [] { return Crowded(100'000, 1); });
}

void Scale(const Options& options, Table& table) {
  const std::vector<std::pair<std::string, fs::path>> bases = {
      {"gpt_ctx1024", options.folder / "lifetimes/gpt_medium_ctx1024.csv"},
      {"pangu", options.folder / "lifetimes/somas_pangu_2.6B.csv"},
      {"synthetic", ""}};
  const auto repeated = [](const fs::path& base, int64_t n, double lasting) {
    return Repeated(base.empty() ? SyntheticIteration(96, 1) : ReadLifetimes(base),
                    {.buffers = n, .jitter = 0.05, .lasting_share = lasting});
  };
  table.Title("scale: an iteration repeated, sizes within 5 %; the first answer");
  for (const auto& [name, path] : bases) {
    for (const int64_t n : {10'000, 100'000, 1'000'000, 10'000'000}) {
      table.Add({name + " x", [&, n] { return repeated(path, n, 2); }, 0});
    }
    table.Add({name + " x, weights stay", [&] { return repeated(path, 1'000'000, 0.95); }, 0});
  }
  table.Title("scale: 2.5 s and 30 s at a million");
  for (const auto& [name, path] : bases) {
    table.Add({name + " x, 2.5 s", [&] { return repeated(path, 1'000'000, 2); }, 2.3});
    table.Add({name + " x, 30 s", [&] { return repeated(path, 1'000'000, 2); }, 29});
    table.Add({name + " x, weights stay, 30 s", [&] { return repeated(path, 1'000'000, 0.95); }, 29});
  }
}

constexpr Bytes kLeastToken{4096};  // as the engine's

// The iteration that the period finder sees at the end of a recorded stream, as the engine plans it.
Problem IterationOf(const fs::path& path) {
  const absl::StatusOr<profiler::Input> input = profiler::Load(path.string());
  profiler::PeriodFinder finder;
  profiler::History history;
  struct Live {
    Bytes bytes;
    std::optional<Tick> token;
  };
  std::map<BlockId, Live> live;
  Bytes live_bytes;
  for (const profiler::Event& event : input->trace.events) {
    if (event.kind == profiler::EventKind::kAlloc) {
      Live& block = live[event.id] = {event.bytes, std::nullopt};
      if (event.bytes >= kLeastToken) {
        finder.OnAlloc(event.bytes, event.stream, live_bytes);
        block.token = history.OnAlloc(event.bytes, event.alignment, event.stream, live_bytes);
        history.Reserve(finder.capacity());
      }
      live_bytes += event.bytes;
    } else if (event.kind == profiler::EventKind::kFree) {
      const Live block = live[event.id];
      if (block.token) history.OnFree(*block.token, event.stream);
      live_bytes -= block.bytes;
      live.erase(event.id);
    }
  }
  return replay::MakeRequest(profiler::ExtractIteration(history, *finder.confirmed()), {}).problem;
}

void SolveCycles(const Options& options, Table& table) {
  table.Title("one iteration of each event stream, as a cycle");
  for (const fs::path& path : FilesIn(options.folder / "events")) {
    table.Add({path.stem().string(), [&] { return IterationOf(path); }, 1});
  }
  table.Title("cycles with much alive everywhere: cyclic, and with what crosses the cut held throughout");
  for (const std::string& base : BasesOfCycles()) {
    const Problem iteration = IterationNamed(options, base);
    for (const int percent : {30, 45, 60, 75, 90}) {
      const auto make = [&] { return Cycle(iteration, percent / 100.0, 5); };
      const LoadRange loads = LoadsOf(make());
      const double least =
          static_cast<double>(loads.least.count()) / static_cast<double>(loads.largest.count());
      char name[80];
      std::snprintf(name, sizeof name, "%s, load %.0f %% to %ld", base.c_str(), 100 * least,
                    static_cast<long>(loads.largest.count()));
      table.Add({name, make, 1});
      std::snprintf(name, sizeof name, "  held throughout");
      table.Add({name, [&] { return HeldAcrossTheCut(make()); }, 1});
    }
  }
}

void SolveDense(const Options& options, Table& table) {
  table.Title("cycles of which at least 90 % is alive everywhere, one draw after the other, with 1 and 10 s");
  for (const std::string& base : BasesOfCycles()) {
    const Problem iteration = IterationNamed(options, base);
    for (int seed = 1; seed <= options.seeds; ++seed) {
      const auto make = [&] { return Cycle(iteration, 0.9, static_cast<uint64_t>(seed)); };
      for (const double seconds : {1.0, 10.0}) table.Add({base + " " + std::to_string(seed), make, seconds});
    }
  }
}

struct Section {
  const char* name;
  void (*run)(const Options&, Table&);
};
constexpr Section kSections[] = {{"decide", DecideHard},     {"variants", DecideVariants},
                                 {"minimise", MinimiseHard}, {"training", SolveTraining},
                                 {"first", FirstAnswers},    {"scale", Scale},
                                 {"cyclic", SolveCycles},    {"dense", SolveDense}};

bool Wanted(const Options& options, const Section& section) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), section.name) != options.only.end();
}

std::vector<std::string> RuleNameSet() {
  const std::vector<std::string_view> names = RuleNames();
  return {names.begin(), names.end()};
}

// One line a rule: what a section comes to without it. Budgets are steps here, ten million for a second.
int Ablate(Options options, const std::vector<std::string>& rules) {
  bool failed = false;
  options.in_steps = true;
  std::printf("%-28s", "without");
  std::vector<Section> sections;
  for (const Section& section : kSections) {
    const bool short_enough =
        section.run == DecideHard || section.run == SolveTraining || section.run == SolveCycles;
    if (options.only.empty() ? short_enough : Wanted(options, section)) sections.push_back(section);
  }
  for (const Section& section : sections) std::printf(" | %-9s reached  mean gap   Msteps", section.name);
  std::printf("\n");
  for (const std::string& rule : rules) {
    options.rules = {};
    if (!rule.empty()) options.rules.SwitchOff(rule);
    std::printf("%-28s", rule.empty() ? "(all rules on)" : rule.c_str());
    for (const Section& section : sections) {
      Table table(options, /*quiet=*/true);
      section.run(options, table);
      failed |= table.failed();
      const Totals& t = table.totals();
      std::printf(" | %11d of %2d %8.4f %% %8.1f", t.reached, t.rows, 100 * t.gaps / t.rows,
                  1e-6 * static_cast<double>(t.steps));
      std::fflush(stdout);
    }
    std::printf("\n");
  }
  return failed ? 1 : 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("What the planner reaches on real and made instances.");
  std::string folder, without;
  app.add_option("DIR", folder, "Folder with minimalloc/, lifetimes/ and events/")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--only", options.only,
                 "Sections: decide, variants, minimise, training, first, scale, cyclic, dense")
      ->delimiter(',');
  app.add_option("--seeds", options.seeds,
                 "How many sets of variants, and draws of dense cycles; 3 by default");
  app.add_option("--without", without, "A rule to switch off")->check(CLI::IsMember(RuleNameSet()));
  app.add_flag(
      "--steps", options.in_steps,
      "Budgets count steps, ten million for a second, so that other load on the machine plays no part");
  bool ablation = false;
  app.add_flag("--ablation", ablation, "One line a rule: what the sections come to without it");
  CLI11_PARSE(app, argc, argv);
  options.folder = folder;
  if (!without.empty()) options.rules.SwitchOff(without);
  if (ablation) {
    std::vector<std::string> rules = RuleNameSet();
    rules.insert(rules.begin(), "");
    return Ablate(options, rules);
  }
  Table table(options, /*quiet=*/false);
  for (const Section& section : kSections) {
    if (Wanted(options, section)) section.run(options, table);
  }
  return table.failed() ? 1 : 0;
}

}  // namespace
}  // namespace reprise::planner

int main(int argc, char** argv) { return reprise::planner::Main(argc, argv); }
