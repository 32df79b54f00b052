// Streams and the order in which queued work runs.
//
// Every piece of work is an operation with a number. It may run when it is the first of its stream and every
// operation that it is `after` has run. Eager: whatever may run, runs as soon as it is queued. Deferred:
// nothing runs before somebody needs it, and then in an order drawn from the seed, with other work now and
// then.
//
// Threads: everything here is called with the simulator's lock held. The lock is let go while a host function
// runs and while waiting for a kernel that spins; so no pointer to a stream is kept across a step.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tests/simcuda/driver/api.h"

namespace sim {

using Lock = std::unique_lock<std::mutex>;
struct Context;
struct Capture;
struct Node;

struct Work {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::function<void(Context&)> run;
  std::function<bool()> ready;  // null: at once
  bool on_host = false;         // `run` is the program's own code
  CUdeviceptr allocation = 0;   // of allocation and free nodes
  const char* name = nullptr;   // of a kernel
  uint64_t bytes = 0;           // copied or set
  int copy_kind = 0;            // as simActivity has it
};

struct Operation {
  uint64_t id = 0;
  std::vector<uint64_t> after;
  Work work;
  bool running = false;
};

struct Stream {
  Context* context = nullptr;
  uint64_t serial = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy = false;
  bool per_thread = false;
  bool destroyed = false;
  std::deque<Operation> queue;
  uint64_t tail = 0;  // the last operation ever queued
  std::shared_ptr<Capture> capture;
  std::vector<Node*> capture_after;

  bool blocking() const { return !legacy && (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

// Nanoseconds, as a profiler has them.
unsigned long long WallClock();

class Executor {
 public:
  Executor(bool deferred, uint64_t seed) : deferred_(deferred), random_(seed) {}

  void Add(std::shared_ptr<Stream> stream) { streams_.push_back(std::move(stream)); }
  // The queue is worked off first; the stream's handle is invalid from now on.
  void Retire(Stream& stream);

  uint64_t Queue(Stream& stream, Work work, std::vector<uint64_t> after, Lock& lock);
  bool Done(uint64_t id) const { return !pending_.contains(id); }
  void RunUntil(const std::vector<uint64_t>& ids, Lock& lock);
  // Some progress, so that somebody who polls gets there.
  void Nudge(const std::vector<uint64_t>& ids, Lock& lock);
  uint64_t RunSome(uint64_t count, Lock& lock);

  // The tails that the host waits for when it waits for a context; with null, for all there is.
  std::vector<uint64_t> Tails(const Context* context) const;
  uint64_t Queued() const { return pending_.size(); }
  uint64_t Random() { return random_(); }
  void Reseed(uint64_t seed) { random_.seed(seed); }

 private:
  using Needed = std::unordered_set<uint64_t>;

  std::vector<uint64_t> ImplicitOrder(const Stream& stream) const;
  Needed Closure(const std::vector<uint64_t>& ids) const;
  bool Runnable(const Stream& stream) const;
  // Runs one operation, of `needed` if that is given; false if none may run.
  bool Step(const Needed* needed, Lock& lock);
  void RunHead(std::shared_ptr<Stream> stream, Lock& lock);
  void RunAll(Lock& lock);
  void Run(const Operation& operation, const Stream& stream);
  bool Chance(uint64_t one_in) { return random_() % one_in == 0; }

  bool deferred_;
  std::mt19937_64 random_;
  uint64_t last_id_ = 0;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::unordered_map<uint64_t, Stream*> pending_;
};

}  // namespace sim
