"""The same job under every allocator, in one run, one after the other."""

import json
import os
import statistics
import subprocess
import sys

from correctness import LARGE, MODES, result_of
from hog import Hog
from jobs import HERE, PROGRAMS, Beside, by_plan, failed, unserved
from rows import FAIL, LEFT_OUT, MEASURED, Finding, Row

SECTION = "comparison"
FIRST_RUN, SECOND_RUN = "Reprise over cudaMallocAsync", "Reprise, second run"  # it has the plans of the first
# PyTorch's own allocators, and Reprise over the two that ask the driver for every tensor: (mode, with Reprise). In the
# order of what is asked first; what asks the driver for every tensor without Reprise nobody uses by choice.
ALLOCATORS = {
    "native": ("native", False),
    "expandable segments": ("expandable", False),
    FIRST_RUN: ("cudaMallocAsync", True),
    SECOND_RUN: ("cudaMallocAsync", True),
    "cudaMallocAsync": ("cudaMallocAsync", False),
    "Reprise over uncached": ("uncached", True),
    "uncached": ("uncached", False),
}
FIRST = 5  # of them; the others wait until all else has been measured
WARM_UP, ITERATIONS = 15, 75  # the first are not counted: the plan is found among them
PATIENCE = 15  # seconds of iterations; a slow allocator gets as far as it comes
CAP = 10 << 30  # bytes free on the device before the job begins, its context included
BATCH_MODEL, BATCH_LENGTH = "gpt", 128
# The last ones' time is that of copies beside kernels and of kernels beside kernels: who waits for memory that another stream has
# left takes longer.
TRAINED = {
    **LARGE,
    "streamed": ["--batch", "4", "--length", "1024"],
    "at-once": ["--batch", "4", "--length", "256"],
}


class Watch(Beside):
    """watch_memory.py beside a job. `seen`: what it saw."""

    def __init__(self, jobs):
        words = [sys.executable, os.path.join(HERE, "watch_memory.py")]
        super().__init__(words, jobs.environment, "the watch on the device's memory did not begin")

    def __exit__(self, *error):
        super().__exit__(*error)
        self.seen = json.loads(self.last) if self.last else {}


def unmeasured(done):
    """Why a job's figures under Reprise are not what they are called, as a finding; None: they are."""
    if done.status != 0:
        return failed(done, "under Reprise", {"reprise": done.figures})
    return None if done.figures.get("requests") else Finding(FAIL, "nothing was caught", {"reprise": done.figures})


