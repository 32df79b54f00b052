// The events of a net of many layers.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "profiler/types.h"

namespace reprise::replay {

// A convolutional net's many layers, whose gradients are small beside a granule and lie everywhere. Behind every so many
// steps it may be evaluated.
inline std::vector<profiler::Event> ManyLayersThatKeepGradients(size_t count = 300, int steps = 12,
                                                                int steps_to_evaluation = 0) {
  std::mt19937_64 random(1);
  const auto draw = [&](int64_t low, int64_t high) {
    return Bytes(512 * (low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1))));
  };
  struct Layer {
    std::vector<Bytes> activations;
    std::vector<Bytes> weights;
  };
  std::vector<Layer> layers(count);
  for (Layer& layer : layers) {
    for (int i = 0; i < 6; ++i) layer.activations.push_back(draw(50, 800));
    for (int i = 0; i < 4; ++i) layer.weights.push_back(draw(9, 200));
  }
  std::vector<profiler::Event> events;
  const auto alloc = [&](Bytes bytes) {
    const BlockId id{events.size()};
    events.push_back({.kind = profiler::EventKind::kAlloc, .id = id, .bytes = bytes});
    return id;
  };
  const auto free = [&](std::vector<BlockId>& blocks) {
    for (const BlockId id : blocks) events.push_back({.kind = profiler::EventKind::kFree, .id = id});
    blocks.clear();
  };
  for (const Layer& layer : layers) {
    for (const Bytes bytes : layer.weights) alloc(bytes);
  }
  std::vector<BlockId> gradients;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<BlockId>> kept(layers.size());
    for (size_t i = 0; i < layers.size(); ++i) {
      for (const Bytes bytes : layers[i].activations) kept[i].push_back(alloc(bytes));
      std::vector<BlockId> workspace = {alloc(layers[i].activations[0])};
      free(workspace);
    }
    free(gradients);
    for (size_t i = layers.size(); i-- > 0;) {
      std::vector<BlockId> incoming = {alloc(layers[i].activations[1])};
      for (const Bytes bytes : layers[i].weights) gradients.push_back(alloc(bytes));
      free(kept[i]);
      free(incoming);
    }
    for (const Layer& layer : layers) {
      for (const Bytes bytes : layer.weights) {
        if (step == 0) alloc(bytes);  // the optimizer's state
      }
    }
    if (steps_to_evaluation == 0 || (step + 1) % steps_to_evaluation != 0) continue;
    for (const Layer& layer : layers) {
      for (const Bytes bytes : layer.activations) {
        std::vector<BlockId> evaluated = {alloc(Bytes(bytes.count() / 2))};
        free(evaluated);
      }
    }
  }
  return events;
}

}  // namespace reprise::replay
