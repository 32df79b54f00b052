"""The include direction: cli -> replay -> {profiler, planner} -> base, and shim -> the seam alone.

usage: includes.py ROOT
"""

import re
import sys

import tree

# What the files of a folder may include: folders, or single files of one.
ALLOWED = {
    "base": ("base/",),
    "planner": ("planner/", "base/"),
    "profiler": ("profiler/", "base/"),
    "replay": ("replay/", "planner/", "profiler/", "base/"),
    "cli": ("cli/", "replay/", "planner/", "profiler/", "base/"),
    "shim": ("shim/", "replay/abi.h", "replay/cuda_calls.def"),
}
# The process that is served: what serves it, and what is simulated, knows nothing of it.
PROCESS = ("replay/core/", "replay/cuda/", "replay/stacks/")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def violations(root):
    for folder, allowed in ALLOWED.items():
        for path in tree.files(root, folder):
            if not path.endswith(tree.C_FAMILY):
                continue
            source = tree.text(root, path)
            for match in INCLUDE.finditer(source):
                quote, target = match.groups()
                # "absl/..." is a library's; a quoted name without a folder is somebody's of ours, and hides whose.
                ours = target.split("/")[0] in (*ALLOWED, "tests") or (quote == '"' and "/" not in target)
                line = source.count("\n", 0, match.start(2)) + 1
                if ours and not target.startswith(allowed):
                    yield f"{path}:{line}: {folder}/ may not include {target} (only {', '.join(allowed)})"
                if folder == "replay" and target.startswith(PROCESS) and not path.startswith(PROCESS):
                    yield f"{path}:{line}: the engine may not include {target}, of the process"


if __name__ == "__main__":
    found = list(violations(sys.argv[1]))
    sys.exit("\n".join(found) or 0)
