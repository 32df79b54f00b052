// The end of allocations, common to all kinds.
#pragma once

#include "tests/simcuda/driver/simulator.h"

namespace sim {

// Forgets an allocation and gives its memory back: at once, or for pool memory behind `operation` on `stream`
// (null and 0: at once). All work that uses plain memory must be over.
void EndAllocation(Simulator& sim, std::map<uint64_t, Allocation>::iterator allocation, const Stream* stream,
                   uint64_t operation);

// The memory and addresses of a plain allocation that is forgotten.
void GivePlain(Simulator& sim, uint64_t address, const Allocation& allocation);

// Takes memory and addresses for a plain allocation; 0 if there is none.
uint64_t NewAllocation(Call& call, uint64_t bytes);

}  // namespace sim
