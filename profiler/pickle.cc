#include "profiler/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

namespace reprise::profiler {
namespace {

enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kBinFloat = 'G',
  kShortBinUnicode = 0x8c,
  kBinUnicode = 'X',
  kBinUnicode8 = 0x8d,
  kShortBinString = 'U',
  kBinString = 'T',
  kShortBinBytes = 'C',
  kBinBytes = 'B',
  kBinBytes8 = 0x8e,
  kByteArray8 = 0x96,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kList = 'l',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kDict = 'd',
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
  kProto = 0x80,
  kFrame = 0x95,
};

struct Refused {
  uint8_t opcode;
  std::string_view name;
};
// In Python these import, call or ask the program that loads.
constexpr std::array<Refused, 15> kRefused{{{'c', "GLOBAL"},
                                            {0x93, "STACK_GLOBAL"},
                                            {'R', "REDUCE"},
                                            {'b', "BUILD"},
                                            {'i', "INST"},
                                            {'o', "OBJ"},
                                            {0x81, "NEWOBJ"},
                                            {0x92, "NEWOBJ_EX"},
                                            {0x82, "EXT1"},
                                            {0x83, "EXT2"},
                                            {0x84, "EXT4"},
                                            {'P', "PERSID"},
                                            {'Q', "BINPERSID"},
                                            {0x97, "NEXT_BUFFER"},
                                            {0x98, "READONLY_BUFFER"}}};

constexpr uint8_t kLeastProtocol = 2, kMostProtocol = 5;

}  // namespace

class PickleReader {
 public:
  PickleReader(std::string_view contents, std::string_view name, size_t most_values)
      : contents_(contents), name_(name), most_values_(most_values) {}

  absl::StatusOr<Pickle> Read() {
    if (absl::Status status = ReadProtocol(); !status.ok()) return status;
    while (!stopped_) {
      opcode_at_ = position_;
      uint64_t opcode;
      if (absl::Status status = Unsigned(1, &opcode); !status.ok()) return status;
      if (absl::Status status = Execute(static_cast<uint8_t>(opcode)); !status.ok()) return status;
    }
    if (position_ < contents_.size()) {
      opcode_at_ = position_;
      return Error(fmt::format("{} bytes after the end of the pickle", contents_.size() - position_));
    }
    return std::move(pickle_);
  }

