#include "replay/saved_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/fnv1a.h"
#include "base/json_writer.h"
#include "planner/bound.h"
#include "planner/validator.h"
#include "replay/arena.h"
#include "replay/json_fields.h"
#include "replay/planning.h"
#include "replay/ranges.h"
#include "replay/stream_lag.h"

namespace reprise::replay {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "reprise plans of a job";
constexpr int kVersion = 1;
constexpr size_t kMostCycles = 4;  // as many as a sequence keeps
constexpr size_t kMostSlots = size_t{1} << 21;
constexpr int64_t kMostBytes = int64_t{1} << 50;

uint64_t Hash(const JobSignature& job) {
  uint64_t hash = Fnv1a(job.device);
  for (const std::string& word : job.command) hash = Fnv1a(word, Fnv1a(std::string_view("\0", 1), hash));
  return Fnv1a(fmt::format("|{}|{}", job.ordinal, job.world_size), hash);
}

absl::Status Wrong(std::string_view name, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", name, what));
}

// A word is any bytes, a text in JSON is UTF-8: there each byte is the character of its number.
std::string TextOf(const std::string& word) {
  std::string text;
  for (const unsigned char byte : word) {
    if (byte >= 0x80) text += static_cast<char>(0xC0 | byte >> 6);
    text += static_cast<char>(byte < 0x80 ? byte : 0x80 | (byte & 0x3F));
  }
  return text;
}

// The inverse; nullopt: not such a text.
std::optional<std::string> WordOf(const json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();  // well-formed: it was parsed
  std::string word;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte > 0xC3) return std::nullopt;
    word += static_cast<char>(byte < 0x80 ? byte : byte << 6 | (text[++i] & 0x3F));
  }
  return word;
}

// One row a slot, because there are thousands: bytes, alignment, stream, lifetime in tokens (0: persistent),
// stream of the free, offset.
constexpr size_t kColumns = 6;

void WriteRow(JsonWriter& json, const profiler::Slot& slot, Offset offset) {
  json.BeginArray();
  json.Value(slot.bytes.count());
  json.Value(slot.alignment.count());
  json.Value(static_cast<uint64_t>(slot.stream));
  json.Value(slot.persistent ? 0 : slot.length);
  json.Value(static_cast<uint64_t>(slot.freed_on));
  json.Value(offset.count());
  json.EndArray();
}

void WriteCycle(JsonWriter& json, const SavedPlan::Cycle& cycle) {
  json.BeginObject();
  json.Field("from", cycle.from.count());
  json.Field("cut", cycle.cut.count());
  json.Field("slab", cycle.slab.count());
  json.Field("lower_bound", cycle.lower_bound.count());
  json.Key("slots");
  json.BeginArray();
  for (size_t i = 0; i < cycle.slots.size(); ++i) WriteRow(json, cycle.slots[i], cycle.offsets[i]);
  json.EndArray();
  json.Key("stays");
  json.BeginArray();
  for (const StayingBlock& each : cycle.stays) {
    json.BeginArray();
    json.Value(each.token.count());
    json.Value(each.bytes.count());
    json.EndArray();
  }
  json.EndArray();
  json.EndObject();
}

void ReadRow(const json& row, JsonFields& fields, int64_t period, SavedPlan::Cycle& cycle) {
  if (!row.is_array() || row.size() != kColumns) return fields.Complain("has a slot that is not six numbers");
  constexpr int64_t kAnyStream = std::numeric_limits<int64_t>::max();
  profiler::Slot slot;
  slot.begin = static_cast<int64_t>(cycle.slots.size());
  // Less is no token; and where blocks of no bytes lie, those that overlap would not be found.
  slot.bytes = Bytes(fields.Number(row[0], "bytes", kSmallBlock.count(), kLargestRange.count()));
  slot.alignment = Bytes(fields.Number(row[1], "alignment", 1, kMostBytes));
  if ((slot.alignment.count() & (slot.alignment.count() - 1)) != 0)
    fields.Complain("has an alignment that is no power of two");
  slot.stream = Stream{static_cast<uint64_t>(fields.Number(row[2], "stream", 0, kAnyStream))};
  slot.length = fields.Number(row[3], "lifetime", 0, period);
  slot.persistent = slot.length == 0;
  if (slot.persistent) slot.length = period;
  slot.freed_on = Stream{static_cast<uint64_t>(fields.Number(row[4], "stream of the free", 0, kAnyStream))};
  cycle.slots.push_back(slot);
  cycle.offsets.emplace_back(fields.Number(row[5], "offset", -1, kMostBytes));
}

