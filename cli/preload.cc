#include "cli/preload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/fnv1a.h"

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

// Makes the folder where it is not there. Nobody else may put anything into it, or take anything out.
bool IsOurs(const std::string& folder) {
  mkdir(folder.c_str(), 0700);  // what is there in its place is judged below
  struct stat facts {};
  return lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
         (facts.st_mode & 0077) == 0;
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

absl::StatusOr<std::string> NameToPreload(const std::string& library) {
  if (Preloadable(library)) return library;
  std::error_code error;
  const fs::path target = fs::path(library).parent_path();
  const std::string folder = (fs::temp_directory_path(error) / fmt::format("reprise-{}", geteuid())).string();
  if (error || !Preloadable(folder) || !IsOurs(folder)) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: LD_PRELOAD cannot name a path with a blank, a colon or a dollar sign, and no link to it "
        "can be made in {}, which has to be yours alone; install it elsewhere",
        library, folder));
  }
  // To its folder, not to the file: it looks for the core beside itself.
  const fs::path link = fs::path(folder) / fmt::format("{:016x}", Fnv1a(target.string()));
  fs::create_directory_symlink(target, link, error);
  if (fs::read_symlink(link, error) != target)
    return absl::FailedPreconditionError(
        fmt::format("{}: cannot be made a link to {}", link.string(), target.string()));
  return (link / fs::path(library).filename()).string();
}

// GCC's libasan.so.8, clang's libclang_rt.asan-x86_64.so: a program does not start where AddressSanitizer's
// is not the first.
bool IsSanitizer(std::string_view name) {
  const std::string file = fs::path(name).filename().string();
  constexpr std::string_view kBegins[] = {"libasan", "libhwasan", "liblsan", "libtsan", "libclang_rt."};
  return std::ranges::any_of(kBegins, [&](std::string_view begin) { return file.starts_with(begin); });
}

std::string CoreBeside(std::string_view library) {
  return (fs::path(library).parent_path() / kCoreLibrary).string();
}

std::string Preloading(const std::string& library, const std::string& present) {
  std::vector<std::string> names = absl::StrSplit(present, absl::ByAnyChar(kSeparators), absl::SkipEmpty());
  std::erase(names, library);
  const auto others = std::stable_partition(names.begin(), names.end(),
                                            [](const std::string& name) { return IsSanitizer(name); });
  names.insert(others, library);
  return absl::StrJoin(names, ":");
}

}  // namespace reprise::cli