 private:
  using Kind = Pickle::Kind;
  using Index = Pickle::Index;

  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("{}: byte {}: {}", name_, opcode_at_, what));
  }

  absl::Status ReadProtocol() {
    if (!LooksLikePickle(contents_)) {
      return Error(fmt::format("not a pickle of protocol {} to {}", kLeastProtocol, kMostProtocol));
    }
    position_ = 2;
    return absl::OkStatus();
  }

  absl::Status Text(uint64_t length, std::string_view* text) {
    const size_t left = contents_.size() - position_;
    if (length > left) return Error(fmt::format("{} bytes announced where {} are left", length, left));
    *text = contents_.substr(position_, length);
    position_ += length;
    return absl::OkStatus();
  }

  // A little-endian number of `bytes` bytes, at most 8.
  absl::Status Unsigned(size_t bytes, uint64_t* value) {
    std::string_view text;
    if (absl::Status status = Text(bytes, &text); !status.ok()) return status;
    *value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      *value |= static_cast<uint64_t>(static_cast<unsigned char>(text[i])) << (8 * i);
    }
    return absl::OkStatus();
  }

  absl::Status Push(const Pickle::Value& value) {
    if (pickle_.values_.size() >= most_values_) {
      return absl::ResourceExhaustedError(
          fmt::format("{}: byte {}: more than {} values", name_, opcode_at_, most_values_));
    }
    stack_.push_back(static_cast<Index>(pickle_.values_.size()));
    pickle_.values_.push_back(value);
    return absl::OkStatus();
  }

  absl::Status PushContainer(Kind kind, std::span<const Index> items = {}) {
    const auto where = static_cast<int64_t>(pickle_.items_.size());
    if (absl::Status status = Push({.kind = kind, .number = where}); !status.ok()) return status;
    pickle_.items_.emplace_back(items.begin(), items.end());
    return absl::OkStatus();
  }

  absl::Status PushUnsigned(size_t bytes) {
    uint64_t value;
    if (absl::Status status = Unsigned(bytes, &value); !status.ok()) return status;
    return Push({.kind = Kind::kInt, .number = static_cast<int64_t>(value)});
  }

  // Two's complement, behind a length of `length_bytes` bytes.
  absl::Status PushLong(size_t length_bytes) {
    uint64_t length;
    if (absl::Status status = Unsigned(length_bytes, &length); !status.ok()) return status;
    std::string_view text;
    if (absl::Status status = Text(length, &text); !status.ok()) return status;
    if (text.size() > sizeof(int64_t)) return Push({.kind = Kind::kBigInt});
    uint64_t value = !text.empty() && (text.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = text.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(text[i]);
    return Push({.kind = Kind::kInt, .number = static_cast<int64_t>(value)});
  }

  absl::Status PushText(Kind kind, size_t length_bytes) {
    uint64_t length;
    if (absl::Status status = Unsigned(length_bytes, &length); !status.ok()) return status;
    std::string_view text;
    if (absl::Status status = Text(length, &text); !status.ok()) return status;
    return Push({.kind = kind, .text = text});
  }

  // The stack above the last mark.
  std::span<const Index> Above() const {
    const size_t base = marks_.empty() ? 0 : marks_.back();
    return std::span(stack_).subspan(base);
  }
  absl::Status Needs(size_t count) const {
    return Above().size() >= count ? absl::OkStatus() : Error("the stack is empty where a value is needed");
  }
  // Makes of the values above the last mark, which goes with them, a container.
  absl::Status Collect(Kind kind) {
    if (marks_.empty()) return Error("there is no mark");
    const std::vector<Index> items(Above().begin(), Above().end());
    if (kind == Kind::kDict && items.size() % 2 != 0) return Error("a key without a value");
    stack_.resize(marks_.back());
    marks_.pop_back();
    return PushContainer(kind, items);
  }
  absl::Status CollectTop(size_t count) {
    if (absl::Status status = Needs(count); !status.ok()) return status;
    const std::vector<Index> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return PushContainer(Kind::kTuple, items);
  }
  // Adds the values from `first` of the stack on to the container below them.
  absl::Status AddTo(Kind kind, size_t first) {
    const Pickle::Value& container = pickle_.values_[stack_[first - 1]];
    if (container.kind != kind) return Error("items for what is not a container of their kind");
    if (kind == Kind::kDict && (stack_.size() - first) % 2 != 0) return Error("a key without a value");
    auto& items = pickle_.items_[static_cast<size_t>(container.number)];
    items.insert(items.end(), stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end());
    stack_.resize(first);
    return absl::OkStatus();
  }
  absl::Status AddTop(Kind kind, size_t count) {
    if (absl::Status status = Needs(count + 1); !status.ok()) return status;
    return AddTo(kind, stack_.size() - count);
  }
  absl::Status AddMarked(Kind kind) {
    if (marks_.empty()) return Error("there is no mark");
    const size_t first = marks_.back();
    marks_.pop_back();
    if (Above().size() <= stack_.size() - first) return Error("the stack is empty where a value is needed");
    return AddTo(kind, first);
  }

  absl::Status Put(uint64_t key) {
    if (absl::Status status = Needs(1); !status.ok()) return status;
    memo_[key] = stack_.back();
    return absl::OkStatus();
  }
  absl::Status PutAt(size_t bytes) {
    uint64_t key;
    if (absl::Status status = Unsigned(bytes, &key); !status.ok()) return status;
    return Put(key);
  }
  absl::Status GetAt(size_t bytes) {
    uint64_t key;
    if (absl::Status status = Unsigned(bytes, &key); !status.ok()) return status;
    const auto it = memo_.find(key);
    if (it == memo_.end()) return Error(fmt::format("nothing was remembered as {}", key));
    stack_.push_back(it->second);
    return absl::OkStatus();
  }

  absl::Status Stop() {
    if (!marks_.empty() || stack_.size() != 1) return Error("the pickle ends with other than one value");
    pickle_.root_ = stack_.back();
    stopped_ = true;
    return absl::OkStatus();
  }

  absl::Status Refuse(uint8_t opcode) const {
    for (const Refused& refused : kRefused) {
      if (refused.opcode != opcode) continue;
      return Error(fmt::format(
          "{} would run code in Python; only data is read here, and nothing has been run", refused.name));
    }
    return Error(fmt::format("opcode 0x{:02x} is none that data in protocols {} to {} needs", opcode,
                             kLeastProtocol, kMostProtocol));
  }

  absl::Status Execute(uint8_t opcode) {
    uint64_t ignored;
    std::string_view skipped;
    switch (opcode) {
      case kMark:
        marks_.push_back(stack_.size());
        return absl::OkStatus();
      case kStop:
        return Stop();
      case kFrame:
        return Unsigned(8, &ignored);  // how the bytes were written; the opcodes in it tell their own lengths
      case kNone:
        return Push({.kind = Kind::kNone});
      case kNewTrue:
      case kNewFalse:
        return Push({.kind = Kind::kBool, .number = opcode == kNewTrue});
      case kBinInt1:
        return PushUnsigned(1);
      case kBinInt2:
        return PushUnsigned(2);
      case kBinInt: {
        uint64_t value;
        if (absl::Status status = Unsigned(4, &value); !status.ok()) return status;
        return Push({.kind = Kind::kInt, .number = static_cast<int32_t>(static_cast<uint32_t>(value))});
      }
      case kLong1:
        return PushLong(1);
      case kLong4:
        return PushLong(4);
      case kBinFloat:
        if (absl::Status status = Text(8, &skipped); !status.ok()) return status;
        return Push({.kind = Kind::kFloat});
      case kShortBinUnicode:
        return PushText(Kind::kString, 1);
      case kBinUnicode:
        return PushText(Kind::kString, 4);
      case kBinUnicode8:
        return PushText(Kind::kString, 8);
      case kShortBinString:
        return PushText(Kind::kString, 1);
      case kBinString:
        return PushText(Kind::kString, 4);
      case kShortBinBytes:
        return PushText(Kind::kBytes, 1);
      case kBinBytes:
        return PushText(Kind::kBytes, 4);
      case kBinBytes8:
      case kByteArray8:
        return PushText(Kind::kBytes, 8);
      case kEmptyList:
        return PushContainer(Kind::kList);
      case kEmptyTuple:
        return PushContainer(Kind::kTuple);
      case kEmptyDict:
        return PushContainer(Kind::kDict);
      case kEmptySet:
        return PushContainer(Kind::kSet);
      case kList:
        return Collect(Kind::kList);
      case kTuple:
        return Collect(Kind::kTuple);
      case kDict:
        return Collect(Kind::kDict);
      case kFrozenSet:
        return Collect(Kind::kSet);
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return CollectTop(opcode - kTuple1 + size_t{1});
      case kAppend:
        return AddTop(Kind::kList, 1);
      case kSetItem:
        return AddTop(Kind::kDict, 2);
      case kAppends:
        return AddMarked(Kind::kList);
      case kSetItems:
        return AddMarked(Kind::kDict);
      case kAddItems:
        return AddMarked(Kind::kSet);
      case kBinPut:
        return PutAt(1);
      case kLongBinPut:
        return PutAt(4);
      case kMemoize:
        return Put(memo_.size());
      case kBinGet:
        return GetAt(1);
      case kLongBinGet:
        return GetAt(4);
      default:
        return Refuse(opcode);
    }
  }

  const std::string_view contents_;
  const std::string_view name_;
  const size_t most_values_;
  size_t position_ = 0;
  size_t opcode_at_ = 0;  // for messages
  bool stopped_ = false;
  std::vector<Index> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  absl::flat_hash_map<uint64_t, Index> memo_;
  Pickle pickle_;
};

