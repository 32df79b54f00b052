#include "cli/report/ranks_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/json_text.h"
#include "cli/quantity.h"
#include "cli/report/page_source.h"
#include "cli/report/payload.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::ordered_json;
using replay::JobRanks;
using replay::ProcessSummary;

constexpr int kRanksPageFormat = 1;  // of the page's data
constexpr double kStandsOut = 1.05;  // times the median

// The row in which a rank is furthest above the median, and how far.
std::string MostOfIt(const RankTraces& traces, int rank) {
  const auto at =
      std::ranges::find_if(traces.compared, [&](size_t i) { return traces.traces[i].rank == rank; });
  if (at == traces.compared.end()) return "";
  const auto column = static_cast<size_t>(at - traces.compared.begin());
  const RankTable::Row* widest = nullptr;
  for (const RankTable::Row& row : traces.rows) {
    const Bytes above = row.bytes[column] - row.median;
    if (widest == nullptr ? above > Bytes(0) : above > widest->bytes[column] - widest->median) widest = &row;
  }
  if (widest == nullptr) return "";
  const std::string not_whole = NotWhole(traces);
  return fmt::format("; most above the median in its trace: {} {} {}{}",
                     FormatSize(widest->bytes[column] - widest->median), traces.by_site ? "at" : "in",
                     widest->label, not_whole.empty() ? "" : fmt::format(" ({})", not_whole));
}

std::string VerdictOn(const JobRanks& job, const RankTraces& traces, std::optional<Bytes> capacity) {
  std::string text =
      fmt::format("{}: summaries of {} of {} ranks.", NameOf(job), job.ranks.size(), job.world_size);
  if (job.ranks.size() > 1) {
    const ProcessSummary& largest = job.ranks[job.largest];
    const std::string times = LargestText(job);
    if (job.LargestOverMedian().value_or(kStandsOut) >= kStandsOut) {
      text += fmt::format(" Rank {} on {} stands out: {}{}.", largest.launched.rank, largest.host, times,
                          MostOfIt(traces, largest.launched.rank));
    } else {
      text += fmt::format(" No rank stands out: the largest, rank {}, has {}.", largest.launched.rank, times);
    }
  }
  if (job.faults > 0) text += fmt::format(" Faults: {}.", job.faults);
  if (capacity) {
    const auto over = std::ranges::count_if(
        job.ranks, [&](const ProcessSummary& rank) { return rank.reserved_peak > *capacity; });
    text += fmt::format(" {} of them reserved more than {}.", over, FormatSize(*capacity));
  }
  return text;
}

Json JobJson(size_t number, const JobRanks& job, const RankTraces& traces, std::optional<Bytes> capacity,
             Payload& payload) {
  Json json = {{"name", NameOf(job)},
               {"verdict", VerdictOn(job, traces, capacity)},
               {"by", traces.by_site ? "site" : "size"},
               {"traces", Json::array()},
               {"rows", Json::array()},
               {"rows_left", traces.rows_left},
               {"not_whole", NotWhole(traces)},
               {"notes", traces.notes}};
  for (size_t i = 0; i < traces.traces.size(); ++i) {
    const RankTraces::Trace& trace = traces.traces[i];
    const auto column = std::ranges::find(traces.compared, i);
    json["traces"].push_back(
        {{"rank", trace.rank},
         {"file", trace.file},
         {"live_peak", trace.live_peak.count()},
         {"why_not_whole", trace.why_not_whole},
         {"column", column == traces.compared.end() ? Json() : Json(column - traces.compared.begin())}});
  }
  for (size_t i = 0; i < traces.rows.size(); ++i) {
    const RankTable::Row& row = traces.rows[i];
    const std::string name = fmt::format("{}.{}", number, i);
    std::vector<double> column;
    column.reserve(row.bytes.size());
    for (const Bytes bytes : row.bytes) column.push_back(static_cast<double>(bytes.count()));
    payload.Add(name, column);
    json["rows"].push_back({{"label", row.label},
                            {"least", row.least.count()},
                            {"median", row.median.count()},
                            {"most", row.most.count()},
                            {"most_rank", traces.traces[traces.compared[row.most_column]].rank},
                            {"column", name}});
  }
  return json;
}

}  // namespace

absl::StatusOr<std::string> RanksPageOf(const MergedSummaries& merged, const std::vector<RankTraces>& traces,
                                        const RanksPageOptions& options) {
  Payload payload;
  Json jobs = Json::array();
  for (size_t i = 0; i < merged.jobs.size(); ++i) {
    jobs.push_back(JobJson(i, merged.jobs[i], traces[i], options.capacity, payload));
  }
  const Json head = {{"format", kRanksPageFormat},
                     {"provenance",
                      {{"input", options.input},
                       {"summaries", merged.files},
                       {"report", "reprise " REPRISE_VERSION},
                       {"created", options.created},
                       {"redacted", options.redacted}}},
                     {"capacity", options.capacity ? Json(options.capacity->count()) : Json()},
                     {"merge", Json::parse(MergedJson(merged))},
                     {"jobs", std::move(jobs)}};
  const absl::StatusOr<std::string> data =
      payload.Pack(fmt::format(R"({{"columns":{},"sites":null}})", payload.Directory()));
  if (!data.ok()) return data.status();
  return WholePage(kRanksPage, JsonLine(head), *data);
}

}  // namespace reprise::cli
