// Reads what torch.cuda.memory._snapshot() leaves (pickled by _dump_snapshot or by hand): a job's
// allocations, and the segments of PyTorch's caching allocator.
//
//   segments        what the allocator holds at the moment of the snapshot, and the blocks in it
//   device_traces   for each device what happened before, as far back as the history goes: alloc,
//                   free_requested, free_completed, segment_alloc, segment_free, segment_map,
//                   segment_unmap, oom, snapshot, annotate, user_defined
//
// Without a history it is the list of segments alone, as memory_snapshot() and PyTorch 1.13's _snapshot() return it.
//
// The history is a window: blocks that were live when it begins have no alloc in it. They are put in front of
// it, from their frees and from the segments. A block ends with its free_completed: before, the allocator
// cannot hand it out. A history without any (skip_actions of _record_memory_history) has a block end with its
// free_requested.
//
// Stacks: an entry's and a block's `frames`, innermost first, as PyTorch has them. Where they were recorded
// with stacks="all", frames of C++ and of Python are mixed, and told apart by the names of their files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profiler/stacks.h"
#include "profiler/types.h"

namespace reprise::profiler {

// In a snapshot that was converted from something else (exports.h), beside PyTorch's own keys: a dict that says whether
// all of the job is in it, and in its entries of an "alloc" what alignment was asked for, 0 for none.
inline constexpr char kConvertedKey[] = "reprise", kWholeKey[] = "whole", kAlignmentKey[] = "alignment";

struct SnapshotBlock {
  Offset address;
  Bytes size;       // as the allocator holds it
  Bytes requested;  // as the job asked for it; the size where the snapshot does not say
  StackId stack{};
};

struct SnapshotSegment {
  Offset address;
  Bytes size;
  Stream stream{};
  bool small = false;  // of the pool of small blocks
  bool expandable = false;
  std::vector<SnapshotBlock> live;  // in use, or freed and still awaited by another stream
};

struct Snapshot {
  // The blocks live at the begin in order of address, then the history. A consistent sequence
  // (event_check.h).
  std::vector<Event> events;
  std::vector<Offset> addresses;  // of each event's block; empty where they are made up
  StackTable stacks{};            // that the events name
  size_t live_at_begin = 0;       // that many events stand for blocks without an alloc in the history
  std::vector<SnapshotSegment> segments{};  // of the device, at the moment of the snapshot
  int64_t device = 0;
  size_t devices = 1;           // of which that is the one
  Bytes reserved_at_begin;      // all segments together: when the history begins,
  Bytes reserved_peak;          // at most,
  Bytes reserved_at_end;        // and at the moment of the snapshot
  int64_t segment_changes = 0;  // segments taken, given back, mapped or unmapped within the history
  int64_t ooms = 0;
  // It was written for PyTorch's page: no allocator has held its segments, so nothing of them is kept, nor of the
  // addresses.
  bool converted = false;
  // By how much the job's live peak may be above that of the events, as it may have been before the history:
  // it was within what was reserved when that begins, unless the job had given some of that back. nullopt: by
  // anything, there is no history, or it was converted from what is not all of the job.
  std::optional<Bytes> unseen{};
  std::vector<std::string> notes{};  // for people

  // Why the job's live peak may be above that of the events, a clause; empty: it is not.
  std::string_view WhyNotWhole() const;
};

// Of the device with the largest live peak; a note names the others. Errors: those of ParsePickle; InvalidArgument
// for what is no snapshot, naming the entry.
absl::StatusOr<Snapshot> ParseSnapshot(std::string_view contents, std::string_view name);

}  // namespace reprise::profiler
