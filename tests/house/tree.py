"""The project's files, for the tests of the house rules."""

import os

LIBRARIES = ("base", "planner", "profiler", "replay", "shim", "cli")
C_FAMILY = (".c", ".cc", ".h", ".S", ".def")


def files(root, top=""):
    """Paths under `root`/`top`, relative to `root`: what a build or a run has left behind is not among them."""
    for folder, folders, names in os.walk(os.path.join(root, top)):
        folders[:] = sorted(
            f
            for f in folders
            if f not in ("build", "subprojects", "__pycache__") and not f.startswith(("reprise-out", "."))
            or f == ".ci"
        )
        for name in sorted(set(names) - {".git"}):  # a file in a second worktree
            yield os.path.relpath(os.path.join(folder, name), root)


def text(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as source:
        return source.read()
