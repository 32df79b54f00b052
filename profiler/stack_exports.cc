// Bytes by stack: folded lines and speedscope.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "profiler/exports.h"
#include "profiler/lifetimes.h"
#include "profiler/site_stats.h"
#include "profiler/sites.h"

namespace reprise::profiler {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string NameOf(const Frame& frame) {
  std::string name = frame.function;
  if (name.empty()) name = fmt::format("{}+{:#x}", frame.module, frame.address);
  return frame.file.empty() ? name : fmt::format("{} ({}:{})", name, frame.file, frame.line);
}

std::vector<StackBytes> LiveAtPeak(const std::vector<Event>& events) {
  return StacksLiveAt(events, LivePeakOf(events).at);
}

// All that was ever allocated, by stack.
std::vector<StackBytes> Allocated(const std::vector<Event>& events, const StackTable& stacks) {
  std::vector<StackBytes> sums(stacks.stacks() + 1);
  for (const Event& event : events) {
    if (event.kind != EventKind::kAlloc) continue;
    StackBytes& sum = sums[static_cast<size_t>(event.stack)];
    sum.stack = event.stack;
    ++sum.blocks;
    sum.bytes += event.bytes;
  }
  std::erase_if(sums, [](const StackBytes& sum) { return sum.blocks == 0; });
  return sums;
}

OrderedJson Profile(const StackTable& stacks, const std::vector<StackBytes>& sums, std::string_view name) {
  OrderedJson samples = OrderedJson::array(), weights = OrderedJson::array();
  int64_t total = 0;
  for (const StackBytes& sum : sums) {
    OrderedJson sample = OrderedJson::array();
    const auto frames = stacks.stack(sum.stack);
    for (auto it = frames.rbegin(); it != frames.rend(); ++it) sample.push_back(static_cast<uint32_t>(*it));
    if (sample.empty()) sample.push_back(0);
    samples.push_back(std::move(sample));
    weights.push_back(sum.bytes.count());
    total += sum.bytes.count();
  }
  return {{"type", "sampled"}, {"name", name},       {"unit", "bytes"},   {"startValue", 0},
          {"endValue", total}, {"samples", samples}, {"weights", weights}};
}

}  // namespace

std::string ToFolded(const std::vector<Event>& events, const StackTable& stacks) {
  std::string folded;
  for (const StackBytes& sum : LiveAtPeak(events)) {
    std::string line;
    const auto frames = stacks.stack(sum.stack);
    for (auto it = frames.rbegin(); it != frames.rend(); ++it) {
      std::string name = Printable(NameOf(stacks.frame(*it)));
      std::ranges::replace(name, ';', ':');
      if (!line.empty()) line += ';';
      line += name;
    }
    folded += fmt::format("{} {}\n", line.empty() ? kNoStack : line, sum.bytes.count());
  }
  return folded;
}

std::string ToSpeedscope(const std::vector<Event>& events, const StackTable& stacks,
                         const std::string& name) {
  OrderedJson frames = OrderedJson::array({{{"name", kNoStack}}});
  for (uint32_t i = 1; i <= stacks.frames(); ++i) {
    const Frame& f = stacks.frame(FrameId(i));
    OrderedJson frame = {{"name", f.function.empty() ? NameOf(f) : f.function}};
    if (!f.file.empty()) frame["file"] = f.file;
    if (f.line > 0) frame["line"] = f.line;
    frames.push_back(std::move(frame));
  }
  const OrderedJson json = {
      {"$schema", "https://www.speedscope.app/file-format-schema.json"},
      {"exporter", "reprise"},
      {"name", name},
      {"activeProfileIndex", 0},
      {"shared", {{"frames", std::move(frames)}}},
      {"profiles", OrderedJson::array({Profile(stacks, LiveAtPeak(events), "live at the peak"),
                                       Profile(stacks, Allocated(events, stacks), "allocated in all")})}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace reprise::profiler
