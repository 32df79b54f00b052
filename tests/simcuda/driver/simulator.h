// The simulated machine: its state, behind one lock, and the way in for every exported function.
//
//   context   where work and allocations belong; one primary context a device, which a reset empties and
//   keeps stream    a queue of operations of one context (executor.h) work      what an operation does when
//   it runs, or a node of a graph mapping   physical memory behind device addresses (memory.h); allocation:
//   who asked for which addresses
//
// The state is leaked on purpose: calls may come after all destructors have run, and are then answered with
// CUDA_ERROR_DEINITIALIZED.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tests/simcuda/driver/api.h"
#include "tests/simcuda/driver/config.h"
#include "tests/simcuda/driver/executor.h"
#include "tests/simcuda/driver/memory.h"

namespace sim {

struct Pool;
struct Graph;
struct GraphExec;
struct GraphAddresses;
struct Module;

struct Context {
  int device = 0;
  uint64_t serial = 0;
  unsigned flags = 0;
  bool primary = false;
  bool green = false;  // its memory is the primary one's, of which it is a part
  bool alive = true;
  CUresult sticky = CUDA_SUCCESS;  // once work has failed, everything in this context does
  Stream* legacy = nullptr;
  std::map<std::thread::id, Stream*> per_thread;
  std::set<const Context*> peers;  // contexts whose memory may be accessed from here
};

struct Device {
  explicit Device(uint64_t capacity) : physical(capacity) {}

  Physical physical;
  Context* primary = nullptr;
  int primary_references = 0;
  unsigned primary_flags = 0;
  Pool* default_pool = nullptr;
  Pool* current_pool = nullptr;
};

struct Allocation {
  enum class Kind { kPlain, kPool, kGraph, kForeign };  // foreign: opened from another process

  Kind kind = Kind::kPlain;
  uint64_t size = 0;      // as asked for
  uint64_t extent = 0;    // addresses and memory that it holds
  uint64_t physical = 0;  // offset in the device's memory
  int device = 0;
  Context* context = nullptr;
  Pool* pool = nullptr;
  std::shared_ptr<GraphAddresses> graph;  // keeps the memory for as long as the allocation lives
  uint64_t serial = 0;
  unsigned sync_memops = 0;
};

struct HostBlock {
  uint64_t size = 0;
  unsigned flags = 0;
  Context* context = nullptr;
  bool registered = false;  // the program's own memory
};

// What an event stands for since its last record.
struct Record {
  uint64_t operation = 0;
  double milliseconds = 0;
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  std::shared_ptr<Record> record;    // null: never recorded, which counts as complete
  std::shared_ptr<Capture> capture;  // recorded in a capture: the nodes that it stands for
  std::vector<Node*> capture_after;
};

struct VirtualRange {
  uint64_t size = 0;
};

struct PhysicalHandle {
  CUmemAllocationProp properties = {};
  uint64_t size = 0;
  uint64_t offset = 0;
  int device = 0;      // or kHost
  int references = 0;  // of the program
  int mappings = 0;
};

struct Counters {
  uint64_t corrupted_bytes = 0;
  uint64_t illegal_accesses = 0;
  uint64_t host_synchronizations = 0;
  uint64_t event_waits = 0;
};

struct Simulator {
  Simulator();

  Config config = TheConfig();
  Failures failures;
  bool initialized = false;
  Executor executor{config.deferred, config.seed};
  AddressSpace addresses;
  Counters counters;
  simObserver observer = nullptr;
  uint64_t serials = 0;

  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Context>> contexts;  // never deleted: threads keep them on their stacks
  std::unordered_map<CUstream, std::shared_ptr<Stream>> streams;
  std::unordered_map<CUevent, std::unique_ptr<Event>> events;
  std::map<uint64_t, Allocation> allocations;
  std::map<uint64_t, HostBlock> host_blocks;
  std::map<uint64_t, VirtualRange> virtual_ranges;
  std::map<uint64_t, CUmemGenericAllocationHandle> virtual_mappings;  // address -> what is mapped there
  std::unordered_map<CUmemGenericAllocationHandle, PhysicalHandle> handles;
  std::unordered_map<CUmemoryPool, std::unique_ptr<Pool>> pools;
  std::unordered_map<CUgraph, std::unique_ptr<Graph>> graphs;
  std::unordered_map<CUgraphExec, std::unique_ptr<GraphExec>> graph_execs;
  std::unordered_map<CUmodule, std::unique_ptr<Module>> modules;
  std::vector<std::shared_ptr<Capture>> captures;  // in progress
  std::unordered_set<const void*> dead;  // handles of streams and events that are gone, until they come again

