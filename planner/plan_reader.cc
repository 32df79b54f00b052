#include "planner/plan_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace reprise::planner {
namespace {

// The file's fields as they are read, before they are judged together.
struct RawPlan {
  std::string format, solver, signature, program, input, input_hash, created;
  int64_t version = 0, slab = 0, lower_bound = 0;
  double gap = 0;
  bool proven_optimal = false;
  std::vector<int64_t> sizes, offsets;
};

// Receives JSON token by token and fills a RawPlan. No tree is built: hostile text costs no more than its
// length, whatever its depth. Handlers return false to end the parse, with error() set.
class RawPlanReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  RawPlanReader() = default;
  RawPlanReader(const RawPlanReader&) = delete;  // fields_ points into the object
  RawPlanReader& operator=(const RawPlanReader&) = delete;

  const RawPlan& plan() const { return plan_; }
  const std::string& error() const { return error_; }

  // The first field that the text did not have, or "".
  std::string_view MissingField() const {
    for (const Field& field : fields_) {
      if (!field.seen) return field.path;
    }
    return "";
  }

  bool start_object(size_t) override {
    if (Skips()) return ++skipped_depth_, true;
    if (depth_ == 0) return ++depth_, true;
    if (!AtProvenance()) return Wrong("an object");
    if (std::exchange(seen_provenance_, true)) return FailTwice();
    in_provenance_ = true;
    return true;
  }

  bool end_object() override {
    if (skipped_depth_ > 0) return --skipped_depth_, true;
    in_provenance_ = false;
    return true;
  }

  bool key(std::string& name) override {
    if (skipped_depth_ > 0) return true;
    path_ = in_provenance_ ? fmt::format("{}.{}", kProvenance, name) : name;
    const auto field =
        std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.path == path_; });
    // A name that brings a dot along only looks like a field within an object.
    const bool known = field != fields_.end() && name.find('.') == std::string::npos;
    field_ = known ? &*field : nullptr;
    if (field_ == nullptr) return true;
    return std::exchange(field_->seen, true) ? FailTwice() : true;
  }

  bool start_array(size_t) override {
    if (Skips()) return ++skipped_depth_, true;
    if (depth_ == 0 || in_array_ || Target<Counts>() == nullptr) return Wrong("an array");
    in_array_ = true;
    return true;
  }

  bool end_array() override {
    if (skipped_depth_ > 0) return --skipped_depth_, true;
    in_array_ = false;
    return true;
  }

  bool null() override { return Skips() || Wrong("null"); }
  bool boolean(bool value) override {
    if (Skips()) return true;
    return Set(value) || Wrong(value ? "true" : "false");
  }
  bool number_integer(int64_t value) override {
    if (Skips()) return true;
    if (in_array_ && Target<Counts>() == &plan_.offsets && Offset(value) == kOutside) {
      plan_.offsets.push_back(value);
      return true;
    }
    return Set(static_cast<double>(value)) || Wrong(fmt::format("{}", value));
  }
  bool number_unsigned(uint64_t value) override {
    if (Skips() || Set(static_cast<double>(value))) return true;
    if (value > std::numeric_limits<int64_t>::max()) return Wrong(fmt::format("{}", value));
    const int64_t count = static_cast<int64_t>(value);
    if (!in_array_) return Set(count) || Wrong(fmt::format("{}", value));
    Target<Counts>()->push_back(count);
    return true;
  }
  bool number_float(double value, const std::string& text) override {
    return Skips() || Set(value) || Wrong(text);
  }
  bool string(std::string& value) override { return Skips() || Set(std::move(value)) || Wrong("a string"); }
  bool binary(nlohmann::json::binary_t&) override { return Skips() || Wrong("binary data"); }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& fault) override {
    // "[tag] parse error at line L, column C: what": the tag says nothing, and the position is given in
    // bytes.
    std::string_view what = fault.what();
    what.remove_prefix(std::min(what.find("] ") + 2, what.size()));
    if (what.substr(0, 11) == "parse error") what.remove_prefix(std::min(what.find(": ") + 2, what.size()));
    return Fail(fmt::format("byte {}: {}", byte, what));
  }

 private:
  using Counts = std::vector<int64_t>;
  struct Field {
    std::string_view path;
    std::variant<std::string*, int64_t*, double*, bool*, Counts*> target;
    bool seen = false;
  };
  static constexpr std::string_view kProvenance = "provenance";

  bool AtProvenance() const { return depth_ == 1 && !in_provenance_ && path_ == kProvenance; }

  // Is the value at hand part of a field that is not known?
  bool Skips() const { return skipped_depth_ > 0 || (depth_ > 0 && field_ == nullptr && !AtProvenance()); }

  template <typename T>
  T* Target() const {
    if (depth_ == 0 || field_ == nullptr) return nullptr;
    T* const* target = std::get_if<T*>(&field_->target);
    return target == nullptr ? nullptr : *target;
  }

  // False if the field at hand is of another type.
  template <typename T>
  bool Set(T value) {
    T* const target = Target<T>();
    if (target == nullptr) return false;
    *target = std::move(value);
    return true;
  }

  bool Wrong(std::string_view found) {
    if (depth_ == 0) return Fail(fmt::format("it should be a JSON object, not {}", found));
    const std::string where = in_array_ ? fmt::format("{}[{}]", path_, Target<Counts>()->size()) : path_;
    return Fail(fmt::format("field \"{}\": expected {}, found {}", where, Expected(), found));
  }

  std::string_view Expected() const {
    if (field_ == nullptr) return "an object";
    if (Target<std::string>() != nullptr) return "a string";
    if (Target<double>() != nullptr) return "a number";
    if (Target<bool>() != nullptr) return "true or false";
    if (Target<Counts>() != nullptr && !in_array_) return "an array";
    return "a whole number from 0 to 2^63 - 1";
  }

  bool Fail(std::string what) {
    error_ = std::move(what);
    return false;
  }

  bool FailTwice() { return Fail(fmt::format("field \"{}\": appears twice", path_)); }

  RawPlan plan_;
  std::array<Field, 14> fields_ = {{
      {"format", &plan_.format},
      {"version", &plan_.version},
      {"slab", &plan_.slab},
      {"lower_bound", &plan_.lower_bound},
      {"gap", &plan_.gap},
      {"proven_optimal", &plan_.proven_optimal},
      {"solver", &plan_.solver},
      {"signature", &plan_.signature},
      {"provenance.program", &plan_.program},
      {"provenance.input", &plan_.input},
      {"provenance.input_hash", &plan_.input_hash},
      {"provenance.created", &plan_.created},
      {"sizes", &plan_.sizes},
      {"offsets", &plan_.offsets},
  }};
  std::string error_;
  std::string path_;        // of the last key
  Field* field_ = nullptr;  // at path_; nullptr: none of ours
  int depth_ = 0;           // 1 inside the plan
  int skipped_depth_ = 0;   // objects and arrays inside a field that is not known
  bool seen_provenance_ = false;
  bool in_provenance_ = false;
  bool in_array_ = false;
};

