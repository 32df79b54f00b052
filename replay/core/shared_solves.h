// Ranks of a job have the same problem at about the same time. One solves it, the others take the answer.
//
//   <signature>.solved.json   the plan of the problem with that signature (planner/plan_file.h)
//   <signature>.lease         somebody is solving it, or has died in doing so
//
// Whoever finds neither takes the lease and solves. Whoever finds a lease waits for the plan for up to
// kPatience, on the planner's thread: the job is served by the arena meanwhile. Then it solves by itself. So
// a problem is solved once; where the one with the lease dies or is slower than that, once more by each rank
// that was waiting at most. Nothing in a file is trusted: it must be for this very problem, and valid.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "planner/types.h"

namespace reprise::replay {

class SharedSolves {
 public:
  static constexpr std::chrono::milliseconds kPatience{5000};
  static constexpr int kLeaseSeconds = 60;

  explicit SharedSolves(std::string folder, std::chrono::milliseconds patience = kPatience)
      : folder_(std::move(folder)), patience_(patience) {}

  // As planner::Solve. Cancelled: while it waited. Whatever is wrong with the folder, it solves.
  absl::StatusOr<planner::Solution> Solve(const planner::Problem& problem, const planner::Budget& budget);

  // Valid on any thread.
  int64_t solved() const { return solved_.load(std::memory_order_relaxed); }
  int64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  int64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  enum class Turn { kTaken, kOurs, kNoLonger, kCancelled };
  Turn Await(const std::string& name, const planner::Problem& problem, const planner::Budget& budget,
             std::optional<planner::Solution>& solution) const;

  const std::string folder_;
  const std::chrono::milliseconds patience_;
  std::atomic<int64_t> solved_{0};
  std::atomic<int64_t> taken_{0};
  std::atomic<int64_t> lost_{0};  // solved, and not written
};

}  // namespace reprise::replay
