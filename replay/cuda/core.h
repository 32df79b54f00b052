// The core behind libreprise.so: every hooked call of the driver, answered by us or by the driver.
//
// One Core a process, made at the first hooked call and leaked on purpose: destructors that run after ours
// still free our blocks. Any thread may be in any call. Locks, in the order in which they may be taken: that of
// a device's primary context, a device's engine, then the tables' own. The driver's allocating, freeing and
// synchronising calls are made outside all but the first: one of them may have to wait for work that another
// thread is about to queue. An allocation that waits for memory to move does so under the engine's lock, and therefore
// not for ever (DeviceStreams::Await).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "base/hash_map.h"
#include "replay/core/session.h"
#include "replay/cuda/capture_table.h"
#include "replay/cuda/context_visits.h"
#include "replay/cuda/device.h"
#include "replay/cuda/driver.h"
#include "replay/cuda/pool_table.h"
#include "replay/cuda/streams.h"
#include "replay/cuda/timeline.h"

namespace reprise::replay::cuda {

// Which stream a call means by handle 0.
enum class DefaultStream { kLegacy, kPerThread };

// Which blocks of its own the driver would let a call export.
enum class Exportable { kNone, kSynchronous, kAll };

class Core {
 public:
  static constexpr int kMostDevices = 64;

