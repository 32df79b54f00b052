"""Runs each framework's program without and with the preload libraries: output and exit status must be the same.

usage: without_and_with.py LIBRARIES FOLDER FRAMEWORK...

LIBRARIES is the folder with the one for CUDA, which has nothing to do here, and the one for the host's memory, which
serves. FOLDER holds one environment a framework. What the import costs is measured in pairs and shown, never judged.
"""

import ctypes
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GPU = "../gpu/programs/"  # jobs of gpu-check, as far as they go without one: it is seldom there to try them on
# What is asked of the package index, and the programs with their words.
FRAMEWORKS = {
    "torch": (
        ["torch", "numpy"],
        ["train_torch.py"],
        [GPU + "train.py", "varying", "--device", "cpu", *"--batch 1 --length 33 --iterations 2 --deterministic".split()],
        [GPU + "train.py", "turns", "--device", "cpu", *"--batch 1 --length 33 --iterations 4 --deterministic".split()],
        [GPU + "train.py", "at-once", "--device", "cpu", *"--batch 1 --length 33 --iterations 2 --deterministic".split()],
        [GPU + "train.py", "streamed", "--device", "cpu", *"--batch 2 --length 64 --iterations 6 --deterministic".split()],
        [GPU + "train.py", "gpt", "--device", "cpu", *"--batch 1 --length 33 --iterations 2 --accumulate 2".split()],
        [GPU + "graph.py", "--without-graph", "--iterations", "2"],
    ),
    "tensorflow": (["tensorflow"], ["train_tensorflow.py"]),
    "jax": (["jax"], ["train_jax.py"]),
    "cupy": (["cupy-cuda13x"], ["ask_cupy.py"]),
}
ROOM = 12 << 30  # PyTorch with its CUDA libraries, while it is unpacked
PATIENCE = 600  # seconds; a program that hangs under the library must not hang the tests
PAIRS = 7
# What differs between any two runs, with the reason.
NATURAL = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+"), "TIME"),  # TensorFlow's log
    (re.compile(r"\b([IWEF]0000 00:00:)\d+\.\d+ +\d+"), r"\1TIME PROCESS"),  # absl's log before it is set up
    (re.compile(r"\b([IWEF]\d{4} \d\d:\d\d:\d\d)\.\d+ +\d+"), r"\1TIME PROCESS"),  # absl's log
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "ADDRESS"),
)


class Failure(Exception):
    pass


def natural(text):
    for pattern, placeholder in NATURAL:
        text = pattern.sub(placeholder, text)
    return text


def environment(library):
    """Ours without anything that preloads or steers Reprise, and with `library` where there is one."""
    clean = {
        name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("REPRISE_")
    }
    return {**clean, "LD_PRELOAD": library} if library else clean


