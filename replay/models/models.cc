#include "replay/models/models.h"

#include "replay/models/bfc_arena.h"
#include "replay/models/driver_pool.h"
#include "replay/models/torch_expandable.h"
#include "replay/models/torch_native.h"
#include "replay/models/torch_sizes.h"

namespace reprise::replay {
namespace {

template <typename Model>
std::unique_ptr<AllocatorModel> Make(Bytes capacity) {
  return std::make_unique<Model>(capacity);
}

std::unique_ptr<AllocatorModel> MakePlainArena(Bytes capacity) {
  return std::make_unique<BfcArena>(capacity, BfcArena::Kind::kPlain);
}

constexpr ModelInfo kModels[] = {
    {"torch-native", "PyTorch's caching allocator", kTorchSharedSegment, &Make<TorchNative>},
    {"torch-expandable", "the same under expandable_segments:True", kTorchSharedSegment,
     &Make<TorchExpandable>},
    {"driver-pool", "a stream-ordered pool as of cudaMallocAsync", DriverPool::kChunk, &Make<DriverPool>},
    {"bfc-arena", "one range, best fit with coalescing, as XLA's BFC", BfcArena::kMostWaste, &Make<BfcArena>},
    {"plain-arena", "the same, splitting always", BfcArena::kStep, &MakePlainArena},
};

}  // namespace

std::span<const ModelInfo> Models() { return kModels; }

}  // namespace reprise::replay
