#include "profiler/recorder.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <utility>

#include "base/block_signals.h"
#include "base/exceptions.h"
#include "base/own_threads.h"
#include "profiler/trace_writer.h"

namespace reprise::profiler {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr size_t kFewestRingEvents = 64;
constexpr size_t kMostWaitingActivities = size_t{1} << 18;
// The thread looks into the ring so often, and writes what it has as a block once that is so old. Twice the
// one and the other together are the most activity that a kill -9 can lose: one second.
constexpr nanoseconds kPollEvery = std::chrono::milliseconds(250);
constexpr nanoseconds kBlockAge = std::chrono::milliseconds(500);
constexpr nanoseconds kMostPatience = std::chrono::hours(24);  // keeps deadlines clear of overflow

}  // namespace

// The thread and what it shares with those who wait for it. Append only ever posts `wake_`, which takes no
// lock.
class Recorder::Consumer {
 public:
  Consumer(Recorder* recorder, std::unique_ptr<TraceWriter> writer)
      : recorder_(recorder), writer_(std::move(writer)) {
    sem_init(&wake_, 0, 0);
    Publish();
  }
  ~Consumer() { sem_destroy(&wake_); }

  absl::Status StartThread();
  void Join() { pthread_join(thread_, nullptr); }
  void Wake() { sem_post(&wake_); }
  absl::Status Request(bool finish, nanoseconds patience);
  void Fill(RecorderCounters* counters);
  void Append(const std::vector<Activity>& activities);
  void AddDroppedActivities(uint64_t count);
  bool takes_activities();

 private:
  static void* Main(void* self);
  void Run();
  bool Wait();
  void Drain();
  bool Turn();
  void Publish();
  void End(absl::Status failure);

  Recorder* const recorder_;
  const std::unique_ptr<TraceWriter> writer_;  // the thread's alone while it runs
  pthread_t thread_{};
  sem_t wake_;
  steady_clock::time_point pending_since_;  // the thread's
  TraceEnd end_ = TraceEnd::kClosed;        // the thread's: what the last round has written

  // Made while there is some: its words need memory.
  const absl::Status no_memory_ = absl::ResourceExhaustedError("the recorder ran out of memory");

  std::mutex mutex_;  // held for a few assignments or copies at a time, never while something is written
  std::condition_variable served_one_;
  uint64_t requested_ = 0;  // the number of requests made
  uint64_t served_ = 0;     // of those, served
  bool finish_ = false;     // a request was to finish
  bool ended_ = false;      // the thread writes no more
  absl::Status status_;     // the writer's
  uint64_t written_ = 0, lost_ = 0;
  int64_t bytes_ = 0;
  std::vector<Activity> activities_;  // waiting
  uint64_t activities_dropped_ = 0, activities_written_ = 0, activities_lost_ = 0;
  bool activities_full_ = false, full_ = false;
};

absl::Status Recorder::Consumer::StartThread() {
  const BlockAllSignals blocked;
  const int error = pthread_create(&thread_, nullptr, &Consumer::Main, this);
  if (error != 0) return absl::ErrnoToStatus(error, "the recorder's thread cannot be started");
  pthread_setname_np(thread_, "reprise-trace");
  return absl::OkStatus();
}

void* Recorder::Consumer::Main(void* self) {
  LeaveTheStartersCpu();
  Consumer* consumer = static_cast<Consumer*>(self);
  // Without memory the recording ends, never the job.
  if (!Completes([&] { consumer->Run(); })) consumer->End(consumer->no_memory_);
  return nullptr;
}

void Recorder::Consumer::Run() {
  pending_since_ = steady_clock::now();
  while (Turn()) {
    if (Wait() || !OnlyOwnThreadsAreLeft()) continue;
    const std::lock_guard lock(mutex_);
    finish_ = true;
  }
  End(end_ == TraceEnd::kOverrun
          ? absl::ResourceExhaustedError("recording stopped: the trace's disk is too slow")
          : absl::OkStatus());
}

// One round: empties the ring, writes a block if one is due or asked for, answers. False when it was the
// last.
bool Recorder::Consumer::Turn() {
  uint64_t requested;
  bool last;
  bool asked;
  std::vector<Activity> activities;
  {
    std::lock_guard lock(mutex_);
    requested = requested_;
    asked = requested_ != served_;
    last = finish_;
    activities.swap(activities_);
    writer_->SetActivitiesDropped(activities_dropped_);
  }
  last = last || recorder_->state_.load(std::memory_order_acquire) != State::kRecording;
  if (writer_->pending() == 0) pending_since_ = steady_clock::now();
  for (const Activity& activity : activities) writer_->Append(activity).IgnoreError();
  Drain();
  const bool due = steady_clock::now() - pending_since_ >= kBlockAge;
  if (last) {
    end_ = recorder_->end_.load(std::memory_order_acquire);
    writer_->SetPassed(Bytes(recorder_->passed_.load(std::memory_order_acquire)));
    writer_->Close(end_).IgnoreError();
  } else if (asked || due) {
    writer_->Flush().IgnoreError();
  }
  Publish();
  if (last || !writer_->status().ok()) return false;
  std::lock_guard lock(mutex_);
  served_ = requested;
  if (asked) served_one_.notify_all();
  return true;
}

