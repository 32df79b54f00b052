// Where the preload library is, and how it gets into a job.
#pragma once

#include <string>
#include <string_view>

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

// LD_PRELOAD with `library` in it. It comes before what is `present` (which may be empty), sanitizers aside: of
// two libraries that define a function, the first is called.
std::string Preloading(const std::string& library, const std::string& present);

// A name of `library` that LD_PRELOAD can hold. It knows no way to quote, so for a path with a blank, a colon
// or a dollar sign the name leads through a link in a folder of the user's own below the temporary one. It
// stays there: what the job has started may outlive the job, and a name that was free again would be anybody's
// to take.
// FailedPrecondition: no such link can be made, and why.
absl::StatusOr<std::string> NameToPreload(const std::string& library);

}  // namespace reprise::cli
