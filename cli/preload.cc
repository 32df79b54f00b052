#include "cli/preload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
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

// $ too: the loader would expand $ORIGIN.
bool Preloadable(const std::string& path) {
  return path.find_first_of(std::string("$") + kSeparators) == std::string::npos;
}

}  // namespace

absl::StatusOr<std::string> FindLibrary(std::string_view name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return absl::NotFoundError(fmt::format("cannot read /proc/self/exe: {}", error.message()));
  std::vector<std::string> tried;
  for (const std::string_view folder : kFolders) {
    const fs::path path = (self.parent_path() / folder / name).lexically_normal();
    if (fs::is_regular_file(path, error)) return path.string();
    tried.push_back(path.parent_path().string());
  }
  return absl::NotFoundError(fmt::format("{} is in none of {}", name, fmt::join(tried, ", ")));
}

absl::StatusOr<PreloadName> PreloadName::For(const std::string& library) {
  if (Preloadable(library)) return PreloadName(library, "");
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "reprise-XXXXXX").string();
  if (error || !Preloadable(folder) || mkdtemp(folder.data()) == nullptr) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: LD_PRELOAD cannot name a path with a blank, a colon or a dollar sign, and no link to it "
        "can be made in {}; install it elsewhere",
        library, folder));
  }
  // To its folder, not to the file: it looks for the core beside itself.
  const fs::path link = fs::path(folder) / "lib";
  PreloadName named((link / fs::path(library).filename()).string(), folder);
  fs::create_directory_symlink(fs::path(library).parent_path(), link, error);
  if (error) return absl::FailedPreconditionError(fmt::format("{}: {}", link.string(), error.message()));
  return named;
}

PreloadName::~PreloadName() {
  if (folder_.empty()) return;
  std::error_code error;
  fs::remove(fs::path(folder_) / "lib", error);
  fs::remove(folder_, error);
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
