// The core behind libreprise-host.so: one engine over host memory, and the seam in front of it.
//
// Ownership: one HostCore a process, made at the first allocation that matters and leaked on purpose: the
// destructors of other libraries run after ours and still free our blocks.
// Threads: any. The engine's lock is taken in TakeLock alone. Nothing thrown crosses the seam: after the
// first exception the core serves nothing new (law 4).
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/exceptions.h"
#include "replay/abi.h"
#include "replay/background_runner.h"
#include "replay/core/log.h"
#include "replay/core/served_engine.h"
#include "replay/core/session.h"
#include "replay/engine.h"
#include "replay/host_memory.h"

namespace reprise::replay {
namespace {

constexpr Bytes kLeastReserve = kGiB;
constexpr Bytes kUsualReserve{64 * kGiB.count()};

// What a single mapping may have at most where the system refuses obvious overcommitments, which is what it
// does unless it is told otherwise: a job that tries how much there is goes by the refusal.
Bytes MachineMemory() {
  struct sysinfo machine;
  if (sysinfo(&machine) != 0) return kUsualReserve;
  return Bytes(static_cast<int64_t>((machine.totalram + machine.totalswap) * machine.mem_unit));
}

// The whole pages among these bytes to the system.
void GiveBackPages(void* begin, Bytes bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (from + page - 1) / page * page;
  const uintptr_t last = (from + static_cast<uintptr_t>(bytes.count())) / page * page;
  if (first < last) madvise(static_cast<char*>(begin) + (first - from), last - first, MADV_DONTNEED);
}

class ErrnoKept {
 public:
  ErrnoKept() = default;
  ~ErrnoKept() { errno = saved_; }
  ErrnoKept(const ErrnoKept&) = delete;
  ErrnoKept& operator=(const ErrnoKept&) = delete;

 private:
  const int saved_ = errno;
};

class HostCore {
 public:
  HostCore(const reprise_host_shim& shim, std::unique_ptr<CoreSession> session, const HostMemory& memory)
      : shim_(shim),
        session_(std::move(session)),
        begin_(memory.begin()),
        end_(memory.end()),
        largest_(std::min(end_ - begin_, static_cast<uintptr_t>(MachineMemory().count()))),
        runner_([this] { BeginOwnThread(); }) {}
  HostCore(const HostCore&) = delete;
  HostCore& operator=(const HostCore&) = delete;

  absl::Status Begin(std::unique_ptr<HostMemory> memory);

  uintptr_t begin() const { return begin_; }
  uintptr_t end() const { return end_; }

  void* Allocate(size_t bytes, size_t alignment) noexcept;
  // The same where call stacks are wanted: taken before the lock, which threads wait for that hold locks of
  // the job's own.
  void* AllocateWithStack(size_t bytes, size_t alignment) noexcept {
    if (!inert_.load(std::memory_order_relaxed)) session_->stacks()->Take();
    return Allocate(bytes, alignment);
  }
  bool takes_stacks() const { return session_->stacks() != nullptr; }
  void Release(void* block) noexcept;
  void ReleaseLater(void* block) noexcept;
  size_t UsableSize(void* block) noexcept;
  bool Trim() noexcept;

  void BeforeFork() noexcept;
  void AfterForkInParent() noexcept;
  void AfterForkInChild() noexcept;
  void AtExit() noexcept;

 private:
  // A free that could not wait for the lock, kept in the freed block itself.
  struct LateFree {
    LateFree* next;
  };

  Bytes Threshold() const { return Bytes(static_cast<int64_t>(shim_.threshold)); }
  Offset OffsetOf(const void* block) const {
    return Offset(static_cast<int64_t>(reinterpret_cast<uintptr_t>(block) - begin_));
  }
  void* AddressOf(Offset block) const {
    return reinterpret_cast<void*>(begin_ + static_cast<uintptr_t>(block.count()));  // NOLINT(performance-*)
  }
  // Counts a thread for as long as it lives.
  class Reading {
   public:
    explicit Reading(std::atomic<int>& readers) : readers_(readers) { readers_.fetch_add(1); }
    ~Reading() { readers_.fetch_sub(1); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    std::atomic<int>& readers_;
  };

  void BeginOwnThread() const noexcept;
  std::optional<Engine::Guard> TakeLock();
  bool HoldsForksLock(const int* depth) const noexcept;
  void ReleaseForksLock() noexcept;
  void TakeInLateFrees(const Engine::Guard& guard);
  void LetGo(void* block);
  void Fail() noexcept;
  void CountPassedBytes(size_t bytes) noexcept {
    passed_bytes_.fetch_add(static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX / 2)),
                            std::memory_order_relaxed);
  }
  Bytes PassedBytes() const {
    return Bytes(passed_bytes_.load() + __atomic_load_n(&shim_.passed->bytes, __ATOMIC_RELAXED));
  }
  Summary NewSummary() const;
  Summary SoFar();
  void Finish();