// What is wrong with the fields together, or "".
std::string FaultOf(const RawPlan& raw) {
  if (raw.sizes.size() != raw.offsets.size()) {
    return fmt::format("field \"offsets\": has {} entries, but \"sizes\" has {}", raw.offsets.size(),
                       raw.sizes.size());
  }
  int64_t highest = 0;
  for (size_t i = 0; i < raw.sizes.size(); ++i) {
    if (raw.sizes[i] == 0) return fmt::format("field \"sizes[{}]\": is 0", i);
    if (raw.offsets[i] > std::numeric_limits<int64_t>::max() - raw.sizes[i]) {
      return fmt::format("field \"offsets[{}]\": {} plus the size {} overflows", i, raw.offsets[i],
                         raw.sizes[i]);
    }
    highest = std::max(highest, raw.offsets[i] + raw.sizes[i]);
  }
  if (raw.slab > highest) {
    return fmt::format("field \"slab\": is {}, but the buffers end at {}", raw.slab, highest);
  }
  if (raw.lower_bound > raw.slab) {
    return fmt::format("field \"lower_bound\": {} is above the slab {}", raw.lower_bound, raw.slab);
  }
  return "";
}

bool ParseSignature(std::string_view text, uint64_t& signature) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != text.npos) return false;
  return std::from_chars(text.data(), text.data() + text.size(), signature, 16).ec == std::errc();
}

}  // namespace

absl::StatusOr<Plan> ParsePlan(std::string_view text, std::string_view name) {
  const auto fault = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("{}: not a plan that can be used: {}", name, what));
  };
  if (text.empty()) return fault("the file is empty");
  RawPlanReader reader;
  if (!nlohmann::json::sax_parse(text, &reader)) return fault(reader.error());
  const RawPlan& raw = reader.plan();
  // These two first: in another format or version, other fields may rightly be missing.
  if (raw.format != kPlanFormat) {
    return fault(
        fmt::format("field \"format\": is not \"{}\", so `reprise plan` has not written it (the plans that a "
                    "run leaves are for `reprise run --plan`)",
                    kPlanFormat));
  }
  if (raw.version != kPlanVersion) {
    return fault(fmt::format("field \"version\": is {}, this program reads {}", raw.version, kPlanVersion));
  }
  if (!reader.MissingField().empty())
    return fault(fmt::format("field \"{}\": is missing", reader.MissingField()));
  if (const std::string what = FaultOf(raw); !what.empty()) return fault(what);
  Plan plan;
  if (!ParseSignature(raw.signature, plan.signature)) {
    return fault("field \"signature\": is not 16 lower-case hexadecimal digits");
  }
  for (int64_t size : raw.sizes) plan.sizes.emplace_back(size);
  for (int64_t offset : raw.offsets) plan.offsets.emplace_back(offset);
  plan.slab = Bytes(raw.slab);
  plan.lower_bound = Bytes(raw.lower_bound);
  plan.proven_optimal = raw.proven_optimal;
  plan.solver = raw.solver;
  plan.provenance = {raw.program, raw.input, raw.input_hash, raw.created};
  return plan;
}

}  // namespace reprise::planner
