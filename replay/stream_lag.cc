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
// Of streams apart no more than this part of either's bytes lives on while the other takes any: what a step returns, say.
constexpr int64_t kPartsOfTurns = 64;
constexpr size_t kMostApart = 16;  // streams
// Lanes of a problem: what streams share, what is nobody's stream, and from here on streams apart.
constexpr int32_t kFirstApart = 2;

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

// Which blocks of a cycle live while a stream takes one.
class Across {
 public:
  Across(std::span<const profiler::Slot> slots, Stream stream) {
    for (const profiler::Slot& slot : slots)
      taken_.push_back(taken_.back() + (slot.stream == stream ? 1 : 0));
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

// What one stream takes of a cycle, and what of it says that another one is in step with it.
struct Ties {
  Bytes taken;
  Bytes handed;  // to another stream, or from it
  Bytes across;  // lives while the other takes one
  bool IsTied() const { return handed > Bytes(0) || across * kPartsOfTurns > taken; }
};

// The streams that take turns with the main one and hand nothing to anybody.
std::vector<Stream> StreamsApart(std::span<const profiler::Slot> slots, Stream main) {
  std::map<Stream, Ties> ties;
  const Across across_main(slots, main);
  for (uint32_t i = 0; i < slots.size(); ++i) {
    const profiler::Slot& slot = slots[i];
    if (slot.persistent || IsEveryStream(slot.stream) || IsEveryStream(slot.freed_on)) continue;
    Ties& own = ties[slot.stream];
    own.taken += slot.bytes;
    if (slot.stream != slot.freed_on) {
      own.handed += slot.bytes;
      ties[slot.freed_on].handed += slot.bytes;
    }
    if (slot.stream != main && across_main.Lives(i, slot.length)) own.across += slot.bytes;
  }
  std::vector<Stream> apart;
  for (const auto& [stream, own] : ties) {
    if (stream == main || own.IsTied() || apart.size() == kMostApart) continue;
    const Across across(slots, stream);
    Ties of_main = {.taken = ties[main].taken, .handed = Bytes(0), .across = Bytes(0)};
    for (uint32_t i = 0; i < slots.size(); ++i) {
      if (slots[i].stream == main && !slots[i].persistent && across.Lives(i, slots[i].length))
        of_main.across += slots[i].bytes;
    }
    if (!of_main.IsTied()) apart.push_back(stream);
  }
  return apart;
}

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

  std::optional<Lagged> Make(LagRules rules) {
    if (rules.apart) apart_ = StreamsApart(slots_, main_);
    lagged_.has_apart = !apart_.empty();
    const Across across(slots_, main_);
    for (const uint32_t slot : slot_of_) {
      const std::optional<Lane> lane = LaneOf(slots_[slot], main_);
      if (!lane.has_value()) continue;
      LaneChains& chains = lanes_[*lane];
      if (across.Lives(slot, slots_[slot].length)) chains.Count(slots_[slot]);
    }
    if (lanes_.empty()) return std::nullopt;
    for (auto& [lane, chains] : lanes_) chains.SetLag(*problem_.period, rules.parts);
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
    if (const auto apart = std::ranges::find(apart_, slot.stream); apart != apart_.end()) {
      lagged_.place_of.push_back(place);
      block.lane = kFirstApart + static_cast<int32_t>(apart - apart_.begin());
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
  std::vector<Stream> apart_;
  std::map<Lane, LaneChains> lanes_;
  Lagged lagged_;
};

}  // namespace

std::optional<Lagged> WithLag(const planner::Problem& problem, std::span<const profiler::Slot> slots,
                              std::span<const uint32_t> slot_of, LagRules rules) {
  const std::optional<Stream> main = MainStream(slots);
  if (!main.has_value()) return std::nullopt;
  return Widening(problem, slots, slot_of, *main).Make(rules);
}

bool OfSeveralStreams(std::span<const profiler::Slot> slots) {
  const std::optional<Stream> main = MainStream(slots);
  return main.has_value() && std::ranges::any_of(slots, [&](const profiler::Slot& slot) {
           return !slot.persistent && LaneOf(slot, *main).has_value();
         });
}

}  // namespace reprise::replay