def spread(seconds):
    """Iterations per second: median, 10th and 90th percentile."""
    rates = sorted(1 / value for value in seconds)
    return statistics.median(rates), rates[len(rates) // 10], rates[len(rates) * 9 // 10]


class Comparison:
    def __init__(self, jobs, compiler):
        self.jobs = jobs
        self.compiler = compiler
        self.plans = {}  # by model, of the first run in this call

    def job(self, name, words, deadline, variables=(), reprise=False, options=()):
        """Done, or the finding that nothing was measured."""
        if not reprise:
            return unserved(self.jobs, name, words, deadline, variables, share=1)
        done = self.jobs.run(name, words, deadline, variables, reprise=True, options=options)
        return unmeasured(done) or done

    def train(self, model, allocator):
        mode, reprise = ALLOCATORS[allocator]

        def find(deadline):
            options = []
            if allocator == SECOND_RUN:
                options = ["--plan", self.plans.get(model, "")]
                if not os.path.exists(options[-1]):
                    return Finding(LEFT_OUT, f"needs the plans of '{model}: {FIRST_RUN}', of the same call", whole=False)
            words = [
                sys.executable,
                os.path.join(PROGRAMS, "train.py"),
                model,
                *TRAINED[model],
                "--result",
                "result.json",
                "--iterations",
                str(ITERATIONS),
                "--seconds",
                str(PATIENCE),
            ]
            with Watch(self.jobs) as watch:
                done = self.job(f"{model} {allocator}", words, deadline, MODES[mode], reprise, options)
            if isinstance(done, Finding):
                return done
            if options and not done.figures.get("plans_resumed"):
                figures = {"reprise": done.figures, "err": done.err[-4000:]}
                return Finding(FAIL, "the plans were not followed", figures)
            if allocator == FIRST_RUN:
                self.plans[model] = done.left("plans.json")
            result = result_of(done)
            seconds = result["seconds"]
            counted = seconds[min(WARM_UP, len(seconds) // 2) :]
            median, low, high = spread(counted)
            used = watch.seen["peak"] - watch.seen["baseline"]
            figures = {
                "device_peak": used,
                "sampling": watch.seen,
                "torch_peak": result["peak_allocated"],
                "reserved": result["peak_reserved"],
                "iterations": len(counted),
                "per_second": {"median": median, "p10": low, "p90": high},
                "reprise": done.figures,
            }
            says = (
                f"{used / 2**30:.2f} GiB on the device, {median:.2f} it/s ({low:.2f} to {high:.2f}, n = {len(counted)})"
                f"{', ' + by_plan(done.figures) if reprise else ''}"
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
                os.path.join(PROGRAMS, "largest_batch.py"),
                BATCH_MODEL,
                str(BATCH_LENGTH),
                result,
            ]
            with Hog(hog, CAP, self.jobs) as held:
                try:
                    done = self.job(f"largest batch {allocator}", words, deadline, MODES[mode], reprise)
                except subprocess.TimeoutExpired:
                    if not os.path.exists(result):
                        raise
                    done = Finding(MEASURED, whole=False)
            over = not isinstance(done, Finding)
            if not over and (done.whole or not os.path.exists(result)):
                return done
            with open(result, encoding="utf-8") as text:
                found = json.load(text)
            at_least = "" if over else "at least "
            says = (
                f"{at_least}{found['largest']} of {len(found['tried'])} tried, {held.left / 2**30:.2f} GiB free before"
            )
            return Finding(MEASURED, says, {**found, "complete": over, "free_before": held.left}, whole=over)

        return find

    def single_allocation(self, reprise):
        def find(deadline):
            program = self.compiler.compile("time_allocation", deadline)
            if isinstance(program, Finding):
                return program
            done = self.job("single allocation", [program], deadline, reprise=reprise)
            if isinstance(done, Finding):
                return done
            figures = json.loads(done.out)
            times = ", ".join(
                f"{time['call'][4:]} from {time['smallest'] >> 10} KiB: "
                f"{time['allocate']['median']}+{time['free']['median']} ns"
                for time in figures["times_ns"]
            )
            return Finding(MEASURED, times, {**figures, "reprise": done.figures})

        return find

    def training_rows(self, model, allocators):
        gpu = ("a GPU", "PyTorch", "NVML")
        return [Row(SECTION, f"{model}: {each}", 45, gpu, self.train(model, each)) for each in allocators]

    def batch_rows(self, allocators):
        needs = ("a GPU", "PyTorch", "a compiler")
        rows = {each: Row(SECTION, f"largest batch: {each}", 45, needs, self.largest_batch(each)) for each in allocators}
        rows.pop(SECOND_RUN, None)  # each batch is another job, of which there are no plans
        return list(rows.values())

    def first_rows(self):
        allocators = list(ALLOCATORS)[:FIRST]
        single = [
            Row(SECTION, "one allocation and its free" + of, 30, ("a GPU", "a compiler"), self.single_allocation(bool(of)))
            for of in ("", ", Reprise")
        ]
        training = [row for model in TRAINED for row in self.training_rows(model, allocators)]
        return [*training, *single]

    def first_batch_rows(self):
        return self.batch_rows(list(ALLOCATORS)[:FIRST])

    def other_rows(self):
        allocators = list(ALLOCATORS)[FIRST:]
        training = [row for model in TRAINED for row in self.training_rows(model, allocators)]
        return [*training, *self.batch_rows(allocators)]


HEADER = ("device peak", "reserved", "allocated", "iterations per second", "largest batch", "run")


def cells(results, model):
    """{allocator: a cell for each of HEADER}: what was measured of it; `-`: nothing was."""
    measured = {result.name: result for result in results if result.verdict == MEASURED}
    figures = {name: result.figures for name, result in measured.items()}

    def cell(name, write):
        return write(figures[name]) if name in figures else "-"

    def gibibytes(key):
        return lambda found: "-" if found[key] is None else f"{found[key] / 2**30:.2f} GiB"

    def reserved(found):
        """By PyTorch's word, so that all rows count the same; by Reprise's where PyTorch keeps none, without its cache."""
        of_reprise = found["reserved"] is None and found["reprise"]
        return gibibytes("reserved_peak")(found["reprise"]) if of_reprise else gibibytes("reserved")(found)

    def rate(found):
        per_second = found["per_second"]
        return f"{per_second['median']:.2f} ({per_second['p10']:.2f} to {per_second['p90']:.2f})"

    def largest(found):
        return f"{'' if found['complete'] else '>= '}{found['largest']}"

    made = {}
    for allocator in ALLOCATORS:
        name, batched = f"{model}: {allocator}", model == BATCH_MODEL and allocator != SECOND_RUN
        batch = f"largest batch: {allocator}" if batched else ""
        made[allocator] = [
            *(cell(name, write) for write in (gibibytes("device_peak"), reserved, gibibytes("torch_peak"), rate)),
            cell(batch, largest) if batch else "",
            ", ".join(sorted({str(measured[each].run + 1) for each in (name, batch) if each in measured})),
        ]
    return made


def table(results):
    """The lines of one table: an allocator a line, what was measured of it in columns."""
    widths = (11, 10, 10, 24, 13, 4)
    lines = []
    for model in TRAINED:
        for first, line in ((model, HEADER), *cells(results, model).items()):
            lines.append((f"{first:<29} " + "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths))).rstrip())
    return lines
