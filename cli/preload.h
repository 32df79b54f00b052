// Where the preload library is, and how it gets into a job.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace reprise::cli {

inline constexpr std::string_view kHostLibrary = "libreprise-host.so";
inline constexpr std::string_view kCoreLibrary = "libreprise_core.so";

// The absolute path of libreprise-host.so: beside this program, or where the build or an installation puts
// it. NotFound names the folders that were looked into; FailedPrecondition: its path has a character that
// LD_PRELOAD cannot hold.
absl::StatusOr<std::string> FindHostLibrary();

// libreprise_core.so, which the preload library looks for beside itself.
std::string CoreBeside(std::string_view library);

// LD_PRELOAD with `library` in it. It comes first, before `present` (which may be empty): of two libraries
// that define a function, the first is called.
std::string Preloading(const std::string& library, const std::string& present);

}  // namespace reprise::cli
