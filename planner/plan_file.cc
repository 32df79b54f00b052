#include "planner/plan_file.h"

#include <utility>

#include "base/files.h"
#include "base/fnv1a.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "planner/bound.h"
#include "planner/plan_reader.h"
#include "planner/validator.h"

namespace reprise::planner {
namespace {

constexpr int64_t kMostPlanBytes = int64_t{1} << 30;

}  // namespace

uint64_t Signature(const Problem& problem) {
  uint64_t hash = kFnv1aOfNothing;
  const auto add = [&](int64_t word) {
    char bytes[sizeof word];  // the lowest first, whatever the machine
    for (char& byte : bytes) {
      byte = static_cast<char>(word & 0xff);
      word >>= 8;
    }
    hash = Fnv1a({bytes, sizeof bytes}, hash);
  };
  add(problem.period.value_or(0));
  add(static_cast<int64_t>(problem.buffers.size()));
  for (const Buffer& buffer : problem.buffers) {
    add(buffer.lower.count());
    add(buffer.upper.count());
    add(buffer.size.count());
    add(buffer.alignment.count());
    add(buffer.pinned ? buffer.pinned->count() : -1);
    // What most problems do not have changes the signature only where it is there.
    for (const LifetimeGap& gap : buffer.gaps) {
      add(gap.lower.count());
      add(gap.upper.count());
    }
    if (buffer.outside) add(-2);
  }
  return hash;
}

Plan MakePlan(const Problem& problem, const Solution& solution, Provenance provenance) {
  Plan plan;
  plan.sizes.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) plan.sizes.push_back(buffer.size);
  plan.offsets = solution.placement.offsets;
  plan.slab = solution.placement.slab;
  plan.lower_bound = solution.lower_bound;
  plan.proven_optimal = solution.proven_optimal;
  plan.solver = solution.solver;
  plan.signature = Signature(problem);
  plan.provenance = std::move(provenance);
  return plan;
}

absl::Status CheckPlanIsFor(const Problem& problem, const Plan& plan) {
  const auto fault = [&](std::string_view what) {
    const std::string& input = plan.provenance.input;
    return absl::InvalidArgumentError(fmt::format("the plan was made for another input{}: {}",
                                                  input.empty() ? "" : fmt::format(" ({})", input), what));
  };
  if (plan.sizes.size() != problem.buffers.size()) {
    return fault(
        fmt::format("it has {} buffers, this one has {}", plan.sizes.size(), problem.buffers.size()));
  }
  for (size_t i = 0; i < plan.sizes.size(); ++i) {
    if (plan.sizes[i] == problem.buffers[i].size) continue;
    return fault(fmt::format("its buffer {} has {} bytes, this one's has {}", i, plan.sizes[i].count(),
                             problem.buffers[i].size.count()));
  }
  if (plan.signature != Signature(problem)) {
    return fault("the sizes are the same, the lifetimes or alignments are not");
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(const Problem& problem, const Plan& plan) {
  if (absl::Status status = CheckPlanIsFor(problem, plan); !status.ok()) return status;
  return CheckPlacement(problem, {.offsets = plan.offsets, .slab = plan.slab});
}

std::string FormatPlan(const Plan& plan) {
  using Json = nlohmann::ordered_json;
  const auto counts = [](const auto& units) {
    Json array = Json::array();
    for (const auto& unit : units) array.push_back(unit.count());
    return array;
  };
  Json json;
  json["format"] = kPlanFormat;
  json["version"] = kPlanVersion;
  json["slab"] = plan.slab.count();
  json["lower_bound"] = plan.lower_bound.count();
  json["gap"] = Gap(plan.slab, plan.lower_bound);
  json["proven_optimal"] = plan.proven_optimal;
  json["solver"] = plan.solver;
  json["signature"] = fmt::format("{:016x}", plan.signature);
  json["provenance"] = {{"program", plan.provenance.program},
                        {"input", plan.provenance.input},
                        {"input_hash", plan.provenance.input_hash},
                        {"created", plan.provenance.created}};
  json["sizes"] = counts(plan.sizes);
  json["offsets"] = counts(plan.offsets);
  // A field a line, the lists on one line each: people can read the head, and the file stays small.
  std::string text = "{";
  for (const auto& [name, value] : json.items()) {
    text += fmt::format("{}\n \"{}\": {}", text.size() > 1 ? "," : "", name,
                        value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return text + "\n}\n";
}

absl::StatusOr<Plan> ReadPlan(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMostPlanBytes);
  if (!text.ok()) return text.status();
  return ParsePlan(*text, path);
}

}  // namespace reprise::planner
