#include "cli/preload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_split.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

// From the program's own folder. REPRISE_LIBDIR leads to Meson's libdir, which on Debian names the
// architecture.
constexpr std::string_view kFolders[] = {".",     "../shim", "../shim/host", "../lib/reprise", REPRISE_LIBDIR,
                                         "../lib"};
constexpr char kSeparators[] = " \t\n:";

}  // namespace

absl::StatusOr<std::string> FindHostLibrary() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return absl::NotFoundError(fmt::format("cannot read /proc/self/exe: {}", error.message()));
  std::vector<std::string> tried;
  for (const std::string_view folder : kFolders) {
    const fs::path path = (self.parent_path() / folder / kHostLibrary).lexically_normal();
    if (!fs::is_regular_file(path, error)) {
      tried.push_back(path.parent_path().string());
      continue;
    }
    // $ too: the loader would expand $ORIGIN.
    if (path.string().find_first_of(std::string("$") + kSeparators) != std::string::npos) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: LD_PRELOAD cannot name a path with a blank, a colon or a dollar sign; install it elsewhere",
          path.string()));
    }
    return path.string();
  }
  return absl::NotFoundError(fmt::format("{} is in none of {}", kHostLibrary, fmt::join(tried, ", ")));
}

std::string CoreBeside(std::string_view library) {
  return (fs::path(library).parent_path() / kCoreLibrary).string();
}

std::string Preloading(const std::string& library, const std::string& present) {
  std::string value = library;
  const std::vector<std::string> others =
      absl::StrSplit(present, absl::ByAnyChar(kSeparators), absl::SkipEmpty());
  for (const std::string& other : others) {
    if (other != library) value += ":" + other;
  }
  return value;
}

}  // namespace reprise::cli
