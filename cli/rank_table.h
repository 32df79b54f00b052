// What ranks held, by label, side by side: which rank has how much more of what than the others.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/units.h"

namespace reprise::cli {

// Sparse: ranks may hold blocks of as many sizes as there are, each of its own. Memory is what was added, and
// the columns of those rows that are kept.
class RankTable {
 public:
  // What a rank held, by whatever the labels stand for.
  using Held = absl::flat_hash_map<std::string, Bytes>;

  struct Row {
    std::string label;
    std::vector<Bytes> bytes;  // by column
    Bytes least;
    Bytes median;  // of an even number of columns the mean of the two in the middle
    Bytes most;
    size_t most_column = 0;  // the first that has it
  };
  struct Rows {
    std::vector<Row> rows;  // those in which one column is furthest above the median come first
    size_t left = 0;        // not among them
  };

  // Columns count from 0; each is added once at most, in ascending order. No size is below 0.
  void Add(size_t column, const Held& held);

  // The first `most_rows` over so many columns; one that was not added held nothing.
  Rows Take(size_t columns, size_t most_rows) &&;

 private:
  struct Cell {
    size_t column;
    Bytes bytes;
  };
  static Row Judged(std::string label, const std::vector<Cell>& cells, size_t columns);

  absl::flat_hash_map<std::string, std::vector<Cell>> cells_;  // by label, in the order of the columns
};

}  // namespace reprise::cli
