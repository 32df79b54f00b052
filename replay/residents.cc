#include "replay/residents.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace reprise::replay {
namespace {

class Cycle {
 public:
  Cycle(const ServingPlan& plan, uint32_t from)
      : slots_(plan.cycle), round_(Length() / RoundsOf(plan)), from_(from) {}

  int64_t Length() const { return static_cast<int64_t>(slots_.size()); }
  size_t At(int64_t age) const { return InCycle(from_ - age, Length()); }
  const profiler::Slot& SlotAt(int64_t age) const { return slots_[At(age)]; }
  bool IsLive(int64_t age) const { return !SlotAt(age).persistent && SlotAt(age).length > age; }

  // How many slots ago a block was allocated that is known to be one; nullopt: it is not known.
  std::optional<int64_t> AgeOf(const LiveBlock& block, Tick now) const {
    if (block.slot != Matcher::kNoSlot) return now - block.token;
    if (block.slot_in_start == Matcher::kNoSlot) return std::nullopt;
    // A job's first step has more in it than the cycle. It was so in the latest round, as far as is known.
    const int64_t age = (from_ + Length() - block.slot_in_start) % round_;
    const bool so = age > 0 && IsLive(age) && SlotAt(age).bytes == block.requested;
    return so ? std::optional(age) : std::nullopt;
  }

 private:
  const std::vector<profiler::Slot>& slots_;
  const int64_t round_;
  const int64_t from_;
};

// A block of which nothing is known, or a slot that nobody is known to be.
struct Unknown {
  Bytes bytes;
  Stream stream;
  int64_t age;      // allocations since
  size_t resident;  // of a block
  auto Kind() const { return std::tuple(bytes, stream); }
};

void YoungestFirst(std::vector<Unknown>& all) {
  std::ranges::sort(all, {}, [](const Unknown& each) { return std::tuple(each.Kind(), each.age); });
}

}  // namespace

std::vector<Resident> ResidentsOf(const ServingPlan& plan, uint32_t from, Tick now,
                                  std::span<const LiveBlock> blocks) {
  const Cycle cycle(plan, from);
  std::vector<Resident> residents;
  std::vector<bool> known(plan.cycle.size());
  std::vector<Unknown> unknown;
  for (const LiveBlock& block : blocks) {
    residents.push_back({block.offset, block.bytes, Resident::kStays});
    if (block.stays) continue;
    if (const std::optional<int64_t> age = cycle.AgeOf(block, now)) {
      residents.back().until = cycle.SlotAt(*age).length - *age;
      known[cycle.At(*age)] = true;
    } else if (block.token >= Tick(0)) {
      unknown.push_back({block.requested, block.stream, now - block.token, residents.size() - 1});
    }
  }
  if (unknown.empty()) return residents;

  std::vector<Unknown> slots;
  for (int64_t age = 1; age <= cycle.Length(); ++age) {
    const profiler::Slot& slot = cycle.SlotAt(age);
    if (cycle.IsLive(age) && !known[cycle.At(age)]) slots.push_back({slot.bytes, slot.stream, age, 0});
  }
  YoungestFirst(unknown);
  YoungestFirst(slots);
  auto slot = slots.begin();
  for (const Unknown& block : unknown) {
    slot = std::ranges::lower_bound(slot, slots.end(), block.Kind(), {}, &Unknown::Kind);
    if (slot == slots.end()) break;
    if (slot->Kind() != block.Kind()) continue;
    residents[block.resident].until = cycle.SlotAt(slot->age).length - slot->age;
    ++slot;
  }
  return residents;
}

}  // namespace reprise::replay
