// Problems as bytes invent them, with every feature at once: each solver must answer with a placement that
// the validator takes, or with an error, and the portfolio must never be worse than the bound allows. Under
// libFuzzer where there is one, else driven by tests/planner/fuzz_main.cc.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "planner/portfolio.h"
#include "planner/problem.h"
#include "planner/validator.h"

namespace reprise::planner {
namespace {

class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  int64_t Below(int64_t limit) { return empty() ? 0 : data_[at_++] % limit; }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

// Mostly such as pass Validate, or no solver would ever see one.
Buffer ReadBuffer(Reader& in) {
  Buffer buffer;
  buffer.lower = Tick(in.Below(64));
  buffer.upper = buffer.lower + 1 + in.Below(20);
  buffer.size = Bytes((in.Below(256) + 255) % 256);
  const int64_t features = in.Below(256);
  if ((features & 3) == 3) buffer.alignment = Bytes(int64_t{1} << in.Below(6));
  if ((features & 12) == 12) buffer.lane = static_cast<int32_t>(in.Below(3));
  if ((features & 48) == 48) buffer.previous = Offset(in.Below(250) - 2);
  if (features == 64 || features == 65) buffer.pinned = Offset(in.Below(250));
  buffer.outside = features == 128;
  const Tick gap = buffer.lower + 1 + in.Below(4);
  if ((features & 192) == 192 && gap + 1 < buffer.upper) buffer.gaps.push_back({gap, gap + 1});
  return buffer;
}

Problem ReadProblem(Reader& in) {
  Problem problem;
  const int64_t features = in.Below(256);
  if ((features & 1) != 0) problem.period = 64 - in.Below(64) / 60;
  if ((features & 2) != 0) problem.capacity = Bytes(in.Below(256) * 4);
  problem.reuse = static_cast<Reuse>(features / 4 % 3);
  problem.crossing_price = Bytes(in.Below(100));
  while (!in.empty()) problem.buffers.push_back(ReadBuffer(in));
  return problem;
}

void Check(const Problem& problem, const absl::StatusOr<Solution>& solution, std::string_view solver) {
  if (!solution.ok()) return;
  const absl::Status correct = CheckPlacement(problem, solution->placement);
  const bool sane = solution->placement.slab >= solution->lower_bound || !correct.ok();
  if (correct.ok() && sane) return;
  std::fprintf(stderr, "%s: %s; slab %ld, bound %ld\n", std::string(solver).c_str(),
               std::string(correct.message()).c_str(), static_cast<long>(solution->placement.slab.count()),
               static_cast<long>(solution->lower_bound.count()));
  std::abort();
}

}  // namespace
}  // namespace reprise::planner

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace reprise::planner;
  Reader in(data, size);
  Problem problem = ReadProblem(in);
  if (!Validate(problem).ok()) {
    if (Solve(problem, {}).ok()) std::abort();
    return 0;
  }
  constexpr int64_t kSteps = 3000;
  const auto solution = Solve(problem, {.steps = kSteps, .threads = 1 + static_cast<int>(size % 2)});
  if (!solution.ok()) std::abort();
  Check(problem, solution, "all");
  problem.reuse = Reuse::kAllowed;
  for (std::string_view name : SolverNames())
    Check(problem, SolveWith(name, problem, {.steps = kSteps}), name);
  return 0;
}
