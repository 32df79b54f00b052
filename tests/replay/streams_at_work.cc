#include "tests/replay/streams_at_work.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "replay/counted_memory.h"
#include "replay/overlap_checker.h"
#include "replay/stream_order.h"

namespace reprise::replay {
namespace {

constexpr Bytes kGranule{2 << 20};
// What the host takes for a call, for an allocation and for its free.
constexpr Microseconds kCall = 3;
constexpr Microseconds kAllocation = 2;
constexpr Microseconds kRelease = 1;
constexpr Microseconds kPlanning = 50'000;

class Clock : public StreamEvents, public PlanRunner {
 public:
  void Pass(Microseconds time) {
    host_ += time;
    while (!plans_.empty() && plans_.front().first <= host_) {
      const auto plan = std::move(plans_.front().second);
      plans_.erase(plans_.begin());
      plan();
    }
  }
  // When all that is queued on it so far is over.
  Microseconds Over(Stream stream) { return std::max(streams_[stream], host_); }
  void Work(Stream stream, Microseconds time) { streams_[stream] = Over(stream) + time; }
  void WaitUntil(Stream stream, Microseconds time) { streams_[stream] = std::max(Over(stream), time); }
  void AwaitUntil(Microseconds time) { Pass(std::max<Microseconds>(0, time - host_)); }
  void AwaitAll() {
    for (const auto& [stream, over] : streams_) host_ = std::max(host_, over);
  }

  // Of the engine's.
  Event Record(Stream stream) override {
    recorded_.push_back(Over(stream));
    return reinterpret_cast<Event>(recorded_.size());  // NOLINT(performance-no-int-to-ptr)
  }
  bool Finished(Stream stream) override { return streams_[stream] <= host_; }
  bool Wait(Stream stream, Event event) override {
    WaitUntil(stream, When(event));
    return true;
  }
  bool Complete(Event event) override { return When(event) <= host_; }
  bool Await(Event event) override {
    host_ = std::max(host_, When(event));  // the engine's lock is held: no plan comes now
    return true;
  }
  void Recycle(Stream, Event) override {}
  void Run(std::function<void()> plan) override { plans_.emplace_back(host_ + kPlanning, std::move(plan)); }

 private:
  Microseconds When(Event event) const { return recorded_[reinterpret_cast<size_t>(event) - 1]; }

  Microseconds host_ = 0;
  std::map<Stream, Microseconds> streams_;
  std::vector<Microseconds> recorded_;
  std::vector<std::pair<Microseconds, std::function<void()>>> plans_;
};

// Where the job's blocks lie.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void Alloc(const StreamOperation& operation) = 0;
  virtual void Free(const StreamOperation& operation) = 0;
  virtual int64_t granules_moved() const = 0;
};

class NoMemory : public Memory {
 public:
  void Alloc(const StreamOperation&) override {}
  void Free(const StreamOperation&) override {}
  int64_t granules_moved() const override { return 0; }
};

// Of the device, with what the driver has served of it.
class DeviceMemory : public CountedMemory {
 public:
  explicit DeviceMemory(Bytes all) : CountedMemory(kGranule, kLargestRange), all_(all) {}
  bool Commit(int64_t first, int64_t count) override {
    return HasRoomFor(kGranule * count) && CountedMemory::Commit(first, count);
  }
  bool HasRoomFor(Bytes more) const { return all_ == Bytes(0) || committed() + outside + more <= all_; }

  Bytes outside;

 private:
  const Bytes all_;
};

class Served : public Memory {
 public:
  Served(const Engine::Options& options, Bytes memory, Clock& clock, int64_t blocks)
      : Served(options, std::make_unique<DeviceMemory>(memory), clock, blocks) {}

  Served(const Engine::Options& options, std::unique_ptr<DeviceMemory> memory, Clock& clock, int64_t blocks)
      : memory_(*memory),
        clock_(clock),
        engine_(*Engine::Create(options, std::move(memory), &clock, &clock)),
        guard_(engine_->Lock()),
        places_(static_cast<size_t>(blocks) + 1) {}

