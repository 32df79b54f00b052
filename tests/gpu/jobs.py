"""Jobs without and with Reprise, and what differed between the two."""

import glob
import itertools
import json
import os
import re
import select
import signal
import subprocess
import time
from dataclasses import dataclass

from rows import FAIL, LEFT_OUT, PASS, Deadline, Finding

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
PLAIN_SHARE = 0.4  # of a row's time: there is half as much again under Reprise, which is to blame if that is not enough
DYING = 5  # seconds; what a driver holds in a call that does not return is not ended by a signal either
OUT = "reprise-out"  # below a job's folder
NOTHING_CAUGHT = "the same output, but nothing was caught"
# What decides on an allocator, and may not come from whoever starts the check.
STEERING = re.compile(
    r"^(REPRISE_.*|LD_PRELOAD|PYTORCH_(CUDA_)?ALLOC_CONF|PYTORCH_NO_CUDA_MEMORY_CACHING|XLA_PYTHON_CLIENT_.*"
    r"|CUBLAS_WORKSPACE_CONFIG)$"
)
OURS = re.compile(r"^reprise: .*\n?(?:  .*\n?)*", re.M)


def kill(job, patience=DYING):
    """Ends it and what it has started, or leaves it where it cannot be ended."""
    try:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait(patience)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass


