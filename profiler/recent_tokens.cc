#include "profiler/recent_tokens.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "profiler/iteration.h"

namespace reprise::profiler {
namespace {

// Two levels are the same when they differ by less than this part of the largest swing. Each of L layers
// climbs by 1/L of the swing, and models have fewer than 64 equal ones in a row on one device; small blocks
// and slow leaks are far below it.
constexpr uint32_t kLevelParts = 64;
// ... or by this much, whatever the swing: 64 KiB, for the small blocks that are no tokens.
constexpr uint32_t kLevelPages = 16;
// A swing larger than all that follow (an algorithm search that takes all free memory, once) must not block
// confirmations for ever, yet the largest of an iteration has to be remembered for at least one iteration. So
// it is kept for the present epoch and the one before; epochs end when the number of tokens has doubled, from
// kFirstEpoch to kLastEpoch.
constexpr int64_t kFirstEpoch = 64;
constexpr int64_t kLastEpoch = int64_t{1} << 18;
// What a token takes here and in a History beside it. No more is remembered than the most that was ever live: a plan could
// not spare what it takes to find it.
constexpr int64_t kTokenBytes =
    sizeof(RecentTokens::Token) + sizeof(RecentTokens::Gram) + sizeof(History::Entry);

uint32_t Difference(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

}  // namespace

RecentTokens::RecentTokens(int64_t initial, int64_t most, PeriodRules rules)
    : ring_(static_cast<size_t>(std::max(initial, 2 * kMargin))),
      grams_(ring_.size()),
      gram_shift_(32 - std::countr_zero(ring_.size())),
      mask_(capacity() - 1),
      most_(most),
      rules_(rules),
      checkpoint_(kFirstEpoch),
      epoch_end_(kFirstEpoch) {}

bool RecentTokens::SameLevel(uint32_t a, uint32_t b) const {
  return !rules_.level || Difference(a, b) <= std::max(Swing() / kLevelParts, kLevelPages);
}

void RecentTokens::Checkpoint(bool grow) {
  highest_ = std::max(highest_, peak_);
  if (now_ == epoch_end_) {
    previous_fall_ = fall_;
    fall_ = 0;
    peak_ = 0;
    epoch_end_ += std::min(epoch_end_, kLastEpoch);
  }
  const bool affords = 2 * capacity() * kTokenBytes <= int64_t{highest_} << kPageBits;
  if ((now_ & mask_) == 0 && grow && affords && capacity() < most_) Grow();
  checkpoint_ = std::min(epoch_end_, (now_ & ~mask_) + capacity());
}

void RecentTokens::Reserve(int64_t tokens) {
  while (capacity() < tokens && capacity() < most_) Grow();
}

void RecentTokens::Grow() {
  std::vector<Token> ring(2 * ring_.size());
  const int64_t mask = static_cast<int64_t>(ring.size()) - 1;
  for (int64_t tick = std::max<int64_t>(0, now_ - capacity()); tick < now_; ++tick) {
    ring[static_cast<size_t>(tick & mask)] = At(tick);
  }
  ring_ = std::move(ring);
  mask_ = mask;
  std::vector<Gram> grams(ring_.size());
  std::swap(grams, grams_);
  --gram_shift_;
  for (const Gram& gram : grams) {
    if (gram.fingerprint != 0) GramAt(gram.fingerprint) = gram;
  }
}

}  // namespace reprise::profiler
