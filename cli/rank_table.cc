#include "cli/rank_table.h"

#include <algorithm>
#include <utility>

namespace reprise::cli {

void RankTable::Add(size_t column, const Held& held) {
  for (const auto& [label, bytes] : held) cells_[label].push_back({column, bytes});
}

// All of a row but its columns. Those without a cell hold nothing, so in order of size they come first.
RankTable::Row RankTable::Judged(std::string label, const std::vector<Cell>& cells, size_t columns) {
  Row row;
  row.label = std::move(label);
  for (const Cell& cell : cells) {
    if (cell.bytes <= row.most) continue;
    row.most = cell.bytes;
    row.most_column = cell.column;
  }
  std::vector<Bytes> sorted;
  sorted.reserve(cells.size());
  for (const Cell& cell : cells) sorted.push_back(cell.bytes);
  const size_t without = columns - cells.size();
  if (without == 0) row.least = std::ranges::min(sorted);
  std::ranges::sort(sorted);
  const auto at = [&](size_t place) { return place < without ? Bytes(0) : sorted[place - without]; };
  const Bytes lower = at((columns - 1) / 2), upper = at(columns / 2);
  row.median = lower + Bytes((upper - lower).count() / 2);
  return row;
}

RankTable::Rows RankTable::Take(size_t columns, size_t most_rows) && {
  Rows taken;
  taken.rows.reserve(cells_.size());
  for (const auto& [label, cells] : cells_) taken.rows.push_back(Judged(label, cells, columns));
  const size_t kept = std::min(most_rows, taken.rows.size());
  std::ranges::partial_sort(taken.rows, taken.rows.begin() + static_cast<std::ptrdiff_t>(kept),
                            [](const Row& a, const Row& b) {
                              if (a.most - a.median != b.most - b.median)
                                return a.most - a.median > b.most - b.median;
                              return a.most != b.most ? a.most > b.most : a.label < b.label;
                            });
  taken.left = taken.rows.size() - kept;
  taken.rows.resize(kept);
  for (Row& row : taken.rows) {
    row.bytes.resize(columns);
    for (const Cell& cell : cells_[row.label]) row.bytes[cell.column] = cell.bytes;
  }
  return taken;
}

}  // namespace reprise::cli
