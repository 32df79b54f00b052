// Graphs, and capture of streams into them.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "tests/simcuda/driver/simulator.h"

namespace sim {

struct Node {
  Work work;
  std::vector<Node*> after;
};

// An address that a captured allocation stands for. It is reserved from capture on, and has memory from the
// first launch on.
struct GraphAllocation {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t extent = 0;
  uint64_t physical = 0;
  int device = 0;
};

// Shared by a graph, what was instantiated from it, and the allocations that a launch left behind; the last
// gives addresses and memory back.
struct GraphAddresses {
  std::vector<GraphAllocation> allocations;
  bool has_memory = false;

  bool TakeMemory(Simulator& sim);  // all of it or none
  void GiveMemory(Simulator& sim);
  ~GraphAddresses();
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  std::shared_ptr<GraphAddresses> addresses = std::make_shared<GraphAddresses>();
};

struct GraphExec {
  std::vector<std::unique_ptr<Node>> nodes;
  std::shared_ptr<GraphAddresses> addresses;
  bool free_on_launch = false;
  uint64_t last_operation = 0;
};

struct Capture {
  uint64_t serial = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  Graph* graph = nullptr;
  bool graph_is_callers = false;              // as cuStreamBeginCaptureToGraph has it
  bool again = false;                         // the graph has been captured before, and its nodes
  std::vector<std::unique_ptr<Node>> before;  // were these
  Stream* origin = nullptr;
  std::vector<Stream*> streams;  // all that take part; none is destroyed before the end
  bool invalidated = false;
  bool ended = false;
};

Graph* MakeGraph(Simulator& sim);
Node* AddNode(Graph& graph, Work work, std::vector<Node*> after);
CUgraphNode HandleOf(const Node* node);

CUstreamCaptureStatus StatusOf(const Stream& stream);

// Those that a stream of the context takes part in: it is about to be gone.
void EndCapturesIn(Simulator& sim, const Context& context);

// What has no place in a capture: the capture is void from then on. Answers `error`.
CUresult InvalidateFor(Capture& capture, CUresult error);

// Calls on a capturing stream, or on an event that was recorded on one.
CUresult CaptureWait(Stream& stream, const Event& event);
CUresult CaptureAllocation(Call& call, Stream& stream, int device, uint64_t bytes, CUdeviceptr* address);
CUresult CaptureFree(Call& call, Stream& stream, CUdeviceptr address);

// Whether this thread may now make a call that capture does not see; if not, what is in progress becomes
// invalid.
CUresult AdmitUnsafe(Call& call);
// The same for work on the legacy stream of `context`, which every blocking stream would have to wait for.
CUresult AdmitLegacy(Call& call, const Context& context);
// For calls that wait for a context, and so would wait for what is only captured.
CUresult AdmitContextWait(Call& call, const Context& context);
// For calls that ask for the state of a stream that may be capturing.
CUresult AdmitStreamWait(Call& call, const Stream& stream);

}  // namespace sim