  Core(const Driver& driver, std::unique_ptr<CoreSession> session)
      : driver_(driver), session_(std::move(session)) {
    session_->BeginStacks(nullptr);
    if (session_->config().timeline) timeline_ = Timeline::Begin(session_->activity_names());
    session_->BeginInterim([] {}, [this] { return Summarize(&Device::SoFar); });
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Every call goes to the driver: a fork's child.
  bool passive() const { return passive_.load(std::memory_order_relaxed); }
  const reprise_cuda_calls& driver() const { return *driver_.calls; }
  // Nothing new is served from then on.
  void Stop() noexcept { stopped_ = true; }
  // The same, after an exception.
  void Fail() noexcept;
  bool Owns(cu_address address) const { return FindOwner(address) != nullptr; }

  // memory_calls.cc
  Result Alloc(cu_address* out, size_t bytes);
  Result AllocPitch(cu_address* out, size_t* pitch, size_t width, size_t height, unsigned element);
  Result Free(cu_address block);
  Result AllocAsync(cu_address* out, size_t bytes, cu_pool pool, cu_stream stream, DefaultStream means);
  Result FreeAsync(cu_address block, cu_stream stream, DefaultStream means);
  Result GetInfo(size_t* free, size_t* total);
  // For allocations that are not ours: where memory has run out, ours is given back and the driver asked
  // again.
  template <typename Real>
  Result AskAgain(Real real) {
    return AskWithRoom(real, [&] { return GiveBackAll(CurrentDevice()); });
  }
  template <typename Real>
  Result AskAgainOn(int device, Real real) {
    return AskWithRoom(real, [&] { return GiveBackAll(device); });
  }
  // The same in a call that we have failed in.
  template <typename Real>
  Result AskWithoutUs(Real real) noexcept {
    Result last = kSuccess;
    try {
      return AskAgain([&] { return last = real(); });
    } catch (...) {
      return last;
    }
  }

  // pool_calls.cc
  Result PoolCreate(cu_pool* pool, const cu_pool_props* props);
  Result PoolDestroy(cu_pool pool);
  void CurrentPoolsChanged();
  Result PoolGetAttribute(cu_pool pool, int attribute, void* value);
  Result PoolSetAttribute(cu_pool pool, int attribute, void* value);
  Result PoolTrim(cu_pool pool, size_t keep);
  Result PoolSetAccess(cu_pool pool, const cu_access* access, size_t count);

  // query_calls.cc
  Result AddressRange(cu_address* base, size_t* bytes, cu_address address);
  Result PointerAttribute(void* value, int attribute, cu_address address);
  Result PointerAttributes(unsigned count, int* attributes, void** values, cu_address address);
  Result SetPointerAttribute(const void* value, int attribute, cu_address address);
  // For calls that would let another process or device see more than the block. What the driver would have granted is
  // counted, and said once.
  bool RefuseExport(cu_address address, const char* call, Exportable exportable);
  // Of a process that exports memory, or registers it with a network, no synchronous blocks are served: they
  // must be the driver's.
  void NoteExport() { exported_ = true; }

  // end_calls.cc
  Result EndContext(cu_context context, Result (*call)(cu_context));
  template <typename Real>
  Result RetainPrimary(const cu_context* primary, int device, Real real) {
    const auto lock = LockPrimary(device);
    const Result result = AskAgainOn(device, real);
    if (result == kSuccess && lock) primary_contexts_[static_cast<size_t>(device)] = *primary;
    return result;
  }
  Result ResetPrimary(int device, Result (*call)(int));
  Result ReleasePrimary(int device, Result (*call)(int));
  // There is one that waits for the legacy stream, and that for it.
  void NoteBlockingStream() { blocking_streams_ = true; }
  Result DestroyStream(cu_stream stream, Result (*call)(cu_stream));
  Result AllowPeer(cu_context peer, int flags);
  template <typename Call>
  Result BeginCapture(cu_stream stream, DefaultStream means, Call call) {
    ++captures_;  // before: nothing of ours may come in between
    FinishCallsUnderWay();
    const CaptureTable::Capture capture = CaptureOn(stream, means);
    const Result result = call();
    Note([&] {
      if (result != kSuccess || !capture_table_.Add(capture)) --captures_;
    });
    return result;
  }
  Result EndCapture(cu_stream stream, void** graph, DefaultStream means);

  // Null where no call stacks are wanted.
  StackSource* stacks() { return session_->stacks(); }

  void BeforeFork() noexcept;
  void AfterForkInParent() noexcept;
  void AfterForkInChild() noexcept;
  void AtExit() noexcept;

 private:
  // A block of the driver's that is part of the sequence.
  struct Outside {
    Device* device = nullptr;
    BlockInfo info;
  };

  Device* FindOwner(cu_address address) const {
    for (int i = 0; i < device_count_.load(std::memory_order_acquire); ++i) {
      if (in_use_[i]->OffsetOf(address) >= 0) return in_use_[i];
    }
    return nullptr;
  }
  // Negative: none.
  int CurrentDevice() const {
    int current = -1;
    return driver_.CtxGetDevice(&current) == kSuccess ? current : -1;
  }
  // Null: it cannot be served, and the reason has been said.
  Device* DeviceNumber(int ordinal);
  // Of which device a context is. Negative: none's, or the driver does not tell.
  int DeviceIn(cu_context context) const;
  Device* DeviceOf(cu_context context) { return DeviceNumber(DeviceIn(context)); }
  // nullopt: no stream of ours to serve, the driver will say what is wrong with it; or its context is about to end, or a green
  // one, or something is being captured, and `wanted`, bytes that are asked for there, go unrecorded.
  std::optional<StreamTable::Place> PlaceOf(cu_stream stream, DefaultStream means, size_t wanted = 0);
  std::optional<StreamTable::Place> AddStream(const StreamKey& key, size_t wanted);
  void ForgetEndedThreads(const Engine::Guard& guard, Device& device);
  StreamKey KeyOf(cu_stream stream, DefaultStream means) const;
  bool Capturing(cu_stream stream, DefaultStream means) const {
    return captures_.load(std::memory_order_relaxed) != 0 && IsCapturing(KeyOf(stream, means).handle);
  }
  bool IsCapturing(cu_stream handle) const;  // as KeyOf names it
  bool MayServe() const { return !stopped_.load(std::memory_order_relaxed) && captures_.load() == 0; }

  // Whose a block from the device's current pool would be; kNoPool: it cannot be ours.
  Owner CurrentPool(Device& device);
  void AddDefaultPool(Device& device);
  bool AllowPeersOf(cu_pool pool, Device& device);
  Result AllowPool(Device& device, int peer, int flags);
  void FinishCallsUnderWay();
  CaptureTable::Capture CaptureOn(cu_stream stream, DefaultStream means) const;
  bool MayBeInGreenContext(cu_stream handle);
  void AddCaptureUnheardOf(const StreamKey& key, cu_context context);
  void DropCaptures(const std::vector<uint64_t>& numbers) { captures_ -= capture_table_.Drop(numbers); }
  // Writes down what the driver has done: it must not be done again where that fails.
  template <typename Run>
  void Note(Run run) noexcept {
    try {
      run();
    } catch (...) {
      Fail();
    }
  }
  Summary Summarize(DeviceSummary (Device::*of_device)());
  // For an allocation or a free on the stream that the driver will not hear of. False: its order cannot be kept.
  bool StandIn(const Engine::Guard& guard, Device& device, Stream stream) {
    return !blocking_streams_.load(std::memory_order_relaxed) || IsEveryStream(stream) ||
           device.streams(guard).StandIn(stream);
  }
  // The whole way of one request: served by the arena, or by `real` and recorded; memory that has run out is
  // waited for, given back and asked for again first.
  template <typename Real>
  Result Serve(Device& device, cu_address* out, Engine::Request request, Real real);
  template <typename Real>
  Result PassRecorded(Device& device, cu_address* out, const Engine::Request& request, const BlockInfo& left,
                      Real real);
  template <typename Real>
  Result PassUnserved(Device& device, size_t bytes, Real real);
  bool CountUnserved(Device& device, size_t bytes);
  template <typename Real>
  Result AllocFromUnserved(Device& device, cu_address* out, const Engine::Request& request, Real real);
  // Whether a block of the driver's is memory of that device, which does not move.
  bool LiesOn(const Device& device, cu_address block) const;
  void KeepPitched(cu_address* out, size_t bytes);
  std::optional<Offset> ServeAfterWait(Device& device, const Engine::Request& request, const BlockInfo& left);
  std::optional<Offset> ServeFromHost(Device& device, const Engine::Request& request, const BlockInfo& left);
  bool WaitForDevice(Device& device, cu_context context);
  cu_context ContextOf(Device& device, const BlockInfo& block);
  std::optional<Bytes> GiveBackAll(int ordinal);
  std::optional<Bytes> GiveBackAfterWait(Device& device, cu_context context);
  // `real`, and where memory has run out again, once `make_room` has given some back; nullopt: it can give none. Twice
  // whether or not it has: another thread may just have given it back, or have taken it for what it frees elsewhere.
  // Then for as long as anything comes back, which another may have taken first each time.
  template <typename Real, typename MakeRoom>
  Result AskWithRoom(Real real, MakeRoom make_room) {
    constexpr int kMostTimes = 8;
    Result result = real();
    for (int times = 0; result == kOutOfMemory && times < kMostTimes; ++times) {
      const std::optional<Bytes> room = make_room();
      if (!room || (times > 1 && *room == Bytes(0))) break;
      result = real();
    }
    return result;
  }
  // A block that has been freed and is still live, by its number: another may come to lie where it was.
  struct Parked {
    Device* device = nullptr;
    cu_address block = 0;
    BlockId id{};
  };
  // `in_order`: whoever used what was asked for in stream order is behind the free, in an order that we know. `parked`: of
  // a parked block, its number.
  Result FreeOurs(Device& device, cu_address block, bool in_order, std::optional<BlockId> parked = {});
  Result Park(Device& device, cu_address block, BlockId id);
  bool IsParked(Device& device, cu_address block);
  void FreeParked();  // as far as nothing is being captured
  template <typename Real>
  Result FreeOutside(cu_address block, Stream stream, Real real);

  std::optional<Engine::Found> FindBlock(cu_address address, Device** device, Bytes* bytes);
  Result PatchAttribute(void* value, int attribute, const Engine::Found& block, Device& device, Bytes bytes);

  void AddPeer(int ordinal) {
    if (ordinal >= 0 && ordinal < kMostDevices) peers_ |= uint64_t{1} << ordinal;
  }
  void AddPeer(cu_context context);
  void AddUser(Device& device, cu_address block, cu_stream stream, cu_context user);
  bool TakePeer(cu_context context);
  using Visit = ContextVisits::Visit;
  using Ending = ContextVisits::Ending;
  Ending BeginEnding(cu_context context);
  std::vector<Visit> Peers();
  std::optional<Result> FinishQueued(cu_context context, const std::vector<Visit>& peers);
  Device* KnownDevice(int ordinal) const;
  Device* DeviceThatKnows(cu_context context) const;
  template <typename Call>
  Result End(cu_context context, Device* device, bool reset, Call call);
  // Held from before a device's primary context is retained, released, reset or asked for until what that means
  // is written down: a context that is gone is not begun anew before. Taken before any other lock, and again by
  // a thread that has it, as from within a callback of the driver's. It is held while the driver waits for the
  // context's work to end, which nobody may add to any more.
  std::unique_lock<std::recursive_mutex> LockPrimary(int ordinal) {
    if (ordinal < 0 || ordinal >= kMostDevices) return {};
    return std::unique_lock(primaries_[static_cast<size_t>(ordinal)]);
  }
  cu_context Primary(int ordinal);
  Visit VisitPrimary(int ordinal);
  void DropContext(Device& device, cu_context context, bool reset);

  const Driver driver_;
  const std::unique_ptr<CoreSession> session_;
  std::array<std::unique_ptr<Device>, kMostDevices> devices_;  // by ordinal; opening_ guards the filling
  std::array<std::atomic<Device*>, kMostDevices> by_ordinal_{};
  std::vector<DeviceSummary> refused_;          // the devices that cannot be served
  std::array<Device*, kMostDevices> in_use_{};  // the first device_count_
  std::atomic<int> device_count_{0};
  std::atomic<int> devices_met_{0};  // the refused ones too
  std::mutex opening_;
  std::array<std::recursive_mutex, kMostDevices> primaries_;  // by ordinal
  std::array<cu_context, kMostDevices> primary_contexts_{};   // the last known; each under its lock

  Timeline* timeline_ = nullptr;  // null: none is wanted, or can be had

  StreamTable streams_;
  // Primary contexts that are being released, which may end them: their streams are in the table, and the handle of
  // one may already be that of another.
  std::atomic<int> releasing_{0};
  PoolTable pools_;
  std::mutex outside_mutex_;
  HashMap<cu_address, Outside> outside_;

  std::atomic<int> captures_{0};  // going on now
  // Shared by who waits for a context, from before it is known that nothing is captured: a wait would end a
  // capture that has begun since. Before any lock but a primary context's.
  std::shared_mutex waiting_;
  std::mutex parked_mutex_;
  std::vector<Parked> parked_;
  std::atomic<bool> any_parked_{false};
  CaptureTable capture_table_;
  std::atomic<int> pool_changes_{0};
  // Devices that may use another's blocks, a bit each: what is queued in a block's own context is not all.
  std::atomic<uint64_t> peers_{0};
  std::mutex peer_contexts_mutex_;
  std::vector<cu_context> peer_contexts_;  // the same, of contexts that are no device's primary one
  ContextVisits visits_;
  std::atomic<bool> blocking_streams_{false};
  std::atomic<bool> exported_{false};
  std::atomic<bool> passive_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<int64_t> errors_{0};
};

}  // namespace reprise::replay::cuda
