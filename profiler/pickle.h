// Reads Python pickles that hold data alone. Nothing in a pickle is ever executed, imported or looked up: an
// opcode that would do so in Python is an error that names it and its byte.
//
//   read      protocols 2 to 5: None, bool, int, float, str, bytes, list, tuple, dict, set, and the memo
//   refused   GLOBAL, STACK_GLOBAL, REDUCE, BUILD, INST, OBJ, NEWOBJ, NEWOBJ_EX, EXT1, EXT2, EXT4, PERSID,
//             BINPERSID, out-of-band buffers; and what data in these protocols does not need (text opcodes,
//             POP, DUP)
//
// A value may occur in many places, and in itself: it is kept once, and nothing here walks through it. So
// memory is linear in the bytes that are there, whatever lengths they claim.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise::profiler {

class PickleValue;

class Pickle {
 public:
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInt,     // one that int64_t holds
    kBigInt,  // one that it does not; its value is not kept
    kFloat,
    kString,
    kBytes,
    kList,
    kTuple,
    kDict,
    kSet
  };

  PickleValue root() const;

 private:
  friend class PickleValue;
  friend class PickleReader;
  using Index = uint32_t;  // into values_

  struct Value {
    Kind kind = Kind::kNone;
    int64_t number = 0;       // bool, int; of a container: where its items are, in items_
    std::string_view text{};  // str, bytes
  };

  std::vector<Value> values_;
  std::vector<std::vector<Index>> items_;  // of a dict: key, value, key, value...
  Index root_ = 0;
};

// One value of a pickle, which must outlive it.
class PickleValue {
 public:
  Pickle::Kind kind() const { return value().kind; }
  std::optional<int64_t> integer() const;          // of an int or a bool
  std::optional<std::string_view> string() const;  // of a str

  bool is_sequence() const { return kind() == Pickle::Kind::kList || kind() == Pickle::Kind::kTuple; }
  size_t size() const;                      // items of a container, pairs of a dict; else 0
  PickleValue operator[](size_t i) const {  // of a list or a tuple, i < size()
    return {pickle_, items()[i]};
  }
  // The same number wherever the pickle names one value again by its memo: what has been read need not be
  // read again.
  uint32_t identity() const { return index_; }
  // What a dict has under the string `key`; of several the last. Looks through them all.
  std::optional<PickleValue> Find(std::string_view key) const;

 private:
  friend class Pickle;
  PickleValue(const Pickle* pickle, Pickle::Index index) : pickle_(pickle), index_(index) {}
  const Pickle::Value& value() const { return pickle_->values_[index_]; }
  const std::vector<Pickle::Index>& items() const {
    return pickle_->items_[static_cast<size_t>(value().number)];
  }

  const Pickle* pickle_;
  Pickle::Index index_;
};

// The most values that a file of so many bytes may hold. A hostile one has a value a byte, an honest one eight bytes
// for each value and more: what is read takes no more than 5 GiB, or some fifteen times the file where that is more.
constexpr size_t MostPickleValues(size_t bytes) { return std::max(size_t{1} << 26, bytes / 4); }

// Whether the bytes begin as a pickle of protocol 2 to 5 does.
bool LooksLikePickle(std::string_view contents);

// `contents` must outlive the result, whose strings are views of it; `name` stands for the file in messages.
// Errors: InvalidArgument that names the byte; ResourceExhausted past `most_values`, MostPickleValues by default.
absl::StatusOr<Pickle> ParsePickle(std::string_view contents, std::string_view name,
                                   std::optional<size_t> most_values = std::nullopt);

}  // namespace reprise::profiler
