// Problems for the tests: a short way to write one down, and random ones.
#pragma once

#include <cstdint>
#include <random>
#include <utility>

#include "planner/types.h"

namespace reprise::planner {

inline Buffer Block(int64_t lower, int64_t upper, int64_t size, int64_t alignment = 1) {
  return Buffer{Tick(lower), Tick(upper), Bytes(size), Bytes(alignment), std::nullopt};
}

inline Buffer Pinned(int64_t lower, int64_t upper, int64_t size, int64_t offset) {
  return Buffer{Tick(lower), Tick(upper), Bytes(size), Bytes(1), Offset(offset)};
}

inline Buffer OnLane(int32_t lane, Buffer buffer) {
  buffer.lane = lane;
  return buffer;
}

inline Placement At(std::initializer_list<int64_t> offsets, int64_t slab) {
  Placement placement;
  for (int64_t offset : offsets) placement.offsets.emplace_back(offset);
  placement.slab = Bytes(slab);
  return placement;
}

inline Buffer WithGaps(Buffer buffer, std::initializer_list<std::pair<int64_t, int64_t>> gaps) {
  for (const auto& [lower, upper] : gaps) buffer.gaps.push_back({Tick(lower), Tick(upper)});
  return buffer;
}

inline bool InUse(const Buffer& buffer, int64_t tick) {
  for (const LifetimeGap& gap : buffer.gaps) {
    if (gap.lower.count() <= tick && tick < gap.upper.count()) return false;
  }
  return buffer.lower.count() <= tick && tick < buffer.upper.count();
}

// Do two buffers share a tick? By counting ticks, as slow and as plain as can be.
inline bool ShareTick(const Problem& problem, const Buffer& a, const Buffer& b) {
  for (int64_t x = a.lower.count(); x < a.upper.count(); ++x) {
    for (int64_t y = b.lower.count(); y < b.upper.count(); ++y) {
      if (InUse(a, x) && InUse(b, y) && (problem.period ? (x - y) % *problem.period == 0 : x == y))
        return true;
    }
  }
  return false;
}

inline bool ShareBytes(const Buffer& a, Offset at_a, const Buffer& b, Offset at_b) {
  return at_a < at_b + b.size && at_b < at_a + a.size;
}

struct RandomShape {
  int buffers = 6;
  int64_t ticks = 8;
  int64_t max_size = 9;
  bool cyclic = false;
  bool aligned = false;
  int pinned = 0;  // at most so many of the buffers
  bool gaps = false;
  bool outside = false;
  int32_t lanes = 1;
  bool previous = false;
};

// With every combination of features in turn.
inline RandomShape OfEveryKind(int round) {
  return {.buffers = 60,
          .ticks = 40,
          .max_size = 40,
          .cyclic = (round & 16) != 0,
          .aligned = (round & 1) != 0,
          .pinned = (round & 2) != 0 ? 5 : 0,
          .gaps = (round & 4) != 0,
          .outside = (round & 8) != 0};
}

class RandomProblems {
 public:
  explicit RandomProblems(uint64_t seed) : random_(seed) {}

  int64_t Below(int64_t limit) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit)); }

  Problem Make(const RandomShape& shape) {
    Problem problem;
    if (shape.cyclic) problem.period = shape.ticks;
    for (int i = 0; i < shape.buffers; ++i) {
      const int64_t lower = Below(shape.ticks);
      const int64_t longest = shape.cyclic ? shape.ticks : shape.ticks - lower;
      Buffer buffer = Block(lower, lower + 1 + Below(longest), 1 + Below(shape.max_size));
      if (shape.aligned) buffer.alignment = Bytes(int64_t{1} << Below(4));
      if (shape.gaps) MakeGaps(buffer);
      if (shape.lanes > 1) buffer.lane = static_cast<int32_t>(Below(shape.lanes));
      if (i < shape.pinned) Pin(problem, buffer, shape);
      if (shape.outside && !buffer.pinned) buffer.outside = Below(5) == 0;
      if (shape.previous && Below(3) > 0) buffer.previous = Offset(Below(3 * shape.max_size));
      problem.buffers.push_back(buffer);
    }
    return problem;
  }

 private:
  // Pins the buffer at a random place, unless that would overlap another pinned one.
  void Pin(const Problem& problem, Buffer& buffer, const RandomShape& shape) {
    const Offset offset(Below(3 * shape.max_size));
    for (const Buffer& other : problem.buffers) {
      if (other.pinned && ShareTick(problem, buffer, other) &&
          ShareBytes(buffer, offset, other, *other.pinned))
        return;
    }
    buffer.pinned = offset;
  }

  // Some gaps, as far as there is room for them.
  void MakeGaps(Buffer& buffer) {
    for (Tick from = buffer.lower + 1; Below(3) > 0;) {
      const Tick lower = from + Below(3);
      const Tick upper = lower + 1 + Below(3);
      if (upper >= buffer.upper) return;
      buffer.gaps.push_back({lower, upper});
      from = upper + 1;
    }
  }

  std::mt19937_64 random_;
};

// Buffers that fill a square of 64 without waste, made by random cuts.
inline Problem Square(RandomProblems& random, int cuts) {
  struct Piece {
    int64_t lower, upper, bottom, top;
  };
  std::vector<Piece> pieces{{0, 64, 0, 64}};
  while (static_cast<int>(pieces.size()) <= cuts) {
    Piece& piece = pieces[random.Below(static_cast<int64_t>(pieces.size()))];
    Piece rest = piece;
    if (random.Below(2) == 0 && piece.upper - piece.lower > 1) {
      rest.lower = piece.upper = piece.lower + 1 + random.Below(piece.upper - piece.lower - 1);
    } else if (piece.top - piece.bottom > 1) {
      rest.bottom = piece.top = piece.bottom + 1 + random.Below(piece.top - piece.bottom - 1);
    } else {
      continue;
    }
    pieces.push_back(rest);
  }
  Problem problem;
  for (const Piece& piece : pieces) {
    problem.buffers.push_back(Block(piece.lower, piece.upper, piece.top - piece.bottom));
  }
  return problem;
}

}  // namespace reprise::planner
