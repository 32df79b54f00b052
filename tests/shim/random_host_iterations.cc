// The part of a random program that recurs, so that a plan is made, followed, left and taken up again.
#include <cstdlib>
#include <utility>

#include "tests/shim/random_host.h"

namespace {

constexpr size_t kPhases = 3;
constexpr size_t kMostKept = 60;

Block Take(World& world, size_t bytes, size_t alignment) {
  Block block = {.bytes = bytes, .stamped = bytes, .alignment = alignment};
  void* at = nullptr;
  if (posix_memalign(&at, alignment, bytes) != 0) world.Fail("no memory", block, 0);
  block.at = static_cast<unsigned char*>(at);
  if (reinterpret_cast<uintptr_t>(at) % alignment != 0) world.Fail("a block is not aligned", block, 0);
  world.StampAnew(block);
  return block;
}

// What an iteration keeps for good, it gives to the rest of the program.
void GiveBackOrKeep(World& world, const Block& block, bool keeps) {
  if (keeps && world.blocks.size() < kMostKept) return world.Keep(block);
  GiveBack(world, block);
}

}  // namespace

Training::Training(uint64_t seed) {
  World random(seed, /*quiet=*/true);
  for (size_t i = 0; i < kPhases; ++i) {
    Phase& phase = phases_.emplace_back(4 + random.Draw(16));
    const size_t most = random.OneIn(6) ? 1 << 19 : 1 << 15;
    for (Layer& layer : phase) {
      layer.bytes = 4096 + random.Draw(most);
      layer.alignment = random.OneIn(6) ? size_t{64} << random.Draw(16) : 64;
      layer.gradient_bytes = random.OneIn(3) ? layer.bytes : 4096 + random.Draw(most);
      layer.outlives = random.OneIn(8);
    }
  }
}

void Training::Iterate(World& world, int iterations, size_t one_in_varies) {
  for (int i = 0; i < iterations; ++i) IterateOnce(world, phases_[phase_], one_in_varies);
}

void Training::IterateOnce(World& world, const Phase& phase, size_t one_in_varies) {
  const auto varies = [&] { return one_in_varies != 0 && world.OneIn(one_in_varies); };
  std::vector<std::pair<Block, const Layer*>> kept;
  for (size_t i = 0; i < phase.size(); ++i) {
    const Layer& layer = phase[i];
    if (i == phase.size() / 2) {
      for (const Block& block : std::exchange(carried_, {})) GiveBack(world, block);
    }
    if (varies()) Allocate(world);
    if (varies()) continue;
    const size_t bytes = varies() ? layer.bytes + world.Draw(layer.bytes) : layer.bytes;
    const size_t alignment = varies() ? size_t{4096} << world.Draw(10) : layer.alignment;
    kept.emplace_back(Take(world, bytes, alignment), &layer);
    if (varies()) PlayBlocks(world, 3);
  }
  while (!kept.empty()) {
    const size_t which = varies() ? world.Draw(kept.size()) : kept.size() - 1;
    const auto [block, layer] = kept[which];
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(which));
    const Block gradient = Take(world, layer->gradient_bytes, 64);
    GiveBackOrKeep(world, block, varies());
    if (layer->outlives != varies()) {
      carried_.push_back(gradient);
    } else {
      GiveBackOrKeep(world, gradient, varies());
    }
  }
}
