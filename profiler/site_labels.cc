#include "profiler/site_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace reprise::profiler {
namespace {

// A label that names a place in a file, in its parts.
struct Place {
  std::string_view path;  // an end of the file's
  std::string_view line;  // ":27"
  std::string_view function;
};

std::string_view NameOf(std::string_view file) { return file.substr(file.rfind('/') + 1); }

// nullopt: the label names something else.
std::optional<Place> PlaceOf(const Site& site) {
  if (site.file.empty()) return std::nullopt;
  const std::string line = fmt::format(":{}", site.line);
  const std::string_view name = NameOf(site.file), label = site.label;
  const size_t at = label.find(fmt::format("{}{} ", name, line));
  if (at == label.npos) return std::nullopt;
  const size_t end = at + name.size();
  return Place{label.substr(0, end), label.substr(end, line.size()), label.substr(end + line.size() + 1)};
}

// What two places share if their labels may be mistaken for one another, once lines have moved.
std::string NameOfFunction(const Site& site, const Place& place) {
  return fmt::format("{} {}", NameOf(site.file), place.function);
}

// The last `depth` parts of the path.
std::string_view EndOf(std::string_view path, size_t depth) {
  size_t slash = path.size();
  for (; depth > 0; --depth) {
    if (slash == 0) return path;
    slash = path.rfind('/', slash - 1);
    if (slash == path.npos) return path;
  }
  return path.substr(slash + 1);
}

struct FromTheEnd {
  bool operator()(std::string_view a, std::string_view b) const {
    return std::ranges::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  }
};
using Files = std::set<std::string_view, FromTheEnd>;

// How many parts of their paths tell all of them apart: those that share the longest ends are neighbours.
size_t DepthOf(const Files& files) {
  size_t depth = 1;
  for (auto b = files.begin(), a = b++; b != files.end(); a = b++) {
    const auto [end_of_a, differs] = std::ranges::mismatch(a->rbegin(), a->rend(), b->rbegin(), b->rend());
    const auto shared = static_cast<size_t>(std::count(b->rbegin(), differs, '/'));
    const bool all_of_a = end_of_a == a->rend() && *differs == '/';
    depth = std::max(depth, shared + (all_of_a ? 2 : 1));
  }
  return depth;
}

}  // namespace

void TellApart(std::span<SiteTable* const> tables) {
  std::map<std::string, size_t> depths;  // by function
  for (const SiteTable* const table : tables) {
    std::map<std::string, Files> files;
    for (const Site& site : table->sites) {
      if (const auto place = PlaceOf(site)) files[NameOfFunction(site, *place)].insert(site.file);
    }
    for (const auto& [function, of] : files) depths[function] = std::max(depths[function], DepthOf(of));
  }
  for (SiteTable* const table : tables) {
    for (Site& site : table->sites) {
      const auto place = PlaceOf(site);
      if (!place) continue;
      const size_t depth = depths[NameOfFunction(site, *place)];
      site.label = fmt::format("{}{} {}", EndOf(site.file, depth), place->line, place->function);
    }
  }
}

std::string LabelWithoutLine(const Site& site) {
  const auto place = PlaceOf(site);
  return place ? fmt::format("{} {}", place->path, place->function) : site.label;
}

}  // namespace reprise::profiler
