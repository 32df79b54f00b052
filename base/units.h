// The units every folder speaks in.
//
// Glossary
//   Bytes    a size in bytes, signed so that differences are ordinary values
//   Offset   a position in an address range (an arena, a slab), in bytes from its begin
//   Tick     a position in a sequence of allocations; what one tick means is said by whoever holds it
//   Stream   the stream (execution queue) an allocation or a free is ordered on; 0 is the only one on a host
//   BlockId  names one allocation within one recorded sequence; never reused within it
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace reprise {

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(int64_t count) : count_(count) {}
  constexpr int64_t count() const { return count_; }
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, int64_t n) { return Bytes(a.count_ * n); }
  friend constexpr int64_t operator/(Bytes a, Bytes b) { return a.count_ / b.count_; }
  friend constexpr Bytes operator%(Bytes a, Bytes b) { return Bytes(a.count_ % b.count_); }

 private:
  int64_t count_ = 0;
};

class Offset {
 public:
  constexpr Offset() = default;
  constexpr explicit Offset(int64_t count) : count_(count) {}
  constexpr int64_t count() const { return count_; }
  constexpr auto operator<=>(const Offset&) const = default;
  friend constexpr Offset operator+(Offset a, Bytes b) { return Offset(a.count_ + b.count()); }
  friend constexpr Offset operator-(Offset a, Bytes b) { return Offset(a.count_ - b.count()); }
  friend constexpr Bytes operator-(Offset a, Offset b) { return Bytes(a.count_ - b.count_); }

 private:
  int64_t count_ = 0;
};

class Tick {
 public:
  constexpr Tick() = default;
  constexpr explicit Tick(int64_t count) : count_(count) {}
  constexpr int64_t count() const { return count_; }
  constexpr auto operator<=>(const Tick&) const = default;
  friend constexpr Tick operator+(Tick a, int64_t n) { return Tick(a.count_ + n); }
  friend constexpr Tick operator-(Tick a, int64_t n) { return Tick(a.count_ - n); }
  friend constexpr int64_t operator-(Tick a, Tick b) { return a.count_ - b.count_; }

 private:
  int64_t count_ = 0;
};

enum class Stream : uint64_t {};
enum class BlockId : uint64_t {};

inline constexpr Bytes kKiB{int64_t{1} << 10};
inline constexpr Bytes kMiB{int64_t{1} << 20};
inline constexpr Bytes kGiB{int64_t{1} << 30};

// `value` rounded up to a multiple of `step` (step > 0).
constexpr Bytes RoundUp(Bytes value, Bytes step) {
  return Bytes((value.count() + step.count() - 1) / step.count() * step.count());
}
constexpr Offset RoundUp(Offset value, Bytes step) {
  return Offset((value.count() + step.count() - 1) / step.count() * step.count());
}

}  // namespace reprise