class Beside:
    """A process beside a job, that says it is ready in one line and ends when its input does. `ready`: that line, after
    the word; `last`: what it says at its end; `what`: is said where it does not begin."""

    PATIENCE = 15  # seconds for either

    def __init__(self, words, environment, what):
        self.words = words
        self.environment = environment
        self.what = what

    def __enter__(self):
        self.process = subprocess.Popen(
            self.words,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        heard = select.select([self.process.stdout], [], [], self.PATIENCE)[0]
        word, _, self.ready = (self.process.stdout.readline() if heard else "").strip().partition(" ")
        self.last = ""
        if word != "ready":
            kill(self.process)
            raise RuntimeError(self.what)
        return self

    def __exit__(self, *_):
        try:
            self.last, _ = self.process.communicate(timeout=self.PATIENCE)
        except subprocess.TimeoutExpired:
            kill(self.process)


@dataclass
class Done:
    status: int
    out: str
    err: str
    seconds: float
    folder: str
    figures: dict  # of Reprise's summary; empty without Reprise, or where it left none

    def left(self, name):
        """The path of what Reprise has left beside its summary, or would have."""
        return os.path.join(self.folder, OUT, name)

    def last_error(self):
        """The last line of the job's own: what we say at its end, and what is indented below it, comes behind."""
        lines = [text for text in OURS.sub("", self.err).splitlines() if text.strip()]
        return lines[-1][:200] if lines else f"status {self.status}"


def figures_of(summary):
    """The numbers of the device that was asked most."""
    device = max(summary.get("devices") or [summary], key=lambda part: part.get("requests", 0))
    return {name: value for name, value in device.items() if isinstance(value, (int, float))}


def figures_in(folder):
    """Those of the process that asked most; none where no summary was left."""
    found = []
    for path in glob.glob(os.path.join(folder, "**", "summary*.json"), recursive=True):
        with open(path, encoding="utf-8") as text:
            found.append(figures_of(json.load(text)))
    return max(found, key=lambda figures: figures.get("requests", 0), default={})


class Jobs:
    """`reprise`: the command; `out`: where every job gets a folder of its own; `extra`: variables for all of them."""

    def __init__(self, reprise, out, extra):
        self.reprise = reprise
        self.out = out
        self.environment = {name: value for name, value in os.environ.items() if not STEERING.match(name)}
        self.environment.update(extra)
        self.numbers = itertools.count(1)
        self.running = set()  # each leads a session of its own, and would outlive us

    def run(self, name, words, deadline, variables=(), reprise=False, mode="serve", options=()):
        """Runs to its end. TimeoutExpired, with its output, when that does not come in time; nothing of the job is left
        then."""
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        folder = os.path.join(self.out, "jobs", f"{next(self.numbers):03}-{plain}-{'with' if reprise else 'without'}")
        os.makedirs(folder)
        if reprise:
            words = [
                self.reprise,
                "run",
                "--cuda",
                "--mode",
                mode,
                "--out",
                os.path.join(folder, OUT),
                *options,
                "--",
                *words,
            ]
        limit = deadline.left()
        began = time.monotonic()
        files = (open(os.path.join(folder, name), "w+", errors="replace") for name in ("stdout", "stderr"))
        with next(files) as out, next(files) as err:
            job = subprocess.Popen(
                words,
                env={**self.environment, **dict(variables)},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            self.running.add(job)
            try:
                status = job.wait(limit)
            except subprocess.TimeoutExpired:
                kill(job)
                out.seek(0)
                raise subprocess.TimeoutExpired(words[:6], limit, out.read()) from None
            finally:
                self.running.discard(job)
            seconds = time.monotonic() - began
            texts = [stream.seek(0) or stream.read() for stream in (out, err)]
        return Done(status, *texts, seconds, folder, figures_in(folder) if reprise else {})

    def stop(self):
        """Ends what runs, and what that has started. For whoever has been told to end."""
        for job in list(self.running):
            kill(job, patience=0)


def first_difference(before, after, first="without", second="with"):
    for number, (a, b) in enumerate(itertools.zip_longest(before.splitlines(), after.splitlines()), 1):
        if a != b:
            return f"line {number}: {a!r} {first}, {b!r} {second}"
    return ""


def failed(done, how, figures, why=None):
    """The finding on a job that should not have failed, with the end of what it said: nobody may be able to look at its
    files where it ran."""
    says = f"status {done.status} {how}".rstrip()
    return Finding(FAIL, f"{says}: {why or done.last_error()}", {**figures, "err": done.err[-4000:]})


def by_plan(figures):
    """What of a job's memory a plan has placed: it may be the same and caught, and nothing have been done for it."""
    if not figures.get("plans", 0) + figures.get("plans_resumed", 0):
        return "nothing by plan"
    share, first = figures["planned_bytes_after_plan"], figures["first_planned_iteration"]
    return f"{share:.1%} of the bytes by plan from iteration {first} of {figures['iterations']} found"


def described(figures):
    """`requests 1,234, outside 2, ...; 97.0% of the bytes by plan from ...; live peak 1.00 GiB`, as far as it is known."""
    counts = ("requests", "outside", "passed", "plans", "conflicts", "host_waits")
    peaks = ("live_peak", "reserved_peak")
    parts = (
        ", ".join(f"{name.replace('_', ' ')} {figures[name]:,}" for name in counts if name in figures),
        by_plan(figures),
        ", ".join(f"{name.replace('_', ' ')} {figures[name] / 2**30:.3f} GiB" for name in peaks if name in figures),
    )
    return "; ".join(part for part in parts if part)


def unserved(jobs, name, words, deadline, variables=(), share=PLAIN_SHARE, why=Done.last_error):
    """A job without Reprise that came to its end in this share of the time, or the finding that it proves nothing."""
    try:
        plain = jobs.run(name, words, Deadline(deadline.left() * share), variables)
    except subprocess.TimeoutExpired:
        return Finding(LEFT_OUT, "the job takes too long without Reprise", whole=False)
    if plain.status != 0:
        return Finding(LEFT_OUT, f"the job fails without Reprise: {why(plain)}")
    return plain


def compared(jobs, name, words, deadline, variables=(), own=re.compile(r"(?!)"), reference=None, serve=None):
    """The finding on a job that must print the same and end the same under Reprise, which must catch calls of it. What
    matches `own` is each run's own affair. `reference`: gives the job without Reprise where it was run already, with other
    variables perhaps; if its output is another, the job without Reprise and with these decides. `serve`: gives the job
    under Reprise where it is not run here."""
    plain = reference(deadline) if reference else unserved(jobs, name, words, deadline, variables)
    if isinstance(plain, Finding):
        return plain
    served = serve(deadline) if serve else jobs.run(name, words, deadline, variables, reprise=True)
    figures = {
        "without": {"seconds": plain.seconds},
        "with": {"seconds": served.seconds, **served.figures},
        "out": plain.out[-400:],
    }
    if served.status != 0:
        return failed(served, "under Reprise", figures)
    before, after = (own.sub("", done.out) for done in (plain, served))
    if before != after:
        difference = f"DIFFERS: {first_difference(before, after)}"
        try:
            again = own.sub("", jobs.run(name, words, deadline, variables).out)
        except subprocess.TimeoutExpired:
            return Finding(FAIL, f"{difference}; no time left to run it again without Reprise", figures)
        if again == before:
            return Finding(FAIL, difference, figures)
        if not (reference and again == after):
            return Finding(LEFT_OUT, "the job does not repeat its own output without Reprise either", figures)
    if not served.figures.get("requests"):
        return Finding(FAIL, NOTHING_CAUGHT, figures)
    return Finding(PASS, f"{len(plain.out.splitlines())} lines the same; {described(served.figures)}", figures)
