// What doctor says of the launcher that started it, and of the container that it is in.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/doctor.h"
#include "cli/job_summary.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

// Empty: none that is known.
std::string ContainerHere() {
  std::error_code error;
  for (const char* name : {"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"}) {
    if (const std::string image = EnvironmentOr(name, ""); !image.empty()) return "Apptainer, " + image;
  }
  if (fs::exists("/.dockerenv", error)) return "Docker";
  if (fs::exists("/run/.containerenv", error)) return "Podman";
  if (getenv("ENROOT_ROOTFS") != nullptr || fs::exists("/etc/enroot", error)) return "Enroot";
  return EnvironmentOr("container", "");  // systemd's convention
}

}  // namespace

void CheckLauncher(std::vector<Check>& checks) {
  const replay::Launched here = LaunchedHere();
  const std::string job =
      here.job == "0" ? "" : fmt::format(", job {}{}", here.job, here.step == "0" ? "" : "." + here.step);
  if (here.launcher.empty()) {
    checks.push_back(Fine("launcher", "none: this process is no rank" + job));
  } else {
    const std::string size = here.world_size == 0 ? "a number not said" : std::to_string(here.world_size);
    checks.push_back(Fine("launcher", fmt::format("{}: rank {} of {}, local rank {}{}", here.launcher,
                                                  here.rank, size, here.local_rank, job)));
  }
  if (const std::string container = ContainerHere(); !container.empty()) {
    checks.push_back(Note("container", container +
                                           ": preloading works where the libraries above are visible inside, "
                                           "under the same path as LD_PRELOAD names"));
  }
}

}  // namespace reprise::cli
