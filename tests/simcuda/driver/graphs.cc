// Graphs: made by capture, instantiated, launched. A launch queues the nodes on its stream one after another,
// in an order drawn from those that their dependencies allow.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tests/simcuda/driver/allocations.h"
#include "tests/simcuda/driver/capture.h"
#include "tests/simcuda/driver/pools.h"
#include "tests/simcuda/driver/work.h"

namespace sim {

Graph* MakeGraph(Simulator& sim) {
  auto graph = std::make_unique<Graph>();
  Graph* made = graph.get();
  sim.graphs[reinterpret_cast<CUgraph>(made)] = std::move(graph);
  return made;
}

Node* AddNode(Graph& graph, Work work, std::vector<Node*> after) {
  graph.nodes.push_back(std::make_unique<Node>());
  graph.nodes.back()->work = std::move(work);
  graph.nodes.back()->after = std::move(after);
  return graph.nodes.back().get();
}

CUgraphNode HandleOf(const Node* node) { return reinterpret_cast<CUgraphNode>(const_cast<Node*>(node)); }

bool GraphAddresses::TakeMemory(Simulator& sim) {
  if (has_memory) return true;
  size_t taken = 0;
  for (; taken < allocations.size(); ++taken) {
    GraphAllocation& allocation = allocations[taken];
    std::optional<uint64_t> physical = sim.devices[allocation.device]->physical.Take(allocation.extent);
    if (!physical) break;
    allocation.physical = *physical;
  }
  has_memory = taken == allocations.size();
  for (size_t i = 0; i < taken; ++i) {
    const GraphAllocation& allocation = allocations[i];
    Physical& memory = sim.devices[allocation.device]->physical;
    if (!has_memory) {
      memory.Give(allocation.physical, allocation.extent);
      continue;
    }
    uint32_t own = 1U << allocation.device;
    sim.addresses.Map(allocation.address,
                      {allocation.extent, memory.At(allocation.physical), allocation.device, own, own, true});
  }
  return has_memory;
}

void GraphAddresses::GiveMemory(Simulator& sim) {
  if (!has_memory) return;
  has_memory = false;
  for (const GraphAllocation& allocation : allocations) {
    sim.addresses.Unmap(allocation.address);
    sim.devices[allocation.device]->physical.Give(allocation.physical, allocation.extent);
  }
}

GraphAddresses::~GraphAddresses() {
  Simulator& sim = TheSimulator();
  GiveMemory(sim);
  for (const GraphAllocation& allocation : allocations)
    sim.addresses.Release(allocation.address, allocation.extent);
}

namespace {

std::vector<std::unique_ptr<Node>> Copy(const std::vector<std::unique_ptr<Node>>& nodes) {
  std::unordered_map<const Node*, Node*> copies;
  std::vector<std::unique_ptr<Node>> copied;
  for (const auto& node : nodes) {  // a node stands behind all that it comes after
    copied.push_back(std::make_unique<Node>(*node));
    for (Node*& before : copied.back()->after) before = copies.at(before);
    copies[node.get()] = copied.back().get();
  }
  return copied;
}

std::vector<const Node*> DrawOrder(Simulator& sim, const GraphExec& exec) {
  std::vector<const Node*> order;
  std::vector<const Node*> open;
  for (const auto& node : exec.nodes) open.push_back(node.get());
  std::unordered_set<const Node*> drawn_before;
  auto placed = [&](const Node* node) { return drawn_before.contains(node); };
  while (!open.empty()) {
    std::vector<size_t> next;
    for (size_t i = 0; i < open.size(); ++i) {
      if (std::all_of(open[i]->after.begin(), open[i]->after.end(), placed)) next.push_back(i);
    }
    size_t drawn = next[sim.executor.Random() % next.size()];
    order.push_back(open[drawn]);
    drawn_before.insert(open[drawn]);
    open.erase(open.begin() + static_cast<ptrdiff_t>(drawn));
  }
  return order;
}

// Allocations that a launch leaves behind, and those that it ends, as the program sees them from the call on.
CUresult TakeAndGive(Call& call, const Stream& stream, GraphExec& exec) {
  Simulator& sim = call.sim;
  for (const GraphAllocation& allocation : exec.addresses->allocations) {
    if (!sim.allocations.contains(allocation.address)) continue;
    if (!exec.free_on_launch) return CUDA_ERROR_INVALID_VALUE;
    sim.allocations.erase(allocation.address);
  }
  if (!exec.addresses->TakeMemory(sim)) return CUDA_ERROR_OUT_OF_MEMORY;
  for (const GraphAllocation& from : exec.addresses->allocations) {
    Allocation allocation;
    allocation.kind = Allocation::Kind::kGraph;
    allocation.size = from.size;
    allocation.extent = from.extent;
    allocation.device = from.device;
    allocation.context = stream.context;
    allocation.graph = exec.addresses;
    allocation.serial = ++sim.serials;
    sim.allocations[from.address] = allocation;
  }
  for (const auto& node : exec.nodes) {
    if (node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE) sim.allocations.erase(node->work.allocation);
  }
  return CUDA_SUCCESS;
}

template <typename Body>
CUresult OnGraph(const char* function, CUgraph handle, Body&& body) {
  return Enter(function, Needs::kDriver, [&](Call& call) {
    auto found = call.sim.graphs.find(handle);
    return found == call.sim.graphs.end() ? CUDA_ERROR_INVALID_VALUE : body(call, *found->second);
  });
}

}  // namespace
}  // namespace sim

