"""Section 9: the same job under every allocator, in one run, one after the other."""

import json
import os
import statistics
import subprocess
import sys

from correctness import MODES
from hog import Hog
from jobs import HERE, PROGRAMS
from rows import FAIL, MEASURED, Finding, Row

SECTION = "9"
# PyTorch's own allocators, and Reprise over the two that ask the driver for every tensor: (mode, with Reprise).
ALLOCATORS = {
    "native": ("native", False),
    "expandable segments": ("expandable", False),
    "cudaMallocAsync": ("cudaMallocAsync", False),
    "Reprise over cudaMallocAsync": ("cudaMallocAsync", True),
    "uncached": ("uncached", False),
    "Reprise over uncached": ("uncached", True),
}
SHAPES = {"gpt": ["--batch", "8", "--length", "512"], "resnet": ["--batch", "64"]}
WARM_UP, ITERATIONS = 15, 75  # the first are not counted: the plan is found among them
PATIENCE = 25  # seconds of iterations; a slow allocator gets as far as it comes
CAP = 10 << 30  # bytes free on the device before the job begins, its context included
BATCH_MODEL, BATCH_LENGTH = "gpt", 128


class Watch:
    """watch_memory.py beside a job."""

    def __enter__(self):
        words = [sys.executable, "-B", os.path.join(HERE, "watch_memory.py")]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the watch on the device's memory did not begin")
        self.seen = {}
        return self

    def __exit__(self, *_):
        last, _ = self.process.communicate()
        self.seen = json.loads(last) if last else {}


def read(path):
    with open(path, encoding="utf-8") as text:
        return json.load(text)


def unmeasured(done, reprise):
    """Why a job's figures are not what they are called; None: they are."""
    if done.status != 0:
        return done.last_error()
    return "nothing was caught" if reprise and not done.figures.get("requests") else None


def spread(seconds):
    """Iterations per second: median, 10th and 90th percentile."""
    rates = sorted(1 / value for value in seconds)
    return statistics.median(rates), rates[len(rates) // 10], rates[len(rates) * 9 // 10]


class Comparison:
    def __init__(self, jobs, compiler):
        self.jobs = jobs
        self.compiler = compiler

    def train(self, model, allocator):
        mode, reprise = ALLOCATORS[allocator]

        def find(deadline):
            words = [
                sys.executable,
                "-B",
                os.path.join(PROGRAMS, "train.py"),
                model,
                *SHAPES[model],
                "--result",
                "result.json",
                "--iterations",
                str(ITERATIONS),
                "--seconds",
                str(PATIENCE),
            ]
            with Watch() as watch:
                done = self.jobs.run(f"{model} {allocator}", words, deadline, MODES[mode], reprise)
            if why := unmeasured(done, reprise):
                return Finding(FAIL, why, {"reprise": done.figures})
            result = read(os.path.join(done.folder, "result.json"))
            counted = result["seconds"][WARM_UP:] or result["seconds"]
            median, low, high = spread(counted)
            used = watch.seen["peak"] - watch.seen["baseline"]
            figures = {
                "device_peak": used,
                "sampling": watch.seen,
                "torch_peak": result["peak_allocated"],
                "iterations": len(counted),
                "per_second": {"median": median, "p10": low, "p90": high},
                "reprise": done.figures,
            }
            says = (
                f"{used / 2**30:.2f} GiB on the device, {median:.2f} it/s ({low:.2f} to {high:.2f}, n = {len(counted)})"
            )
            return Finding(MEASURED, says, figures)

        return find

    def largest_batch(self, allocator):
        mode, reprise = ALLOCATORS[allocator]

        def find(deadline):
            hog = self.compiler.compile("hog", deadline)
            if isinstance(hog, Finding):
                return hog
            result = os.path.join(self.jobs.out, "jobs", f"largest-{allocator.replace(' ', '-')}.json")
            words = [
                sys.executable,
                "-B",
                os.path.join(PROGRAMS, "largest_batch.py"),
                BATCH_MODEL,
                str(BATCH_LENGTH),
                result,
            ]
            over = True
            with Hog(hog, CAP) as held:
                try:
                    done = self.jobs.run(f"largest batch {allocator}", words, deadline, MODES[mode], reprise)
                except subprocess.TimeoutExpired:
                    over = False
                    if not os.path.exists(result):
                        raise
            if over and (why := unmeasured(done, reprise)):
                return Finding(FAIL, why)
            found = read(result)
            at_least = "" if over else "at least "
            says = (
                f"{at_least}{found['largest']} of {len(found['tried'])} tried, {held.left / 2**30:.2f} GiB free before"
            )
            return Finding(MEASURED, says, {**found, "complete": over, "free_before": held.left})

        return find

    def single_allocation(self, reprise):
        def find(deadline):
            program = self.compiler.compile("time_allocation", deadline)
            if isinstance(program, Finding):
                return program
            done = self.jobs.run("single allocation", [program], deadline, reprise=reprise)
            if why := unmeasured(done, reprise):
                return Finding(FAIL, why)
            figures = json.loads(done.out)
            times = ", ".join(
                f"{time['call'][4:]} from {time['smallest'] >> 10} KiB: "
                f"{time['allocate']['median']}+{time['free']['median']} ns"
                for time in figures["times_ns"]
            )
            return Finding(MEASURED, times, {**figures, "reprise": done.figures})

        return find

    def rows(self):
        gpu = ("a GPU", "PyTorch", "NVML")
        rows = []
        for reprise in (False, True):
            name = f"one allocation and its free{', Reprise' if reprise else ''}"
            rows.append(Row(SECTION, name, 30, ("a GPU", "a compiler"), self.single_allocation(reprise)))

        def train(model):
            for allocator in ALLOCATORS:
                rows.append(Row(SECTION, f"{model}: {allocator}", 60, gpu, self.train(model, allocator)))

        train("gpt")
        for allocator in ALLOCATORS:
            name = f"largest batch: {allocator}"
            rows.append(Row(SECTION, name, 45, ("a GPU", "PyTorch", "a compiler"), self.largest_batch(allocator)))
        train("resnet")
        return rows


def table(results):
    """The lines of one table: an allocator a line, what was measured of it in columns."""
    figures = {
        result.name: result.figures for result in results if result.section == SECTION and result.verdict == MEASURED
    }

    def cell(name, write):
        return write(figures[name]) if name in figures else "-"

    def gibibytes(key):
        return lambda found: "-" if found[key] is None else f"{found[key] / 2**30:.2f} GiB"

    def rate(found):
        per_second = found["per_second"]
        return f"{per_second['median']:.2f} ({per_second['p10']:.2f} to {per_second['p90']:.2f})"

    def largest(found):
        return f"{'' if found['complete'] else '>= '}{found['largest']}"

    lines = []
    for model in SHAPES:
        lines.append(
            f"{model:<29} {'device peak':>12} {'torch peak':>12}  {'iterations per second':<24} {'largest batch':>13}"
        )
        for allocator in ALLOCATORS:
            name = f"{model}: {allocator}"
            batch = cell(f"largest batch: {allocator}", largest) if model == BATCH_MODEL else ""
            cells = [cell(name, write) for write in (gibibytes("device_peak"), gibibytes("torch_peak"), rate)]
            lines.append(f"{allocator:<29} {cells[0]:>12} {cells[1]:>12}  {cells[2]:<24} {batch:>13}")
    return lines
