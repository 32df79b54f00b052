"""Under Reprise every job computes the same, its calls are caught, and nothing is corrupted."""

import collections
import json
import os
import re
import shutil
import statistics
import sys
import threading

from hog import Hog
from jobs import HERE, NOTHING_CAUGHT, PROGRAMS, compared, failed, first_difference, unserved
from rows import FAIL, MEASURED, PASS, Finding, Row

SECTION = "correctness"
DEMO = os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts/demo.d/compare.py")
MODES = {
    "cudaMallocAsync": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "uncached": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    "native": {"PYTORCH_CUDA_ALLOC_CONF": "backend:native"},
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
}
CUBLAS = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
PLANNED = ("cudaMallocAsync", "uncached")  # ask for every tensor, so that there is something to plan
SHAPES = {
    "resnet": ["--batch", "16", "--iterations", "48"],
    "gpt": ["--batch", "4", "--length", "256", "--iterations", "48"],
    "varying": ["--batch", "4", "--length", "256", "--iterations", "200"],
    "turns": ["--batch", "4", "--length", "256", "--iterations", "96"],
    "at-once": ["--batch", "4", "--length", "256", "--iterations", "48"],
    "streamed": ["--batch", "4", "--length", "1024", "--iterations", "48"],
}
ACCUMULATED = ["--accumulate", "4"]
LARGE = {"gpt": ["--batch", "8", "--length", "512"], "resnet": ["--batch", "64"]}  # of the comparison
ALIKE = (*LARGE, "at-once", "streamed")  # whose iterations are
RECORDED = 24  # iterations of these: each is like the one before

BY_PLAN = 0.5  # of the bytes after the first plan, the least that a training of one shape must get from it
WORKLOAD = ["tests/cuda/workload.cc"]
JOBS, ITERATIONS = "6", "12"  # random ones; a driver takes milliseconds for each of their synchronous blocks
SMALL = 6 << 30  # bytes; to fill a whole device in pieces of 2 MiB, as the arena does, takes longer than there is
CONTEXT = 1 << 30  # bytes, more than a job's context and what lies beside PyTorch's allocator


def complaint(done):
    """What compute-sanitizer says first, on stdout; the program's last error where it says nothing."""
    said = re.search(r"^=========\s+(?!COMPUTE-SANITIZER)(.+)", done.out, re.M)
    return said[1][:200] if said else done.last_error()


def result_of(done):
    """What train.py has written beside its output."""
    with open(os.path.join(done.folder, "result.json"), encoding="utf-8") as text:
        return json.load(text)


def by_plan_for_the_most_part(find):
    """As `find`, but a job whose iterations are all alike does not pass where it has no plan, or one of little use: then
    next to nothing was tried."""

    def with_verdict(deadline):
        finding = find(deadline)
        if finding.verdict == PASS and finding.figures["with"].get("planned_bytes_after_plan", 0) < BY_PLAN:
            return Finding(FAIL, f"too little by plan: {finding.says}", finding.figures)
        return finding

    return with_verdict


