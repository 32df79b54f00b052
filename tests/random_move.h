// The next move of a random program, drawn by weight.
#pragma once

#include <cstddef>
#include <span>

template <typename World>
struct Move {
  size_t weight;
  void (*play)(World&);
};

template <typename World>
const Move<World>& SomeMove(std::span<const Move<World>> moves, World& world) {
  size_t weights = 0;
  for (const Move<World>& move : moves) weights += move.weight;
  size_t drawn = world.Draw(weights);
  const Move<World>* move = moves.data();
  for (; drawn >= move->weight; ++move) drawn -= move->weight;
  return *move;
}
