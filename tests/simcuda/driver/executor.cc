#include "tests/simcuda/driver/executor.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/simcuda/driver/simulator.h"

namespace sim {

unsigned long long WallClock() {
  return static_cast<unsigned long long>(std::chrono::system_clock::now().time_since_epoch() /
                                         std::chrono::nanoseconds(1));
}

namespace {

constexpr size_t kDeepestQueue = 1024;  // a stream that is full makes its caller wait
constexpr uint64_t kEarlyOneIn = 8;     // work that runs although nobody needs it yet
constexpr uint64_t kOtherOneIn = 4;

}  // namespace

void Executor::Retire(Stream& stream) {
  stream.destroyed = true;
  if (!stream.queue.empty()) return;
  std::erase_if(streams_, [&](const auto& held) { return held.get() == &stream; });
}

// The legacy default stream waits for all blocking streams of its context, and they for it.
std::vector<uint64_t> Executor::ImplicitOrder(const Stream& stream) const {
  std::vector<uint64_t> after;
  for (const auto& other : streams_) {
    if (other->context != stream.context || Done(other->tail)) continue;
    if ((stream.legacy && other->blocking()) || (stream.blocking() && other->legacy))
      after.push_back(other->tail);
  }
  return after;
}

uint64_t Executor::Queue(Stream& stream, Work work, std::vector<uint64_t> after, Lock& lock) {
  if (stream.queue.size() >= kDeepestQueue) RunUntil({stream.queue.front().id}, lock);
  std::vector<uint64_t> implicit = ImplicitOrder(stream);
  after.insert(after.end(), implicit.begin(), implicit.end());
  std::erase_if(after, [&](uint64_t id) { return Done(id); });
  uint64_t id = ++last_id_;
  stream.queue.push_back({id, std::move(after), std::move(work)});
  stream.tail = id;
  pending_[id] = &stream;
  if (!deferred_) {
    RunAll(lock);
  } else if (Chance(kEarlyOneIn)) {
    Step(nullptr, lock);
  }
  return id;
}

Executor::Needed Executor::Closure(const std::vector<uint64_t>& ids) const {
  Needed needed;
  std::vector<uint64_t> open = ids;
  while (!open.empty()) {
    uint64_t id = open.back();
    open.pop_back();
    auto found = pending_.find(id);
    if (found == pending_.end() || needed.contains(id)) continue;
    // All before it in its stream, back to what is needed already.
    const std::deque<Operation>& queue = found->second->queue;
    auto at =
        std::partition_point(queue.begin(), queue.end(), [&](const Operation& op) { return op.id < id; });
    for (;; --at) {
      if (!needed.insert(at->id).second) break;
      open.insert(open.end(), at->after.begin(), at->after.end());
      if (at == queue.begin()) break;
    }
  }
  return needed;
}

bool Executor::Runnable(const Stream& stream) const {
  if (stream.queue.empty()) return false;
  const Operation& head = stream.queue.front();
  bool ordered = std::all_of(head.after.begin(), head.after.end(), [&](uint64_t id) { return Done(id); });
  return !head.running && ordered && (!head.work.ready || head.work.ready());
}

bool Executor::Step(const Needed* needed, Lock& lock) {
  std::vector<std::shared_ptr<Stream>> candidates;
  for (const auto& stream : streams_) {
    if (!Runnable(*stream)) continue;
    if (needed == nullptr || needed->contains(stream->queue.front().id)) candidates.push_back(stream);
  }
  if (candidates.empty()) return false;
  RunHead(candidates[random_() % candidates.size()], lock);
  return true;
}

void Executor::RunHead(std::shared_ptr<Stream> stream, Lock& lock) {
  Operation& head = stream->queue.front();  // stays where it is while others append
  head.running = true;
  Context& context = *stream->context;
  if (context.sticky == CUDA_SUCCESS && head.work.run) {
    if (head.work.on_host) {
      CallHost([&] { head.work.run(context); }, lock);
    } else {
      Run(head, *stream);
    }
  }
  pending_.erase(head.id);
  stream->queue.pop_front();
  if (stream->destroyed) Retire(*stream);
}

// Observed, if it is work that a profiler would see.
void Executor::Run(const Operation& operation, const Stream& stream) {
  const Work& work = operation.work;
  Simulator& sim = TheSimulator();
  const bool seen = work.type == CU_GRAPH_NODE_TYPE_KERNEL || work.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                    work.type == CU_GRAPH_NODE_TYPE_MEMSET;
  const unsigned long long begin = seen && sim.observer != nullptr ? WallClock() : 0;
  work.run(*stream.context);
  if (begin == 0) return;
  simActivity activity = {};
  activity.kind = work.type == CU_GRAPH_NODE_TYPE_KERNEL   ? SIM_ACTIVITY_KERNEL
                  : work.type == CU_GRAPH_NODE_TYPE_MEMCPY ? SIM_ACTIVITY_COPY
                                                           : SIM_ACTIVITY_SET;
  activity.name = work.name;
  activity.bytes = work.bytes;
  activity.copy_kind = work.copy_kind;
  activity.device = static_cast<unsigned>(stream.context->device);
  activity.context = static_cast<unsigned>(stream.context->serial);
  activity.stream = static_cast<unsigned>(stream.serial);
  activity.begin = begin;
  activity.end = WallClock();
  sim.observer(&activity);
}

void Executor::RunAll(Lock& lock) {
  while (Step(nullptr, lock)) {
  }
}

void Executor::RunUntil(const std::vector<uint64_t>& ids, Lock& lock) {
  Needed needed = Closure(ids);
  auto over = [&] { return std::all_of(ids.begin(), ids.end(), [&](uint64_t id) { return Done(id); }); };
  while (!over()) {
    bool other = deferred_ && Chance(kOtherOneIn);
    if (Step(other ? nullptr : &needed, lock) || Step(&needed, lock)) continue;
    // A kernel spins, or a host function runs in another thread.
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
  }
}

void Executor::Nudge(const std::vector<uint64_t>& ids, Lock& lock) {
  if (!deferred_) {
    RunAll(lock);
  } else if (Chance(2)) {
    Needed needed = Closure(ids);
    Step(&needed, lock);
  } else if (Chance(kOtherOneIn)) {
    Step(nullptr, lock);
  }
}

uint64_t Executor::RunSome(uint64_t count, Lock& lock) {
  uint64_t ran = 0;
  while (ran < count && Step(nullptr, lock)) ++ran;
  return ran;
}

std::vector<uint64_t> Executor::Tails(const Context* context) const {
  std::vector<uint64_t> tails;
  for (const auto& stream : streams_) {
    if (context == nullptr || stream->context == context) tails.push_back(stream->tail);
  }
  return tails;
}

}  // namespace sim
