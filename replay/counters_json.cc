#include "replay/counters_json.h"

#include <nlohmann/json.hpp>

namespace reprise::replay {

nlohmann::ordered_json CountersJson(const Counters& c) {
  return {
      {"requests", c.requests},
      {"planned", c.planned},
      {"arena", c.arena},
      {"passed", c.passed},
      {"outside", c.outside},
      {"conflicts", c.conflicts},
      {"mismatches", c.mismatches},
      {"times_lost", c.times_lost},
      {"withheld", c.withheld},
      {"plans", c.plans},
      {"plans_failed", c.plans_failed},
      {"plans_resumed", c.plans_resumed},
      {"plans_dropped", c.plans_dropped},
      {"plans_renewed", c.plans_renewed},
      {"plan_switches", c.plan_switches},
      {"iterations", c.iterations},
      {"period", c.period},
      {"threads", c.threads},
      {"first_planned_iteration", c.first_planned_iteration},
      {"first_planned_request", c.first_planned_request},
      {"planned_after_plan", Share(c.planned_requests_after_plan, c.requests_after_plan)},
      {"planned_bytes_after_plan", Share(c.planned_bytes_after_plan.count(), c.bytes_after_plan.count())},
      {"live", c.live.count()},
      {"live_peak", c.live_peak.count()},
      {"slab", c.slab.count()},
      {"lower_bound", c.lower_bound.count()},
      {"reserved", c.reserved.count()},
      {"reserved_peak", c.reserved_peak.count()},
      {"granules_moved", c.granules_moved},
      {"unknown_frees", c.unknown_frees},
  };
}

}  // namespace reprise::replay
