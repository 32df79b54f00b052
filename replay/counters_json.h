// What the engine has counted, as every report of it names it.
#pragma once

#include "replay/engine.h"

namespace reprise::replay {

// Calls `put` with the name and the value of each; sizes in bytes, shares from 0 to 1.
template <typename Put>
void ForEachCounter(const Counters& c, Put put) {
  put("requests", c.requests);
  put("planned", c.planned);
  put("arena", c.arena);
  put("passed", c.passed);
  put("outside", c.outside);
  put("conflicts", c.conflicts);
  put("mismatches", c.mismatches);
  put("times_lost", c.times_lost);
  put("withheld", c.withheld);
  put("plans", c.plans);
  put("plans_failed", c.plans_failed);
  put("plans_resumed", c.plans_resumed);
  put("plans_dropped", c.plans_dropped);
  put("plans_renewed", c.plans_renewed);
  put("plan_switches", c.plan_switches);
  put("iterations", c.iterations);
  put("period", c.period);
  put("threads", c.threads);
  put("first_planned_iteration", c.first_planned_iteration);
  put("first_planned_request", c.first_planned_request);
  put("planned_after_plan", Share(c.planned_requests_after_plan, c.requests_after_plan));
  put("planned_bytes_after_plan", Share(c.planned_bytes_after_plan.count(), c.bytes_after_plan.count()));
  put("live", c.live.count());
  put("live_peak", c.live_peak.count());
  put("slab", c.slab.count());
  put("lower_bound", c.lower_bound.count());
  put("reserved", c.reserved.count());
  put("reserved_peak", c.reserved_peak.count());
  put("granules_moved", c.granules_moved);
  put("unknown_frees", c.unknown_frees);
}

}  // namespace reprise::replay
