#include "replay/core/plan_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/files.h"
#include "base/fnv1a.h"
#include "replay/core/lease.h"

namespace reprise::replay {
namespace {

constexpr std::string_view kBeginning = "reprise plans ";
constexpr size_t kHashLetters = 16;
constexpr int64_t kMostEntryBytes = 256;

// What ranks with the same sequence have in common before anything is laid. Where what stays of their starts differs, each
// would drop the other's plans at the first such block.
std::string NameOf(const JobSignature& job, const std::vector<Sequence::Known>& known) {
  SavedPlan plan = {.job = job};
  for (const Sequence::Known& each : known) {
    plan.cycles.push_back({.slots = each.cycle,
                           .offsets = std::vector<Offset>(each.cycle.size(), Offset(0)),
                           .slab = Bytes(0),
                           .lower_bound = Bytes(0),
                           .from = each.from,
                           .cut = each.cut,
                           .stays = each.stays});
  }
  return fmt::format("{:016x}", Fnv1a(FormatSavedPlan(plan)));
}

std::string EntryOf(std::string_view plans) {
  return fmt::format("{}{} {:016x}\n", kBeginning, plans, Fnv1a(plans));
}

// What the next run would refuse has to be laid again.
bool CanBeServed(const std::string& text, const JobSignature& job) {
  const absl::StatusOr<SavedPlan> plan = ParseSavedPlan(text, "the file");
  return plan.ok() && CheckIsFor(*plan, job).ok() && !plan->cycles.empty() &&
         std::all_of(plan->cycles.begin(), plan->cycles.end(),
                     [](const SavedPlan::Cycle& cycle) { return ToServe(cycle).ok(); });
}

}  // namespace

std::string PlanCache::EntryPath() const {
  return fmt::format("{}/{}.rank{}.entry", folder_, HashOf(job_), rank_);
}

absl::StatusOr<std::string> PlanCache::Find() const {
  const std::string entry = EntryPath();
  if (access(entry.c_str(), F_OK) != 0) return absl::NotFoundError(fmt::format("{} is not there", entry));
  const absl::StatusOr<std::string> text = ReadRegularFile(entry, kMostEntryBytes);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  const std::string plans =
      text->size() < kBeginning.size() ? "" : text->substr(kBeginning.size(), kHashLetters);
  // The name leads to a file: nothing but what we write ourselves.
  if (*text != EntryOf(plans) || plans.find_first_not_of("0123456789abcdef") != plans.npos) {
    return absl::InvalidArgumentError("the entry is cut short or damaged");
  }
  return fmt::format("{}/{}.plans.json", folder_, plans);
}

absl::Status PlanCache::WriteEntry(const std::string& plans) const {
  return ReplaceFile(EntryPath(), EntryOf(plans));
}

absl::StatusOr<PlanCache::Left> PlanCache::Leave(const std::vector<Sequence::Known>& known,
                                                 double seconds) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return absl::ErrnoToStatus(error.value(), fmt::format("cannot make the folder {}", folder_));
  const std::string name = NameOf(job_, known);
  const std::string path = fmt::format("{}/{}.plans.json", folder_, name);
  if (absl::StatusOr<std::string> there = ReadRegularFile(path, kMostPlanBytes);
      there.ok() && CanBeServed(*there, job_)) {
    if (absl::Status written = WriteEntry(name); !written.ok()) return written;
    return Left{*std::move(there), path};
  }
  const std::string lease = fmt::format("{}/{}.lease", folder_, name);
  if (!TakeLease(lease, kLeaseSeconds)) {
    if (absl::Status written = WriteEntry(name); !written.ok()) return written;
    return Left{"", path};
  }
  Left left;
  absl::Status status;
  if (const SavedPlan saved = MakeSavedPlan(job_, known, seconds); !saved.cycles.empty()) {
    left = {FormatSavedPlan(saved), path};
    status = ReplaceFile(path, left.text);
    if (status.ok()) status = WriteEntry(name);
  }
  unlink(lease.c_str());
  if (!status.ok()) return status;
  return left;
}

}  // namespace reprise::replay
