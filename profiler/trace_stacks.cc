#include "profiler/trace_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profiler/shared_stacks.h"
#include "profiler/trace_format.h"
#include "profiler/varint.h"

namespace reprise::profiler {
namespace {

// A block is closed when it has grown to this; nothing added to it afterwards is longer than a few strings.
constexpr size_t kEnough = size_t{1} << 16;
static_assert(kEnough + 4 * kMostStackText < kMostRawBytes);

// The strings of one block, each once.
class Strings {
 public:
  uint64_t Number(const std::string& text) {
    if (text.empty()) return 0;
    const auto [it, added] = numbers_.try_emplace(text, numbers_.size() + 1);
    if (added) {
      PutVarint(text.size(), &bytes_);
      bytes_ += text;
    }
    return it->second;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  absl::flat_hash_map<std::string, uint64_t> numbers_;
  std::string bytes_;
};

absl::Status MalformedStacks(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("malformed stacks: {}", what));
}

// Decodes one block. Every read is checked, and no number is believed before it is.
class StackDecoder {
 public:
  explicit StackDecoder(StackTable* table) : table_(table) {}

  absl::Status Decode(std::string_view raw) {
    if (raw.empty()) return MalformedStacks("no type");
    raw.remove_prefix(1);
    uint64_t first_frame = 0, frames = 0, first_stack = 0, stacks = 0, first_module = 0, modules = 0;
    for (uint64_t* number : {&first_frame, &frames, &first_stack, &stacks, &first_module, &modules}) {
      if (!TakeVarint(&raw, number)) return MalformedStacks("the head ends early");
    }
    std::string_view strings;
    for (std::string_view* column : {&strings, &frames_, &stacks_, &modules_}) {
      uint64_t length;
      if (!TakeVarint(&raw, &length) || length > raw.size()) return MalformedStacks("a column ends early");
      *column = raw.substr(0, length);
      raw.remove_prefix(length);
    }
    if (!raw.empty()) return MalformedStacks("bytes after the last column");
    if (first_frame != table_->frames() || first_stack != table_->stacks() ||
        first_module != table_->modules().size()) {
      return MalformedStacks("they do not follow those before; a block is missing or doubled");
    }
    if (frames > kMostFrames - std::min(kMostFrames, table_->frames()) ||
        stacks > kMostStacks - std::min(kMostStacks, table_->stacks()) ||
        modules > kMostModules - std::min(kMostModules, table_->modules().size())) {
      return absl::ResourceExhaustedError("more stacks than a trace may have");
    }
    absl::Status status = TakeStrings(strings);
    for (uint64_t i = 0; status.ok() && i < frames; ++i) status = TakeFrame();
    for (uint64_t i = 0; status.ok() && i < stacks; ++i) status = TakeStack();
    for (uint64_t i = 0; status.ok() && i < modules; ++i) status = TakeModule();
    if (!status.ok()) return status;
    const bool all = frames_.empty() && stacks_.empty() && modules_.empty();
    return all ? absl::OkStatus() : MalformedStacks("a column is longer than what it holds");
  }

 private:
  absl::Status TakeStrings(std::string_view column) {
    while (!column.empty()) {
      uint64_t length;
      if (!TakeVarint(&column, &length) || length > column.size())
        return MalformedStacks("a string ends early");
      if (length > kMostStackText) return MalformedStacks("a string longer than any that is recorded");
      strings_.push_back(column.substr(0, length));
      column.remove_prefix(length);
    }
    return absl::OkStatus();
  }

  bool TakeString(std::string_view* column, std::string* text) const {
    uint64_t number;
    if (!TakeVarint(column, &number) || number >= strings_.size()) return false;
    *text = strings_[number];
    return true;
  }

  absl::Status TakeFrame() {
    Frame frame;
    uint64_t kind, line;
    if (!TakeVarint(&frames_, &kind) || kind > static_cast<uint64_t>(FrameKind::kDevice) ||
        !TakeString(&frames_, &frame.function) || !TakeString(&frames_, &frame.file) ||
        !TakeVarint(&frames_, &line) || !TakeString(&frames_, &frame.module) ||
        !TakeVarint(&frames_, &frame.address)) {
      return MalformedStacks("a frame is damaged");
    }
    frame.kind = static_cast<FrameKind>(kind);
    frame.line = UnZigZag(line);
    const size_t before = table_->frames();
    if (table_->Intern(frame) == FrameId(0)) {
      return absl::ResourceExhaustedError("longer names of frames than a trace may have");
    }
    return table_->frames() > before ? absl::OkStatus() : MalformedStacks("a frame is there twice");
  }