// One row a block: token, bytes.
void ReadStaying(JsonFields& fields, SavedPlan::Cycle& cycle) {
  for (const json& row : fields.Array("stays", kMostSlots)) {
    if (!row.is_array() || row.size() != 2)
      return fields.Complain("has a block that stays that is not two numbers");
    const Tick before = cycle.stays.empty() ? Tick(-1) : cycle.stays.back().token;
    const Tick token(fields.Number(row[0], "token", before.count() + 1, kMostBytes));
    cycle.stays.push_back({token, Bytes(fields.Number(row[1], "bytes", kSmallBlock.count(), kMostBytes))});
  }
}

absl::Status ReadCycle(const json& object, std::string where, std::string_view name, SavedPlan& saved) {
  JsonFields fields(object, std::move(where));
  SavedPlan::Cycle cycle;
  cycle.from = Tick(fields.Number("from", 0, kMostBytes));
  cycle.cut = Tick(fields.Number("cut", cycle.from.count(), kMostBytes));
  cycle.slab = Bytes(fields.Number("slab", 0, kMostBytes));
  cycle.lower_bound = Bytes(fields.Number("lower_bound", 0, kMostBytes));
  const json& rows = fields.Array("slots", kMostSlots);
  if (rows.empty()) fields.Complain("has no slots");
  for (const json& row : rows) {
    ReadRow(row, fields, static_cast<int64_t>(rows.size()), cycle);
    if (!fields.error().empty()) return Wrong(name, fields.error());
  }
  ReadStaying(fields, cycle);
  if (!fields.error().empty()) return Wrong(name, fields.error());
  saved.cycles.push_back(std::move(cycle));
  return absl::OkStatus();
}

// A file's content. nlohmann's destructor asks for memory for what an array or an object holds, and where there is none it
// ends the process; so that is taken out first, from the inside, which asks for nothing. Not below a depth that no file of
// ours has: this goes as deep on the stack.
class Parsed {
 public:
  explicit Parsed(std::string_view text) : json_(json::parse(text, nullptr, /*allow_exceptions=*/false)) {}
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;
  ~Parsed() { Empty(json_, 0); }

  const json& get() const { return json_; }

 private:
  static void Empty(json& value, int depth) {  // NOLINT(misc-no-recursion)
    constexpr int kDeepest = 8;
    if (depth > kDeepest || !value.is_structured()) return;
    for (json& each : value) Empty(each, depth + 1);
    value.clear();
  }

  json json_;
};

constexpr std::string_view kHead = "{\"checksum\":\"";

// The file begins with a checksum of everything behind it.
std::string Beginning(std::string_view rest) { return fmt::format("{}{:016x}\",", kHead, Fnv1a(rest)); }

Bytes BytesOf(const std::vector<StayingBlock>& stays) {
  Bytes bytes;
  for (const StayingBlock& block : stays) bytes += block.bytes;
  return bytes;
}

std::optional<SavedPlan::Cycle> Lay(const Sequence::Known& known, double seconds) {
  const std::vector<profiler::Slot>& slots = known.cycle;
  PlanRequest request = MakeRequest({.period = static_cast<int64_t>(slots.size()), .slots = slots}, {});
  request.besides = BytesOf(known.stays);
  Candidate candidate;
  Plan(request, seconds, candidate);
  if (!candidate.status.ok()) return std::nullopt;
  SavedPlan::Cycle cycle = {.slots = slots,
                            .slab = candidate.plan.slab,
                            .lower_bound = candidate.plan.lower_bound,
                            .from = known.from,
                            .cut = known.cut,
                            .stays = known.stays};
  for (const ServingPlan::Slot& slot : candidate.plan.slots) cycle.offsets.push_back(slot.offset);
  return cycle;
}

}  // namespace

std::string HashOf(const JobSignature& job) { return fmt::format("{:016x}", Hash(job)); }

absl::Status CheckIsFor(const SavedPlan& saved, const JobSignature& job) {
  const auto differs = [](std::string_view what, const auto& then, const auto& now) {
    return absl::FailedPreconditionError(
        fmt::format("it was made for {} {}, and this is {}", what, then, now));
  };
  if (job.command.empty()) return absl::FailedPreconditionError("the command of this process is not known");
  if (saved.job.device != job.device) return differs("the device", saved.job.device, job.device);
  if (saved.job.ordinal != job.ordinal) return differs("device number", saved.job.ordinal, job.ordinal);
  if (saved.job.world_size != job.world_size)
    return differs("a job of processes:", saved.job.world_size, job.world_size);
  if (saved.job.command != job.command) {
    return differs("the command", fmt::format("\"{}\"", fmt::join(saved.job.command, " ")),
                   fmt::format("\"{}\"", fmt::join(job.command, " ")));
  }
  return absl::OkStatus();
}

