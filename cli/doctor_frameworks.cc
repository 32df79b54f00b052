// The part of doctor about frameworks: which there are, and what they have been told of memory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "absl/strings/str_split.h"
#include "cli/doctor.h"
#include "cli/frameworks.h"
#include "cli/subprocess.h"

namespace reprise::cli {
namespace {

// Their metadata alone: importing one takes seconds and may touch a GPU.
constexpr char kListFrameworks[] = R"(
import sys, importlib.metadata as metadata
print(sys.executable or 'python3', sys.version.split()[0])
known = ('torch', 'tensorflow', 'tensorflow-cpu', 'jax', 'cupy')
def name_of(found):
    try:
        return (found.metadata['Name'] or '').lower().replace('_', '-')
    except Exception:  # what a broken installation has left of another package
        return ''
named = [(name_of(found), found) for found in metadata.distributions()]
for name, found in sorted(named, key=lambda pair: pair[0]):
    if name in known or name.startswith('cupy-cuda'):
        print(name, found.version)
)";

void CheckPython(std::vector<Check>& checks) {
  const Captured run = RunCaptured({"python3", "-c", kListFrameworks}, {});
  if (!run.started) {
    checks.push_back(Note("python3", "not found"));
    return;
  }
  const std::vector<std::string> lines = absl::StrSplit(run.out, '\n', absl::SkipEmpty());
  if (lines.empty()) {
    checks.push_back(Note("python3", "does not run"));
    return;
  }
  checks.push_back(Fine("python3", lines[0]));
  checks.push_back(Note(
      "frameworks", lines.size() == 1 ? "none that is known in this Python"
                                      : fmt::format("{}", fmt::join(lines.begin() + 1, lines.end(), ", "))));
}

}  // namespace

void CheckFrameworks(std::vector<Check>& checks) {
  CheckPython(checks);
  for (const Choice& choice : FrameworkChoices()) {
    checks.push_back(Note(choice.framework, fmt::format("{}: {}", choice.variable, choice.meaning),
                          choice.caught ? "" : "unset it: run sets what is needed"));
  }
}

}  // namespace reprise::cli
