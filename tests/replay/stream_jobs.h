// Training jobs that keep several streams busy, made from a seed: what a step allocates and queues, on which stream, and who
// waits for whom.
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/replay/streams_at_work.h"

namespace reprise::replay {

enum class StreamUse : uint8_t {
  kOneStream,  // for comparison
  kSharded,  // each layer's weights are gathered on a stream and its gradients scattered on another, with blocks that
             // each stream leaves behind what it has waited for (FSDP2)
  kShardedRecorded,  // the same, with blocks that a stream of PyTorch's leaves, which waits for all that have used them (FSDP with
  // record_stream on cudaMallocAsync)
  kOffload,   // what layers keep for the backward pass goes to the host on a stream and comes back on another
  kLoader,    // the next batch comes on a stream of its own
  kBranches,  // a part of each layer runs on a stream of its own, beside the rest
  kTwoModels,  // two models, each on its stream, a step of the one behind a step of the other
  kWorkers,  // forward passes of four models, each on its stream; layer by layer one of them goes on, whichever it is
};

inline constexpr StreamUse kStreamUses[] = {
    StreamUse::kOneStream, StreamUse::kSharded,  StreamUse::kShardedRecorded, StreamUse::kOffload,
    StreamUse::kLoader,    StreamUse::kBranches, StreamUse::kTwoModels,       StreamUse::kWorkers};

std::string_view NameOf(StreamUse use);

struct StreamJobOptions {
  StreamUse use = StreamUse::kOneStream;
  uint64_t seed = 1;  // 0: all layers alike; else their widths differ
  int layers = 24;
  int steps = 48;
  bool recompute =
      false;  // layers keep their input alone, and their forward pass is run again in the backward pass
  double transfer = 0.8;  // time of a layer's transfer, over that of its forward pass
};

StreamJob MakeStreamJob(const StreamJobOptions& options);

}  // namespace reprise::replay