SavedPlan MakeSavedPlan(JobSignature job, const std::vector<Sequence::Known>& known, double seconds) {
  SavedPlan saved = {.job = std::move(job)};
  for (const Sequence::Known& each : known) {
    if (std::optional<SavedPlan::Cycle> cycle = Lay(each, seconds / static_cast<double>(known.size()))) {
      saved.cycles.push_back(*std::move(cycle));
    }
  }
  return saved;
}

absl::StatusOr<ServingPlan> ToServe(const SavedPlan::Cycle& cycle) {
  const PlanRequest request =
      MakeRequest({.period = static_cast<int64_t>(cycle.slots.size()), .slots = cycle.slots}, {});
  planner::Placement placement;
  placement.slab = cycle.slab;
  for (const uint32_t slot : request.slot_of) {
    const Offset offset = cycle.offsets[slot];
    if (offset < Offset(0)) return absl::InvalidArgumentError("a slot that should be planned has no place");
    placement.offsets.push_back(offset);
  }
  if (absl::Status checked = planner::CheckPlacement(request.problem, placement); !checked.ok())
    return checked;
  ServingPlan plan = PlanOf(request, placement, cycle.lower_bound);
  // Whether it keeps a lag is not in the file, but one that does takes no more than that.
  const Bytes load = planner::HeightOfLoad(request.problem);
  if (OfSeveralStreams(plan.cycle) && !IsMuchForLag(plan.slab - load, load + BytesOf(cycle.stays)))
    plan.for_lag = plan.slab - load;
  plan.alone = true;
  return plan;
}

absl::StatusOr<std::vector<Sequence::Expected>> ToExpect(const SavedPlan& saved) {
  std::vector<Sequence::Expected> plans;
  for (const SavedPlan::Cycle& cycle : saved.cycles) {
    absl::StatusOr<ServingPlan> plan = ToServe(cycle);
    if (!plan.ok()) return plan.status();
    plans.push_back({*std::move(plan), cycle.from, cycle.cut, cycle.stays});
  }
  return plans;
}

std::string FormatSavedPlan(const SavedPlan& saved) {
  JsonWriter json;
  json.BeginObject();
  json.Field("format", kFormat);
  json.Field("version", kVersion);
  json.Key("job");
  json.BeginObject();
  json.Key("command");
  json.BeginArray();
  for (const std::string& word : saved.job.command) json.Value(TextOf(word));
  json.EndArray();
  json.Field("device", saved.job.device);
  json.Field("ordinal", saved.job.ordinal);
  json.Field("world_size", saved.job.world_size);
  json.EndObject();
  json.Key("cycles");
  json.BeginArray();
  for (const SavedPlan::Cycle& cycle : saved.cycles) WriteCycle(json, cycle);
  json.EndArray();
  json.EndObject();
  const std::string rest = json.text().substr(1) + "\n";
  return Beginning(rest) + rest;
}

absl::StatusOr<SavedPlan> ParseSavedPlan(std::string_view text, std::string_view name) {
  const size_t beginning = std::min(text.size(), Beginning("").size());
  if (!kHead.starts_with(text.substr(0, kHead.size())))
    return Wrong(name, "not the plans that a run has left, which are in the plans.json of its folder");
  if (text.substr(0, beginning) != Beginning(text.substr(beginning)))
    return Wrong(name, "cut short or damaged: its checksum is not that of its content");
  const Parsed parsed(text);
  const json& file = parsed.get();
  if (file.is_discarded()) return Wrong(name, "not JSON");
  JsonFields top(file, "the file");
  if (top.Text("format") != kFormat) return Wrong(name, "not a file of plans");
  if (top.Number("version", 0, std::numeric_limits<int32_t>::max()) != kVersion)
    return Wrong(name, "of another version");
  SavedPlan saved;
  static const json& kNothing = *new json();
  const json* const job = top.Any("job");
  JsonFields fields(job == nullptr ? kNothing : *job, "the job");
  for (const json& text : fields.Array("command", kMostSlots)) {
    if (std::optional<std::string> word = WordOf(text))
      saved.job.command.push_back(*std::move(word));
    else
      fields.Complain("has a word that is no text of bytes");
  }
  saved.job.device = fields.Text("device");
  saved.job.ordinal = static_cast<int>(fields.Number("ordinal", 0, 1 << 20));
  saved.job.world_size = static_cast<int>(fields.Number("world_size", 1, 1 << 30));
  const json& cycles = top.Array("cycles", kMostCycles);
  for (const JsonFields* each : {&top, &fields}) {
    if (!each->error().empty()) return Wrong(name, each->error());
  }
  for (const json& cycle : cycles) {
    const std::string where = fmt::format("cycle {}", saved.cycles.size());
    if (absl::Status read = ReadCycle(cycle, where, name, saved); !read.ok()) return read;
  }
  return saved;
}

}  // namespace reprise::replay
