// The part of doctor about --stacks: whether a job started here would get the call stacks that it asks for.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "cli/doctor.h"
#include "cli/preload.h"
#include "cli/subprocess.h"
#include "profiler/load.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kUnwinder[] = "libunwind.so.8";
constexpr std::string_view kFunction = "allocate_for_doctor";
// The first allocation opens the core; the line of a later one is read.
constexpr char kJob[] = R"(
import ctypes
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
def allocate_for_doctor():
    return libc.aligned_alloc(64, 1 << 20)
for _ in range(4):
    allocate_for_doctor()
)";

void CheckNative(std::vector<Check>& checks) {
  const std::string error = LoaderError(kUnwinder);
  checks.push_back(error.empty()
                       ? Fine("--stacks native", fmt::format("{} is here", kUnwinder))
                       : Note("--stacks native", error, "install libunwind, for stacks of native code"));
}

bool HasTheLine(const profiler::StackTable& stacks) {
  for (uint32_t i = 1; i <= stacks.frames(); ++i) {
    const profiler::Frame& frame = stacks.frame(profiler::FrameId(i));
    if (frame.kind == profiler::FrameKind::kPython && frame.function == kFunction) return true;
  }
  return false;
}

// A small job of the python3 at hand, recorded with stacks, with its trace in `folder`.
Check TryPython(const std::string& preload, const std::string& folder) {
  const Captured run = RunCaptured({"python3", "-c", kJob},
                                   {"LD_PRELOAD=" + preload, "REPRISE_MODE=record", "REPRISE_STACKS=python",
                                    "REPRISE_LOG=info", "REPRISE_OUT=" + folder});
  if (!run.started) return Note("--stacks python", "no python3 to try it with");
  const absl::StatusOr<profiler::Input> input = profiler::Load(folder + "/trace.reprise");
  if (input.ok() && HasTheLine(input->trace.stacks)) {
    return Fine("--stacks python", "the line of an allocation is read in this python3");
  }
  std::string why = "no line was read in this python3";
  const std::vector<std::string> lines = absl::StrSplit(run.err, '\n');
  for (const std::string& line : lines) {
    if (line.find("stacks") != line.npos) why = line.substr(line.find(": ") + 2);  // behind who speaks
  }
  return Note("--stacks python", why, "use CPython 3.9 or later, with its lock");
}

}  // namespace

void CheckStacks(std::vector<Check>& checks) {
  CheckNative(checks);
  const absl::StatusOr<std::string> library = FindLibrary(kHostLibrary);
  if (!library.ok()) return;  // that is a problem of its own, and said
  const absl::StatusOr<std::string> preload = NameToPreload(*library);
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "reprise-doctor-XXXXXX").string();
  if (!preload.ok() || error || mkdtemp(folder.data()) == nullptr) {
    checks.push_back(Note("--stacks python", "not tried: there is no temporary folder"));
    return;
  }
  checks.push_back(TryPython(*preload, folder));
  fs::remove_all(folder, error);
}

}  // namespace reprise::cli
