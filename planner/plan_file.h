// The plan on disk: JSON, readable by people and by other tools.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/types.h"

namespace reprise::planner {

inline constexpr std::string_view kPlanFormat = "reprise-plan";
inline constexpr int64_t kPlanVersion = 1;

// Where a plan came from; every field may be empty.
struct Provenance {
  std::string program;     // name and version of the program that wrote it
  std::string input;       // the file that was solved, as named by the user
  std::string input_hash;  // of that file's bytes, in whatever notation the caller prefers
  std::string created;     // date and time, as told by the caller
};

struct Plan {
  std::vector<Bytes> sizes;     // in the input's order
  std::vector<Offset> offsets;  // in the input's order
  Bytes slab;
  Bytes lower_bound;
  bool proven_optimal = false;
  std::string solver;
  uint64_t signature = 0;  // Signature() of the problem that was solved
  Provenance provenance;
};

// A hash of everything that makes a placement correct (sizes, lifetimes and their gaps, alignments, pinned
// offsets, what is outside, the period; not the capacity, nor what lanes cost), the same on every machine and
// in every version of the file format.
uint64_t Signature(const Problem& problem);

Plan MakePlan(const Problem& problem, const Solution& solution, Provenance provenance);

// InvalidArgument, naming the first difference, if `plan` was not made for `problem`. Says nothing about
// overlaps: that is CheckPlacement's part.
absl::Status CheckPlanIsFor(const Problem& problem, const Plan& plan);

// Both: a plan that passes may be followed, wherever it comes from.
absl::Status CheckPlan(const Problem& problem, const Plan& plan);

// The file's text. Strings that are not UTF-8 get replacement characters.
std::string FormatPlan(const Plan& plan);

// Errors: those of ReadFile, and InvalidArgument when it is not a plan.
absl::StatusOr<Plan> ReadPlan(const std::string& path);

}  // namespace reprise::planner