  absl::Status TakeStack() {
    uint64_t depth;
    if (!TakeVarint(&stacks_, &depth) || depth == 0 || depth > kMostStackDepth) {
      return MalformedStacks("a stack of no frames, or of too many");
    }
    std::array<FrameId, kMostStackDepth> frames;
    uint64_t id = 0;
    for (uint64_t i = 0; i < depth; ++i) {
      uint64_t distance;
      if (!TakeVarint(&stacks_, &distance)) return MalformedStacks("a stack ends early");
      id += static_cast<uint64_t>(UnZigZag(distance));
      if (id == 0 || id > table_->frames()) return MalformedStacks("a stack names a frame that is not there");
      frames[i] = FrameId(static_cast<uint32_t>(id));
    }
    const size_t before = table_->stacks();
    table_->Intern(std::span(frames).first(depth));
    return table_->stacks() > before ? absl::OkStatus() : MalformedStacks("a stack is there twice");
  }

  absl::Status TakeModule() {
    Module module;
    if (!TakeString(&modules_, &module.path) || !TakeString(&modules_, &module.build_id)) {
      return MalformedStacks("a module is damaged");
    }
    table_->AddModule(std::move(module));
    return absl::OkStatus();
  }

  StackTable* const table_;
  std::string_view frames_, stacks_, modules_;
  std::vector<std::string_view> strings_{""};
};

}  // namespace

std::string EncodeStacks(const StackTable& table, StacksWritten* written) {
  const StacksWritten first = *written;
  Strings strings;
  std::string frames, stacks, modules;
  const auto has_room = [&] {
    return strings.bytes().size() + frames.size() + stacks.size() + modules.size() < kEnough;
  };
  for (; written->frames < table.frames() && has_room(); ++written->frames) {
    const Frame& frame = table.frame(FrameId(static_cast<uint32_t>(written->frames + 1)));
    PutVarint(static_cast<uint64_t>(frame.kind), &frames);
    PutVarint(strings.Number(frame.function), &frames);
    PutVarint(strings.Number(frame.file), &frames);
    PutVarint(ZigZag(frame.line), &frames);
    PutVarint(strings.Number(frame.module), &frames);
    PutVarint(frame.address, &frames);
  }
  // A stack's frames are older than the stack, so once all frames are out every stack may follow.
  const bool all_frames = written->frames == table.frames();
  for (; all_frames && written->stacks < table.stacks() && has_room(); ++written->stacks) {
    const auto stack = table.stack(StackId(static_cast<uint32_t>(written->stacks + 1)));
    PutVarint(stack.size(), &stacks);
    int64_t before = 0;
    for (const FrameId id : stack) {
      const int64_t number = static_cast<uint32_t>(id);
      PutVarint(ZigZag(number - before), &stacks);
      before = number;
    }
  }
  for (; written->modules < table.modules().size() && has_room(); ++written->modules) {
    const Module& module = table.modules()[written->modules];
    PutVarint(strings.Number(module.path), &modules);
    PutVarint(strings.Number(module.build_id), &modules);
  }
  const uint64_t new_frames = written->frames - first.frames, new_stacks = written->stacks - first.stacks,
                 new_modules = written->modules - first.modules;
  if (new_frames + new_stacks + new_modules == 0) return "";
  std::string raw(1, static_cast<char>(BlockType::kStacks));
  for (const uint64_t number : {uint64_t{first.frames}, new_frames, uint64_t{first.stacks}, new_stacks,
                                uint64_t{first.modules}, new_modules}) {
    PutVarint(number, &raw);
  }
  for (const std::string* column :
       {&strings.bytes(), &std::as_const(frames), &std::as_const(stacks), &std::as_const(modules)}) {
    PutVarint(column->size(), &raw);
    raw += *column;
  }
  return raw;
}

absl::Status DecodeStacks(std::string_view raw, StackTable* table) { return StackDecoder(table).Decode(raw); }

}  // namespace reprise::profiler
