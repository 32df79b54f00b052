"""The rules of the house that a machine can see: a README in each folder, in which each source of ours stands, short
files, no addresses in scripts, no paths of one machine, nothing needed that is not set up, one format.

usage: rules.py ROOT
"""

import fnmatch
import os
import re
import shutil
import subprocess
import sys

import tree

MOST_LINES = 600
SOURCES = (*tree.C_FAMILY, ".py", ".js", ".sh")
ADDRESS = re.compile(r"https?://")
# Where somebody's checkout or home lay. Nothing in the project may depend on it.
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(?:work|home|root|Users)/")
REQUIRED = re.compile(r"\bdependency\('([^']+)'(?![^)]*required: false)")
FORMAT_VERSION = "14"  # other versions of clang-format lay some lines out differently


def is_text(path):
    return not path.endswith((".png", ".svg", ".reprise", ".zst"))


def folders_without_readme(root):
    paths = list(tree.files(root))
    for folder in sorted({os.path.dirname(path) for path in paths}):
        if folder not in ("", ".ci") and os.path.join(folder, "README.md") not in paths:
            yield f"{folder}: no README.md"


def unnamed_files(root):
    for folder in tree.LIBRARIES:
        for path in tree.files(root, folder):
            home, name = os.path.split(path)
            readme = os.path.join(home, "README.md")
            if not path.endswith(SOURCES) or not os.path.exists(os.path.join(root, readme)):
                continue
            named = [word.split(".")[0] for word in re.findall(r"`([\w.*]+)`", tree.text(root, readme))]
            if not any(fnmatch.fnmatchcase(name.split(".")[0], word) for word in named):
                yield f"{path}: not in {readme}"


def long_files(root):
    for path in tree.files(root):
        lines = tree.text(root, path).count("\n")
        if path.endswith(SOURCES) and lines > MOST_LINES:
            yield f"{path}: {lines} lines, more than {MOST_LINES}"


def matching_lines(root, pattern, paths, what):
    for path in paths:
        for number, line in enumerate(tree.text(root, path).splitlines(), 1):
            if pattern.search(line):
                yield f"{path}:{number}: {what}: {line.strip()}"


def addresses(root):
    """A package mirror is the system's to know, so nothing that builds or sets up names one."""
    paths = [
        path
        for path in tree.files(root)
        if path.startswith(("scripts/", ".ci/")) or os.path.basename(path) == "meson.build"
    ]
    return matching_lines(root, ADDRESS, paths, "an address")


def machine_paths(root):
    paths = [path for path in tree.files(root) if is_text(path) and path != "tests/house/rules_test.py"]
    return matching_lines(root, MACHINE_PATH, paths, "a path of one machine")


def not_set_up(root):
    """scripts/demo builds after `scripts/setup build demo`, so all that a build stops without is of these groups."""
    builds = [path for path in tree.files(root) if os.path.basename(path) == "meson.build"]
    setup = tree.text(root, "scripts/setup") if builds else ""
    build = setup.partition("    build)")[2].partition(";;")[0]
    for path in builds:
        for name in REQUIRED.findall(tree.text(root, path)):
            if name != "threads" and not re.search(rf"\s{re.escape(name)}\s", build):
                yield f"{path}: scripts/setup build does not install {name}"


def formatter():
    """The clang-format that counts, or None."""
    tool = shutil.which("clang-format")
    version = tool and subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    return tool if version and f"version {FORMAT_VERSION}." in version else None


def misformatted(root):
    paths = [path for path in tree.files(root) if path.endswith((".c", ".cc", ".h"))]
    tool = formatter()
    if not tool:
        print(f"format not checked: no clang-format {FORMAT_VERSION} here")
    if not tool or not paths:
        return []
    run = subprocess.run([tool, "--dry-run", "--Werror", *paths], cwd=root, capture_output=True, text=True)
    return run.stderr.splitlines()


RULES = (folders_without_readme, unnamed_files, long_files, addresses, machine_paths, not_set_up, misformatted)

if __name__ == "__main__":
    found = [violation for rule in RULES for violation in rule(sys.argv[1])]
    sys.exit("\n".join(found) or 0)
