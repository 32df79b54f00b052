#include "tests/profiler/streams.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <unordered_map>

namespace reprise::profiler::streams {
namespace {
constexpr Bytes kTokenBytes(4096);

Event MakeEvent(EventKind kind, BlockId id, Bytes bytes = Bytes(0)) {
  Event event;
  event.kind = kind;
  event.id = id;
  event.bytes = bytes;
  return event;
}

}  // namespace

Job::Job(Model model, uint64_t seed) : model_(model), random_(seed) {
  for (int layer = 0; layer < model_.layers; ++layer) Alloc(Weight(layer));
}

void Job::SetNoise(double probability, Bytes least, Bytes most) {
  noise_ = probability;
  noise_least_ = least;
  noise_most_ = most;
}

void Job::Train(int64_t length, int micro_batches) {
  events_.push_back(MakeEvent(EventKind::kMark, BlockId{static_cast<uint64_t>(steps_)}));
  if (!model_.late_zero_grad) FreeAll(gradients_);
  for (int i = 0; i < micro_batches; ++i) {
    std::vector<BlockId> saved;
    const BlockId batch = Alloc(Bytes(512 * length));
    Forward(length, &saved);
    if (model_.late_zero_grad && i == 0) FreeAll(gradients_);
    Backward(length, saved);
    Free(batch);
  }
  Optimize();
  ++steps_;
}

void Job::Evaluate(int batches, int64_t length) {
  for (int i = 0; i < batches; ++i) {
    const BlockId batch = Alloc(Bytes(512 * length));
    Forward(length, nullptr);
    Free(batch);
  }
}

void Job::Probe(Bytes bytes) {
  const BlockId probe = Alloc(bytes);
  Free(Alloc(Bytes(8192)));  // sees it live
  Free(probe);
}

BlockId Job::Alloc(Bytes bytes) {
  ++allocs_;
  ExpireNoise();
  if (noise_ > 0 && std::bernoulli_distribution(noise_)(random_)) {
    const Bytes size(std::uniform_int_distribution(noise_least_.count(), noise_most_.count())(random_));
    if (size >= Bytes(4096) && std::bernoulli_distribution(0.5)(random_)) {
      bytes = size;
    } else {
      const BlockId id{events_.size()};
      events_.push_back(MakeEvent(EventKind::kAlloc, id, size));
      noise_blocks_.push_back({id, allocs_ + std::uniform_int_distribution<size_t>(1, 20)(random_)});
    }
  }
  const BlockId id{events_.size()};
  events_.push_back(MakeEvent(EventKind::kAlloc, id, bytes));
  return id;
}

void Job::Free(BlockId id) { events_.push_back(MakeEvent(EventKind::kFree, id)); }

void Job::FreeAll(std::vector<BlockId>& ids) {
  for (const BlockId id : ids) Free(id);
  ids.clear();
}

void Job::ExpireNoise() {
  for (auto it = noise_blocks_.begin(); it != noise_blocks_.end();) {
    if (it->until > allocs_) {
      ++it;
      continue;
    }
    Free(it->id);
    it = noise_blocks_.erase(it);
  }
}

Bytes Job::Weight(int layer) const { return Bytes(600'000 + 10'000 * (layer % model_.kinds)); }

Bytes Job::Activation(int layer, int64_t length) const {
  return Bytes(length * (2'000 + 100 * (layer % model_.kinds)));
}

void Job::Forward(int64_t length, std::vector<BlockId>* saved) {
  for (int layer = 0; layer < model_.layers; ++layer) {
    const BlockId projected = Alloc(Activation(layer, 3 * length));
    const BlockId scores = Alloc(Activation(layer, 2 * length));
    const BlockId hidden = Alloc(Activation(layer, length));
    Free(scores);
    const BlockId out = Alloc(Activation(layer, length) + Bytes(4096));
    Free(projected);
    if (saved != nullptr) {
      saved->insert(saved->end(), {hidden, out});
    } else {
      Free(hidden);
      Free(out);
    }
  }
}

void Job::Backward(int64_t length, std::vector<BlockId>& saved) {
  const bool first = gradients_.empty();
  for (int layer = model_.layers - 1; layer >= 0; --layer) {
    const BlockId incoming = Alloc(Activation(layer, 2 * length) + Bytes(8192));
    const BlockId gradient = Alloc(Weight(layer) + Bytes(64));
    for (int i = 0; i < 2; ++i) {
      Free(saved.back());
      saved.pop_back();
    }
    Free(incoming);
    if (first) {
      gradients_.push_back(gradient);
    } else {
      Free(gradient);  // added to the one that is there
    }
  }
}

void Job::Optimize() {
  for (int layer = 0; layer < model_.layers; ++layer) {
    if (model_.optimizer_state) {
      if (steps_ == 0) Alloc(Weight(layer) + Bytes(128));
      const BlockId denominator = Alloc(Weight(layer) + Bytes(192));
      const BlockId update = Alloc(Weight(layer) + Bytes(256));
      Free(denominator);
      Free(update);
    }
  }
}

std::vector<Event> ReadBench(const std::string& path) {
  std::vector<Event> events;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream row(line);
    std::string kind;
    uint64_t id = 0;
    int64_t bytes = 0;
    row >> kind >> id >> bytes;
    if (kind == "alloc") events.push_back(MakeEvent(EventKind::kAlloc, BlockId(id), Bytes(bytes)));
    if (kind == "free") events.push_back(MakeEvent(EventKind::kFree, BlockId(id)));
    if (kind == "mark") events.push_back(MakeEvent(EventKind::kMark, BlockId(id)));
  }
  return events;
}

Outcome Feed(const std::vector<Event>& events, PeriodFinder::Options options) {
  struct Block {
    Bytes bytes;
    Tick tick{-1};
  };
  Outcome outcome;
  PeriodFinder finder(options);
  std::unordered_map<uint64_t, Block> blocks;
  Bytes live;
  for (const Event& event : events) {
    const auto id = static_cast<uint64_t>(event.id);
    if (event.kind == EventKind::kMark) {
      outcome.marks.push_back(finder.now().count());
    } else if (event.kind == EventKind::kFree) {
      live -= blocks[id].bytes;
      outcome.history.OnFree(blocks[id].tick);
      blocks.erase(id);
    } else {
      Block& block = blocks[id];
      block.bytes = event.bytes;
      if (event.bytes >= kTokenBytes) {
        block.tick = outcome.history.OnAlloc(event.bytes, event.alignment, event.stream, live);
        const bool found = finder.OnAlloc(event.bytes, event.stream, live);
        outcome.history.Reserve(finder.capacity());
        outcome.in_step.push_back(finder.in_step());
        if (found) {
          outcome.findings.push_back(
              {.period = *finder.confirmed(),
               .step = static_cast<int64_t>(outcome.marks.size()) - 1,
               .into_step = finder.now().count() - (outcome.marks.empty() ? 0 : outcome.marks.back()),
               .iteration = ExtractIteration(outcome.history, *finder.confirmed())});
        }
      }
      live += event.bytes;
    }
  }
  outcome.iterations = finder.iterations();
  outcome.tokens = finder.now().count();
  outcome.capacity = finder.capacity();
  return outcome;
}

}  // namespace reprise::profiler::streams