  void Alloc(const StreamOperation& operation) override {
    BlockInfo left;
    const Offset place = engine_->Allocate(guard_,
                                           {.bytes = operation.bytes,
                                            .alignment = Bytes(512),
                                            .stream = operation.stream,
                                            .thread = operation.thread},
                                           &left);
    if (place == Engine::kNowhere) return TakeFromDriver(operation.id, left);
    checker_.OnPlaced(place, operation.bytes);
    places_[static_cast<size_t>(operation.id)] = place;
  }
  void Free(const StreamOperation& operation) override {
    if (const auto outside = outside_.find(operation.id); outside != outside_.end()) {
      engine_->FreeOutside(guard_, outside->second, operation.stream);
      memory_.outside -= outside->second.requested;
      outside_.erase(outside);
      return;
    }
    const Offset place = places_[static_cast<size_t>(operation.id)];
    checker_.OnFreed(place);
    engine_->Free(guard_, place, operation.stream);
  }
  int64_t granules_moved() const override { return counters().granules_moved; }
  Counters counters() const { return engine_->counters(guard_); }
  int64_t overlaps() const { return checker_.overlaps(); }
  int64_t left_to_driver() const { return left_to_driver_; }
  std::vector<Sequence::Known> known() const { return engine_->KnownPlans(guard_); }
  void Expect(std::vector<Sequence::Expected> plans) {
    if (!engine_->Expect(guard_, std::move(plans)).ok()) throw std::runtime_error("plans of another job");
  }

 private:
  void TakeFromDriver(int64_t block, BlockInfo& left) {
    ++left_to_driver_;
    clock_.AwaitAll();
    engine_->GiveBack(guard_, /*plan_too=*/true);
    if (!memory_.HasRoomFor(left.requested)) throw std::runtime_error("out of memory");
    memory_.outside += left.requested;
    engine_->KeepOutside(guard_, left, Bytes(512));
    outside_[block] = left;
  }

  DeviceMemory& memory_;  // the engine's
  Clock& clock_;
  const std::unique_ptr<Engine> engine_;
  const Engine::Guard guard_;
  std::vector<Offset> places_;
  std::map<int64_t, BlockInfo> outside_;
  int64_t left_to_driver_ = 0;
  OverlapChecker checker_;
};

StreamOutcome Play(const StreamJob& job, Clock& clock, Memory& memory) {
  using Kind = StreamOperation::Kind;
  std::vector<Microseconds> events(static_cast<size_t>(job.events()));
  const int64_t steps = std::ranges::count(job.operations(), Kind::kStep, &StreamOperation::kind);
  const int64_t half = steps / 2;
  std::vector<Bytes> sizes(static_cast<size_t>(job.blocks()) + 1);
  StreamOutcome outcome;
  Bytes live;
  Microseconds half_over = 0;
  int64_t moved = 0;
  int64_t step = 0;
  for (const StreamOperation& operation : job.operations()) {
    switch (operation.kind) {
      case Kind::kAlloc:
        clock.Pass(kAllocation);
        live += sizes[static_cast<size_t>(operation.id)] = operation.bytes;
        outcome.live_peak = std::max(outcome.live_peak, live);
        memory.Alloc(operation);
        break;
      case Kind::kFree:
        clock.Pass(kRelease);
        live -= sizes[static_cast<size_t>(operation.id)];
        memory.Free(operation);
        break;
      case Kind::kWork:
        clock.Pass(kCall);
        clock.Work(operation.stream, operation.time);
        break;
      case Kind::kRecord:
        events[static_cast<size_t>(operation.id)] = clock.Over(operation.stream);
        break;
      case Kind::kWait:
        clock.WaitUntil(operation.stream, events[static_cast<size_t>(operation.id)]);
        break;
      case Kind::kAwait:
        clock.AwaitUntil(events[static_cast<size_t>(operation.id)] - operation.time);
        break;
      case Kind::kStep:
        if (++step == half) {
          half_over = clock.Over(operation.stream);
          moved = memory.granules_moved();
        } else if (step == steps) {
          outcome.step = (clock.Over(operation.stream) - half_over) / static_cast<Microseconds>(steps - half);
          outcome.moved_a_step = (memory.granules_moved() - moved) / (steps - half);
        }
        break;
    }
  }
  return outcome;
}

}  // namespace

StreamOutcome PlayWithoutWaits(const StreamJob& job) {
  Clock clock;
  NoMemory memory;
  return Play(job, clock, memory);
}

StreamOutcome PlayServed(const StreamJob& job, const Engine::Options& options, Bytes memory,
                         std::vector<Sequence::Expected> plans) {
  Clock clock;
  Served served(options, memory, clock, job.blocks());
  served.Expect(std::move(plans));
  StreamOutcome outcome = Play(job, clock, served);
  outcome.counters = served.counters();
  outcome.overlaps = served.overlaps();
  outcome.left_to_driver = served.left_to_driver();
  outcome.known = served.known();
  return outcome;
}

}  // namespace reprise::replay
