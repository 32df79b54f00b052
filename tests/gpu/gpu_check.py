"""Every check and measurement that needs a GPU, in one call; see README.md here.

usage: gpu_check.py [BUNDLE] [--out DIR] [--simulated [DIR]]
"""

import argparse
import datetime
import glob
import json
import os
import shlex
import shutil
import signal
import sys
import tarfile

import comparison
import entry
import rows
import scenarios
from comparison import Comparison
from compiler import Compiler
from correctness import Correctness
from jobs import Jobs
from machine import Machine, bytecode, libraries, read_in
from rows import Deadline, Report, say
from scenarios import Scenarios

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
AROUND = 15  # seconds of what we are given, for what is around the rows
TOGETHER = 8  # checks at a time, on as many cores and as much memory; measurements run alone
EACH = 8 << 30  # bytes of the device, more than any of them takes
TOGETHER_AT_MOST = 0.45  # of the time: where checks hang, something is to be measured all the same


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


def conclude(report, all_rows=True):
    say("\none job under every allocator, one after the other")
    say("\n".join(comparison.table(report.results)))
    say("\nwhere the simulator differs")
    say("\n".join(simulator_section(report)))
    say(f"\n{report.sums()}; all figures in {report.path}")
    if not all_rows or not all(result.whole for result in report.results):
        say(f"for the rest: --rest-of {report.path}")
    return 1 if report.failed() else 0


def ended(report, jobs):
    """Told to end before the last row: what was found until now is all there will be."""
    report.close()
    say("\ngpu-check: ended early")
    conclude(report, all_rows=False)
    jobs.stop()
    os._exit(1)


class Plan:
    """Which rows are run: those that `only` names, else those that the runs before have left something of."""

    def __init__(self, only, before):
        self.only = only
        self.over = {result.name for result in before if result.whole}

    def wants(self, name):
        return any(text in name for text in self.only) if self.only else name not in self.over

    def of(self, listed):
        return [row for row in listed if self.wants(row.name)]


def together(machine, most=TOGETHER, each=EACH):
    """How many checks have room beside one another, or others."""
    room = machine.nvml.get("free", most * each) // each
    return max(1, min(most, len(os.sched_getaffinity(0)), room))


def command_line():
    """What is asked for on the command line."""
    parser = argparse.ArgumentParser(
        prog="gpu-check", description="Every check and measurement that needs a GPU, the most important first."
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
    parser.add_argument("--seconds", type=float, default=480, metavar="N", help="take no longer (480)")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="rows whose name has it; repeatable")
    parser.add_argument(
        "--rest-of", metavar="FILE", help="the results.json of a run before: keep it, and run what it has left out"
    )
    return parser.parse_args()


def rows_alone(checks, compare):
    """What has the device for itself, what matters most first."""
    return [
        *compare.first_rows(),
        *checks.recording_rows(),
        *compare.first_batch_rows(),
        checks.waits_row(),
        checks.timeline_row(),
        *checks.scenario_rows(),
        checks.demo_row(),
        *compare.other_rows(),
        *checks.on_a_small_device(),
    ]


def main():
    options = command_line()
    try:
        runs, before = rows.read(options.rest_of) if options.rest_of else ([], [])
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"gpu-check: {options.rest_of} is no results.json that can be gone on with: {error!r}")
    machine = Machine(simulated_device(options.simulated) if options.simulated else None)
    if not machine.devices and not machine.simulated:
        sys.exit("gpu-check: no NVIDIA GPU here; --simulated checks what can be checked without one")
    out = os.path.abspath(options.out)
    for folder in ("jobs", "programs", "bundle"):
        shutil.rmtree(os.path.join(out, folder), ignore_errors=True)  # of a run before
        os.makedirs(os.path.join(out, folder))
    bundle = bundle_at(options.bundle, out)

    budget = Deadline(options.seconds - AROUND)
    plan = Plan(options.only, before)
    runs.append(
        {
            "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": shlex.join(["scripts/gpu-check", *sys.argv[1:]]),
            "bundle": commit_of(bundle),
            "machine": machine.facts(),
        }
    )
    report = Report(out, runs, before, entry.write)
    extra = bytecode(os.path.join(out, "programs", "bytecode"))
    if machine.simulated:
        extra["LD_LIBRARY_PATH"] = ":".join(machine.simulated)
    jobs = Jobs(os.path.join(bundle, "bin/reprise"), out, extra)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended(report, jobs))
    compiler = Compiler(machine, ROOT, os.path.join(out, "programs"), jobs)
    room = together(machine, scenarios.TOGETHER, scenarios.EACH)
    plays = Scenarios(ROOT, os.path.join(bundle, "tests/cuda/simulated"), jobs, compiler, room)
    checks = Correctness(machine, ROOT, jobs, compiler, plays)
    compare = Comparison(jobs, compiler)
    devices = ", ".join(device["name"] for device in runs[-1]["machine"]["devices"])
    say(f"gpu-check: {devices}; Reprise {runs[-1]['bundle']['commit']}")
    alone = plan.of(rows_alone(checks, compare))
    at_once = plan.of(checks.together())
    if not machine.simulated:
        read_in(libraries([need for row in at_once + alone for need in row.needs]))
    beside = Deadline(budget.left() * (TOGETHER_AT_MOST if alone else 1))
    rows.run(at_once, together(machine), machine, beside, report)
    rows.run(alone, 1, machine, budget, report)
    return conclude(report)


if __name__ == "__main__":
    sys.exit(main())
