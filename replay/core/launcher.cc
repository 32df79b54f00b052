#include "replay/core/launcher.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/numbers.h"

namespace reprise::replay {
namespace {

struct Row {
  const char* launcher;
  const char* also;  // has to be set as well; null: nothing else
  const char* rank;
  const char* world_size;
  const char* local_rank;  // null: it has none
};

// The innermost first.
constexpr Row kLaunchers[] = {
    {"torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"Open MPI", nullptr, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MPICH", nullptr, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    // Set by hand, by a script, or for a pod. Behind those above: a pod's own RANK is its mpirun's as well.
    {"RANK", "WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    // A batch script has SLURM_PROCID too; ranks are in steps.
    {"Slurm", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
    {"Kubernetes", nullptr, "JOB_COMPLETION_INDEX", "WORLD_SIZE", "LOCAL_RANK"},
};

constexpr int kMostRestarts = 1 << 20;  // so that two can be added

const char* Text(const Lookup& lookup, const char* name) {
  const char* const value = name == nullptr ? nullptr : lookup(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

std::optional<int> Number(const Lookup& lookup, const char* name) {
  const char* const text = Text(lookup, name);
  if (text == nullptr) return std::nullopt;
  const std::optional<int> number = ParseNumber<int>(text);
  return number >= 0 ? number : std::nullopt;
}

std::string FirstOf(const Lookup& lookup, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const value = Text(lookup, name);
    if (value != nullptr && std::string_view(value) != "none") return value;  // torchrun's default is "none"
  }
  return "0";
}

}  // namespace

Launched LaunchedBy(const Lookup& lookup) {
  Launched launched;
  launched.job =
      FirstOf(lookup, {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"});
  launched.step = FirstOf(lookup, {"SLURM_STEP_ID"});
  for (const char* const name : {"SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"})
    launched.restart += std::min(kMostRestarts, Number(lookup, name).value_or(0));
  for (const Row& row : kLaunchers) {
    const std::optional<int> rank = Number(lookup, row.rank);
    if (!rank || (row.also != nullptr && Text(lookup, row.also) == nullptr)) continue;
    int world_size = Number(lookup, row.world_size).value_or(0);
    if (world_size <= *rank) world_size = 0;  // cannot be what it says
    const std::optional<int> local_rank = Number(lookup, row.local_rank);
    if (launched.OneOfMany()) {
      // Slurm's own PMI is MPICH's but for the rank on the host, which only the step says.
      if (!local_rank || *rank != launched.rank || world_size != launched.world_size) continue;
    } else if (!launched.launcher.empty() && world_size == 1) {
      continue;  // one that has started this process alone tells it from no other: one around it may.
    }
    launched.launcher = row.launcher;
    launched.rank = *rank;
    launched.world_size = world_size;
    launched.local_rank = local_rank.value_or(0);
    if (launched.OneOfMany() && local_rank) break;
  }
  return launched;
}

}  // namespace reprise::replay
