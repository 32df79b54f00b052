// Capture of streams: what calls on a capturing stream leave in its graph, and which calls may not be made
// meanwhile.
#include "tests/simcuda/driver/capture.h"

#include <algorithm>
#include <set>

#include "tests/simcuda/driver/work.h"

namespace sim {
namespace {

bool Prohibits(const Capture& capture) {
  CUstreamCaptureMode mode = ThisThread().capture_mode;
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  bool own = capture.thread == std::this_thread::get_id() && capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  bool global = capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
  return own || global;
}

template <typename Stands>
CUresult Refuse(Call& call, CUresult error, Stands&& stands_in_the_way) {
  CUresult answer = CUDA_SUCCESS;
  for (const auto& capture : call.sim.captures) {
    if (stands_in_the_way(*capture)) answer = InvalidateFor(*capture, error);
  }
  return answer;
}

// All that must run before `nodes`, and they themselves.
std::set<const Node*> Ancestry(const std::vector<Node*>& nodes) {
  std::set<const Node*> found;
  std::vector<const Node*> open(nodes.begin(), nodes.end());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (found.insert(node).second) open.insert(open.end(), node->after.begin(), node->after.end());
  }
  return found;
}

bool Joined(const Capture& capture) {
  std::set<const Node*> reached = Ancestry(capture.origin->capture_after);
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const Stream* stream) {
    const std::vector<Node*>& last = stream->capture_after;
    return std::all_of(last.begin(), last.end(), [&](const Node* node) { return reached.contains(node); });
  });
}

void End(Simulator& sim, const std::shared_ptr<Capture>& capture) {
  for (Stream* stream : capture->streams) {
    stream->capture = nullptr;
    stream->capture_after.clear();
  }
  capture->ended = true;
  std::erase(sim.captures, capture);
}

CUresult Begin(Call& call, Stream& stream, CUstreamCaptureMode mode, Graph* graph, std::vector<Node*> after) {
  if (stream.legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  auto capture = std::make_shared<Capture>();
  capture->serial = ++call.sim.serials;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->graph_is_callers = graph != nullptr;
  capture->graph = graph == nullptr ? MakeGraph(call.sim) : graph;
  capture->origin = &stream;
  capture->streams = {&stream};
  stream.capture = capture;
  stream.capture_after = std::move(after);
  call.sim.captures.push_back(capture);
  return CUDA_SUCCESS;
}

// CUDA_ERROR_GRAPH_RECAPTURE_FAILURE, which is newer than our headers.
constexpr auto kRecaptureFailure = static_cast<CUresult>(918);

bool Alike(const std::vector<std::unique_ptr<Node>>& a, const std::vector<std::unique_ptr<Node>>& b) {
  return std::ranges::equal(
      a, b, {}, [](const auto& node) { return node->work.type; },
      [](const auto& node) { return node->work.type; });
}

// The next one of a graph that is captured anew, which keeps its addresses; null: it had no such.
const GraphAllocation* AllocatedBefore(const Capture& capture, uint64_t bytes) {
  const auto is_allocation = [](const auto& node) { return node->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC; };
  const auto next = static_cast<size_t>(std::ranges::count_if(capture.graph->nodes, is_allocation));
  const std::vector<GraphAllocation>& all = capture.graph->addresses->allocations;
  return next < all.size() && all[next].size == bytes ? &all[next] : nullptr;
}

}  // namespace