// False: nobody has asked for anything.
bool Recorder::Consumer::Wait() {
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += kPollEvery.count();
  if (until.tv_nsec >= 1'000'000'000) {
    until.tv_nsec -= 1'000'000'000;
    ++until.tv_sec;
  }
  if (sem_clockwait(&wake_, CLOCK_MONOTONIC, &until) != 0) return false;
  while (sem_trywait(&wake_) == 0) {  // one round serves every post before it
  }
  return true;
}

void Recorder::Consumer::Drain() {
  const uint64_t head = recorder_->head_.load(std::memory_order_acquire);
  uint64_t tail = recorder_->tail_.load(std::memory_order_relaxed);
  writer_->SetDropped(recorder_->dropped_.load(std::memory_order_relaxed));
  while (tail != head) {
    writer_->Append(recorder_->ring_[tail & (recorder_->ring_events_ - 1)]).IgnoreError();
    recorder_->tail_.store(++tail, std::memory_order_release);
  }
}

void Recorder::Consumer::Publish() {
  std::lock_guard lock(mutex_);
  status_ = writer_->status();
  written_ = writer_->events_written();
  lost_ = writer_->events_lost();
  bytes_ = writer_->bytes_written();
  activities_written_ = writer_->activities_written();
  activities_lost_ = writer_->activities_lost();
  activities_full_ = writer_->activities_full();
  full_ = writer_->full();
}

void Recorder::Consumer::Append(const std::vector<Activity>& activities) {
  {
    std::lock_guard lock(mutex_);
    if (ended_ || activities.size() > kMostWaitingActivities - activities_.size()) {
      activities_dropped_ += activities.size();
      return;
    }
    activities_.insert(activities_.end(), activities.begin(), activities.end());
  }
  Wake();
}

void Recorder::Consumer::AddDroppedActivities(uint64_t count) {
  std::lock_guard lock(mutex_);
  activities_dropped_ += count;
}

bool Recorder::Consumer::takes_activities() {
  std::lock_guard lock(mutex_);
  return !ended_ && !activities_full_;
}

// Nothing is written after this: whoever waits is answered, and Append takes no more.
void Recorder::Consumer::End(absl::Status failure) {
  State recording = State::kRecording;
  recorder_->state_.compare_exchange_strong(recording, State::kStopped, std::memory_order_acq_rel);
  std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = std::move(failure);
  ended_ = true;
  served_one_.notify_all();
}

absl::Status Recorder::Consumer::Request(bool finish, nanoseconds patience) {
  const auto until = steady_clock::now() + std::clamp(patience, nanoseconds(0), kMostPatience);
  std::unique_lock lock(mutex_);
  const uint64_t mine = ++requested_;
  finish_ = finish_ || finish;
  Wake();
  const bool served = served_one_.wait_until(lock, until, [&] { return ended_ || served_ >= mine; });
  return served ? status_ : absl::DeadlineExceededError("the trace could not be written in time");
}

void Recorder::Consumer::Fill(RecorderCounters* counters) {
  std::lock_guard lock(mutex_);
  counters->written = written_;
  // An event may have been taken just as the thread ended: it is in no block either.
  counters->lost += ended_ ? counters->recorded - std::min(counters->recorded, written_) : lost_;
  counters->bytes = bytes_;
  counters->activities = activities_written_;
  counters->activities_dropped = activities_dropped_ + activities_lost_ + (ended_ ? activities_.size() : 0);
  counters->activities_full = activities_full_;
  counters->full = full_;
  if (!status_.ok()) counters->stopped = std::string(status_.message());
}

void Recorder::FreeRing::operator()(Event* ring) const { std::free(ring); }

// The ring's pages are untouched until events reach them (calloc of this size is a fresh mapping).
Recorder::Recorder(size_t ring_events)
    : ring_events_(ring_events),
      ring_(static_cast<Event*>(std::calloc(ring_events, sizeof(Event)))),
      pid_(getpid()) {}

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Start(const RecorderOptions& options) {
  const size_t ring_events = std::bit_ceil(std::max(options.ring_events, kFewestRingEvents));
  std::unique_ptr<Recorder> recorder(new Recorder(ring_events));
  if (recorder->ring_ == nullptr) return absl::ResourceExhaustedError("no memory for the recorder's ring");
  auto writer = TraceWriter::Open(options.path, options.metadata,
                                  TraceWriterOptions{.most_bytes = options.most_bytes,
                                                     .most_activity_bytes = options.most_activity_bytes,
                                                     .stacks = options.stacks});
  if (!writer.ok()) return writer.status();
  auto consumer = std::make_unique<Consumer>(recorder.get(), *std::move(writer));
  if (absl::Status status = consumer->StartThread(); !status.ok()) return status;
  recorder->consumer_ = std::move(consumer);
  return recorder;
}