  const reprise_host_shim& shim_;
  const std::unique_ptr<CoreSession> session_;
  const uintptr_t begin_;
  const uintptr_t end_;
  const size_t largest_;  // of a block: whether more than the machine has is given is the system's to say
  BackgroundRunner runner_;
  ServedEngine engine_;

  std::atomic<bool> inert_{false};  // a fork's child, or after an error: nothing new is served
  std::atomic<int> forks_{0};       // going on now
  std::optional<Engine::Guard> forks_guard_;
  // The depth of the thread that has put forks_guard_ there, and what it was: forks may be nested. The guard
  // stays while there are readers.
  std::atomic<int*> frozen_by_{nullptr};
  int frozen_at_ = 0;
  std::atomic<int> readers_{0};  // threads
  std::atomic<LateFree*> late_{nullptr};
  std::atomic<int64_t> passed_{0};        // that the engine was not asked for
  std::atomic<int64_t> passed_bytes_{0};  // of these, and of those that found no room in it
  std::atomic<int64_t> late_frees_{0};
  std::atomic<int64_t> errors_{0};
};

HostCore* host = nullptr;

thread_local bool is_own_thread = false;

// What a thread of ours asks for itself never enters the engine.
void HostCore::BeginOwnThread() const noexcept {
  ++*shim_.thread_depth();
  is_own_thread = true;
}

absl::Status HostCore::Begin(std::unique_ptr<HostMemory> memory) {
  session_->BeginStacks(shim_.thread_depth);
  if (session_->config().timeline)
    Log(LogLevel::kWarn, "no time line: the host's memory has no device's to show");
  session_->BeginInterim([this] { BeginOwnThread(); }, [this] { return SoFar(); });
  return engine_.Begin(*session_,
                       {.kind = "host", .threshold = Threshold(), .passed = [this] { return PassedBytes(); }},
                       std::move(memory), &runner_);
}

// The lock, or nothing while a fork is going on. To wait for a fork can deadlock: the forking thread holds
// the lock while the job's own fork handlers run, and one of those may want a lock that our caller holds. Nor
// is there anything to wait for in a child that was made behind our back (by a bare system call, say, or in a
// signal handler that interrupted the engine): whoever holds the lock may not be there.
std::optional<Engine::Guard> HostCore::TakeLock() {
  std::optional<Engine::Guard> guard = engine_->TryLock();
  while (!guard) {
    if (forks_.load(std::memory_order_relaxed) != 0 || !session_->InItsProcess()) return std::nullopt;
    guard = engine_->TryLockFor(std::chrono::milliseconds(1));
  }
  return guard;
}

void HostCore::TakeInLateFrees(const Engine::Guard& guard) {
  if (late_.load(std::memory_order_relaxed) == nullptr) return;
  LateFree* block = late_.exchange(nullptr, std::memory_order_acquire);
  while (block != nullptr) {
    LateFree* const next = block->next;
    // A block freed twice makes a ring; what follows a free of nothing is not to be trusted.
    if (!engine_->Free(guard, OffsetOf(block), Stream{})) return;
    block = next;
  }
}

void* HostCore::Allocate(size_t bytes, size_t alignment) noexcept {
  const ErrnoKept errno_kept;
  try {
    // No more can be promised of an address in the range than of its begin.
    const bool serves = !inert_.load(std::memory_order_relaxed) && CanThrow();
    if (serves && bytes <= largest_ && alignment <= static_cast<size_t>(HostMemory::kAlignment.count())) {
      if (const std::optional<Engine::Guard> guard = TakeLock()) {
        TakeInLateFrees(*guard);
        const Offset block = engine_->Allocate(*guard, {.bytes = Bytes(static_cast<int64_t>(bytes)),
                                                        .alignment = Bytes(static_cast<int64_t>(alignment))});
        if (block == Engine::kNowhere) CountPassedBytes(bytes);  // the request is in the engine's count
        engine_.Tend(*guard);
        return block == Engine::kNowhere ? nullptr : AddressOf(block);
      }
    }
    passed_.fetch_add(1, std::memory_order_relaxed);
    CountPassedBytes(bytes);
  } catch (...) {
    Fail();
  }
  return nullptr;
}

void HostCore::Release(void* block) noexcept {
  const ErrnoKept errno_kept;
  try {
    if (inert_.load(std::memory_order_relaxed)) return LetGo(block);
    if (const std::optional<Engine::Guard> guard = CanThrow() ? TakeLock() : std::nullopt) {
      TakeInLateFrees(*guard);
      engine_->Free(*guard, OffsetOf(block), Stream{});
    } else {
      ReleaseLater(block);
    }
  } catch (...) {
    Fail();
  }
}

// Of an inert core, which hands out nothing again: a fork's child that lives on and takes new blocks from the real
// allocator would have everything twice. Who has the lock meanwhile may be a thread that is not here.
void HostCore::LetGo(void* block) {
  if (const std::optional<Engine::Guard> guard = engine_->TryLock())
    GiveBackPages(block, engine_->UsableSize(*guard, OffsetOf(block)));
}

void HostCore::ReleaseLater(void* block) noexcept {
  if (inert_.load(std::memory_order_relaxed)) return;
  auto* const late = static_cast<LateFree*>(block);
  late->next = late_.load(std::memory_order_relaxed);
  while (
      !late_.compare_exchange_weak(late->next, late, std::memory_order_release, std::memory_order_relaxed)) {
  }
  late_frees_.fetch_add(1, std::memory_order_relaxed);
}

// There is no other answer, so a fork's lock is read under: nothing changes while it is held.
size_t HostCore::UsableSize(void* block) noexcept {
  const ErrnoKept errno_kept;
  try {
    for (;;) {
      if (const std::optional<Engine::Guard> guard = TakeLock())
        return static_cast<size_t>(engine_->UsableSize(*guard, OffsetOf(block)).count());
      const Reading reading(readers_);
      if (frozen_by_.load() != nullptr)
        return static_cast<size_t>(engine_->UsableSize(*forks_guard_, OffsetOf(block)).count());
      if (!session_->InItsProcess()) return 0;
    }
  } catch (...) {
    Fail();
    return 0;
  }
}

// What a plan covers stays: a job that trims in every round would have it to fault in again each time.
bool HostCore::Trim() noexcept {
  const ErrnoKept errno_kept;
  if (inert_.load(std::memory_order_relaxed) || !CanThrow()) return false;
  try {
    const std::optional<Engine::Guard> guard = TakeLock();
    if (!guard) return false;
    TakeInLateFrees(*guard);
    return engine_->GiveBack(*guard, /*plan_too=*/false) > Bytes(0);
  } catch (...) {
    Fail();
    return false;
  }
}

// Live blocks stay where they are and readable; freed ones are not handed out again.
void HostCore::Fail() noexcept {
  inert_ = true;
  if (errors_.fetch_add(1) == 0) Log(LogLevel::kWarn, "an error inside Reprise; nothing more is served");
}

// The lock is held over the fork, so that the child finds the engine whole. The job's own handlers run
// meanwhile on this thread, which is kept out by its depth. A signal handler that forks may have interrupted
// this very thread with the lock held: then it cannot be waited for, and the fork goes without it.
void HostCore::BeforeFork() noexcept {
  forks_.fetch_add(1);
  if (takes_stacks()) session_->stacks()->BeforeFork();
  int* const depth = shim_.thread_depth();
  std::optional<Engine::Guard> guard = engine_->TryLock();
  if (!guard && *depth == 0) guard = engine_->Lock();
  if (guard) {
    forks_guard_ = std::move(guard);
    frozen_at_ = *depth;
    frozen_by_ = depth;
  }
  ++*depth;
}

bool HostCore::HoldsForksLock(const int* depth) const noexcept {
  return frozen_by_.load() == depth && frozen_at_ == *depth;
}

void HostCore::AfterForkInParent() noexcept {
  int* const depth = shim_.thread_depth();
  --*depth;
  if (HoldsForksLock(depth)) {
    frozen_by_ = nullptr;
    while (readers_.load() != 0) std::this_thread::yield();
    ReleaseForksLock();
  }
  if (takes_stacks()) session_->stacks()->AfterForkInParent();
  forks_.fetch_sub(1);
}

// The child has this thread alone: no planner, no writer. It keeps the blocks that it inherited, takes new
// ones from the real allocator, and leaves no files and no summary.
void HostCore::AfterForkInChild() noexcept {
  inert_ = true;
  session_->AbandonAfterFork();
  engine_.AbandonAfterFork();
  if (takes_stacks()) session_->stacks()->AbandonAfterFork();
  int* const depth = shim_.thread_depth();
  --*depth;
  readers_ = 0;
  if (HoldsForksLock(depth)) {
    frozen_by_ = nullptr;
    ReleaseForksLock();
  }
  forks_ = 0;
}

// The next fork's may be put there as soon as it is released.
void HostCore::ReleaseForksLock() noexcept {
  const Engine::Guard guard = *std::exchange(forks_guard_, std::nullopt);
}

void HostCore::AtExit() noexcept {
  if (!session_->InItsProcess()) return;
  const WriteSignalsHeld signals_held;
  int* const depth = shim_.thread_depth();
  ++*depth;
  if (!Completes([&] { Finish(); })) Log(LogLevel::kWarn, "an error while ending; no summary");
  --*depth;
}

Summary HostCore::NewSummary() const {
  Summary summary = session_->NewSummary();
  summary.threshold = Threshold();
  const int64_t unheard_of = __atomic_load_n(&shim_.passed->requests, __ATOMIC_RELAXED);
  summary.host_counters = {
      .passed = passed_.load() + unheard_of,
      .passed_while_opening = __atomic_load_n(&shim_.passed->while_opening, __ATOMIC_RELAXED),
      .late_frees = late_frees_.load(),
      .errors = errors_.load()};
  return summary;
}

Summary HostCore::SoFar() {
  Summary summary = NewSummary();
  engine_.SoFar([](const Engine::Guard&) {}, summary);
  return summary;
}

void HostCore::Finish() {
  Summary summary = NewSummary();
  // A signal handler that calls exit may have interrupted this very thread inside the engine: then its lock
  // is never released. None runs on a thread of ours, which may be the one that the process ends with.
  const bool inside = *shim_.thread_depth() > 1 && !is_own_thread;
  engine_.Finish(
      inside, [this](const Engine::Guard& guard) { TakeInLateFrees(guard); }, summary);
  session_->Report(summary);
}

// Twice the machine's memory, so that fragmentation of addresses never costs memory.
Bytes UsualReserve() { return std::clamp(MachineMemory() * 2, kUsualReserve, kLargestRange); }

absl::StatusOr<std::unique_ptr<HostMemory>> Reserve() {
  Bytes bytes = UsualReserve();
  for (;;) {
    absl::StatusOr<std::unique_ptr<HostMemory>> memory = HostMemory::Reserve(bytes);
    if (memory.ok() || bytes <= kLeastReserve) return memory;
    bytes = Bytes(bytes.count() / 2);
  }
}

HostCore* Open(const reprise_host_shim& shim) {
  std::unique_ptr<CoreSession> session = CoreSession::Open(shim.stderr_at_start, shim.cpus_at_start);
  if (session == nullptr) return nullptr;
  absl::StatusOr<std::unique_ptr<HostMemory>> memory = Reserve();
  if (!memory.ok()) {
    Log(LogLevel::kInfo, std::string(memory.status().message()) + "; memory is left as it is");
    return nullptr;
  }
  auto core = std::make_unique<HostCore>(shim, std::move(session), **memory);
  const absl::Status begun = core->Begin(*std::move(memory));
  if (!begun.ok()) {
    Log(LogLevel::kWarn, std::string(begun.message()) + "; memory is left as it is");
    return nullptr;
  }
  return core.release();
}

__attribute__((destructor)) void AtExit() {
  if (host != nullptr) host->AtExit();
}

const reprise_host_core* OpenOnce(const reprise_host_shim* shim) {
  static reprise_host_core entries;
  if (shim->version != REPRISE_ABI_VERSION || shim->size < sizeof *shim) {
    Log(LogLevel::kWarn, "the preload library is of another version; memory is left as it is");
    return nullptr;
  }
  if (host != nullptr) return nullptr;  // another preload library is served already
  HostCore* const core = Open(*shim);
  if (core == nullptr) return nullptr;
  host = core;
  entries = {REPRISE_ABI_VERSION,
             sizeof entries,
             host->begin(),
             host->end(),
             [](size_t bytes, size_t alignment) { return host->Allocate(bytes, alignment); },
             [](void* block) { host->Release(block); },
             [](void* block) { host->ReleaseLater(block); },
             [](void* block) { return host->UsableSize(block); },
             [] { return host->Trim() ? 1 : 0; },
             [] { host->BeforeFork(); },
             [] { host->AfterForkInParent(); },
             [] { host->AfterForkInChild(); }};
  if (host->takes_stacks()) {
    entries.allocate = [](size_t bytes, size_t alignment) {
      return host->AllocateWithStack(bytes, alignment);
    };
  }
  return &entries;
}

}  // namespace
}  // namespace reprise::replay

extern "C" __attribute__((visibility("default"))) const reprise_host_core* reprise_core_open_host(
    const reprise_host_shim* shim) {
  const reprise_host_core* opened = nullptr;
  if (!reprise::Completes([&] { opened = reprise::replay::OpenOnce(shim); })) {
    reprise::replay::Log(reprise::replay::LogLevel::kWarn,
                         "an error while starting; memory is left as it is");
  }
  return opened;
}
