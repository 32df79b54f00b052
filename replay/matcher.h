// Follows a running job through the cycle of a plan.
//
// A lane is the sequence of one stream. Each has a cursor: the slot expected next. In step, an allocation
// that is what the cursor expects costs one comparison; otherwise the slots just ahead are looked at (some
// did not happen) and those just skipped (two swapped). Where blocks of one size come in a row, the cursor may
// be some of them ahead and match nearly all: when the row ends too soon, the lane is where the last four
// allocations are, if they occur at just one place of a round. It is there as well where two mismatches tell the same: of
// micro-batches that are alike but for little the cursor may be in another one, and match nearly all for good. After a few
// misses in a row the lane is lost: the cursor freezes and nothing is matched until the sequence continues at the cursor for
// four allocations, or four of them occur at just one place. Anything nearer would be false: layers repeat. Of the rounds of
// a plan that has several alike the next one is taken: whichever it is, what is in the way of it is gone a cycle later.
//
// Not thread-safe: the engine's lock is held around every call. No heap allocation after construction, except
// for a stream never seen before.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/hash_map.h"
#include "base/units.h"
#include "replay/serving_plan.h"

namespace reprise::replay {

class Matcher {
 public:
  static constexpr int kLookAhead = 8;          // slots that may be skipped at once
  static constexpr int64_t kPartsOfReach = 10;  // of a round: to join one later costs more of it
  static constexpr int kMissesToLose = 4;       // in a row
  static constexpr int kGram = 4;               // allocations that tell where we are
  static constexpr uint32_t kNoSlot = ~uint32_t{0};

  explicit Matcher(const ServingPlan& plan);

  // The slot that this allocation is, or kNoSlot.
  uint32_t Step(Bytes bytes, Stream stream) {
    Lane* lane = last_lane_ != nullptr && last_stream_ == stream ? last_lane_ : Find(stream);
    if (lane == nullptr || lane->lost || lane->bytes[lane->cursor] != bytes.count())
      return StepOff(lane, bytes.count());
    lane->Note(bytes.count());
    const uint32_t position = lane->cursor;
    lane->cursor = position + 1 < lane->slots.size() ? position + 1 : 0;
    lane->misses = 0;
    lane->skipped_count = 0;
    if (lane->matches < kGram) ++lane->matches;
    return lane->slots[position];
  }

  // The next allocation is to be this slot, or the first behind it on its stream; of none is it sure until four have come.
  // Where the job is elsewhere, it is found as after any other mismatch.
  void StartAt(uint32_t slot);
  // The slot expected next, where a round begins with it and the lane has just matched kGram allocations in a
  // row; kNoSlot otherwise.
  uint32_t AtCut() const;
  // The same a little behind the begin of a round, at most ReachOf() of its lane: the slot that the latest
  // allocation was.
  uint32_t BehindCut() const;
  // How far behind its begin a round of so many allocations may be joined.
  static int64_t ReachOf(int64_t round) { return std::max<int64_t>(kLookAhead, round / kPartsOfReach); }
  // Of rounds that are alike, goes on in the one so many later.
  void GoOnLater(uint32_t rounds);
  // True when the lane is following the cycle.
  bool InStep(Stream stream) const;
  // Of the latest step: it was of a lane of the plan that has lost its place.
  bool Lost(Stream stream) const {
    return last_lane_ != nullptr && last_stream_ == stream && last_lane_->lost;
  }
  // True when it is, and has just matched kGram allocations in a row.
  bool Sure(Stream stream) const;

  int64_t mismatches() const { return mismatches_; }  // allocations that were not what was expected next
  int64_t times_lost() const { return times_lost_; }

 private:
  struct Lane {
    std::vector<uint32_t> slots;       // of the plan, in order
    std::vector<int64_t> bytes;        // of each of them
    uint32_t round = 0;                // how many of them make one round
    HashMap<uint64_t, int32_t> grams;  // hash of kGram sizes -> position of the last in the first
                                       // round, kAmbiguous
    uint32_t cursor = 0;
    bool lost = true;
    int misses = 0;           // in a row
    int matches = 0;          // in a row, up to kGram
    int resumed = 0;          // while lost: allocations that continued at the cursor
    uint32_t told = kNoSlot;  // by the latest mismatch: how far the place of the last sizes is from `noted`
    std::array<int64_t, kGram> recent{};         // the last sizes, in turn
    uint32_t noted = 0;                          // how many have been; while lost, since then
    std::array<uint32_t, kLookAhead> skipped{};  // positions passed over and not yet seen
    int skipped_count = 0;

    void Note(int64_t size) { recent[noted++ % kGram] = size; }
  };

  static constexpr int32_t kAmbiguous = -1;
  static uint64_t HashGram(const int64_t* bytes);
  static uint32_t Next(const Lane& lane, uint32_t position, uint32_t by = 1);
  static uint32_t InNextRound(const Lane& lane, uint32_t position);
  static uint32_t OnlyPlace(const Lane& lane);
  static bool AfterARun(const Lane& lane);

  Lane* Find(Stream stream);
  uint32_t StepOff(Lane* lane, int64_t bytes);
  uint32_t StepAside(Lane& lane, int64_t bytes);
  uint32_t StepLost(Lane& lane, int64_t bytes);
  uint32_t Resume(Lane& lane, uint32_t position);
  void Lose(Lane& lane);

  std::vector<Lane> lanes_;
  HashMap<Stream, uint32_t> lane_of_;
  Stream last_stream_{};  // the lane used last, so that one stream needs no look-up
  Lane* last_lane_ = nullptr;
  Lane* cut_lane_ = nullptr;
  int64_t mismatches_ = 0;
  int64_t times_lost_ = 0;
};

}  // namespace reprise::replay
