"""Every check and measurement that needs a GPU, in one call; see README.md here.

usage: gpu_check.py [BUNDLE] [--out DIR] [--simulated [DIR]]
"""

import argparse
import datetime
import glob
import json
import os
import shutil
import signal
import sys
import tarfile

import comparison
from comparison import Comparison
from compiler import Compiler
from correctness import Correctness
from jobs import Jobs
from machine import Machine
from rows import Deadline, Report, run
from scenarios import Scenarios

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUDGET = 8 * 60 - 15  # seconds; the rest is for what is around the rows
TOGETHER = 4  # checks at a time; measurements run alone


def bundle_at(path, out):
    """The bundle's folder: the one named, the one we are in, or the one that scripts/bundle made."""
    if path is None:
        made = sorted(glob.glob(os.path.join(ROOT, "build/bundle/reprise-*/")))
        path = ROOT if os.path.exists(os.path.join(ROOT, "bin/reprise")) else made[-1] if made else None
    elif path.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            archive.extractall(os.path.join(out, "bundle"))
        path = glob.glob(os.path.join(out, "bundle", "reprise-*/"))[0]
    if path is None or not os.access(os.path.join(path, "bin/reprise"), os.X_OK):
        sys.exit(f"gpu-check: no bundle {'here' if path is None else 'in ' + path}; scripts/bundle makes one")
    return os.path.abspath(path)


def simulated_device(folder):
    """The folders below this one that hold a libcuda.so.1 or a libcudart.so.13."""
    found = {"libcuda.so.1": None, "libcudart.so.13": None}
    for where, _, names in os.walk(folder):
        for name in set(names) & set(found):
            found[name] = os.path.abspath(where)
    missing = [name for name, where in found.items() if where is None]
    if missing:
        sys.exit(f"gpu-check: no simulated {' and '.join(missing)} below {folder}; build the project first")
    return sorted(set(found.values()))


def commit_of(bundle):
    with open(os.path.join(bundle, "MANIFEST.json"), encoding="utf-8") as text:
        manifest = json.load(text)
    return {name: manifest[name] for name in ("version", "commit", "built_on", "compiler")}


def simulator_section(report):
    """Where the scenarios of tests/cuda saw something else than on the simulated device."""
    asked = [result.figures for result in report.results if "simulator_differs" in result.figures]
    compared = sum(figures["compared_with_simulator"] for figures in asked)
    differences = [text for figures in asked for text in figures["simulator_differs"]]
    if compared == 0 and not differences:
        return ["not asked: no scenario of tests/cuda was compared"]
    return [*differences, f"in {compared} scenarios of tests/cuda compared"] if differences else [
        f"nowhere, as far as {compared} scenarios of tests/cuda can tell"
    ]


def conclude(report):
    print("\n9  one job under every allocator, measured in this run")
    print("\n".join(comparison.table(report.results)))
    print("\n   where the simulator differs")
    print("\n".join(simulator_section(report)))
    print(f"\n{report.sums()}; all figures in {report.path}", flush=True)
    return 1 if report.failed() else 0


def ended(report, jobs):
    """Told to end before the last row: what was found until now is all there will be."""
    jobs.stop()
    print("\ngpu-check: ended early")
    conclude(report)
    os._exit(1)


def main():
    parser = argparse.ArgumentParser(
        prog="gpu-check", description="Every check and measurement that needs a GPU, within 8 minutes."
    )
    parser.add_argument("bundle", nargs="?", metavar="BUNDLE", help="folder or archive that scripts/bundle made")
    parser.add_argument(
        "--out", default="gpu-check-out", metavar="DIR", help="where results.json and the jobs' files go"
    )
    parser.add_argument(
        "--simulated",
        nargs="?",
        const=os.path.join(ROOT, "build/release/tests/simcuda"),
        metavar="DIR",
        help="on the simulated device, built in DIR, what needs no GPU",
    )
    options = parser.parse_args()
    machine = Machine(simulated_device(options.simulated) if options.simulated else None)
    if not machine.devices and not machine.simulated:
        sys.exit("gpu-check: no NVIDIA GPU here; --simulated checks what can be checked without one")
    out = os.path.abspath(options.out)
    for folder in ("jobs", "programs", "bundle"):
        shutil.rmtree(os.path.join(out, folder), ignore_errors=True)  # of a run before
        os.makedirs(os.path.join(out, folder))
    bundle = bundle_at(options.bundle, out)

    budget = Deadline(BUDGET)
    started = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    report = Report(out, {"started": started, "bundle": commit_of(bundle), "machine": machine.facts()})
    extra = {"LD_LIBRARY_PATH": ":".join(machine.simulated)} if machine.simulated else {}
    jobs = Jobs(os.path.join(bundle, "bin/reprise"), out, extra)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended(report, jobs))
    compiler = Compiler(machine, ROOT, os.path.join(out, "programs"))
    scenarios = Scenarios(ROOT, os.path.join(bundle, "tests/cuda/simulated"), jobs, compiler)
    checks = Correctness(machine, ROOT, jobs, compiler, scenarios)
    print(
        f"gpu-check: {', '.join(report.facts['machine']['devices'])}; Reprise {report.facts['bundle']['commit']}",
        flush=True,
    )
    run(checks.programs(), TOGETHER, machine, budget, report)
    run(checks.frameworks(), TOGETHER, machine, budget, report)
    run(checks.alone(), 1, machine, budget, report)
    run(Comparison(jobs, compiler).rows(), 1, machine, budget, report)
    return conclude(report)


if __name__ == "__main__":
    sys.exit(main())
