// The jobs that the streams of varying_streams are made of: what each allocates in a step, written down as events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "profiler/types.h"

namespace reprise::replay::varying {

inline constexpr int64_t kTokenBytes = 4096;

// Not <random>'s distributions: those differ from library to library.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int64_t in_thousand) { return Between(1, 1000) <= in_thousand; }

 private:
  std::mt19937_64 random_;
};

struct NoiseRange {
  int64_t in_thousand = 0;
  int64_t least = 0;
  int64_t most = 0;
};

// Writes events down and counts their tokens; adds the noise.
class Writer {
 public:
  explicit Writer(Dice* dice) : dice_(dice) {}
  void SetNoise(NoiseRange noise) { noise_ = noise; }

  BlockId Alloc(int64_t bytes) {
    ExpireStrays();
    if (noise_.in_thousand > 0 && dice_->Chance(noise_.in_thousand)) {
      strays_.push_back({Append(dice_->Between(noise_.least, noise_.most)), allocs_ + dice_->Between(1, 20)});
    }
    if (bytes >= kTokenBytes) ++tokens_;
    return Append(bytes);
  }
  void Free(BlockId id) { events_.push_back({.kind = profiler::EventKind::kFree, .id = id}); }
  void FreeAll(std::vector<BlockId>& ids) {
    for (const BlockId id : ids) Free(id);
    ids.clear();
  }
  void Mark() {
    events_.push_back({.kind = profiler::EventKind::kMark, .id = BlockId{static_cast<uint64_t>(marks_++)}});
  }
  int64_t tokens() const { return tokens_; }  // strays aside
  std::vector<profiler::Event> TakeEvents() { return std::move(events_); }

 private:
  struct Stray {
    BlockId id;
    int64_t until;
  };

  BlockId Append(int64_t bytes) {
    ++allocs_;
    const BlockId id{next_++};
    events_.push_back({.kind = profiler::EventKind::kAlloc, .id = id, .bytes = Bytes(bytes)});
    return id;
  }
  void ExpireStrays() {
    for (auto it = strays_.begin(); it != strays_.end();) {
      if (it->until > allocs_) {
        ++it;
        continue;
      }
      Free(it->id);
      it = strays_.erase(it);
    }
  }

  Dice* dice_;
  NoiseRange noise_;
  std::deque<Stray> strays_;
  std::vector<profiler::Event> events_;
  uint64_t next_ = 0;
  int64_t allocs_ = 0;
  int64_t tokens_ = 0;
  int64_t marks_ = 0;
};

// The parameters of a model, their gradients and the optimizer's state.
class Parameters {
 public:
  Parameters(Writer* out, std::vector<int64_t> sizes) : out_(out), sizes_(std::move(sizes)) {
    for (const int64_t bytes : sizes_) out_->Alloc(bytes);
    gradients_.resize(sizes_.size());
    have_.resize(sizes_.size());
  }

  void ZeroGrad() {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (have_[i]) out_->Free(gradients_[i]);
      have_[i] = false;
    }
  }
  // A gradient has been computed: the first is kept, others are added to it.
  void Accumulate(size_t i) {
    const BlockId gradient = out_->Alloc(sizes_[i]);
    if (have_[i]) {
      out_->Free(gradient);
    } else {
      gradients_[i] = gradient;
      have_[i] = true;
    }
  }
  void Optimize() {
    for (const int64_t bytes : sizes_) {
      if (!state_) {
        out_->Alloc(bytes);
        out_->Alloc(bytes);
      }
      const BlockId root = out_->Alloc(bytes);
      const BlockId denominator = out_->Alloc(bytes);
      out_->Free(root);
      out_->Free(denominator);
    }
    state_ = true;
  }

 private:
  Writer* out_;
  const std::vector<int64_t> sizes_;
  std::vector<BlockId> gradients_;
  std::vector<bool> have_;
  bool state_ = false;
};

struct Shape {
  int64_t layers = 8;
  int64_t hidden = 512;
  int64_t batch = 8;
  int64_t length = 256;  // of a sequence, where it does not vary
  int64_t heads = 8;
  int64_t vocabulary = 8192;
  int64_t experts = 0;
  bool keeps_gradients = false;  // of a step, until the next one's forward pass is over
};

