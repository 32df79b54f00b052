#include "replay/matcher.h"

#include <algorithm>

namespace reprise::replay {

Matcher::Matcher(const ServingPlan& plan) {
  for (uint32_t i = 0; i < plan.slots.size(); ++i) {
    const auto [it, fresh] = lane_of_.try_emplace(plan.slots[i].stream, static_cast<uint32_t>(lanes_.size()));
    if (fresh) lanes_.emplace_back();
    Lane& lane = lanes_[it->second];
    lane.slots.push_back(i);
    lane.bytes.push_back(plan.slots[i].bytes.count());
  }
  const auto rounds = static_cast<uint32_t>(RoundsOf(plan));
  for (Lane& lane : lanes_) {
    const auto n = static_cast<uint32_t>(lane.bytes.size());
    lane.round = n / rounds;
    std::array<int64_t, kGram> gram;
    for (uint32_t i = 0; i < lane.round; ++i) {
      for (uint32_t k = 0; k < kGram; ++k) gram[k] = lane.bytes[(i + k) % n];
      const auto [it, fresh] =
          lane.grams.try_emplace(HashGram(gram.data()), static_cast<int32_t>((i + kGram - 1) % lane.round));
      if (!fresh) it->second = kAmbiguous;
    }
  }
  if (!plan.slots.empty()) cut_lane_ = &lanes_[lane_of_[plan.slots[0].stream]];
}

uint64_t Matcher::HashGram(const int64_t* bytes) {
  uint64_t hash = 0;
  for (int k = 0; k < kGram; ++k) hash = (hash ^ static_cast<uint64_t>(bytes[k])) * 0x9E3779B97F4A7C15u;
  return hash;
}

uint32_t Matcher::Next(const Lane& lane, uint32_t position, uint32_t by) {
  const auto n = static_cast<uint32_t>(lane.slots.size());
  position += by % n;
  return position < n ? position : position - n;
}

void Matcher::StartAt(uint32_t slot) {
  for (Lane& lane : lanes_) {
    const auto next = std::ranges::lower_bound(lane.slots, slot) - lane.slots.begin();
    lane.cursor = Next(lane, static_cast<uint32_t>(next), 0);
    lane.lost = false;
    lane.matches = 0;
  }
}

void Matcher::GoOnLater(uint32_t rounds) {
  for (Lane& lane : lanes_) lane.cursor = Next(lane, lane.cursor, rounds * lane.round);
}

// From the cursor on, the first position that is `position` of some round.
uint32_t Matcher::InNextRound(const Lane& lane, uint32_t position) {
  const uint32_t within = lane.cursor % lane.round;
  return Next(lane, lane.cursor, position < within ? position + lane.round - within : position - within);
}

// The next position at which a round has the last allocations in their order, if there is just one in it.
uint32_t Matcher::OnlyPlace(const Lane& lane) {
  if (lane.noted < kGram) return kNoSlot;
  std::array<int64_t, kGram> gram;
  for (uint32_t k = 0; k < kGram; ++k) gram[k] = lane.recent[(lane.noted + k) % kGram];
  const auto it = lane.grams.find(HashGram(gram.data()));
  if (it == lane.grams.end() || it->second == kAmbiguous) return kNoSlot;
  return InNextRound(lane, static_cast<uint32_t>(it->second));
}

// Blocks of one size came in a row and then another one, where the cursor expected more of them.
bool Matcher::AfterARun(const Lane& lane) {
  for (uint32_t k = 2; k <= kGram; ++k) {
    if (lane.recent[(lane.noted - k) % kGram] != lane.bytes[lane.cursor]) return false;
  }
  return true;
}

Matcher::Lane* Matcher::Find(Stream stream) {
  const auto it = lane_of_.find(stream);
  if (it == lane_of_.end()) return nullptr;
  last_stream_ = stream;
  last_lane_ = &lanes_[it->second];
  return last_lane_;
}

// Not what the cursor expects, or no cursor to ask.
uint32_t Matcher::StepOff(Lane* lane, int64_t bytes) {
  if (lane == nullptr) {
    ++mismatches_;
    return kNoSlot;
  }
  lane->Note(bytes);
  return lane->lost ? StepLost(*lane, bytes) : StepAside(*lane, bytes);
}

// In step, and not what the cursor expects.
uint32_t Matcher::StepAside(Lane& lane, int64_t bytes) {
  ++mismatches_;
  lane.matches = 0;
  if (const uint32_t place = OnlyPlace(lane); place != kNoSlot) {
    const uint32_t shift = (place % lane.round + lane.round - lane.noted % lane.round) % lane.round;
    if (AfterARun(lane) || lane.told == shift) return Resume(lane, place);
    lane.told = shift;
  }
  for (int k = 0; k < lane.skipped_count; ++k) {
    const uint32_t position = lane.skipped[k];
    if (lane.bytes[position] != bytes) continue;
    lane.skipped[k] = lane.skipped[--lane.skipped_count];
    return lane.slots[position];
  }
  if (++lane.misses >= kMissesToLose) {
    Lose(lane);
    lane.Note(bytes);
    return StepLost(lane, bytes);
  }
  const int reach = std::min<int>(kLookAhead, static_cast<int>(lane.slots.size()) - 1);
  for (int ahead = 1; ahead <= reach; ++ahead) {
    const uint32_t position = Next(lane, lane.cursor, static_cast<uint32_t>(ahead));
    if (lane.bytes[position] != bytes) continue;
    lane.skipped_count = 0;
    for (int k = 0; k < ahead; ++k) {
      lane.skipped[lane.skipped_count++] = Next(lane, lane.cursor, static_cast<uint32_t>(k));
    }
    lane.cursor = Next(lane, position);
    return lane.slots[position];
  }
  return kNoSlot;
}

void Matcher::Lose(Lane& lane) {
  ++times_lost_;
  lane.lost = true;
  lane.resumed = 0;
  lane.noted = 0;
  lane.skipped_count = 0;
}

uint32_t Matcher::StepLost(Lane& lane, int64_t bytes) {
  const uint32_t expected = Next(lane, lane.cursor, static_cast<uint32_t>(lane.resumed));
  if (lane.bytes[expected] == bytes) {
    if (++lane.resumed == kGram) return Resume(lane, expected);
  } else {
    lane.resumed = lane.bytes[lane.cursor] == bytes ? 1 : 0;
  }
  if (const uint32_t place = OnlyPlace(lane); place != kNoSlot) return Resume(lane, place);
  ++mismatches_;
  return kNoSlot;
}

// Back in step: the allocation at hand is the one at `position`.
uint32_t Matcher::Resume(Lane& lane, uint32_t position) {
  lane.lost = false;
  lane.told = kNoSlot;
  lane.skipped_count = 0;
  lane.misses = 0;
  lane.matches = kGram;
  lane.cursor = Next(lane, position);
  return lane.slots[position];
}

uint32_t Matcher::AtCut() const {
  if (cut_lane_ == nullptr || cut_lane_->lost || cut_lane_->matches < kGram) return kNoSlot;
  return cut_lane_->cursor % cut_lane_->round == 0 ? cut_lane_->slots[cut_lane_->cursor] : kNoSlot;
}

uint32_t Matcher::BehindCut() const {
  if (cut_lane_ == nullptr || cut_lane_->lost || cut_lane_->matches < kGram) return kNoSlot;
  const uint32_t within = cut_lane_->cursor % cut_lane_->round;
  return within > 0 && within <= ReachOf(cut_lane_->round) ? cut_lane_->slots[cut_lane_->cursor - 1]
                                                           : kNoSlot;
}

bool Matcher::Sure(Stream stream) const {
  const auto it = lane_of_.find(stream);
  return it != lane_of_.end() && !lanes_[it->second].lost && lanes_[it->second].matches >= kGram;
}

bool Matcher::InStep(Stream stream) const {
  const auto it = lane_of_.find(stream);
  return it != lane_of_.end() && !lanes_[it->second].lost;
}

}  // namespace reprise::replay