PickleValue Pickle::root() const { return {this, root_}; }

std::optional<int64_t> PickleValue::integer() const {
  if (kind() == Pickle::Kind::kInt || kind() == Pickle::Kind::kBool) return value().number;
  return std::nullopt;
}

std::optional<std::string_view> PickleValue::string() const {
  if (kind() == Pickle::Kind::kString) return value().text;
  return std::nullopt;
}

size_t PickleValue::size() const {
  if (kind() < Pickle::Kind::kList) return 0;
  return kind() == Pickle::Kind::kDict ? items().size() / 2 : items().size();
}

std::optional<PickleValue> PickleValue::Find(std::string_view key) const {
  if (kind() != Pickle::Kind::kDict) return std::nullopt;
  for (size_t i = items().size(); i > 0; i -= 2) {
    const PickleValue name(pickle_, items()[i - 2]);
    if (name.string() == key) return PickleValue(pickle_, items()[i - 1]);
  }
  return std::nullopt;
}

bool LooksLikePickle(std::string_view contents) {
  return contents.size() >= 2 && static_cast<uint8_t>(contents[0]) == kProto &&
         static_cast<uint8_t>(contents[1]) >= kLeastProtocol &&
         static_cast<uint8_t>(contents[1]) <= kMostProtocol;
}

absl::StatusOr<Pickle> ParsePickle(std::string_view contents, std::string_view name,
                                   std::optional<size_t> most_values) {
  const size_t most = most_values.value_or(MostPickleValues(contents.size()));
  return PickleReader(contents, name, std::min<size_t>(most, std::numeric_limits<uint32_t>::max())).Read();
}

}  // namespace reprise::profiler
