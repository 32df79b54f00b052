#include "cli/rank_traces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cli/console.h"
#include "cli/symbols.h"
#include "profiler/lifetimes.h"
#include "profiler/site_labels.h"
#include "profiler/site_stats.h"
#include "profiler/stats.h"
#include "profiler/trace_reader.h"

namespace reprise::cli {
namespace {

// What a trace held at its peak.
using Held = RankTable::Held;

// The same by site.
struct AtPeak {
  size_t column = 0;          // of the traces with stacks
  profiler::SiteTable sites;  // those that held something alone
  std::vector<Bytes> bytes;   // of each
};

class Comparer {
 public:
  explicit Comparer(const RankTracesOptions& options) : options_(options) {}

  void Add(const RankFiles& files) {
    if (std::chrono::steady_clock::now() >= options_.end) {
      late_ += !files.traces.empty();
      return;
    }
    RankTraces::Trace rank = {.rank = files.rank};
    if (options_.redactor == nullptr && !files.traces.empty()) rank.file = files.traces.front();
    Held sizes;
    bool any = false;
    for (const std::string& path : files.traces) any = AddTrace(path, rank, sizes) || any;
    if (!any) return;
    const size_t number = result_.traces.size();
    if (rank.stacks) ++with_stacks_;
    by_size_.Add(number, sizes);
    result_.traces.push_back(rank);
  }

  RankTraces Take() && {
    result_.by_site = with_stacks_ > 0;
    for (size_t i = 0; i < result_.traces.size(); ++i) {
      if (!result_.by_site || result_.traces[i].stacks) result_.compared.push_back(i);
    }
    NameSites();
    RankTable& table = result_.by_site ? by_site_ : by_size_;
    RankTable::Rows rows = std::move(table).Take(result_.compared.size(), options_.most_rows);
    result_.rows = std::move(rows.rows);
    result_.rows_left = rows.left;
    Note(result_.traces.size() - result_.compared.size(), "traces without call stacks, which others have");
    if (std::string not_whole = NotWhole(result_); !not_whole.empty()) {
      result_.notes.push_back(not_whole + "; what they held may be less than what their ranks held");
    }
    Note(late_, "ranks' traces not read, for want of time");
    return std::move(result_);
  }

 private:
  void Note(size_t count, std::string_view what) {
    if (count > 0) result_.notes.push_back(fmt::format("{}: {}", what, count));
  }

  // Once all are known: of two files with one name the labels say the folders too, alike for all ranks.
  void NameSites() {
    std::vector<profiler::SiteTable*> tables;
    tables.reserve(at_peaks_.size());
    for (AtPeak& each : at_peaks_) tables.push_back(&each.sites);
    profiler::TellApart(tables);
    Held held;
    for (size_t i = 0; i < at_peaks_.size(); ++i) {
      const AtPeak& each = at_peaks_[i];
      for (size_t k = 0; k < each.bytes.size(); ++k) held[each.sites.sites[k].label] += each.bytes[k];
      if (i + 1 < at_peaks_.size() && at_peaks_[i + 1].column == each.column) continue;
      by_site_.Add(each.column, held);
      held.clear();
    }
  }

  bool AddTrace(const std::string& path, RankTraces::Trace& rank, Held& sizes) {
    absl::StatusOr<profiler::Trace> trace = profiler::ReadTrace(path);
    if (!trace.ok()) {
      result_.errors.push_back(MessageOf(trace.status()));
      result_.notes.push_back(options_.redactor != nullptr
                                  ? fmt::format("a trace of rank {} cannot be read", rank.rank)
                                  : result_.errors.back());
      return false;
    }
    symbols_.Name(&trace->stacks);
    if (options_.redactor != nullptr) options_.redactor->Redact(*trace);
    const profiler::LivePeak peak = profiler::LivePeakOf(trace->events);
    rank.live_peak += peak.bytes;
    if (rank.why_not_whole.empty()) rank.why_not_whole = trace->WhyNotWhole();
    rank.stacks = rank.stacks || trace->stacks.stacks() > 0;
    if (peak.bytes == Bytes(0)) return true;
    for (const profiler::SizeCount& c : profiler::SizesLiveAt(trace->events, peak.at)) {
      sizes[fmt::format("blocks of {} B", c.size.count())] += c.size * c.blocks;
    }
    if (trace->stacks.stacks() == 0) return true;
    const profiler::SiteTable table = profiler::SitesOf(trace->stacks);
    AtPeak& at_peak = at_peaks_.emplace_back();
    at_peak.column = with_stacks_;
    for (const profiler::SiteBytes& at :
         profiler::BySite(table, profiler::StacksLiveAt(trace->events, peak.at))) {
      at_peak.sites.sites.push_back(table.sites[at.site]);
      at_peak.bytes.push_back(at.bytes);
    }
    return true;
  }

  const RankTracesOptions options_;
  Symbols symbols_;
  RankTraces result_;
  std::vector<AtPeak> at_peaks_;  // by column, of a rank with several traces several
  RankTable by_site_, by_size_;   // by the order in which the traces were added: of those with stacks, of all
  size_t with_stacks_ = 0;
  size_t late_ = 0;
};

}  // namespace

std::string NotWhole(const RankTraces& traces) {
  size_t count = 0;
  std::set<std::string_view> reasons;
  for (const size_t i : traces.compared) {
    const std::string_view why = traces.traces[i].why_not_whole;
    if (why.empty()) continue;
    ++count;
    reasons.insert(why);
  }
  return count == 0 ? ""
                    : fmt::format("{} of {} traces are not whole: {}", count, traces.compared.size(),
                                  fmt::join(reasons, "; "));
}

RankTraces CompareTraces(const std::vector<RankFiles>& files, const RankTracesOptions& options) {
  std::vector<const RankFiles*> by_rank;
  by_rank.reserve(files.size());
  for (const RankFiles& each : files) by_rank.push_back(&each);
  std::ranges::stable_sort(by_rank, {}, [](const RankFiles* each) { return each->rank; });
  Comparer comparer(options);
  for (const RankFiles* const each : by_rank) comparer.Add(*each);
  return std::move(comparer).Take();
}

}  // namespace reprise::cli
