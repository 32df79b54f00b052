// One CUDA device under Reprise: its engine, the memory behind it, its streams, and what its pools have used.
//
// Locked state is reached with the engine's guard. The rest never changes after Open.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/background_runner.h"
#include "replay/core/served_engine.h"
#include "replay/core/session.h"
#include "replay/cuda/device_memory.h"
#include "replay/cuda/driver.h"
#include "replay/cuda/streams.h"

namespace reprise::replay::cuda {

// Whose a block is (BlockInfo::owner): 0, nobody's; else a pool, by its number in the PoolTable.
using Owner = uint8_t;
inline constexpr Owner kNoPool = 0;

class Device {
 public:
  // `driver` and `captures` outlive it; `session` is asked for a trace.
  static absl::StatusOr<std::unique_ptr<Device>> Open(const Driver& driver, CoreSession& session, int ordinal,
                                                      const std::atomic<int>& captures);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal() const { return ordinal_; }
  Engine& engine() { return *engine_; }
  DeviceMemory& memory() { return *memory_; }
  // The lock, as it is taken for every request.
  Engine::Guard Lock() {
    Engine::Guard guard = engine_->Lock();
    engine_.Tend(guard);
    return guard;
  }

  // Where an address lies in the arena; negative: elsewhere.
  int64_t OffsetOf(cu_address address) const { return memory_->OffsetOf(address); }
  cu_address AddressOf(Offset offset) const {
    return memory_->begin() + static_cast<uint64_t>(offset.count());
  }

  DeviceStreams& streams(const Engine::Guard&) { return streams_; }
  void StopWaiting() { streams_.StopWaiting(); }
  // What a wait for everything in a context will complete.
  StreamOrder::Snapshot TakeContext(const Engine::Guard& guard, cu_context context) {
    return engine_->order(guard)->Take(streams_.OfContext(context));
  }
  // The number under which the current context's synchronous blocks run; none while it is suspended, or if it is a green one.
  std::optional<Stream> SynchronousStream(const Engine::Guard&, cu_context context);

  // What has been served from a pool, and the most it has looked like to the job. Bytes.
  struct PoolUse {
    bool served = false;  // a block, ever
    int64_t used = 0;
    int64_t used_high = 0;
    int64_t reserved_high = 0;
  };
  PoolUse& pool_use(const Engine::Guard&, Owner owner) { return pool_use_[owner]; }
  // Counts a block into its pool and, when it has been freed, out of it.
  void CountIn(const Engine::Guard& guard, Owner owner, Bytes requested) {
    if (owner == kNoPool) return;
    if (first_pool_ == kNoPool) first_pool_ = owner;
    PoolUse& use = pool_use_[owner];
    use.served = true;
    use.used += RoundUp(requested, profiler::kDeviceAlignment).count();
    use.used_high = std::max(use.used_high, use.used);
    use.reserved_high = std::max(use.reserved_high, Reserved(guard, owner));
  }
  void CountOut(const Engine::Guard&, const BlockInfo& freed) {
    if (freed.owner != kNoPool)
      pool_use_[freed.owner].used -= RoundUp(freed.requested, profiler::kDeviceAlignment).count();
  }
  // The pool that was served first.
  bool IsFirst(const Engine::Guard&, Owner owner) const { return owner != kNoPool && owner == first_pool_; }
  // What a pool holds of the arena beyond what the driver knows: its own blocks, and for the pool that was
  // served first all that is committed and used by nobody.
  int64_t Reserved(const Engine::Guard& guard, Owner owner) const {
    const int64_t used = pool_use_[owner].used;
    return IsFirst(guard, owner) ? used + (engine_->committed(guard) - engine_->placed(guard)).count() : used;
  }

  // Whether anything here is that context's.
  bool Knows(const Engine::Guard&, cu_context context) const {
    return streams_.Knows(context) ||
           std::find(contexts_.begin(), contexts_.end(), context) != contexts_.end() ||
           memory_->LiesIn(context);
  }

