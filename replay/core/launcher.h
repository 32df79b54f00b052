// Who started this process, as one of how many: what launchers say in the environment, in one table.
#pragma once

#include <functional>
#include <string>

namespace reprise::replay {

// The value of an environment variable, or null.
using Lookup = std::function<const char*(const char* name)>;

struct Launched {
  std::string launcher;  // "Slurm", "torchrun", ...; empty: none that is known, and this is no rank
  int rank = 0;
  int local_rank = 0;  // on its host; 0 where the launcher does not say
  int world_size = 1;  // ranks in the job; 0: the launcher does not say
  std::string job;     // of the scheduler, else of the launcher; "0" where neither says
  std::string step;    // of the job; "0" where there are none
  int restart = 0;  // how often the scheduler has put the job back into its queue, or the launcher its ranks
  bool OneOfMany() const { return !launcher.empty() && world_size != 1; }
};

// The innermost launcher that has started several counts: torchrun in a step of Slurm starts the ranks, not srun. A row
// of the table is taken whole or not at all, because scripts set single variables of other launchers.
Launched LaunchedBy(const Lookup& lookup);

}  // namespace reprise::replay
