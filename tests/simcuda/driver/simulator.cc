#include "tests/simcuda/driver/simulator.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <type_traits>

#include "tests/simcuda/driver/capture.h"
#include "tests/simcuda/driver/modules.h"
#include "tests/simcuda/driver/pools.h"

namespace sim {
namespace {

std::atomic<bool> process_is_over{false};
std::atomic<bool> forked{false};

// The library's destructors run after those of what was linked against it, as with the real one.
__attribute__((destructor)) void Deinitialize() { process_is_over = true; }

}  // namespace

Simulator::Simulator() {
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  for (int ordinal = 0; ordinal < config.devices; ++ordinal) {
    devices.push_back(std::make_unique<Device>(config.memory));
    devices.back()->default_pool = MakePool(*this, ordinal, true);
    devices.back()->current_pool = devices.back()->default_pool;
  }
}

Simulator& TheSimulator() {
  static Simulator& simulator = *new Simulator;
  return simulator;
}

std::mutex& TheMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

ThreadState& ThisThread() {
  static_assert(std::is_trivially_destructible_v<ThreadState>);
  thread_local ThreadState state;
  return state;
}

bool ThreadState::Push(CUcontext context) {
  if (depth == kDeepest) return false;
  stack[depth++] = context;
  return true;
}

bool InForkedChild() { return forked; }

void CallHost(const std::function<void()>& code, Lock& lock) {
  lock.unlock();
  ThisThread().in_host_function = true;
  code();
  ThisThread().in_host_function = false;
  lock.lock();
}

void TakeTime(const char* function) {
  const std::set<std::string>& slow = TheConfig().slow;
  if (!slow.empty() && slow.contains(function)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

SlowReturn::~SlowReturn() {
  if (!TheConfig().slow.empty()) TakeTime((std::string(function) + ":after").c_str());
}

CUresult Admit(Simulator& sim, const char* function, Needs needs) {
  if (needs != Needs::kNothing) {
    if (process_is_over) return CUDA_ERROR_DEINITIALIZED;
    if (!sim.initialized) return CUDA_ERROR_NOT_INITIALIZED;
  }
  return sim.failures.Count(function);
}

CUresult CurrentContext(Simulator& sim, Context** context) {
  CUcontext current = ThisThread().top();
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *context = sim.FindContext(current);
  return *context == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : (*context)->sticky;
}

CUresult NoSuchHandle(const Simulator& sim, const void* handle, const char* function) {
  if (!sim.dead.contains(handle)) return CUDA_ERROR_INVALID_HANDLE;
  Say(std::string(function) + " is given a stream or an event that has been destroyed");
  abort();
}

CUresult NotSimulated(const std::string& what) {
  Say("not simulated: " + what);
  return CUDA_ERROR_NOT_SUPPORTED;
}

Context* Simulator::FindContext(CUcontext handle) const {
  for (const auto& context : contexts) {
    if (HandleOf(context.get()) == handle) return context->alive ? context.get() : nullptr;
  }
  return nullptr;
}

CUresult Simulator::NoSuchContext(CUcontext handle, const char* function) const {
  for (const auto& context : contexts) {
    if (HandleOf(context.get()) != handle || context->primary) continue;
    Say(std::string(function) + " is given a context that has been destroyed");
    abort();
  }
  return CUDA_ERROR_INVALID_CONTEXT;
}

namespace {

template <typename Blocks>
auto FindIn(Blocks& blocks, uint64_t address) {
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin()) return blocks.end();
  --it;
  return address - it->first < it->second.size ? it : blocks.end();
}

}  // namespace

std::map<uint64_t, Allocation>::iterator Simulator::FindAllocation(uint64_t address) {
  return FindIn(allocations, address);
}

std::map<uint64_t, HostBlock>::iterator Simulator::FindHostBlock(uint64_t address) {
  return FindIn(host_blocks, address);
}

}  // namespace sim
