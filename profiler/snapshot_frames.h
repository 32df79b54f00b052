// The stacks of a snapshot: lists of dicts {name, filename, line}, of which the same ones occur again and
// again. Those that ToSnapshot wrote have {module, address} too where the frame has.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profiler/pickle.h"
#include "profiler/stacks.h"

namespace reprise::profiler {

// Reads each list and each dict of one pickle once, however often the pickle names it: linear in the file. A
// string may be named by any number of dicts, so names are cut as a recorder cuts them (kMostStackText).
class SnapshotFrames {
 public:
  // 0 for what is no list of frames. A dict in it that is no frame is left out, as is one that the table has
  // no room for.
  StackId Read(PickleValue frames);
  StackTable Take() { return std::move(table_); }

 private:
  FrameId ReadFrame(PickleValue dict);

  StackTable table_;
  absl::flat_hash_map<uint32_t, StackId> lists_;  // by PickleValue::identity
  absl::flat_hash_map<uint32_t, FrameId> dicts_;  // the same; 0: no frame
  std::vector<FrameId> frames_;
};

}  // namespace reprise::profiler