def run(words, library=None, **variables):
    try:
        return subprocess.run(
            words,
            env={**environment(library), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise Failure(f"{'with' if library else 'without'} the library: not over after {PATIENCE} s: {words}") from None


def differences(plain, preloaded):
    """What of two runs is not the same, a line each."""
    if plain.returncode != preloaded.returncode:
        yield f"exit status {plain.returncode} without, {preloaded.returncode} with"
    for stream in ("stdout", "stderr"):
        before, after = (natural(getattr(done, stream)).splitlines() for done in (plain, preloaded))
        if before != after:
            pairs = [(a, b) for a, b in zip(before + [None] * len(after), after + [None] * len(before)) if a != b]
            yield f"{stream}: without {pairs[0][0]!r}, with {pairs[0][1]!r}"


def timed_import(python, framework, library):
    """Seconds of a process that only imports; it also says whether the library was in it."""
    code = (
        f"import {framework}\n"
        f"mapped = {os.path.basename(library or 'no library')!r} in open('/proc/self/maps').read()\n"
        f"raise SystemExit(0 if mapped == {library is not None} else 'the library is not as it should be')"
    )
    began = time.perf_counter()
    done = run([python, "-c", code], library)
    if done.returncode != 0:
        raise Failure(f"import {'with' if library else 'without'} the library: status {done.returncode}: {done.stderr}")
    return time.perf_counter() - began


def import_ratios(python, framework, library):
    """With / without, over pairs whose order alternates."""
    ratios = []
    for pair in range(PAIRS):
        order = (None, library) if pair % 2 == 0 else (library, None)
        seconds = {which: timed_import(python, framework, which) for which in order}
        ratios.append(seconds[library] / seconds[None])
    return ratios


def works(python, framework):
    return os.path.exists(python) and run([python, "-c", f"import {framework}"]).returncode == 0


def set_up(folder, framework):
    """The Python of an environment in which the framework can be imported."""
    python = os.path.join(folder, "bin", "python")
    if works(python, framework):
        return python
    os.makedirs(folder, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < ROOM:
        raise Failure(f"{free / 2**30:.1f} GiB are free at {folder}, and installing needs {ROOM / 2**30:.0f}")
    packages = FRAMEWORKS[framework][0]
    print(f"{framework}: installing {' '.join(packages)} into {folder}", flush=True)
    for words in (
        [sys.executable, "-m", "venv", "--clear", folder],
        [python, "-m", "pip", "install", "--quiet", "--progress-bar", "off", *packages],
    ):
        if subprocess.run(words).returncode != 0:
            raise Failure(f"could not be installed: {' '.join(words)}")
    if not works(python, framework):
        raise Failure(f"is installed in {folder} and cannot be imported")
    return python


def version(python, package):
    code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    return run([python, "-c", code, package]).stdout.strip()


def to_compare_with(words):
    """The run without a library. Status 1 is Python's own for an error that nobody has caught."""
    plain = run(words)
    if not plain.stdout or plain.returncode == 1:
        raise Failure(f"status {plain.returncode}, which leaves little to compare: {words}: {plain.stderr}")
    return plain


def compare(plain, preloaded, mode):
    found = list(differences(plain, preloaded))
    if found:
        raise Failure(f"{mode}: " + "; ".join(found))


def served_from_host(words, plain, library):
    """What of the host's memory was placed by plan, in words."""
    with tempfile.TemporaryDirectory() as out:
        compare(plain, run(words, library, REPRISE_LOG="quiet", REPRISE_OUT=out), "from the host's memory")
        summary = os.path.join(out, "summary.json")
        if not os.path.exists(summary):
            return "nothing asked for"
        with open(summary) as text:
            counted = json.load(text)
        share = counted["planned_bytes_after_plan"] if counted["plans"] + counted["plans_resumed"] else 0
        return f"{counted['requests']} allocations, {share:.2%} of the bytes by plan"


def check(framework, libraries, folder):
    packages, *programs = FRAMEWORKS[framework]
    python = set_up(folder, framework)
    library = os.path.join(libraries, "libreprise.so")
    said = []
    for program, *options in programs:
        words = [python, "-B", os.path.join(HERE, program), *options]
        plain = to_compare_with(words)
        compare(plain, run(words, library), f"{program} on CUDA")
        served = served_from_host(words, plain, os.path.join(libraries, "libreprise-host.so"))
        said.append(f"{os.path.basename(program)}: output and exit status {plain.returncode} the same, host: {served}; ")
    ratios = import_ratios(python, framework, library)
    print(
        f"{framework}: {packages[0]} {version(python, packages[0])}: {''.join(said)}import with / without "
        f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}, {PAIRS} pairs)",
        flush=True,
    )


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def main(libraries, folder, *frameworks):
    unknown = [name for name in frameworks if name not in FRAMEWORKS]
    if unknown:
        sys.exit(f"frameworks: no {', '.join(unknown)} here, only {', '.join(FRAMEWORKS)}")
    if has_driver():
        print("frameworks: a CUDA driver is here; this check is about machines without one")
    failed = 0
    for framework in frameworks:
        try:
            check(framework, os.path.abspath(libraries), os.path.join(os.path.abspath(folder), framework))
        except Failure as failure:
            failed += 1
            print(f"{framework}: FAILED: {failure}", flush=True)
    print(f"{len(frameworks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
