// Writes what a trace holds in the formats of other tools. Each returns the file's bytes. `events` must be
// consistent (event_check.h); their stacks are of `stacks`.
//
//   lifetime CSV  as csv_import.h reads it; a tick is the index of an event, or as the lifetimes have it
//   JSON          all of it: {"format","version","columns","events","frames","stacks"}
//   folded        a line a stack, outermost frame first, `a;b;c BYTES`: what was live at the peak; for
//                 flamegraph.pl
//   speedscope    the same, and a second profile with all that was ever allocated
//   Perfetto      counters: live bytes, and those of the sites with the most at the peak. Without times an
//                 event takes a microsecond
//   snapshot      as torch.cuda.memory._snapshot() returns it, a pickle of protocol 2, for memory_viz and
//                 snapshot_import.h
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "profiler/activities.h"
#include "profiler/csv_import.h"
#include "profiler/stacks.h"
#include "profiler/types.h"

namespace reprise::profiler {

// How the JSON begins.
inline constexpr std::string_view kJsonExportHead = R"({"format":"reprise-events")";

std::string ToLifetimeCsv(const std::vector<Event>& events);
// With every column, so that it reads back as the same.
std::string ToLifetimeCsv(const std::vector<Lifetime>& lifetimes);
// `activities`, of which the names are frames of `stacks`: in JSON under "activities", where there are any.
std::string ToJson(const std::vector<Event>& events, const StackTable& stacks,
                   const std::vector<Activity>& activities = {});
std::string ToFolded(const std::vector<Event>& events, const StackTable& stacks);
std::string ToSpeedscope(const std::vector<Event>& events, const StackTable& stacks, const std::string& name);
// The same here as slices on a track for each stream and each thread that marked something.
std::string ToPerfetto(const std::vector<Event>& events, const StackTable& stacks,
                       const std::vector<Activity>& activities = {});
// `addresses`: by event, where the block of an allocation lies, no two live ones in one place; an allocation
// with a negative one is left out, and its free. The snapshot says that it was converted: nothing lay there.
// `whole`: all of the job is in `events`, which the snapshot tells too.
std::string ToSnapshot(const std::vector<Event>& events, const StackTable& stacks,
                       std::span<const Offset> addresses, bool whole);

}  // namespace reprise::profiler
