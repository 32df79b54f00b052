// Where the preload library is, and how it gets into a job.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace reprise::cli {

inline constexpr std::string_view kHostLibrary = "libreprise-host.so";
inline constexpr std::string_view kCudaLibrary = "libreprise.so";
inline constexpr std::string_view kCoreLibrary = "libreprise_core.so";

// The absolute path of one of ours: beside this program, or where the build, an installation or a bundle puts
// it. NotFound names the folders that were looked into.
absl::StatusOr<std::string> FindLibrary(std::string_view name);

// libreprise_core.so, which the preload library looks for beside itself.
std::string CoreBeside(std::string_view library);

// LD_PRELOAD with `library` in it. It comes first, before `present` (which may be empty): of two libraries
// that define a function, the first is called.
std::string Preloading(const std::string& library, const std::string& present);

// A name of a library that LD_PRELOAD can hold. It knows no way to quote, so for a path with a blank, a colon
// or a dollar sign the name leads through a link in a temporary folder, which lives as long as this object.
class PreloadName {
 public:
  // FailedPrecondition: no such link can be made, and why.
  static absl::StatusOr<PreloadName> For(const std::string& library);

  PreloadName(PreloadName&& other) noexcept
      : name_(std::move(other.name_)), folder_(std::move(other.folder_)) {
    other.folder_.clear();
  }
  PreloadName& operator=(PreloadName&& other) = delete;
  ~PreloadName();

  const std::string& name() const { return name_; }

 private:
  PreloadName(std::string name, std::string folder) : name_(std::move(name)), folder_(std::move(folder)) {}

  std::string name_;
  std::string folder_;  // temporary, ours to remove; empty: none
};

}  // namespace reprise::cli
