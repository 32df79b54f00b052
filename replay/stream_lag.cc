#include "replay/stream_lag.h"

#include <algorithm>
#include <map>
#include <utility>

#include "replay/stream_order.h"

namespace reprise::replay {
namespace {

// Of a lane's bytes so much lives no longer than what its lag is a part of: what it keeps for most of the cycle says nothing.
constexpr int64_t kPartOfBytes = 4;
// What lives for longer than this part of the cycle does not say more than what lives for that long.
constexpr int64_t kPartOfCycle = 4;
constexpr size_t kMostChains = 64;  // of a lane, looked at for one block

using Lane = std::pair<bool, Stream>;  // whether the other stream takes it, and which one that is

// Blocks without a stream wait for the device by themselves.
std::optional<Lane> LaneOf(const profiler::Slot& slot, Stream main) {
  if (IsEveryStream(slot.stream)) return std::nullopt;
  if (slot.stream != main) return Lane(true, slot.stream);
  if (slot.freed_on != main && !IsEveryStream(slot.freed_on)) return Lane(false, slot.freed_on);
  return std::nullopt;
}

std::optional<Stream> MainStream(std::span<const profiler::Slot> slots) {
  std::map<Stream, int64_t> blocks;
  for (const profiler::Slot& slot : slots) {
    if (!slot.persistent && !IsEveryStream(slot.stream)) ++blocks[slot.stream];
  }
  const auto most =
      std::ranges::max_element(blocks, {}, [](const auto& of_stream) { return of_stream.second; });
  return most == blocks.end() ? std::nullopt : std::optional(most->first);
}

double Area(const planner::Buffer& buffer) {
  return static_cast<double>(buffer.size.count()) * static_cast<double>(buffer.upper - buffer.lower);
}

// The place of a chain that a block ends.
planner::Buffer Joined(planner::Buffer chain, const planner::Buffer& block) {
  chain.upper = std::max(chain.upper, block.upper);
  chain.size = std::max(chain.size, block.size);
  chain.alignment = std::max(chain.alignment, block.alignment);
  return chain;
}

// Which blocks of a cycle live while the main stream takes one.
class AcrossMain {
 public:
  AcrossMain(std::span<const profiler::Slot> slots, Stream main) {
    for (const profiler::Slot& slot : slots) taken_.push_back(taken_.back() + (slot.stream == main ? 1 : 0));
  }
  bool Lives(uint32_t slot, int64_t length) const { return Until(slot + length) > Until(slot + int64_t{1}); }

 private:
  // How many it takes before the slot `at`, from the first round's first on.
  int64_t Until(int64_t at) const {
    const auto cycle = static_cast<int64_t>(taken_.size()) - 1;
    return taken_[static_cast<size_t>(at % cycle)] + at / cycle * taken_.back();
  }

  std::vector<int64_t> taken_ = {0};
};

// The blocks of one lane as they come.
class LaneChains {
 public:
  // Before any is added: a block of the lane that both streams may use.
  void Count(const profiler::Slot& slot) {
    lengths_.emplace_back(slot.length, slot.bytes);
    bytes_ += slot.bytes;
  }
  void SetLag(int64_t period, int64_t parts) {
    if (lengths_.empty()) return;
    std::ranges::sort(lengths_);
    Bytes shorter;
    auto at = lengths_.begin();
    while ((shorter += at->second) * kPartOfBytes < bytes_) ++at;
    lag_ = std::min(at->first, period / kPartOfCycle) / parts;
  }
  int64_t lag() const { return lag_; }

  // The place of the chain that a block, widened by its lag, is best put at the end of: which it makes larger by less than it would
  // take by itself. `begin` is the block's own.
  std::optional<uint32_t> Find(const planner::Buffer& widened, Tick begin,
                               const std::vector<planner::Buffer>& places) const {
    std::optional<uint32_t> found;
    double least = Area(widened);
    for (const Chain& chain : chains_) {
      if (chain.end > begin) continue;
      const planner::Buffer& place = places[chain.place];
      const double more = Area(Joined(place, widened)) - Area(place);
      if (more >= least) continue;
      found = chain.place;
      least = more;
    }
    return found;
  }
  // Whether it has begun a chain or goes on with one: the chain at `place` ends there now.
  void End(uint32_t place, Tick end) {
    std::erase_if(chains_, [&](const Chain& chain) { return chain.place == place; });
    if (chains_.size() == kMostChains) chains_.erase(chains_.begin());
    chains_.push_back({place, end});
  }

