"""Lays out the bundle from a build and packs it; prints the path of the archive.

usage: pack.py BUILD FOLDER

The same commit packs to the same bytes: names are sorted, times are the commit's, owners are nobody.
"""

import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMAND = "cli/reprise"
PRELOADED = ("shim/libreprise.so", "shim/libreprise-host.so")
CORE = "shim/libreprise_core.so"
# glibc is the one thing that a bundle cannot bring: it is one with the loader and the kernel.
GLIBC = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libpthread|libdl|librt)\.so")
CXX_RUNTIME = re.compile(r"^(libstdc\+\+|libgcc_s)\.so")
BUILT_IN = {  # and the packages they are from
    "CLI11": "libcli11-dev",
    "nlohmann-json": "nlohmann-json3-dev",
    "protozero": "libprotozero-dev",
    "zstd": "libzstd-dev",
}
OPENED = "libunwind.so.8"  # by the core, where call stacks are wanted
EXTRAS = (
    "LICENSE",
    "docs/cluster-administrators.md",
    "docs/cluster-users.md",
    "docs/cuda.md",
    "docs/limits.md",
    "scripts/demo.d",
    "scripts/gpu-check",
    "scripts/slurm/task-prolog.sh",
    "tests/gpu",
    "tests/cuda",
    "tests/frameworks/train_jax.py",
    "tests/simcuda/include",
)
# What plays the scenarios of tests/cuda/, and the simulated device it plays them on.
SCENARIOS, SIMULATED = "tests/cuda/scenarios", "tests/simcuda"


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def output_or(otherwise, *words):
    try:
        return output(*words).strip()
    except (OSError, subprocess.CalledProcessError):
        return otherwise


def needed(binary):
    """What the loader takes for it beyond glibc: {soname: path}."""
    found = {}
    for line in output("ldd", binary).splitlines():
        name, _, path = line.strip().partition(" => ")
        if GLIBC.match(os.path.basename(name.split(" ")[0])):
            continue
        if not path.startswith("/"):
            sys.exit(f"bundle: {binary} needs {name}, which is not here")
        found[name] = path.split(" (")[0]
    return found


def opened(name):
    """A library that ours open by name, and what it needs: {soname: path}."""
    path = re.search(rf"^\s*{re.escape(name)} .*=> (/.*)$", output("/sbin/ldconfig", "-p"), re.M)
    if not path:
        sys.exit(f"bundle: {name} is not here")
    return {name: path[1], **needed(path[1])}


def version_needed(paths, tag):
    """The highest version under this tag (b"GLIBC") that any of the files names."""
    found = set()
    for path in paths:
        with open(path, "rb") as binary:
            found.update(re.findall(rb"\0" + tag + rb"_(\d+(?:\.\d+)+)(?=\0)", binary.read()))
    return max(found, key=lambda version: [int(part) for part in version.split(b".")]).decode()


def copy(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(source):
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "meson.build"))
    else:
        shutil.copy(os.path.realpath(source), target)


def search_in(binary, *folders):
    """DT_RPATH, which the libraries that it brings in inherit: they stay as the system has them."""
    path = ":".join(f"$ORIGIN/{folder}" for folder in folders)
    subprocess.run(["patchelf", "--force-rpath", "--set-rpath", path, binary], check=True)


def name_here(name):
    """Under which a library that the core brings into a job is loaded. Of one that is there already the loader looks at the
    name alone: under its own, ours would be the job's from then on, or the job's ours."""
    return name.replace(".so", "-reprise.so", 1)


def rename(names, binaries):
    """All of them name and need these libraries as they are called here."""
    words = [word for pair in names.items() for word in ("--replace-needed", *pair)]
    for binary in binaries:
        subprocess.run(["patchelf", *words, binary], check=True)
        if os.path.basename(binary) in names.values():  # apart: patchelf 0.14 mixes up the two
            subprocess.run(["patchelf", "--set-soname", os.path.basename(binary), binary], check=True)


def packages_of(libraries):
    """{name: "package version"} of the system's packages that the libraries are from, where there is one to ask."""
    # Where /lib is /usr/lib, the loader and the package manager may disagree on a file's name.
    names = {alias: name for name, path in libraries.items() for alias in (path, os.path.realpath(path), "/usr" + path)}
    owners = {}
    if shutil.which("dpkg"):
        asked = subprocess.run(["dpkg", "-S", *names], capture_output=True, text=True)  # status 1: one was unknown
        for line in asked.stdout.splitlines():
            owner, _, path = line.partition(": ")
            if path in names:
                owners[names[path]] = owner.split(":")[0]
    owners.update(BUILT_IN)
    versions = {owner: output_or("", "dpkg-query", "-W", "-f", "${Version}", owner) for owner in set(owners.values())}
    return {name: f"{owner} {versions[owner]}" for name, owner in owners.items() if versions[owner]}