class Correctness:
    def __init__(self, machine, root, jobs, compiler, scenarios):
        self.machine = machine
        self.root = root
        self.jobs = jobs
        self.compiler = compiler
        self.scenarios = scenarios
        self.done = {}  # PyTorch's jobs that more than one row looks at, by their names
        self.locks = collections.defaultdict(threading.Lock)  # for the rows that want the same one

    def runtime(self, how):
        def find(deadline):
            program = self.compiler.compile("allocations", deadline, how)
            if isinstance(program, Finding):
                return program
            return compared(self.jobs, f"libcudart {how}", [program], deadline)

        return find

    def memcheck(self, deadline):
        """What kernels touch, on few of the random jobs. Errors of memory alone: to the tool a call of the driver that
        answers `not ready`, as ours may, is an error too, and the program counts what its own calls answer."""
        program = self.compiler.compile_cuda("workload", WORKLOAD, deadline)
        if isinstance(program, Finding):
            return program
        options = ["--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "9"]
        words = [self.machine.sanitizer, *options, program, "1", "3", "8"]
        plain = unserved(self.jobs, "memcheck", words, deadline, why=complaint)
        if isinstance(plain, Finding):
            return plain
        served = self.jobs.run("memcheck", words, deadline, reprise=True)
        if served.status != 0:
            figures = {"with": served.figures, "out": served.out[-4000:]}
            return failed(served, "under Reprise", figures, complaint(served))
        if not served.figures.get("requests"):
            return Finding(FAIL, NOTHING_CAUGHT)
        return Finding(PASS, "clean", {"with": served.figures})

    def once(self, key, run):
        """As `run`, which is not asked again once it has given a job."""

        def asked(deadline):
            with self.locks[key]:
                if key in self.done:
                    return self.done[key]
                done = run(deadline)
                if not isinstance(done, Finding):
                    self.done[key] = done
                return done

        return asked

    def reference(self, name, words, variables=()):
        """A job of PyTorch without Reprise. It is run once for all modes, on PyTorch's own cache: that is quick, and
        deterministic kernels do not know who gave them their memory."""
        native = {**MODES["native"], **dict(variables)}
        return self.once(
            f"{name} without", lambda deadline: unserved(self.jobs, f"{name} native", words, deadline, native)
        )

    def served(self, name, words, mode, variables=()):
        """The same under Reprise."""
        with_mode, called = {**MODES[mode], **dict(variables)}, f"{name} {mode}"
        return self.once(called, lambda deadline: self.jobs.run(called, words, deadline, with_mode, reprise=True))

    def pytorch(self, name, words, mode, variables=()):
        return lambda deadline: compared(
            self.jobs,
            f"{name} {mode}",
            words,
            deadline,
            {**MODES[mode], **dict(variables)},
            reference=self.reference(name, words, variables),
            serve=self.served(name, words, mode, variables),
        )

    def second_run(self, name, words, mode):
        """The same once more, with the plans that it has left."""

        def find(deadline):
            plain = self.reference(name, words)(deadline)
            if isinstance(plain, Finding):
                return plain
            first = self.served(name, words, mode)(deadline)
            plans = first.left("plans.json")
            before = {"first": {"seconds": first.seconds, **first.figures}}
            if first.status != 0:
                return failed(first, "in the first run", before)
            if not os.path.exists(plans):
                return Finding(FAIL, "the first run has left no plans", before)
            called = f"{name} {mode} second run"
            variables, options = MODES[mode], ["--plan", plans]
            second = self.jobs.run(called, words, deadline, variables, reprise=True, options=options)
            finding = compared(
                self.jobs, called, words, deadline, variables, reference=lambda _: plain, serve=lambda _: second
            )
            finding.figures.update(before)
            resumed = second.figures.get("plans_resumed", 0)
            if finding.verdict == PASS and resumed < 1:
                return Finding(FAIL, "the plans were not followed", {**finding.figures, "err": second.err[-4000:]})
            if finding.verdict == PASS:
                finding.says += f"; plans resumed {resumed}"
            return finding

        return find

    @staticmethod
    def train_words(model, more=()):
        words = [sys.executable, os.path.join(PROGRAMS, "train.py"), model, *SHAPES[model], "--deterministic"]
        return [*words, *more]

    def train(self, model, mode, more=()):
        find = self.pytorch(" ".join([model, *more]), self.train_words(model, more), mode)
        return by_plan_for_the_most_part(find) if mode in PLANNED and model in ALIKE else find

    def recording(self, model, words):
        """All that a training asks for, in recordings/, for whoever wants to try plans on it."""

        def find(deadline):
            variables = MODES["cudaMallocAsync"]
            done = self.jobs.run(f"recording {model}", words, deadline, variables, reprise=True, mode="record")
            figures = {"with": done.figures}
            if done.status != 0:
                return failed(done, "while it is recorded", figures)
            if not done.figures.get("requests"):
                return Finding(FAIL, NOTHING_CAUGHT, figures)
            kept = os.path.join("recordings", f"{model}.reprise")
            path = os.path.join(self.jobs.out, kept)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copyfile(done.left("trace.reprise"), path)
            says = f"{done.figures['requests']:,} requests, {os.path.getsize(path) / 1024:.1f} KiB in {kept}"
            return Finding(MEASURED, says, figures)

        return find

    def timeline(self, deadline):
        """A training whose kernels are recorded: its output the same, kernels in the trace, and what it costs."""
        words = [*self.train_words("gpt"), "--result", "result.json"]
        variables = MODES["cudaMallocAsync"]
        plain = unserved(self.jobs, "time line", words, deadline, variables)
        if isinstance(plain, Finding):
            return plain
        without = self.jobs.run("time line off", words, deadline, variables, reprise=True, mode="record")
        done = self.jobs.run(
            "time line", words, deadline, variables, reprise=True, mode="record", options=["--timeline"]
        )
        if without.status != 0:
            return failed(without, "without --timeline", {})
        figures = {"with": done.figures}
        if done.status != 0:
            return failed(done, "with --timeline", figures)
        times = [statistics.median(result_of(each)["seconds"]) for each in (plain, without, done)]
        figures["iteration"] = dict(zip(("plain", "recorded", "with_timeline"), times))
        if done.out != plain.out:
            return Finding(FAIL, f"DIFFERS: {first_difference(plain.out, done.out)}", figures)
        none = [text for text in done.err.splitlines() if "no time line" in text]
        if none:
            return Finding(FAIL, none[0], figures)
        words = [self.jobs.reprise, "stats", "--json", done.left("trace.reprise")]
        stats = self.jobs.run("time line stats", words, deadline)
        device = json.loads(stats.out).get("device_activity", {"totals": [], "by_name": []})
        figures["device_activity"] = {"totals": device["totals"], "by_name": device["by_name"][:10]}
        kernels = sum(total["count"] for total in device["totals"] if total["kind"] == "kernel")
        says = f"{kernels:,} kernels of {len(device['by_name'])} names, an iteration takes {times[2] / times[1]:.3f} times"
        return Finding(PASS if kernels > 0 else FAIL, says, figures)

    def waits(self, deadline):
        """What the driver itself waits for, and what it answers where its headers leave it open."""
        program = self.compiler.compile_cuda("waiting_calls", ["tests/gpu/programs/waiting_calls.cu"], deadline)
        if isinstance(program, Finding):
            return program
        done = self.jobs.run("waiting calls", [program], deadline)
        if done.status != 0:
            return failed(done, "", {})
        figures = json.loads(done.out)
        beside = {name.removeprefix("beside "): calls for name, calls in figures.items() if name.startswith("beside ")}
        waiting = (f"{sum(call['waits'] for call in calls)} of {len(calls)} beside {name}" for name, calls in beside.items())
        return Finding(MEASURED, ", ".join(waiting), figures)

    def demo(self, deadline):
        """`scripts/demo --quick` without its setup, which compares the losses itself."""
        done = self.jobs.run("demo", [sys.executable, "-B", DEMO, self.jobs.reprise, "1", "demo"], deadline)
        figures = {"out": done.out[-6000:], "err": done.err[-4000:]}
        if done.status != 0:
            return failed(done, "", figures, "; ".join(done.out.splitlines()[-1:]))
        if "in host mode" in done.err:
            return Finding(FAIL, "it took the host for the GPU", figures)
        same = re.findall(r"^  losses identical +(.+)", done.out, re.M)
        return Finding(PASS if same else FAIL, f"losses identical: {', '.join(same) or 'not said'}", figures)

    def oversubscribed(self, deadline):
        """A training on a device too small for it: out of memory, but the same losses with --oversubscribe."""
        hog = self.compiler.compile("hog", deadline)
        if isinstance(hog, Finding):
            return hog
        words = [sys.executable, os.path.join(PROGRAMS, "train.py"), "gpt", *LARGE["gpt"]]
        words += ["--deterministic", "--iterations", "6", "--result", "result.json"]
        variables = MODES["cudaMallocAsync"]
        plain = unserved(self.jobs, "oversubscribed", words, deadline, variables)
        if isinstance(plain, Finding):
            return plain
        peak = result_of(plain)["peak_allocated"]
        with Hog(hog, CONTEXT + int(0.7 * peak), self.jobs) as held:
            refused = self.jobs.run("oversubscribed not", words, deadline, variables, reprise=True)
            done = self.jobs.run(
                "oversubscribed", words, deadline, variables, reprise=True, options=["--oversubscribe"]
            )
        figures = {"free_before": held.left, "torch_peak": peak, "with": done.figures, "seconds": done.seconds}
        if done.status != 0:
            return failed(done, "with --oversubscribe", figures)
        if done.out != plain.out:
            return Finding(FAIL, f"DIFFERS: {first_difference(plain.out, done.out)}", figures)
        in_host = done.figures.get("in_host_peak", 0)
        if in_host == 0 or refused.status == 0:
            return Finding(FAIL, f"nothing was out of memory with {held.left} bytes free and {peak} needed", figures)
        longer = done.seconds / plain.seconds
        return Finding(PASS, f"identical; {in_host / 2**30:.2f} GiB on the host, {longer:.1f} times as long", figures)

    def scenarios_alone(self, warm):
        def find(deadline):
            hog = self.compiler.compile("hog", deadline)
            if isinstance(hog, Finding):
                return hog
            with Hog(hog, SMALL, self.jobs):
                return self.scenarios.find(alone=True, warm=warm)(deadline)

        return find

    def graph(self, mode):
        return self.pytorch("graph", [sys.executable, os.path.join(PROGRAMS, "graph.py")], mode, CUBLAS)

    def prefetch(self, mode):
        return self.pytorch("prefetch", [sys.executable, os.path.join(PROGRAMS, "prefetch.py")], mode, CUBLAS)

    def jax(self, deadline):
        words = [sys.executable, os.path.join(self.root, "tests/frameworks/train_jax.py")]
        variables = {
            "XLA_FLAGS": "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        return compared(self.jobs, "jax", words, deadline, variables)

    def cupy(self, deadline):
        return compared(self.jobs, "cupy", [sys.executable, os.path.join(PROGRAMS, "use_cupy.py")], deadline)

    def workload(self, deadline):
        """Random jobs of many streams, which verify every block before they free it."""
        program = self.compiler.compile_cuda("workload", WORKLOAD, deadline)
        if isinstance(program, Finding):
            return program
        resident = re.compile(r'"resident_mib": [0-9.]+')
        finding = compared(self.jobs, "workload", [program, "1", JOBS, ITERATIONS], deadline, own=resident)
        if finding.verdict == PASS and '"corrupted_bytes": 0,' not in finding.figures["out"]:
            return Finding(FAIL, f"memory was used too early, and without Reprise too: {finding.figures['out']}")
        return finding

    def together(self):
        """What may run beside others, as it is not timed. What matters most comes first, and of that what takes long."""
        # The runtime's two forms are what the simulated device can do as well.
        runtime = ("a compiler",) if self.machine.simulated else ("a GPU", "a compiler")
        cuda, torch = ("a GPU", "a compiler"), ("a GPU", "PyTorch")

        def pytorch(mode, name, limit, find):
            return Row(SECTION, f"PyTorch {mode}: {name}", limit, torch, find)

        def train(mode):
            return [
                pytorch(mode, model + said, 120, self.train(model, mode, more))
                for model in LARGE
                for said, more in (("", []), (" with AMP", ["--amp"]))
            ]

        default = "cudaMallocAsync"  # what `reprise run` gives to PyTorch
        varying = "GPT on random lengths, evaluations, 200 steps"
        turns, accumulated = "ResNet-50 and GPT by turns at will, 96 steps", "resnet, gradients of 4 batches"
        graph, prefetch = "replays of a CUDA graph", "prefetch on a stream of its own"
        streamed = "weights that come on a stream of their own"
        at_once = "two models at once, each on a stream of its own"
        second_runs = [
            pytorch(default, f"{model}, second run", 120, self.second_run(model, self.train_words(model), default))
            for model in LARGE
        ]
        return [
            pytorch(default, varying, 140, self.train("varying", default)),
            *train(default),
            pytorch(default, turns, 120, self.train("turns", default)),
            pytorch(default, accumulated, 120, self.train("resnet", default, ACCUMULATED)),
            pytorch(default, graph, 100, self.graph(default)),
            pytorch(default, prefetch, 100, self.prefetch(default)),
            pytorch(default, streamed, 120, self.train("streamed", default)),
            pytorch(default, at_once, 120, self.train("at-once", default)),
            Row(SECTION, "JAX: a training", 120, ("a GPU", "JAX"), self.jax),
            Row(SECTION, "CuPy without its pool", 100, ("a GPU", "CuPy"), self.cupy),
            Row(SECTION, "libcudart static: caught, every byte right", 60, runtime, self.runtime("static")),
            Row(SECTION, "libcudart shared: caught, every byte right", 60, runtime, self.runtime("shared")),
            Row(SECTION, "tests/cuda: random workload", 90, cuda, self.workload),
            *second_runs,
            Row(SECTION, "compute-sanitizer memcheck", 90, (*cuda, "compute-sanitizer"), self.memcheck),
            *(
                pytorch(default, f"{name}, recorded", 100, self.recording(name, words))
                for name, words in {
                    "varying": self.train_words("varying"),
                    "amp": self.train_words("resnet", ["--amp"]),
                    "turns": self.train_words("turns"),
                    "accumulated": self.train_words("resnet", ACCUMULATED),
                    "streamed": self.train_words("streamed"),
                }.items()
            ),
            pytorch("native", graph, 100, self.graph("native")),
            pytorch("uncached", prefetch, 100, self.prefetch("uncached")),
            *train("uncached"),
            *train("native"),
        ]

    def recording_rows(self):
        """What the comparison measures, recorded: models of other allocators can be held against what these took."""

        def words(model):
            shape = [*LARGE[model], "--iterations", str(RECORDED)]
            return [sys.executable, os.path.join(PROGRAMS, "train.py"), model, *shape]

        name, needs = "PyTorch cudaMallocAsync: {}, recorded", ("a GPU", "PyTorch")
        return [Row(SECTION, name.format(model), 60, needs, self.recording(model, words(model))) for model in LARGE]

    def scenario_rows(self):
        """Alone: beside trainings, whose synchronous calls take the device in turns with theirs, many do not end."""
        name, needs = "tests/cuda: scenarios, without and with", ("a GPU", "a compiler")
        return [
            Row(SECTION, name + after, 150, needs, self.scenarios.find(alone=False, warm=bool(after)))
            for after in ("", ", warm")
        ]

    def waits_row(self):
        """Alone: a kernel that runs elsewhere would be waited for, too."""
        return Row(SECTION, "calls of the driver that wait", 60, ("a GPU", "a compiler"), self.waits)

    def timeline_row(self):
        name = "PyTorch cudaMallocAsync: GPT with --timeline"
        return Row(SECTION, name, 75, ("a GPU", "PyTorch"), self.timeline)

    def demo_row(self):
        return Row(SECTION, "scripts/demo --quick", 150, ("a GPU", "PyTorch"), self.demo)

    def on_a_small_device(self):
        """What takes the device's memory away from whatever runs beside it."""
        cuda = ("a GPU", "a compiler")
        large = "PyTorch cudaMallocAsync: GPT on a device too small for it, --oversubscribe"
        want = "tests/cuda: scenarios that want the device"
        return [
            Row(SECTION, large, 90, (*cuda, "PyTorch"), self.oversubscribed),
            Row(SECTION, want, 90, cuda, self.scenarios_alone(warm=False)),
            Row(SECTION, want + ", warm", 90, cuda, self.scenarios_alone(warm=True)),
        ]
