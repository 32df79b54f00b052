// One device's engine: watches the sequence of allocations, finds the iteration, has it planned, and serves
// it (sequence.h).
//
// States: recording (no plan: the arena places by best fit), planning (a request is being solved elsewhere),
// serving (the matcher names the slot, the arena places it there if it can, unless the plan waits for an entry).
// The period finder runs on in all of them. A solved plan waits as a candidate, followed by a shadow matcher, and
// is adopted at the cut, in step.
//
// A job whose threads allocate at once, each in an order of its own, has no order that ever repeats, but each
// thread's may. Where several threads are seen, each has a sequence of its own beside the device's; when those
// that have been in their own iteration for some rounds make up half of what the device does, and the device's
// follows none, the engine splits: every thread is planned for itself, in a region of its own.
//
// Every placement is the arena's, so whatever the plan says nothing live is handed out again; what cannot be
// placed at all is left to the real allocator.
//
// Thread-safe through Guard: every call on locked state takes one, which proves that the lock is held.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "profiler/iteration.h"
#include "profiler/period_finder.h"
#include "replay/arena.h"
#include "replay/job_threads.h"
#include "replay/memory_source.h"
#include "replay/planning.h"
#include "replay/sequence.h"
#include "replay/stream_order.h"

namespace reprise::replay {

// What happened, in numbers. Every way to leave the plan has one (law 7).
struct Counters {
  int64_t requests = 0;
  int64_t planned = 0;                  // placed at their planned offset
  int64_t arena = 0;                    // placed by best fit
  int64_t passed = 0;                   // left to the real allocator
  int64_t outside = 0;                  // recorded and not to be placed: they lie elsewhere
  int64_t conflicts = 0;                // the planned place was taken
  int64_t mismatches = 0;               // not what the plan expected next
  int64_t times_lost = 0;               // the matcher lost its place
  int64_t withheld = 0;                 // slots not followed: too much of the plan lay elsewhere
  int64_t plans = 0;                    // adopted
  int64_t plans_failed = 0;             // solved without a usable result
  int64_t plans_dropped = 0;            // solved, but another was found before the cut came
  int64_t plans_renewed = 0;            // of those adopted: for a cycle that had changed, or was in the way
  int64_t plan_switches = 0;            // back to a plan that was followed before
  int64_t plans_resumed = 0;            // of an earlier run, followed from the start
  int64_t iterations = 0;               // detected
  int64_t period = 0;                   // tokens of one iteration, as last found
  int64_t first_planned_iteration = 0;  // 1 = the first that was detected; 0: no plan adopted
  int64_t first_planned_request = 0;    // its number among the requests, from 1; 0: no plan adopted
  int64_t unknown_frees = 0;            // of an address that is not the begin of a live block
  int64_t granules_moved = 0;
  int64_t threads = 0;        // planned each for itself; 0: all together
  int64_t streams = 0;        // known at once, at most
  int64_t stream_waits = 0;   // of one stream for an event of another, at a reuse
  int64_t stream_events = 0;  // recorded at frees
  int64_t host_waits = 0;     // of the host for the device, for memory to move
  Bytes held_for_streams;     // so that they need not wait for one another, at most
  // Requests of at least kSmallBlock after the first adoption; the adopting one counts on neither side.
  int64_t requests_after_plan = 0;
  int64_t planned_requests_after_plan = 0;
  Bytes bytes_after_plan;
  Bytes planned_bytes_after_plan;
  Bytes live;    // requested and not freed
  Bytes placed;  // of the arena: live blocks as they lie, with what rounding adds
  Bytes live_peak;
  Bytes slab;         // of the plan in use: its height
  Bytes lower_bound;  // of the plan in use
  Bytes plan_needs;   // granules for the plans and for what lay beyond them when the last one was adopted
  Bytes reserved;     // committed granules, and what lies outside
  Bytes reserved_peak;
};

// `part` of `whole` as a share, 0 when there is no whole.
constexpr double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Hears of every block served, in order, under the engine's lock: the recorder hangs here.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void OnAlloc(BlockId id, Bytes bytes, Bytes alignment, Stream stream) = 0;
  virtual void OnFree(BlockId id, Stream stream) = 0;
  virtual void OnPlanAdopted() = 0;
};

