#include "replay/models/models.h"

#include "replay/models/bfc_arena.h"
#include "replay/models/driver_pool.h"
#include "replay/models/torch_expandable.h"
#include "replay/models/torch_native.h"

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
    {"torch-native", "PyTorch's caching allocator", &Make<TorchNative>},
    {"torch-expandable", "the same under expandable_segments:True", &Make<TorchExpandable>},
    {"driver-pool", "a stream-ordered pool as of cudaMallocAsync", &Make<DriverPool>},
    {"bfc-arena", "one range, best fit with coalescing, as XLA's BFC", &Make<BfcArena>},
    {"plain-arena", "the same, splitting always", &MakePlainArena},
};

}  // namespace

std::span<const ModelInfo> Models() { return kModels; }

}  // namespace reprise::replay