 private:
  struct Chain {
    uint32_t place;
    Tick end;
  };
  std::vector<std::pair<int64_t, Bytes>> lengths_;
  Bytes bytes_;
  int64_t lag_ = 0;
  std::vector<Chain> chains_;
};

class Widening {
 public:
  Widening(const planner::Problem& problem, std::span<const profiler::Slot> slots,
           std::span<const uint32_t> slot_of, Stream main)
      : problem_(problem), slots_(slots), slot_of_(slot_of), main_(main) {}

  std::optional<Lagged> Make(int64_t parts) {
    const AcrossMain across(slots_, main_);
    for (const uint32_t slot : slot_of_) {
      const std::optional<Lane> lane = LaneOf(slots_[slot], main_);
      if (!lane.has_value()) continue;
      LaneChains& chains = lanes_[*lane];
      if (across.Lives(slot, slots_[slot].length)) chains.Count(slots_[slot]);
    }
    if (lanes_.empty()) return std::nullopt;
    for (auto& [lane, chains] : lanes_) chains.SetLag(*problem_.period, parts);
    lagged_.problem = problem_;
    lagged_.problem.buffers.clear();
    for (size_t b = 0; b < slot_of_.size(); ++b) Add(problem_.buffers[b], slots_[slot_of_[b]]);
    for (planner::Buffer& buffer : lagged_.problem.buffers) Wrap(buffer);
    lagged_.problem.buffers.insert(lagged_.problem.buffers.end(),
                                   problem_.buffers.begin() + static_cast<int64_t>(slot_of_.size()),
                                   problem_.buffers.end());
    return std::move(lagged_);
  }

 private:
  void Add(planner::Buffer block, const profiler::Slot& slot) {
    std::vector<planner::Buffer>& buffers = lagged_.problem.buffers;
    const auto place = static_cast<uint32_t>(buffers.size());
    const std::optional<Lane> lane = LaneOf(slot, main_);
    if (!lane.has_value()) {
      lagged_.place_of.push_back(place);
      return buffers.push_back(block);
    }
    LaneChains& chains = lanes_[*lane];
    const Tick begin = block.lower;
    const Tick end = block.upper;
    if (lane->first) block.lower = begin - chains.lag();
    if (slot.freed_on != main_ && !IsEveryStream(slot.freed_on)) block.upper = end + chains.lag();
    const bool ends_in_cycle = end <= Tick(*problem_.period);
    const auto chain = ends_in_cycle ? chains.Find(block, begin, buffers) : std::nullopt;
    if (chain.has_value()) {
      buffers[*chain] = Joined(buffers[*chain], block);
    } else {
      buffers.push_back(block);
    }
    lagged_.place_of.push_back(chain.value_or(place));
    if (ends_in_cycle) chains.End(lagged_.place_of.back(), end);
  }

  // Into the cycle, of which it takes the whole at most.
  void Wrap(planner::Buffer& buffer) const {
    const int64_t period = *problem_.period;
    buffer.upper = std::min(buffer.upper, buffer.lower + period);
    if (buffer.lower >= Tick(0)) return;
    buffer.lower = buffer.lower + period;
    buffer.upper = buffer.upper + period;
  }

  const planner::Problem& problem_;
  std::span<const profiler::Slot> slots_;
  std::span<const uint32_t> slot_of_;
  const Stream main_;
  std::map<Lane, LaneChains> lanes_;
  Lagged lagged_;
};

}  // namespace

std::optional<Lagged> WithLag(const planner::Problem& problem, std::span<const profiler::Slot> slots,
                              std::span<const uint32_t> slot_of, int64_t parts) {
  const std::optional<Stream> main = MainStream(slots);
  if (!main.has_value()) return std::nullopt;
  return Widening(problem, slots, slot_of, *main).Make(parts);
}

bool OfSeveralStreams(std::span<const profiler::Slot> slots) {
  const std::optional<Stream> main = MainStream(slots);
  return main.has_value() && std::ranges::any_of(slots, [&](const profiler::Slot& slot) {
           return !slot.persistent && LaneOf(slot, *main).has_value();
         });
}

}  // namespace reprise::replay