inline Shape DrawShape(Dice& dice) {
  return {.layers = dice.Between(5, 14),
          .hidden = 64 * dice.Between(5, 14),
          .batch = dice.Between(6, 16),
          .length = 16 * dice.Between(10, 28),
          .heads = dice.Between(2, 8),
          .vocabulary = 512 * dice.Between(8, 24)};
}

// A stack of transformer layers, in single precision.
class Transformer {
 public:
  Transformer(Writer* out, Dice* dice, Shape shape)
      : out_(out), dice_(dice), shape_(shape), parameters_(out, Sizes(shape)) {}

  // One step over `micro_batches` batches of sequences of `length`.
  void Step(int64_t batch, int64_t length, int micro_batches = 1, bool optimize = true) {
    if (!shape_.keeps_gradients) parameters_.ZeroGrad();
    for (int i = 0; i < micro_batches; ++i) Pass(batch, length, /*train=*/true);
    if (optimize) parameters_.Optimize();
  }
  void Step() { Step(shape_.batch, shape_.length); }
  void Evaluate(int batches) {
    for (int i = 0; i < batches; ++i) Pass(shape_.batch, shape_.length, /*train=*/false);
  }
  // Answers of so many tokens to prompts that are as long as all but these: each token's keys and values are joined to
  // those before it, in a new block.
  void Generate(int64_t batch, int64_t prompt, int64_t tokens) {
    const int64_t column = 4 * batch * shape_.hidden;
    std::vector<BlockId> caches(2 * static_cast<size_t>(shape_.layers));
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t rows = t == 0 ? prompt : 1;
      BlockId hidden = out_->Alloc(column * rows);
      for (size_t i = 0; i < caches.size(); i += 2) {
        const BlockId projected = out_->Alloc(3 * column * rows);
        for (size_t k = i; k < i + 2; ++k) {
          const BlockId joined = out_->Alloc(column * (prompt + t));
          if (t > 0) out_->Free(caches[k]);
          caches[k] = joined;
        }
        out_->Free(out_->Alloc(4 * batch * shape_.heads * rows * (prompt + t)));
        out_->Free(projected);
        out_->Free(out_->Alloc(4 * column * rows));
        const BlockId output = out_->Alloc(column * rows);
        out_->Free(hidden);
        hidden = output;
      }
      out_->Free(out_->Alloc(4 * batch * shape_.vocabulary));
      out_->Free(hidden);
    }
    out_->FreeAll(caches);
  }
  const Shape& shape() const { return shape_; }

  // Of the parameters.
  static std::vector<int64_t> Sizes(const Shape& s) {
    const int64_t square = 4 * s.hidden * s.hidden;
    std::vector<int64_t> sizes = {4 * s.vocabulary * s.hidden};
    for (int64_t i = 0; i < s.layers; ++i) {
      sizes.insert(sizes.end(), {8 * s.hidden, 3 * square, square, 8 * s.hidden, 4 * square, 4 * square});
    }
    return sizes;
  }

 private:
  static constexpr int64_t kOfALayer = 6;  // parameters

  struct Saved {
    std::vector<BlockId> blocks;  // activations that the backward pass wants
    std::vector<int64_t> tokens;  // of each expert
  };

  void Pass(int64_t batch, int64_t length, bool train) {
    const BlockId input = out_->Alloc(8 * batch * length);
    const int64_t rows = 4 * batch * length;  // bytes of one column
    std::vector<Saved> saved(static_cast<size_t>(shape_.layers));
    BlockId hidden = out_->Alloc(rows * shape_.hidden);
    for (Saved& layer : saved) hidden = Forward(batch, length, hidden, train, layer);
    const BlockId logits = out_->Alloc(rows * shape_.vocabulary / 8);
    out_->Free(out_->Alloc(4));  // the loss
    if (shape_.keeps_gradients) parameters_.ZeroGrad();
    if (train) {
      BlockId incoming = out_->Alloc(rows * shape_.vocabulary / 8);
      out_->Free(logits);
      const BlockId of_hidden = out_->Alloc(rows * shape_.hidden);
      out_->Free(incoming);
      incoming = of_hidden;
      for (int64_t i = shape_.layers - 1; i >= 0; --i) {
        incoming = Backward(i, batch, length, incoming, saved[static_cast<size_t>(i)]);
      }
      parameters_.Accumulate(0);
      out_->Free(incoming);
    } else {
      out_->Free(logits);
    }
    out_->Free(hidden);
    out_->Free(input);
  }

  BlockId Forward(int64_t batch, int64_t length, BlockId input, bool train, Saved& saved) {
    const int64_t rows = 4 * batch * length;
    const int64_t columns = rows * shape_.hidden;
    const BlockId normed = out_->Alloc(columns);
    const BlockId statistics = out_->Alloc(2 * rows);
    const BlockId projected = out_->Alloc(3 * columns);
    const BlockId scores = out_->Alloc(4 * batch * shape_.heads * length * length);
    const BlockId weights = out_->Alloc(4 * batch * shape_.heads * length * length);
    out_->Free(scores);
    const BlockId mixed = out_->Alloc(columns);
    const BlockId residual = out_->Alloc(columns);
    std::vector<BlockId> keep = {input, normed, statistics, projected, weights, mixed};
    if (shape_.experts == 0) {
      const BlockId wide = out_->Alloc(4 * columns);
      const BlockId activated = out_->Alloc(4 * columns);
      keep.insert(keep.end(), {wide, activated});
    } else {
      ForwardExperts(batch * length, keep, saved);
    }
    const BlockId narrow = out_->Alloc(columns);
    const BlockId output = out_->Alloc(columns);
    out_->Free(narrow);
    keep.push_back(residual);
    if (train) {
      saved.blocks = std::move(keep);
    } else {
      out_->FreeAll(keep);
    }
    return output;
  }

  // Shares as a router leaves them: each expert gets between a quarter and the double of its part.
  void ForwardExperts(int64_t tokens, std::vector<BlockId>& keep, Saved& saved) {
    for (int64_t e = 0; e < shape_.experts; ++e) {
      const int64_t share = tokens * dice_->Between(25, 200) / (100 * shape_.experts);
      saved.tokens.push_back(share);
      keep.push_back(out_->Alloc(4 * share * shape_.hidden));
      keep.push_back(out_->Alloc(16 * share * shape_.hidden));
    }
  }

  BlockId Backward(int64_t layer, int64_t batch, int64_t length, BlockId incoming, Saved& saved) {
    const int64_t columns = 4 * batch * length * shape_.hidden;
    const auto first = static_cast<size_t>(1 + kOfALayer * layer);
    if (shape_.experts == 0) {
      const BlockId wide = out_->Alloc(4 * columns);
      parameters_.Accumulate(first + 5);
      const BlockId activated = out_->Alloc(4 * columns);
      out_->Free(wide);
      parameters_.Accumulate(first + 4);
      out_->Free(activated);
    } else {
      for (const int64_t share : saved.tokens) {
        const BlockId wide = out_->Alloc(16 * share * shape_.hidden);
        out_->Free(out_->Alloc(4 * share * shape_.hidden));
        out_->Free(wide);
      }
      parameters_.Accumulate(first + 5);
      parameters_.Accumulate(first + 4);
    }
    parameters_.Accumulate(first + 3);
    const BlockId of_mixed = out_->Alloc(columns);
    parameters_.Accumulate(first + 2);
    const BlockId scores = out_->Alloc(4 * batch * shape_.heads * length * length);
    const BlockId projected = out_->Alloc(3 * columns);
    out_->Free(of_mixed);
    out_->Free(scores);
    parameters_.Accumulate(first + 1);
    const BlockId outgoing = out_->Alloc(columns);
    out_->Free(projected);
    parameters_.Accumulate(first);
    out_->FreeAll(saved.blocks);
    out_->Free(incoming);
    return outgoing;
  }

  Writer* out_;
  Dice* dice_;
  const Shape shape_;
  Parameters parameters_;
};