  // Drops the streams of a context that is gone, and its blocks; the device has finished with them. Blocks in
  // stream order are the device's, whichever context ends: they go only where their memory went with it.
  // Returns the numbers under which those ran that are dropped.
  std::vector<Stream> DropContext(const Engine::Guard& guard, cu_context context, StreamTable& table);

  // How it goes; not for a thread that may have the lock.
  DeviceSummary SoFar() {
    return Summarize([this](const ServedEngine::Look& look, EngineSummary& to) { engine_.SoFar(look, to); });
  }
  // The same, and the trace ended. After it nothing is recorded.
  DeviceSummary Finish() {
    return Summarize([this](const ServedEngine::Look& look, EngineSummary& to) {
      engine_.Finish(/*inside=*/false, look, to);
    });
  }
  void AbandonAfterFork() noexcept { engine_.AbandonAfterFork(); }
  CoreTrace* trace() const { return engine_.trace(); }  // null: there is none

  // The context behind such a number.
  cu_context SynchronousContext(const Engine::Guard&, Stream stream) const {
    return contexts_[static_cast<uint64_t>(stream) - static_cast<uint64_t>(kEveryStream)];
  }

  // The context behind any number.
  cu_context ContextOf(const Engine::Guard& guard, Stream stream) const {
    return IsEveryStream(stream) ? SynchronousContext(guard, stream) : streams_.context(stream);
  }

  // Whether what is asked for on the stream may lie in the arena.
  bool Serves(const Engine::Guard& guard, Stream stream) const {
    return memory_->Serves(ContextOf(guard, stream), !IsEveryStream(stream));
  }

  // What cuMemAllocAsync serves from: a pool, or kNoPool. Negative: to be asked for; another number after every
  // change, so that an answer from before it is not kept.
  std::atomic<int> current_pool{-1};
  // Requests that a caching allocator makes: synchronous, of whole segments; and all others.
  std::atomic<int64_t> segments{0};
  std::atomic<int64_t> others{0};
  // Requests left to the driver of which the engine is not told: because something was being captured; and because
  // their context was about to end, or a green one, they were of another device's pool, or nothing was served any more.
  void CountCapturePass(size_t bytes) { CountPass(capture_passes, bytes); }
  void CountUnrecorded(size_t bytes) { CountPass(unrecorded, bytes); }
  std::atomic<int64_t> capture_passes{0};
  std::atomic<int64_t> unrecorded{0};
  std::atomic<int64_t> passed{0};        // bytes of both
  std::atomic<int64_t> memory_waits{0};  // of the host for the device, because memory had run out
  std::atomic<int64_t> refused_exports{0};
  // Said once each: that the host's memory stands in for this device's, and that it cannot.
  std::atomic<bool> said_oversubscribed{false};
  std::atomic<bool> said_no_host{false};

 private:
  Device(const Driver& driver, int ordinal, const std::atomic<int>& captures)
      : ordinal_(ordinal), streams_(driver, captures) {}

  void CountPass(std::atomic<int64_t>& passes, size_t bytes) {
    ++passes;
    passed += static_cast<int64_t>(bytes);
  }
  DeviceSummary Summarize(const std::function<void(const ServedEngine::Look&, EngineSummary&)>& tell) const;

  const int ordinal_;
  std::string name_;
  DeviceStreams streams_;
#ifdef REPRISE_PLAN_IN_CALLER  // in a test's own build alone: what is planned does not depend on timing
  InlineRunner runner_;
#else
  BackgroundRunner runner_;
#endif
  DeviceMemory* memory_ = nullptr;  // the engine's
  ServedEngine engine_;
  std::vector<cu_context> contexts_;     // by the number of their synchronous stream
  std::array<PoolUse, 256> pool_use_{};  // by owner
  Owner first_pool_ = kNoPool;
};

}  // namespace reprise::replay::cuda
