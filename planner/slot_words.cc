#include "planner/slot_words.h"

namespace reprise::planner {
namespace {

constexpr int32_t kSlots = 64;  // of a word, at most

// Entries are walked through one by one, and never joined: a word is worth it only while they are few for the
// two levels of nodes that it saves. So there are at most kEntries in a word, and at most kEdges of these for
// one slot: where more begins or ends, slots are words of their own.
constexpr int32_t kEntries = 512;
constexpr int32_t kEdges = 64;

}  // namespace

SlotWords::SlotWords(const Instance& instance) : word_of_(std::max(instance.slots, 1)) {
  // How many ranges begin or end before each slot: if it is not the first of its word, each of them may have
  // an entry.
  std::vector<int32_t> edges(instance.slots + 1, 0);
  for (const Range& range : instance.all_ranges) {
    ++edges[range.begin];
    ++edges[range.end];
  }
  begin_.push_back(0);
  first_.push_back(0);
  int32_t entries = 0;
  for (int32_t slot = 1; slot < instance.slots; ++slot) {
    const int32_t with_slot = entries + edges[slot];
    if (slot - begin_.back() < kSlots && edges[slot] <= kEdges && with_slot - first_.back() <= kEntries) {
      entries = with_slot;
    } else {
      begin_.push_back(slot);
      first_.push_back(entries);
    }
    word_of_[slot] = static_cast<int32_t>(begin_.size()) - 1;
  }
  begin_.push_back(std::max(instance.slots, 1));
  taken_.resize(first_.size(), 0);
  entries_.resize(entries);
}

Range SlotWords::Split(Range slots, std::vector<Part>& parts) const {
  Range covered = {word_of_[slots.begin], word_of_[slots.end - 1] + 1};
  const bool from_edge = slots.begin == begin_[covered.begin];
  const bool to_edge = slots.end == begin_[covered.end];
  if (covered.end - covered.begin == 1 && !(from_edge && to_edge)) {
    AddPart(covered.begin, slots.begin, slots.end, parts);
    return {covered.begin, covered.begin};
  }
  if (!from_edge) {
    AddPart(covered.begin, slots.begin, begin_[covered.begin + 1], parts);
    ++covered.begin;
  }
  if (!to_edge) {
    --covered.end;
    AddPart(covered.end, begin_[covered.end], slots.end, parts);
  }
  return covered;
}

void SlotWords::AddPart(int32_t word, int32_t begin, int32_t end, std::vector<Part>& parts) const {
  const uint64_t slots = (~uint64_t{0} >> (kSlots - (end - begin))) << (begin - begin_[word]);
  if (!parts.empty() && parts.back().word == word) {
    parts.back().slots |= slots;
  } else {
    parts.push_back({word, slots});
  }
}

void SlotWords::Insert(const Part& part, int64_t begin, int64_t end) {
  Entry* const first = entries_.data() + first_[part.word];
  Entry* place = first + taken_[part.word]++;
  for (; place != first && place[-1].begin > begin; --place) *place = place[-1];
  *place = {begin, end, part.slots};
}

}  // namespace reprise::planner
