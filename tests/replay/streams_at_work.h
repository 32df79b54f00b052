// Jobs that keep several streams of a device busy at once, on a clock: what it costs them that memory goes from one
// stream to another.
//
// The host queues work in the order of the job's operations and takes a little time for each. A stream does what is
// queued on it in order, not before the host has queued it and not before what it waits for is over. Streams do not slow
// each other down.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "replay/engine.h"
#include "replay/sequence.h"

namespace reprise::replay {

using Microseconds = double;

struct StreamOperation {
  enum class Kind : uint8_t {
    kAlloc,   // block `id` of `bytes` on `stream`
    kFree,    // block `id`, in the order of `stream`
    kWork,    // `time` on `stream`
    kRecord,  // event `id`: all that is queued on `stream` so far
    kWait,    // `stream` waits for event `id`
    kAwait,   // the host waits for event `id`, or until so much before it as `time`
    kStep,    // a step has been queued; it is over when `stream` has done all so far
  };
  Kind kind;
  Stream stream;
  int64_t id = 0;
  Bytes bytes;
  Microseconds time = 0;
  uint64_t thread = 0;  // of the host, which asks for the block
};

// A job as it is written down.
class StreamJob {
 public:
  int64_t Alloc(Stream stream, Bytes bytes) {
    Add({.kind = StreamOperation::Kind::kAlloc,
         .stream = stream,
         .id = ++blocks_,
         .bytes = bytes,
         .thread = thread_});
    return blocks_;
  }
  // Which asks for the blocks from here on.
  void SetThread(uint64_t thread) { thread_ = thread; }
  void Free(Stream stream, int64_t block) {
    Add({.kind = StreamOperation::Kind::kFree, .stream = stream, .id = block});
  }
  void Work(Stream stream, Microseconds time) {
    Add({.kind = StreamOperation::Kind::kWork, .stream = stream, .time = time});
  }
  int64_t Record(Stream stream) {
    Add({.kind = StreamOperation::Kind::kRecord, .stream = stream, .id = events_});
    return events_++;
  }
  void Wait(Stream stream, int64_t event) {
    Add({.kind = StreamOperation::Kind::kWait, .stream = stream, .id = event});
  }
  // `waits` for all that is queued on `for_whom` so far.
  void WaitFor(Stream waits, Stream for_whom) { Wait(waits, Record(for_whom)); }
  void Await(Stream stream, int64_t event, Microseconds before = 0) {
    Add({.kind = StreamOperation::Kind::kAwait, .stream = stream, .id = event, .time = before});
  }
  void EndStep(Stream stream) { Add({.kind = StreamOperation::Kind::kStep, .stream = stream}); }

  const std::vector<StreamOperation>& operations() const { return operations_; }
  int64_t blocks() const { return blocks_; }
  int64_t events() const { return events_; }

 private:
  void Add(StreamOperation operation) { operations_.push_back(operation); }

  std::vector<StreamOperation> operations_;
  int64_t blocks_ = 0;
  int64_t events_ = 0;
  uint64_t thread_ = 0;
};

struct StreamOutcome {
  Microseconds step = 0;  // of the second half of the steps, in the mean
  Bytes live_peak;
  Counters counters;         // of the engine
  int64_t moved_a_step = 0;  // granules, in the second half
  int64_t overlaps = 0;
  std::vector<Sequence::Known> known;  // plans, for the next run
  int64_t left_to_driver =
      0;  // for which the host has waited for all streams, and all that was free has been given back
};

// The job with memory that nobody has to wait for.
StreamOutcome PlayWithoutWaits(const StreamJob& job);
// The job served by an engine in granules of 2 MiB. A plan takes 50 ms. Of `memory` the device has no more, 0: any. What the
// engine leaves, the driver serves; std::runtime_error where it cannot. It begins with `plans`, of an earlier run.
StreamOutcome PlayServed(const StreamJob& job, const Engine::Options& options, Bytes memory = Bytes(0),
                         std::vector<Sequence::Expected> plans = {});

}  // namespace reprise::replay
