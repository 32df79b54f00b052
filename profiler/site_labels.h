// Labels of sites in files that share a name, with as much of their paths as tells them apart.
#pragma once

#include <span>
#include <string>

#include "profiler/site_stats.h"

namespace reprise::profiler {

// Where functions of one name stand in several files of one name, their labels begin with the shortest ends of
// the paths that differ: "encoder/model.py:27 forward". Files count as several where one table has them all: two
// inputs may have been recorded in two checkouts. What one table needs all get, so that a site has one label.
void TellApart(std::span<SiteTable* const> tables);

// The label without its line, which an edit further up moves.
std::string LabelWithoutLine(const Site& site);

}  // namespace reprise::profiler
