#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "base/json_writer.h"
#include "profiler/exports.h"
#include "profiler/snapshot_import.h"

namespace reprise::profiler {
namespace {

// Python takes a pickle's text for UTF-8, and none of the file where it is not. The name of a file may be anything.
std::string AsUtf8(const std::string& text) {
  return nlohmann::json::parse(JsonWriter::Text(text)).get<std::string>();
}

// Opcodes of Python's pickle, protocol 2, for data alone. Strings, frames and stacks are written once and named again
// by memo.
class PickleWriter {
 public:
  PickleWriter() { out_ = "\x80\x02"; }
  void BeginDict() { out_ += "}("; }
  void EndDict() { out_ += 'u'; }
  void BeginList() { out_ += "]("; }
  void EndList() { out_ += 'e'; }
  void Int(int64_t value) {
    out_ += "\x8a\x08";
    Fixed(static_cast<uint64_t>(value), 8);
  }
  void Bool(bool value) { out_ += value ? '\x88' : '\x89'; }
  void String(const std::string& text) {
    const auto [it, added] = strings_.try_emplace(text, next_);
    if (!added) return Get(it->second);
    const std::string utf8 = AsUtf8(text);
    out_ += 'X';
    Fixed(utf8.size(), 4);
    out_ += utf8;
    Put();
  }
  void Get(uint32_t memo) {
    out_ += 'j';
    Fixed(memo, 4);
  }
  // Makes the value on top known under the number that is returned.
  uint32_t Put() {
    out_ += 'r';
    Fixed(next_, 4);
    return next_++;
  }
  std::string Take() { return std::move(out_ += '.'); }

 private:
  void Fixed(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i));
  }
  std::string out_;
  absl::flat_hash_map<std::string, uint32_t> strings_;
  uint32_t next_ = 0;
};

class SnapshotWriter {
 public:
  SnapshotWriter(const std::vector<Event>& events, const StackTable& stacks,
                 std::span<const Offset> addresses, bool whole)
      : events_(events),
        stacks_(stacks),
        addresses_(addresses),
        whole_(whole),
        memo_of_frame_(stacks.frames() + 1),
        memo_of_stack_(stacks.stacks() + 1) {}

  std::string Write() {
    out_.BeginDict();
    out_.String(kConvertedKey);
    out_.BeginDict();
    out_.String(kWholeKey);
    out_.Bool(whole_);
    out_.EndDict();
    out_.String("device_traces");
    out_.BeginList();
    out_.BeginList();
    for (size_t i = 0; i < events_.size(); ++i) WriteEvent(i);
    out_.EndList();
    out_.EndList();
    out_.String("segments");
    out_.BeginList();
    WriteSegment();
    out_.EndList();
    out_.EndDict();
    return out_.Take();
  }

 private:
  void Pair(const char* key, int64_t value) {
    out_.String(key);
    out_.Int(value);
  }
  void Text(const char* key, const char* value) {
    out_.String(key);
    out_.String(value);
  }

  // The module is not PyTorch's to tell, but its page passes over what it does not know.
  void WriteFrame(FrameId id) {
    uint32_t& memo = memo_of_frame_[static_cast<size_t>(id)];
    if (memo != 0) return out_.Get(memo);
    const Frame& frame = stacks_.frame(id);
    out_.BeginDict();
    out_.String("name");
    out_.String(frame.function);
    out_.String("filename");
    out_.String(frame.file.empty() ? "??" : frame.file);
    Pair("line", frame.line);
    if (!frame.module.empty()) {
      out_.String("module");
      out_.String(frame.module);
      Pair("address", static_cast<int64_t>(frame.address));
    }
    out_.EndDict();
    memo = out_.Put();
  }

  void Frames(StackId stack) {
    out_.String("frames");
    uint32_t& memo = memo_of_stack_[static_cast<size_t>(stack)];
    if (memo != 0) return out_.Get(memo);
    out_.BeginList();
    for (const FrameId id : stacks_.stack(stack)) WriteFrame(id);
    out_.EndList();
    memo = out_.Put();
  }

  void Entry(const char* action, size_t i, const Event& alloc, Offset address) {
    out_.BeginDict();
    Text("action", action);
    Pair("addr", address.count());
    Pair("size", alloc.bytes.count());
    Pair("stream", static_cast<int64_t>(static_cast<uint64_t>(events_[i].stream)));
    Pair("time_us", events_[i].time_ns / 1000);
    if (events_[i].kind == EventKind::kAlloc) Pair(kAlignmentKey, alloc.alignment.count());
    Frames(alloc.stack);
    out_.EndDict();
  }

  void WriteEvent(size_t i) {
    const Event& event = events_[i];
    if (event.kind == EventKind::kAlloc && addresses_[i] >= Offset(0)) {
      live_[event.id] = i;
      top_ = std::max(top_, addresses_[i] + event.bytes);
      Entry("alloc", i, event, addresses_[i]);
    } else if (event.kind == EventKind::kFree) {
      const auto it = live_.find(event.id);
      if (it == live_.end()) return;
      const Event& alloc = events_[it->second];
      Entry("free_requested", i, alloc, addresses_[it->second]);
      Entry("free_completed", i, alloc, addresses_[it->second]);
      live_.erase(it);
    }
  }

  void Block(Offset address, Bytes size, Bytes requested, StackId stack) {
    out_.BeginDict();
    Pair("address", address.count());
    Pair("size", size.count());
    Pair("requested_size", requested.count());
    Text("state", requested > Bytes(0) ? "active_allocated" : "inactive");
    Frames(stack);
    out_.EndDict();
  }

  // One, up to the highest address.
  void WriteSegment() {
    std::map<Offset, size_t> by_address;
    Bytes sum;
    for (const auto& [id, i] : live_) {
      by_address[addresses_[i]] = i;
      sum += events_[i].bytes;
    }
    out_.BeginDict();
    Pair("device", 0);
    Pair("address", 0);
    Pair("total_size", top_.count());
    Pair("stream", 0);
    Text("segment_type", "large");
    Pair("allocated_size", sum.count());
    Pair("active_size", sum.count());
    Pair("requested_size", sum.count());
    out_.String("is_expandable");
    out_.Bool(false);
    Frames(StackId(0));
    out_.String("blocks");
    out_.BeginList();
    Offset next;
    for (const auto& [address, i] : by_address) {
      if (address > next) Block(next, address - next, Bytes(0), StackId(0));
      Block(address, events_[i].bytes, events_[i].bytes, events_[i].stack);
      next = address + events_[i].bytes;
    }
    if (top_ > next) Block(next, top_ - next, Bytes(0), StackId(0));
    out_.EndList();
    out_.EndDict();
  }

  const std::vector<Event>& events_;
  const StackTable& stacks_;
  const std::span<const Offset> addresses_;
  const bool whole_;
  std::vector<uint32_t> memo_of_frame_, memo_of_stack_;  // 0: not written; number 0 is a string's
  PickleWriter out_;
  absl::flat_hash_map<BlockId, size_t> live_;  // index of the allocation
  Offset top_;
};

}  // namespace

std::string ToSnapshot(const std::vector<Event>& events, const StackTable& stacks,
                       std::span<const Offset> addresses, bool whole) {
  return SnapshotWriter(events, stacks, addresses, whole).Write();
}

}  // namespace reprise::profiler