// A recurrent net: one cell, unrolled over as many time steps as the sequence has.
class RecurrentNet {
 public:
  RecurrentNet(Writer* out, int64_t hidden, int64_t batch)
      : out_(out),
        hidden_(hidden),
        batch_(batch),
        parameters_(out, {16 * hidden * hidden, 16 * hidden * hidden, 16 * hidden, 4 * 4096 * hidden}) {}

  void Step(int64_t length) {
    parameters_.ZeroGrad();
    const int64_t state = 4 * batch_ * hidden_;
    std::vector<BlockId> saved = {out_->Alloc(state * length)};
    for (int64_t t = 0; t < length; ++t) {
      const BlockId projected = out_->Alloc(4 * state);
      saved.push_back(out_->Alloc(4 * state));  // the gates
      out_->Free(projected);
      saved.push_back(out_->Alloc(state));
      saved.push_back(out_->Alloc(state));
    }
    parameters_.Accumulate(3);
    BlockId incoming = out_->Alloc(state);
    for (int64_t t = 0; t < length; ++t) {
      const BlockId gates = out_->Alloc(4 * state);
      parameters_.Accumulate(0);
      parameters_.Accumulate(1);
      const BlockId outgoing = out_->Alloc(state);
      out_->Free(gates);
      out_->Free(incoming);
      for (int k = 0; k < 3; ++k) {
        out_->Free(saved.back());
        saved.pop_back();
      }
      incoming = outgoing;
    }
    parameters_.Accumulate(2);
    out_->Free(incoming);
    out_->FreeAll(saved);
    parameters_.Optimize();
  }