class Engine {
 public:
  struct Options {
    bool plan = true;           // false: record only
    Bytes capacity{0};          // the most to hold committed; 0: no limit
    double plan_seconds = 1.0;  // budget of one planning
    Solver solve = planner::Solve;
    profiler::PeriodFinder::Options period;
    Sequence::Rules sequence_rules;
    Arena::Rules arena_rules;
    // Told, with the lock, what KnownPlans gives, whenever a plan of the engine's own making is adopted.
    std::function<void(std::vector<Sequence::Known>)> learnt;
  };

  // `runner` outlives the engine, and so does `events`, which is null where there are no streams. Fails when
  // the arena's tables cannot be had, or the memory is larger than kLargestRange.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const Options& options,
                                                        std::unique_ptr<MemorySource> memory,
                                                        PlanRunner* runner, StreamEvents* events = nullptr);

  class Guard {
   public:
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&& other) noexcept {
      std::swap(mutex_, other.mutex_);
      return *this;
    }
    ~Guard() {
      if (mutex_ != nullptr) mutex_->unlock();
    }

   private:
    friend class Engine;
    explicit Guard(std::timed_mutex* locked) : mutex_(locked) {}
    std::timed_mutex* mutex_;
  };
  Guard Lock() {
    mutex_.lock();
    return Guard(&mutex_);
  }
  std::optional<Guard> TryLock() {
    if (!mutex_.try_lock()) return std::nullopt;
    return Guard(&mutex_);
  }
  // Where the lock may be held by a thread that will never go on: tries for about `patience`.
  std::optional<Guard> TryLockFor(std::chrono::milliseconds patience);

  struct Request {
    Bytes bytes;
    Bytes alignment;      // a power of two
    Stream stream{};      // on which the block will be used
    uint64_t thread = 0;  // whose request it is; any numbers
    uint8_t owner = 0;    // BlockInfo::owner
    bool place = true;    // false: the real allocator is to serve it whatever we could do
  };
  // A block of at least `bytes`. kNowhere: use the real allocator. Where `left` is given, the block that it
  // then serves may be made known by KeepOutside. (Not std::optional: that travels through memory, in pieces
  // that are read back as one, which is a stall on the hot path.)
  static constexpr Offset kNowhere{-1};
  Offset Allocate(const Guard&, const Request& request, BlockInfo* left = nullptr);
  std::optional<Offset> Allocate(const Guard& guard, Bytes bytes, Bytes alignment, Stream stream) {
    const Offset at = Allocate(guard, {.bytes = bytes, .alignment = alignment, .stream = stream});
    return at == kNowhere ? std::nullopt : std::optional(at);
  }
  // Tries again to place what Allocate has left; for when memory has been given back.
  std::optional<Offset> PlaceAgain(const Guard&, const Request& request, const BlockInfo& left);
  // The real allocator has served it: it is live from here on, and part of the sequence.
  // `left` becomes the live block, of which FreeOutside is told.
  void KeepOutside(const Guard&, BlockInfo& left, Bytes alignment);
  void FreeOutside(const Guard&, const BlockInfo& block, Stream stream);
  // The real allocator could not: it counts as a request that was passed, and in no share of what was served.
  // Its token is never freed, so no plan makes room for it.
  void DropOutside(const Guard&, const BlockInfo& left);

  // Gives back the live block that begins at `block`, in the order of `stream`; kEveryStream: the device has
  // finished with it. False: there is no such block, and it has been counted.
  bool Free(const Guard&, Offset block, Stream stream);
  // The same, with what it was.
  std::optional<BlockInfo> FreeBlock(const Guard&, Offset block, Stream stream);
  // The live block that begins at `block` is nobody's from now on (BlockInfo::owner); what it was.
  std::optional<BlockInfo> Disown(const Guard&, Offset block);
  // The live block that `inside` lies in.
  struct Found {
    Offset begin;
    BlockInfo info;
  };
  std::optional<Found> Find(const Guard&, Offset inside);
  // Usable bytes of the live block that begins at `block`, 0 when there is none.
  Bytes UsableSize(const Guard&, Offset block);

  // Null where there are no streams.
  StreamOrder* order(const Guard&) { return order_.get(); }
  // Releases what is free and idle, all of it or what no plan covers, but no more than `most`. Returns the
  // bytes released.
  Bytes GiveBack(const Guard&, bool plan_too, Bytes most = kAllOfIt) {
    return arena_.GiveBack(plan_too, most, split_ ? Offset(0) : whole_.plans_begin());
  }
  // Calls visit(offset, info) for every live block.
  template <typename Visit>
  void ForEachLive(const Guard&, Visit visit) const {
    const auto each = [&](Offset offset, Bytes, const BlockInfo& info) { visit(offset, info); };
    arena_.ForEachLive(each);
    arena_.ForEachSmallLive(each);
  }

  Bytes committed(const Guard&) const { return arena_.committed(); }
  Bytes placed(const Guard&) const { return arena_.placed(); }
  Bytes idle(const Guard&) const { return arena_.idle(); }
  Counters counters(const Guard&) const;
  // Whether a plan has come into use that has a place for a block without a stream.
  bool plans_without_stream(const Guard&) const { return plans_without_stream_; }
  // The plans of an earlier run: their range is kept free until a plan is followed. Before the first request.
  // OutOfRange, and none is taken, where one of them is not for this arena.
  absl::Status Expect(const Guard&, std::vector<Sequence::Expected> plans);
  // What to keep for a later run, of the device as a whole; nothing where threads are planned apart.
  std::vector<Sequence::Known> KnownPlans(const Guard&) const { return KnownPlans(); }
  void SetEventSink(const Guard&, EventSink* sink) { sink_ = sink; }

 private:
  Engine(const Options& options, std::unique_ptr<MemorySource> memory, PlanRunner* runner,
         StreamEvents* events);

  // What one request came to. Filled in place: to copy what has just been written field by field stalls.
  struct Outcome {
    Arena::Block block;
    Tick token{-1};
    Tick own_token{-1};
    uint16_t thread = 0;
    bool crosses = true;
    bool planned = false;
  };
  void Take(const Request& request, Outcome& outcome);
  void TakeToken(const Request& request, Outcome& outcome);
  void TakeTokenAmongThreads(const Request& request, Outcome& outcome);
  void Follow(Sequence& leading, const Sequence::Step& step, const Request& request, Outcome& outcome);
  void CountShare(Bytes bytes, bool planned);
  void Describe(const Request& request, const Outcome& outcome, BlockInfo& info);
  void ConsiderSplitting(const JobThreads::Thread& thread);
  Sequence& Leading(uint16_t thread) { return split_ ? *threads_[thread].sequence : whole_; }
  void PlaceInSlot(Sequence& sequence, uint32_t slot, const Request& request, Outcome& outcome);
  Arena::Block PlaceAnywhere(Sequence& sequence, const Request& request, Tick token);
  bool IsToStay(Tick token, Bytes bytes);
  Offset Live(Arena::Block block, Bytes alignment);
  void CountLive(BlockInfo& info, Bytes alignment);
  void CountFreed(const BlockInfo& info, Stream stream);
  bool Adopt(Sequence& sequence, const Sequence::Step& step);
  bool Rests(Sequence& sequence, const Sequence::Step& step) const;
  void BeginFirstCycle(Sequence& sequence, const Sequence::Step& step);
  Offset PlansEnd(const Sequence& sequence) const;
  Bytes ForLag() const;
  std::vector<Sequence::Known> KnownPlans() const;
  void CountPlan(const Sequence& sequence);
  // What is live, small blocks aside, outside of what the plans in use cover; and what these cover, by granules.
  struct Beside {
    Bytes live;
    Bytes covered;
  };
  Beside BesidePlans() const;
  Bytes NeedOfPlans(const Beside& beside) const;
  bool MoveToOwnRegion(const Sequence& sequence, ServingPlan& plan) const;
  Bytes MostFor(const Sequence& sequence) const;
  void ConsiderPlanning(Sequence& sequence);
  template <typename Visit>
  void ForEachSequence(Visit visit) const {
    visit(whole_);
    for (const JobThreads::Thread& thread : threads_) visit(*thread.sequence);
  }

  const Options options_;
  std::timed_mutex mutex_;
  const std::unique_ptr<MemorySource> memory_;
  const std::unique_ptr<StreamOrder> order_;  // null: no streams
  PlanRunner* const runner_;
  EventSink* sink_ = nullptr;

  Arena arena_;
  Sequence whole_;      // everything on the device, until the split
  JobThreads threads_;  // from the second thread on
  bool split_ = false;
  bool plans_without_stream_ = false;
  bool expecting_ = false;           // a plan of an earlier run has its range kept free
  std::vector<StayingBlock> stays_;  // of the start, by token; empty where that is not known

  // Blocks are numbered as they become live, which is the order in which the sink hears of them. Until then
  // one has its request's number.
  uint64_t next_id_ = 0;
  Counters counters_;
  int rounds_to_give_back_ = 0;
  Bytes beside_plans_;  // BesidePlans().live, when the plan was adopted or had served its first round
};

}  // namespace reprise::replay