def lay_out(build, bundle):
    """Fills the folder; the sources of the libraries in it, by their names."""
    copy(os.path.join(build, COMMAND), os.path.join(bundle, "bin/reprise"))
    for library in (*PRELOADED, CORE):
        copy(os.path.join(build, library), os.path.join(bundle, "lib", os.path.basename(library)))
    of_core = needed(os.path.join(build, CORE))
    libraries = {**needed(os.path.join(build, COMMAND)), **of_core, **opened(OPENED)}
    renamed = {name: name_here(name) for name in of_core if not CXX_RUNTIME.match(name)}
    binaries = [os.path.join(bundle, path) for path in ("bin/reprise", os.path.join("lib", os.path.basename(CORE)))]
    search_in(binaries[0], "../lib/reprise", "../lib/reprise/cxx")
    search_in(binaries[1], "reprise")
    for name, path in libraries.items():
        target = os.path.join(bundle, "lib/reprise", "cxx" if CXX_RUNTIME.match(name) else "", renamed.get(name, name))
        copy(path, target)
        binaries.append(target)
    rename(renamed, binaries)
    copy(os.path.join(ROOT, "scripts/bundle.d/README.bundle.md"), os.path.join(bundle, "README.md"))
    for extra in EXTRAS:
        if os.path.exists(os.path.join(ROOT, extra)):
            copy(os.path.join(ROOT, extra), os.path.join(bundle, extra))
    return libraries


def record_simulated(build, bundle):
    """What the scenarios of tests/cuda/ print on the simulated device, to be compared with a real one."""
    program = os.path.join(build, SCENARIOS)
    if not os.path.isfile(program):
        return
    variables = {"LD_LIBRARY_PATH": os.path.join(build, SIMULATED), "SIMCUDA_QUIET": "1", "PATH": os.environ["PATH"]}
    for name in subprocess.run([program], env=variables, check=True, capture_output=True, text=True).stdout.split():
        played = subprocess.run([program, name], env=variables, capture_output=True, text=True)
        target = os.path.join(bundle, "tests/cuda/simulated", name + ".txt")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as out:
            out.write(played.stdout)


def add_licenses(bundle, packages):
    for package in sorted(packages):
        text = f"/usr/share/doc/{package}/copyright"
        if os.path.exists(text):
            copy(text, os.path.join(bundle, "licenses", package))


def files_below(folder):
    return sorted(
        os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names
    )


def digest(path):
    with open(path, "rb") as content:
        return hashlib.sha256(content.read()).hexdigest()


def manifest(bundle, version, libraries, packages):
    inside = files_below(bundle)
    binaries = [os.path.join(bundle, path) for path in inside if path.startswith(("bin/", "lib/"))]
    return {
        "version": version,
        "commit": output_or("unknown", "git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=40"),
        "machine": platform.machine(),
        "built_on": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        "compiler": output_or("unknown", "c++", "--version").splitlines()[0],
        "glibc_needed": version_needed(binaries, b"GLIBC"),
        "libraries": {name: packages.get(name, "of no package") for name in sorted({*libraries, *BUILT_IN})},
        "files": {path: digest(os.path.join(bundle, path)) for path in inside},
    }


def archive(bundle, target):
    epoch = int(output_or("0", "git", "-C", ROOT, "log", "-1", "--format=%ct"))

    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = epoch
        return entry

    with open(target, "wb") as raw, gzip.GzipFile("", "wb", mtime=epoch, fileobj=raw) as packed:
        with tarfile.open(fileobj=packed, mode="w") as tar:
            top = os.path.basename(bundle)
            for path in files_below(bundle):
                tar.add(os.path.join(bundle, path), os.path.join(top, path), filter=plain)


def main(build, folder):
    version = output(os.path.join(build, COMMAND), "--version").split()[-1]
    bundle = os.path.join(folder, f"reprise-{version}-linux-{platform.machine()}")
    shutil.rmtree(bundle, ignore_errors=True)
    libraries = lay_out(build, bundle)
    packages = packages_of(libraries)
    record_simulated(build, bundle)
    add_licenses(bundle, {package.split()[0] for package in packages.values()})
    content = json.dumps(manifest(bundle, version, libraries, packages), indent=2) + "\n"
    with open(os.path.join(bundle, "MANIFEST.json"), "w", encoding="utf-8") as out:
        out.write(content)
    archive(bundle, bundle + ".tar.gz")
    print(bundle + ".tar.gz")


if __name__ == "__main__":
    main(*sys.argv[1:])
