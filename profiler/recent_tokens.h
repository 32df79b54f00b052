// What the search for a period remembers: the latest tokens with the live level before each, where each run of eight of
// them came last, and by how much the level has swung.
//
// Memory: 16 bytes a token. Remembers so many at first, and grows by doubling up to a limit, when it is told to and the job
// holds more than that.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "profiler/period_rules.h"

namespace reprise::profiler {

class RecentTokens {
 public:
  // A hash of (size, stream) and the live level before it in pages of 4 KiB, which is as fine as the level test needs and
  // holds 16 TiB.
  struct Token {
    uint32_t hash = 0;
    uint32_t level = 0;
  };

  // A gram is so many tokens in a row. Shorter ones recur by chance inside one layer; longer ones are spoilt by noise more
  // often.
  static constexpr int64_t kGram = 8;
  struct Gram {
    uint32_t fingerprint = 0;
    uint32_t position = 0;  // low 32 bits of the tick of its last token
  };
  // A token must not be overwritten while it is looked at; nothing looks farther beside the one it follows than this.
  static constexpr int64_t kMargin = 128;

  // Both are powers of two, `most` >= `initial`.
  RecentTokens(int64_t initial, int64_t most, PeriodRules rules);

  // The latest token: its hash, the gram that it ends, and what lay where that is remembered now.
  struct Taken {
    uint32_t hash = 0;
    uint32_t fingerprint = 0;
    Gram before;
  };
  // Takes one token.
  Taken Take(Bytes bytes, Stream stream, Bytes live_before) {
    const uint64_t mixed = Mix(bytes, stream);
    const Token token{static_cast<uint32_t>(mixed), static_cast<uint32_t>(live_before.count() >> kPageBits)};
    ring_[static_cast<size_t>(now_ & mask_)] = token;

    gram_ = (gram_ << kGramBits) + mixed;
    const auto fingerprint = static_cast<uint32_t>(gram_ >> 32);
    Gram& gram = GramAt(fingerprint);
    const Taken taken{token.hash, fingerprint, gram};
    gram = {fingerprint, static_cast<uint32_t>(now_)};

    if (token.level > peak_) peak_ = token.level;
    if (peak_ - token.level > fall_) fall_ = peak_ - token.level;
    ++now_;
    return taken;
  }
  // How long ago the gram that the latest token ends was last there, 0 where that is not known.
  int64_t Lag(const Taken& latest) const {
    if (latest.before.fingerprint != latest.fingerprint) return 0;
    return static_cast<uint32_t>(now_ - 1) - latest.before.position;
  }
  // Now and then Checkpoint has to be called before the next token: after such a one. `grow`: twice as many would be of use.
  bool at_checkpoint() const { return now_ == checkpoint_; }
  void Checkpoint(bool grow);
  // Remembers at least so many from now on, or as many as it may.
  void Reserve(int64_t tokens);

  // Tokens seen: the tick of the next one.
  int64_t now() const { return now_; }
  // How many it remembers, and may at most.
  int64_t capacity() const { return static_cast<int64_t>(ring_.size()); }
  int64_t most() const { return most_; }
  // One that is remembered.
  const Token& At(int64_t tick) const { return ring_[static_cast<size_t>(tick & mask_)]; }
  const Token& latest() const { return At(now_ - 1); }
  bool Same(int64_t tick, int64_t other) const { return At(tick).hash == At(other).hash; }

  const PeriodRules& rules() const { return rules_; }

  // The largest fall of the level of late, in pages.
  uint32_t Swing() const { return fall_ > previous_fall_ ? fall_ : previous_fall_; }
  bool SameLevel(uint32_t a, uint32_t b) const;

 private:
  // The rolling hash shifts a token by so much a step that it has left the 64 bits after exactly kGram.
  static constexpr int kGramBits = 64 / kGram;
  static constexpr int kPageBits = 12;

  static uint64_t Mix(Bytes bytes, Stream stream) {
    uint64_t x = static_cast<uint64_t>(bytes.count()) + std::rotl(static_cast<uint64_t>(stream), 40);
    x *= 0x9E3779B97F4A7C15u;
    return x ^ (x >> 32);
  }
  Gram& GramAt(uint32_t fingerprint) { return grams_[(fingerprint * uint32_t{0x9E3779B1}) >> gram_shift_]; }
  void Grow();

  std::vector<Token> ring_;
  std::vector<Gram> grams_;  // last position of each gram, direct mapped
  int gram_shift_ = 0;
  int64_t mask_ = 0;
  int64_t most_ = 0;
  PeriodRules rules_;
  int64_t now_ = 0;
  uint64_t gram_ = 0;
  int64_t checkpoint_ = 0;  // the tick at which an epoch or the ring ends next

  uint32_t highest_ = 0;  // the live level at most, in pages, until the latest checkpoint

  // Swings of the live level, in pages: the largest fall in the present epoch, and in the one before.
  uint32_t peak_ = 0;
  uint32_t fall_ = 0;
  uint32_t previous_fall_ = 0;
  int64_t epoch_end_ = 0;
};

}  // namespace reprise::profiler