  CUcontext HandleOf(const Context* context) const {
    return reinterpret_cast<CUcontext>(const_cast<Context*>(context));
  }
  Context* FindContext(CUcontext handle) const;  // null if it is none, or destroyed
  // For one of which there is none: one that has been destroyed ends the process. A primary one may come again.
  CUresult NoSuchContext(CUcontext handle, const char* function) const;
  bool HasDevice(int ordinal) const { return ordinal >= 0 && ordinal < config.devices; }
  Device& DeviceOf(const Context& context) { return *devices[context.device]; }
  // The host's memory as far as it is created by handles. Made when first asked for.
  Physical& host() {
    if (host_ == nullptr) host_ = std::make_unique<Physical>(config.host_memory);
    return *host_;
  }

  // The allocation that holds `address`; end() if none does.
  std::map<uint64_t, Allocation>::iterator FindAllocation(uint64_t address);
  std::map<uint64_t, HostBlock>::iterator FindHostBlock(uint64_t address);

 private:
  std::unique_ptr<Physical> host_;
};

// Without a destructor: at the end of a process, calls come after those of its thread have run.
struct ThreadState {
  static constexpr size_t kDeepest = 64;

  CUcontext stack[kDeepest] = {};
  size_t depth = 0;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool in_host_function = false;

  CUcontext top() const { return depth == 0 ? nullptr : stack[depth - 1]; }
  bool Push(CUcontext context);  // false if the stack is full
  void Pop() { --depth; }
};

Simulator& TheSimulator();  // under the lock
std::mutex& TheMutex();
ThreadState& ThisThread();

// Runs the program's own code, without the lock; calls of the API from within are refused.
void CallHost(const std::function<void()>& code, Lock& lock);

// What a call works with, while it holds the lock.
struct Call {
  Simulator& sim;
  Lock& lock;
  Context* context;  // the current one; null only where the call needs none
};

enum class Needs { kNothing, kDriver, kContext };

// A fork leaves the child without a device, and perhaps with the lock held by a thread that is not there.
bool InForkedChild();

// What SIMCUDA_SLOW names takes a moment, before it does anything.
void TakeTime(const char* function);
// The same after all is done, where it names `function:after`.
struct SlowReturn {
  const char* function;
  ~SlowReturn();
};

// CUDA_SUCCESS if the call may go on; else what it answers.
CUresult Admit(Simulator& sim, const char* function, Needs needs);
CUresult CurrentContext(Simulator& sim, Context** context);

// The way in. `function` is the name without suffixes: what SIMCUDA_FAIL calls it.
template <typename Body>
CUresult Enter(const char* function, Needs needs, Body&& body) {
  if (ThisThread().in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  if (InForkedChild()) return CUDA_ERROR_NOT_INITIALIZED;
  TakeTime(function);
  const SlowReturn slow{function};  // outlives the lock
  Lock lock(TheMutex());
  Simulator& sim = TheSimulator();
  if (CUresult error = Admit(sim, function, needs); error != CUDA_SUCCESS) return error;
  Call call{sim, lock, nullptr};
  if (needs == Needs::kContext) {
    if (CUresult error = CurrentContext(sim, &call.context); error != CUDA_SUCCESS) return error;
  }
  return body(call);
}

// For a handle of a stream or an event that there is not. One that has been destroyed ends the process: to the
// real driver it is a pointer to nothing.
CUresult NoSuchHandle(const Simulator& sim, const void* handle, const char* function);

// An option that the documentation knows and the simulator does not: says so and answers
// CUDA_ERROR_NOT_SUPPORTED.
CUresult NotSimulated(const std::string& what);

}  // namespace sim