using sim::Call;
using sim::Stream;

CUresult cuGraphCreate(CUgraph* phGraph, unsigned int flags) {
  return sim::Enter("cuGraphCreate", sim::Needs::kDriver, [&](Call& call) {
    if (phGraph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = reinterpret_cast<CUgraph>(sim::MakeGraph(call.sim));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  return sim::OnGraph("cuGraphGetNodes", hGraph, [&](Call&, const sim::Graph& graph) {
    if (numNodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (nodes == nullptr) {
      *numNodes = graph.nodes.size();
      return CUDA_SUCCESS;
    }
    size_t room = *numNodes;
    *numNodes = std::min(room, graph.nodes.size());
    for (size_t i = 0; i < room; ++i)
      nodes[i] = i < graph.nodes.size() ? sim::HandleOf(graph.nodes[i].get()) : nullptr;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  return sim::Enter("cuGraphNodeGetType", sim::Needs::kDriver, [&](Call&) {
    if (hNode == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = reinterpret_cast<const sim::Node*>(hNode)->work.type;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph hGraph) {
  return sim::OnGraph("cuGraphDestroy", hGraph, [&](Call& call, const sim::Graph&) {
    call.sim.graphs.erase(hGraph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long flags) {
  return sim::OnGraph("cuGraphInstantiate", hGraph, [&](Call& call, const sim::Graph& graph) {
    if (phGraphExec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    constexpr unsigned long long kFreeOnLaunch = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    if ((flags & ~kFreeOnLaunch) != 0) return sim::NotSimulated("flags of cuGraphInstantiate");
    auto exec = std::make_unique<sim::GraphExec>();
    exec->nodes = sim::Copy(graph.nodes);
    exec->addresses = graph.addresses;
    exec->free_on_launch = (flags & kFreeOnLaunch) != 0;
    *phGraphExec = reinterpret_cast<CUgraphExec>(exec.get());
    call.sim.graph_execs[*phGraphExec] = std::move(exec);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
  return sim::OnStream("cuGraphUpload", hStream, [&](Call& call, Stream&) {
    return call.sim.graph_execs.contains(hGraphExec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  return sim::OnStream("cuGraphLaunch", hStream, [&](Call& call, Stream& stream) {
    auto found = call.sim.graph_execs.find(hGraphExec);
    if (found == call.sim.graph_execs.end()) return CUDA_ERROR_INVALID_VALUE;
    if (stream.capture != nullptr) return sim::NotSimulated("graphs within graphs");
    if (stream.legacy) {
      if (CUresult error = sim::AdmitLegacy(call, *stream.context); error != CUDA_SUCCESS) return error;
    }
    sim::GraphExec& exec = *found->second;
    if (CUresult error = sim::TakeAndGive(call, stream, exec); error != CUDA_SUCCESS) return error;
    std::shared_ptr<sim::GraphAddresses> addresses = exec.addresses;
    std::vector<sim::Work> works;
    for (const sim::Node* node : sim::DrawOrder(call.sim, exec)) works.push_back(node->work);
    sim::Work last;  // keeps the addresses until the launch is over
    last.run = [addresses](sim::Context&) {};
    works.push_back(std::move(last));
    for (sim::Work& work : works) {
      uint64_t operation = call.sim.executor.Queue(stream, std::move(work), {}, call.lock);
      if (call.sim.graph_execs.contains(hGraphExec)) exec.last_operation = operation;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  return sim::Enter("cuGraphExecDestroy", sim::Needs::kDriver, [&](Call& call) {
    return call.sim.graph_execs.erase(hGraphExec) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  return sim::Enter("cuDeviceGraphMemTrim", sim::Needs::kDriver, [&](Call& call) {
    if (!call.sim.HasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    for (auto& [handle, exec] : call.sim.graph_execs) {
      auto in_use = [&](const sim::GraphAllocation& one) {
        return one.device != device || call.sim.allocations.contains(one.address);
      };
      std::vector<sim::GraphAllocation>& all = exec->addresses->allocations;
      bool idle =
          call.sim.executor.Done(exec->last_operation) && std::none_of(all.begin(), all.end(), in_use);
      if (idle) exec->addresses->GiveMemory(call.sim);
    }
    return CUDA_SUCCESS;
  });
}
