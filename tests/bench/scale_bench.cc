// How the planner's time, memory and gap grow with the number of buffers.
//
//   scale_bench BASE BUFFERS SECONDS [--lasting SHARE] [--stride SHARE] [--jitter SHARE] [--solver NAME]
//   [--seed N]
//
// BASE is a lifetimes CSV of one iteration (id,lower,upper,size) or "synthetic"; it is repeated in time to so
// many buffers (tests/bench/lifetimes_generator.h) and solved with a budget of so many seconds. Times are of
// the processor; the solution is checked, after the clock has been read.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include "planner/bound.h"
#include "planner/portfolio.h"
#include "planner/validator.h"
#include "tests/bench/lifetimes_generator.h"

namespace reprise::planner {
namespace {

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double PeakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Problem ReadLifetimes(const char* path) {
  Problem problem;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    long lower, upper, size;
    if (std::sscanf(line.c_str(), "%*[^,],%ld,%ld,%ld", &lower, &upper, &size) != 3) break;
    problem.buffers.push_back({.lower = Tick(lower), .upper = Tick(upper), .size = Bytes(size)});
  }
  return problem;
}

int Main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "scale_bench BASE BUFFERS SECONDS [--OPTION VALUE]...; see the source\n");
    return 2;
  }
  Repetition repetition{.buffers = std::atoll(argv[2]), .jitter = 0.05};
  Budget budget{.seconds = std::atof(argv[3])};
  std::string solver;
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--lasting") repetition.lasting_share = std::atof(argv[i + 1]);
    if (option == "--stride") repetition.stride = std::atof(argv[i + 1]);
    if (option == "--jitter") repetition.jitter = std::atof(argv[i + 1]);
    if (option == "--seed") repetition.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--steps") budget.steps = std::atoll(argv[i + 1]);
    if (option == "--solver") solver = argv[i + 1];
  }
  const std::string base = argv[1];
  const Problem problem =
      Repeated(base == "synthetic" ? SyntheticIteration(96, 1) : ReadLifetimes(argv[1]), repetition);
  const double before = ProcessorSeconds();
  const auto solution = solver.empty() ? Solve(problem, budget) : SolveWith(solver, problem, budget);
  const double seconds = ProcessorSeconds() - before;
  const double mebibytes = PeakMebibytes();
  if (!solution.ok()) {
    std::cerr << solution.status() << '\n';
    return 1;
  }
  std::printf("%-20s n %9zu  bound %15ld  slab %15ld  gap %7.4f %%  cpu %8.3f s  peak %8.1f MiB  %s\n",
              base.substr(base.rfind('/') + 1).c_str(), problem.buffers.size(),
              static_cast<long>(solution->lower_bound.count()),
              static_cast<long>(solution->placement.slab.count()),
              100 * Gap(solution->placement.slab, solution->lower_bound), seconds, mebibytes,
              solution->solver.c_str());
  if (absl::Status status = CheckPlacement(problem, solution->placement); !status.ok()) {
    std::cerr << status << '\n';
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace reprise::planner

int main(int argc, char** argv) { return reprise::planner::Main(argc, argv); }