Recorder::~Recorder() {
  if (consumer_ == nullptr) return;
  if (InInertChild()) {
    // The thread is not here, and what it held at the fork stays as it is.
    (void)consumer_.release();  // NOLINT(bugprone-unused-return-value)
    return;
  }
  consumer_->Request(/*finish=*/true, kMostPatience).IgnoreError();
  consumer_->Join();
}

// Hot: 45 instructions while the thread keeps up (pinned by tests/bench/recorder_instructions_test.py).
void Recorder::Append(const Event& event) noexcept {
  const uint64_t head = head_.load(std::memory_order_relaxed);
  const bool easy = state_.load(std::memory_order_relaxed) == State::kRecording && runs_ == 0 && !dropping_ &&
                    head - tail_seen_ < ring_events_ / 2;
  if (!easy && !Admit(event)) return;
  ring_[head & (ring_events_ - 1)] = event;
  head_.store(head + 1, std::memory_order_release);
  if ((head & (ring_events_ / 4 - 1)) == 0) consumer_->Wake();
}

// What Append does when something is out of the ordinary. False: the event is dropped.
bool Recorder::Admit(const Event& event) noexcept {
  if (state_.load(std::memory_order_relaxed) != State::kRecording) {
    late_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  bool admitted = false;
  tail_seen_ = tail_.load(std::memory_order_acquire);
  const uint64_t waiting = head_.load(std::memory_order_relaxed) - tail_seen_;
  switch (event.kind) {
    case EventKind::kAlloc:
      admitted = AdmitAlloc(event.id, waiting);
      break;
    case EventKind::kFree:
      admitted = AdmitFree(event.id, waiting);
      break;
    case EventKind::kMark:
      admitted = waiting < ring_events_;
      break;
  }
  if (!admitted) dropped_.fetch_add(1, std::memory_order_relaxed);
  return admitted;
}

// Allocations may fill half of the ring; the other half is kept for the frees of those already recorded. Once
// dropping, it goes on until the ring is three quarters empty, so that the gaps are few.
bool Recorder::AdmitAlloc(BlockId id, uint64_t waiting) noexcept {
  dropping_ = waiting >= ring_events_ / (dropping_ ? 4 : 2);
  if (!dropping_) {
    run_open_ = false;
    return true;
  }
  if (!run_open_) {
    if (runs_ == dropped_runs_.size()) {
      Stop(TraceEnd::kOverrun);
      return false;
    }
    dropped_runs_[runs_++] = {id, id, 0};
    run_open_ = true;
  }
  DroppedRun& run = dropped_runs_[runs_ - 1];
  run.last = id;
  ++run.live;
  return false;
}

bool Recorder::AdmitFree(BlockId id, uint64_t waiting) noexcept {
  const auto end = dropped_runs_.begin() + static_cast<ptrdiff_t>(runs_);
  const auto run = std::find_if(dropped_runs_.begin(), end,
                                [id](const DroppedRun& r) { return r.first <= id && id <= r.last; });
  if (run == end) {
    if (waiting < ring_events_) return true;
    Stop(TraceEnd::kOverrun);  // without this free the trace would say that its block lives for ever
    return false;
  }
  if (--run->live == 0) {
    if (run + 1 == end) run_open_ = false;
    std::move(run + 1, end, run);
    --runs_;
  }
  return false;
}

void Recorder::Stop(TraceEnd why) noexcept {
  EndsBy(why);
  State recording = State::kRecording;
  state_.compare_exchange_strong(recording, State::kStopped, std::memory_order_acq_rel);
}

absl::Status Recorder::Flush(nanoseconds patience) { return Request(/*finish=*/false, patience); }

absl::Status Recorder::Finish(nanoseconds patience) { return Request(/*finish=*/true, patience); }

absl::Status Recorder::Request(bool finish, nanoseconds patience) {
  if (InInertChild()) return absl::FailedPreconditionError("a forked child does not record");
  return consumer_->Request(finish, patience);
}

void Recorder::Append(const std::vector<Activity>& activities) {
  if (!InInertChild()) consumer_->Append(activities);
}

void Recorder::AddDroppedActivities(uint64_t count) {
  if (!InInertChild()) consumer_->AddDroppedActivities(count);
}

bool Recorder::takes_activities() const { return !InInertChild() && consumer_->takes_activities(); }

void Recorder::AbandonAfterFork() noexcept { state_.store(State::kAbandoned, std::memory_order_relaxed); }

// The second half is for a child whose fork nobody told us of.
bool Recorder::InInertChild() const {
  return state_.load(std::memory_order_relaxed) == State::kAbandoned || getpid() != pid_;
}

RecorderCounters Recorder::counters() const {
  RecorderCounters counters;
  counters.recorded = head_.load(std::memory_order_relaxed);
  counters.dropped = dropped_.load(std::memory_order_relaxed);
  counters.lost = late_.load(std::memory_order_relaxed);
  if (!InInertChild()) consumer_->Fill(&counters);
  return counters;
}

}  // namespace reprise::profiler
