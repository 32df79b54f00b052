#include "cli/rank_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "cli/console.h"
#include "cli/symbols.h"
#include "profiler/lifetimes.h"
#include "profiler/site_stats.h"
#include "profiler/stats.h"
#include "profiler/trace_reader.h"

namespace reprise::cli {
namespace {

// What a trace held at its peak, by whatever the labels stand for.
using Held = absl::flat_hash_map<std::string, Bytes>;

// Rows over traces: sparse, as most ranks hold the same few hundred labels.
class Table {
 public:
  void Add(size_t trace, const Held& held) {
    for (const auto& [label, bytes] : held) {
      const auto [it, added] = numbers_.try_emplace(label, cells_.size());
      if (added) cells_.emplace_back();
      cells_[it->second].push_back({trace, bytes});
    }
  }

  std::vector<RankTraces::Row> Rows(const std::vector<RankTraces::Trace>& traces,
                                    const std::vector<size_t>& compared) const {
    std::vector<size_t> column(traces.size());
    for (size_t i = 0; i < compared.size(); ++i) column[compared[i]] = i;
    std::vector<RankTraces::Row> rows;
    for (const auto& [label, number] : numbers_) {
      RankTraces::Row row = {.label = label, .bytes = std::vector<Bytes>(compared.size())};
      for (const Cell& cell : cells_[number]) row.bytes[column[cell.trace]] += cell.bytes;
      const auto most = std::ranges::max_element(row.bytes);
      row.most = *most;
      row.most_rank = traces[compared[static_cast<size_t>(most - row.bytes.begin())]].rank;
      row.least = std::ranges::min(row.bytes);
      std::vector<Bytes> sorted = row.bytes;
      const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
      std::ranges::nth_element(sorted, middle);
      row.median = *middle;
      rows.push_back(std::move(row));
    }
    std::ranges::sort(rows, [](const auto& a, const auto& b) {
      if (a.most - a.median != b.most - b.median) return a.most - a.median > b.most - b.median;
      return a.most != b.most ? a.most > b.most : a.label < b.label;
    });
    return rows;
  }

 private:
  struct Cell {
    size_t trace;
    Bytes bytes;
  };
  absl::flat_hash_map<std::string, size_t> numbers_;
  std::vector<std::vector<Cell>> cells_;
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
    Held sites, sizes;
    bool any = false;
    for (const std::string& path : files.traces) any = AddTrace(path, rank, sites, sizes) || any;
    if (!any) return;
    const size_t number = result_.traces.size();
    if (rank.stacks) by_site_.Add(number, sites);
    by_size_.Add(number, sizes);
    result_.traces.push_back(rank);
  }

  RankTraces Take() && {
    result_.by_site =
        std::ranges::any_of(result_.traces, [](const RankTraces::Trace& trace) { return trace.stacks; });
    for (size_t i = 0; i < result_.traces.size(); ++i) {
      if (!result_.by_site || result_.traces[i].stacks) result_.compared.push_back(i);
    }
    result_.rows = (result_.by_site ? by_site_ : by_size_).Rows(result_.traces, result_.compared);
    if (result_.rows.size() > options_.most_rows) {
      result_.rows_left = result_.rows.size() - options_.most_rows;
      result_.rows.resize(options_.most_rows);
    }
    Note(result_.traces.size() - result_.compared.size(), "traces have no call stacks, as others do");
    Note(static_cast<size_t>(std::ranges::count_if(
             result_.traces, [](const RankTraces::Trace& trace) { return trace.cut_short; })),
         "traces were cut short, and are read up to their last complete block");
    Note(late_, "ranks' traces were not read in time");
    return std::move(result_);
  }

 private:
  void Note(size_t count, std::string_view what) {
    if (count > 0) result_.notes.push_back(fmt::format("{} {}", count, what));
  }

  bool AddTrace(const std::string& path, RankTraces::Trace& rank, Held& sites, Held& sizes) {
    absl::StatusOr<profiler::Trace> trace = profiler::ReadTrace(path);
    if (!trace.ok()) {
      result_.notes.push_back(options_.redactor != nullptr
                                  ? fmt::format("a trace of rank {} cannot be read", rank.rank)
                                  : MessageOf(trace.status()));
      return false;
    }
    symbols_.Name(&trace->stacks);
    if (options_.redactor != nullptr) options_.redactor->Redact(*trace);
    const profiler::LifetimeTable lifetimes = profiler::LifetimesOf(trace->events);
    rank.live_peak += lifetimes.live_peak;
    rank.cut_short = rank.cut_short || !trace->closed;
    rank.stacks = rank.stacks || trace->stacks.stacks() > 0;
    if (lifetimes.blocks.empty()) return true;
    const int64_t peak_at = lifetimes.peak_at.count();
    for (const profiler::SizeCount& c : profiler::SizesLiveAt(trace->events, peak_at)) {
      sizes[fmt::format("blocks of {} B", c.size.count())] += c.size * c.blocks;
    }
    if (trace->stacks.stacks() == 0) return true;
    const profiler::SiteTable table = profiler::SitesOf(trace->stacks);
    for (const profiler::SiteBytes& at :
         profiler::BySite(table, profiler::StacksLiveAt(trace->events, peak_at))) {
      sites[table.sites[at.site].label] += at.bytes;
    }
    return true;
  }

  const RankTracesOptions options_;
  Symbols symbols_;
  RankTraces result_;
  Table by_site_, by_size_;
  size_t late_ = 0;
};

}  // namespace

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