 private:
  Writer* out_;
  const int64_t hidden_;
  const int64_t batch_;
  Parameters parameters_;
};

// A job whose steps are functions of weights and state that are never changed in place, as XLA runs them: one
// temporary for all of a function, and an output for each array. Gradients and the optimizer are one function
// or two. The next batch is on its way while a step runs.
class FunctionalJob {
 public:
  // `ahead`: how many steps are dispatched before the one that runs has ended.
  FunctionalJob(Writer* out, Shape shape, int64_t ahead, bool two_functions)
      : out_(out),
        shape_(shape),
        kept_(static_cast<size_t>(1 + ahead)),
        two_functions_(two_functions),
        weights_(Transformer::Sizes(shape)) {
    for (const int64_t bytes : weights_) largest_ = std::max(largest_, bytes);
    states_.push_back(NewState());
    batches_.push_back(NewBatch());
  }

  void Step() {
    batches_.push_back(NewBatch());
    BlockId temporary = out_->Alloc(48 * shape_.batch * shape_.length * shape_.hidden);
    std::vector<BlockId> gradients;
    if (two_functions_) {
      gradients = NewWeights();
      out_->Free(temporary);
      temporary = out_->Alloc(3 * largest_);
    }
    states_.push_back(NewState());
    out_->Free(temporary);
    out_->FreeAll(gradients);
    out_->Free(batches_.front());
    batches_.pop_front();
    if (states_.size() > kept_) {
      out_->FreeAll(states_.front());
      states_.pop_front();
    }
  }

 private:
  std::vector<BlockId> NewWeights() {
    std::vector<BlockId> blocks;
    for (const int64_t bytes : weights_) blocks.push_back(out_->Alloc(bytes));
    return blocks;
  }
  // The weights and two moments of each.
  std::vector<BlockId> NewState() {
    std::vector<BlockId> state;
    for (int i = 0; i < 3; ++i) {
      const std::vector<BlockId> part = NewWeights();
      state.insert(state.end(), part.begin(), part.end());
    }
    return state;
  }
  BlockId NewBatch() { return out_->Alloc(8 * shape_.batch * shape_.length); }

  Writer* out_;
  const Shape shape_;
  const size_t kept_;  // states
  const bool two_functions_;
  const std::vector<int64_t> weights_;
  int64_t largest_ = 0;
  std::deque<std::vector<BlockId>> states_;
  std::deque<BlockId> batches_;
};

}  // namespace reprise::replay::varying
