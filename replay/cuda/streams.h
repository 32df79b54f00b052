// The streams of CUDA under the engine's numbers, and events in them.
//
// A stream is told by its handle; the legacy default stream by its context, the per-thread default stream by
// its context and thread. Handles are used again after a stream is destroyed, so whoever is destroyed is
// taken out; its number stays its own, and its context's, until all that was freed in it is complete. Nobody
// destroys a per-thread default stream: it is taken out once its thread has ended and all is complete, or a
// job that starts threads without end would have us remember them all.
//
// Glossary
//   number   of a stream on its device, small and dense: what the engine calls a Stream; used again
//   key      what tells one stream of the process from another
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "replay/cuda/driver.h"
#include "replay/stream_order.h"

namespace reprise::replay::cuda {

class Device;

struct StreamKey {
  cu_stream handle = nullptr;    // an ordinary one, kLegacyStream or kPerThreadStream
  cu_context context = nullptr;  // of the default streams
  uint64_t thread = 0;           // of the per-thread default stream, its ThreadNumber()
  bool operator==(const StreamKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const StreamKey& key) {
    return H::combine(std::move(h), key.handle, key.context, key.thread);
  }
};

// Ordinary handles are addresses.
inline bool IsDefault(cu_stream stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

// The kernel's number of the calling thread, and whether the thread of such a number has ended. One that runs the
// destructors of its thread-local objects has not: they may free. A number that was given again has not either, nor
// has the main thread, which the kernel keeps for as long as the process.
pid_t ThreadId();
bool HasEnded(pid_t thread);

// One device's streams. Everything under the engine's lock.
class DeviceStreams : public StreamEvents {
 public:
  // `captures`: how many captures are going on; while there are any nothing is recorded. Both outlive it. `patience`: a
  // device that was waited for so long is not waited for any more. A job's iteration takes less, and the device is behind
  // by an iteration or two.
  DeviceStreams(const Driver& driver, const std::atomic<int>& captures,
                std::chrono::steady_clock::duration patience = std::chrono::seconds(5))
      : driver_(driver), captures_(captures), patience_(patience) {}

  // A number for it: a new one, or that of a quiet stream of its context, or of none, that has been removed.
  // Blocks outlive their streams.
  Stream Add(const StreamKey& key, cu_context context, const StreamOrder& order);
  void Remove(Stream stream);
  // Per-thread default streams whose threads have ended.
  struct Ended {
    Stream stream;
    StreamKey key;
  };
  std::vector<Ended> OfEndedThreads() const;
  // The same for a stream that has been removed.
  cu_context context(Stream stream) const { return streams_[static_cast<size_t>(stream)].context; }
  // One that has streams here; null: there is none.
  cu_context AnyContext() const;
  // Removed ones too.
  bool Knows(cu_context context) const {
    return std::ranges::find(streams_, context, &Entry::context) != streams_.end();
  }
  std::vector<Stream> OfContext(cu_context context) const;
  // Its streams and events are gone with it. Does not fail.
  void DropContext(cu_context context);
  // While a context ends, or may: nothing that is its is named to the driver, which may have done away with it. And
  // nothing is added under its handle, which may be another one's already: what is not known here is the driver's.
  void Suspend(cu_context context) { suspended_.push_back(context); }
  bool Suspended(cu_context context) const {
    return std::find(suspended_.begin(), suspended_.end(), context) != suspended_.end();
  }
  void Resume(cu_context context) { std::erase(suspended_, context); }
  // The number of a stream that a block has outlived with its context is not given again: the block would be
  // taken for one of another context.
  void Hold(Stream stream) { streams_[static_cast<size_t>(stream)].held = true; }

  // The current context; while anything is captured nobody may be asked.
  bool MayBeInGreenContext() const { return captures_.load() != 0 || driver_.InGreenContext(kLegacyStream); }
  // Whether it waits for its context's legacy stream and is waited for by that, unasked.
  bool Blocks(Stream stream) const { return streams_[static_cast<size_t>(stream)].blocking; }
  // Queues what an allocation or a free of the driver's would be in a legacy stream, where what blocking streams have done
  // before comes before what they do after. Nothing in others. False: not now; it is made up for before the stream is taken
  // to have finished.
  bool StandIn(Stream stream);

  Event Record(Stream stream) override;
  Event RecordLast(Stream stream) override;
  bool Finished(Stream stream) override;
  bool Wait(Stream stream, Event event) override;
  bool Complete(Event event) override;
  bool Await(Event event) override;
  void Recycle(Stream stream, Event event) override;
  // The process is ending: who waits holds the lock that its last words need. Without the lock.
  void StopWaiting() { ending_.store(true, std::memory_order_relaxed); }

 private:
  // What the order holds as an Event.
  struct Recorded {
    cuda::Event event = nullptr;
    cu_context context = nullptr;  // null: gone, and its work is over
  };
  struct Entry {
    StreamKey key;
    cu_context context = nullptr;  // null: it is gone, and so is the stream
    bool in_use = false;
    bool held = false;
    bool blocking = false;
    bool lacks_stand_in = false;  // so that work of others may go on that what it has freed waits for
    pid_t thread = 0;             // of a per-thread default stream
  };

  bool IsBlocking(cu_stream stream) const;
  bool MakeUpForStandIns(cu_context context);
  Event RecordIn(Entry& entry);
  Result Query(const Recorded& recorded) const;

  const Driver& driver_;
  const std::atomic<int>& captures_;
  const std::chrono::steady_clock::duration patience_;
  std::vector<Entry> streams_;  // by number
  std::vector<cu_context> suspended_;
  bool impatient_ = false;  // it was waited for so long
  bool any_lacks_stand_in_ = false;
  std::atomic<bool> ending_{false};
  HashMap<cu_context, std::vector<Recorded*>> unused_;
  std::vector<std::unique_ptr<Recorded>> all_;
};

// All streams of the process. Thread-safe.
class StreamTable {
 public:
  struct Place {
    Device* device = nullptr;
    Stream stream{};
  };

  std::optional<Place> Find(const StreamKey& key);
  void Add(const StreamKey& key, const Place& place);
  // Takes out a stream and says where it was.
  std::optional<Place> Take(const StreamKey& key);
  // The same for streams of a device; what was taken, so that it can be added again.
  using Taken = std::vector<std::pair<StreamKey, Place>>;
  Taken TakeAll(const Device& device, const std::vector<Stream>& streams);
  // Changes whenever a stream has been taken out, or is in doubt: an answer remembered from before may be wrong.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  void Doubt() { ++generation_; }

 private:
  std::mutex mutex_;
  HashMap<StreamKey, Place> places_;
  std::atomic<uint64_t> generation_{1};
};

}  // namespace reprise::replay::cuda