CUstreamCaptureStatus StatusOf(const Stream& stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void EndCapturesIn(Simulator& sim, const Context& context) {
  const std::vector<std::shared_ptr<Capture>> all = sim.captures;
  for (const auto& capture : all) {
    if (std::ranges::any_of(capture->streams, [&](const Stream* s) { return s->context == &context; }))
      End(sim, capture);
  }
}

CUresult InvalidateFor(Capture& capture, CUresult error) {
  capture.invalidated = true;
  return error;
}

CUresult AdmitUnsafe(Call& call) { return Refuse(call, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, Prohibits); }

CUresult AdmitLegacy(Call& call, const Context& context) {
  return Refuse(call, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, [&](const Capture& capture) {
    auto waits = [&](const Stream* stream) { return stream->context == &context && stream->blocking(); };
    return std::any_of(capture.streams.begin(), capture.streams.end(), waits);
  });
}

CUresult AdmitContextWait(Call& call, const Context& context) {
  return Refuse(call, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&](const Capture& capture) {
    auto in_context = [&](const Stream* stream) { return stream->context == &context; };
    return std::any_of(capture.streams.begin(), capture.streams.end(), in_context);
  });
}

CUresult AdmitStreamWait(Call& call, const Stream& stream) {
  if (stream.capture != nullptr) return InvalidateFor(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return stream.legacy ? AdmitLegacy(call, *stream.context) : CUDA_SUCCESS;
}

CUresult CaptureWait(Stream& stream, const Event& event) {
  if (event.capture == nullptr) {
    if (event.record == nullptr) return CUDA_SUCCESS;
    return InvalidateFor(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  if (event.capture->ended) return CUDA_ERROR_CAPTURED_EVENT;
  if (event.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream.legacy) return InvalidateFor(*event.capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.capture->streams.push_back(&stream);
  }
  if (stream.capture != event.capture) {
    InvalidateFor(*stream.capture, CUDA_SUCCESS);
    return InvalidateFor(*event.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  for (Node* node : event.capture_after) {
    std::vector<Node*>& after = stream.capture_after;
    if (std::find(after.begin(), after.end(), node) == after.end()) after.push_back(node);
  }
  return CUDA_SUCCESS;
}

CUresult CaptureAllocation(Call& call, Stream& stream, int device, uint64_t bytes, CUdeviceptr* address) {
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  if (stream.capture->again && !stream.capture->invalidated) {
    const GraphAllocation* const before = AllocatedBefore(*stream.capture, bytes);
    if (before == nullptr) return InvalidateFor(*stream.capture, kRecaptureFailure);
    *address = work.allocation = before->address;
    return Submit(call, stream, std::move(work));
  }
  GraphAllocation allocation;
  allocation.size = bytes;
  allocation.extent = RoundUp(bytes, kAllocationGrain);
  allocation.device = device;
  if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::optional<uint64_t> reserved = call.sim.addresses.Reserve(allocation.extent, kPageGrain);
  if (!reserved) return CUDA_ERROR_OUT_OF_MEMORY;
  allocation.address = *reserved;
  stream.capture->graph->addresses->allocations.push_back(allocation);
  *address = *reserved;
  work.allocation = *reserved;
  return Submit(call, stream, std::move(work));
}

CUresult CaptureFree(Call& call, Stream& stream, CUdeviceptr address) {
  auto found = call.sim.allocations.find(address);
  bool live = found != call.sim.allocations.end() && found->second.kind == Allocation::Kind::kGraph;
  bool allocated = false;
  bool freed = false;
  for (const auto& node : stream.capture->graph->nodes) {
    if (node->work.allocation != address) continue;
    (node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE ? freed : allocated) = true;
  }
  if (freed || (!allocated && !live)) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  work.allocation = address;
  return Submit(call, stream, std::move(work));
}

}  // namespace sim

using sim::Call;
using sim::OnStream;
using sim::Stream;

CUresult cuStreamBeginCapture(CUstream hStream, CUstreamCaptureMode mode) {
  return OnStream("cuStreamBeginCapture", hStream,
                  [&](Call& call, Stream& stream) { return sim::Begin(call, stream, mode, nullptr, {}); });
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  return OnStream("cuStreamBeginCaptureToGraph", hStream, [&](Call& call, Stream& stream) {
    auto graph = call.sim.graphs.find(hGraph);
    if (graph == call.sim.graphs.end()) return CUDA_ERROR_INVALID_VALUE;
    if (dependencyData != nullptr) return sim::NotSimulated("edge data");
    std::vector<sim::Node*> after;
    for (size_t i = 0; i < numDependencies; ++i)
      after.push_back(reinterpret_cast<sim::Node*>(dependencies[i]));
    return sim::Begin(call, stream, mode, graph->second.get(), std::move(after));
  });
}

// Of a later CUDA than the headers'. The same nodes are captured once more, and take the place of those before.
SIM_EXPORT CUresult cuStreamBeginRecaptureToGraph(CUstream hStream, CUstreamCaptureMode mode, CUgraph hGraph,
                                                  void* callbackFunc, void* userData) {
  return OnStream("cuStreamBeginRecaptureToGraph", hStream, [&](Call& call, Stream& stream) {
    auto graph = call.sim.graphs.find(hGraph);
    if (graph == call.sim.graphs.end()) return CUDA_ERROR_INVALID_VALUE;
    if (callbackFunc != nullptr) return sim::NotSimulated("callbacks of a capture");
    if (CUresult error = sim::Begin(call, stream, mode, graph->second.get(), {}); error != CUDA_SUCCESS)
      return error;
    stream.capture->again = true;
    stream.capture->before.swap(graph->second->nodes);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  return OnStream("cuStreamEndCapture", hStream, [&](Call& call, Stream& stream) {
    std::shared_ptr<sim::Capture> capture = stream.capture;
    if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = nullptr;
    if (capture->origin != &stream) return sim::InvalidateFor(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    bool own = capture->thread == std::this_thread::get_id();
    CUresult error = CUDA_SUCCESS;
    if (!own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
      error = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;  // and it is over
    } else if (capture->invalidated) {
      error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (!sim::Joined(*capture)) {
      error = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    } else if (capture->again && !sim::Alike(capture->graph->nodes, capture->before)) {
      error = sim::kRecaptureFailure;
    }
    sim::End(call.sim, capture);
    if (error == CUDA_SUCCESS) {
      *phGraph = reinterpret_cast<CUgraph>(capture->graph);
    } else if (!capture->graph_is_callers) {
      call.sim.graphs.erase(reinterpret_cast<CUgraph>(capture->graph));
    }
    return error;
  });
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return OnStream("cuStreamIsCapturing", hStream, [&](Call& call, Stream& stream) {
    if (captureStatus == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (stream.legacy) {
      if (CUresult error = sim::AdmitLegacy(call, *stream.context); error != CUDA_SUCCESS) return error;
    }
    *captureStatus = sim::StatusOf(stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                cuuint64_t* id_out, CUgraph* graph_out, const CUgraphNode** dependencies_out,
                                const CUgraphEdgeData** edgeData_out, size_t* numDependencies_out) {
  return OnStream("cuStreamGetCaptureInfo", hStream, [&](Call&, Stream& stream) {
    if (captureStatus_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *captureStatus_out = sim::StatusOf(stream);
    if (stream.capture == nullptr) return CUDA_SUCCESS;
    if (id_out != nullptr) *id_out = stream.capture->serial;
    if (graph_out != nullptr) *graph_out = reinterpret_cast<CUgraph>(stream.capture->graph);
    if (edgeData_out != nullptr) *edgeData_out = nullptr;
    static_assert(sizeof(sim::Node*) == sizeof(CUgraphNode));
    const void* nodes = stream.capture_after.data();
    if (dependencies_out != nullptr) *dependencies_out = static_cast<const CUgraphNode*>(nodes);
    if (numDependencies_out != nullptr) *numDependencies_out = stream.capture_after.size();
    return CUDA_SUCCESS;
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return sim::Enter("cuThreadExchangeStreamCaptureMode", sim::Needs::kDriver, [&](Call&) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, sim::ThisThread().capture_mode);
    return CUDA_SUCCESS;
  });
}
