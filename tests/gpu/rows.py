"""Rows: what is checked or measured, within its own limit and the budget of all; and the report, written anew after
every row so that whatever ends the run leaves what was found until then, and that another run may go on from there."""

import json
import os
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Callable

PASS, FAIL, MEASURED, LEFT_OUT = "pass", "fail", "measured", "left out"
LEAST = 5  # seconds; with less left a row is not begun


@dataclass
class Finding:
    verdict: str
    says: str = ""
    figures: dict = field(default_factory=dict)
    whole: bool = True  # False: with more time, or more of what it needs, there is more to find


@dataclass
class Row:
    section: str
    name: str
    limit: float  # seconds
    needs: tuple  # names that Machine.missing knows
    find: Callable  # (deadline) -> Finding


@dataclass
class Result:
    section: str
    name: str
    seconds: float
    verdict: str
    says: str
    figures: dict
    whole: bool = True
    run: int = 0  # which of the report's runs found it


class Deadline:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return max(0.0, self.end - time.monotonic())


class Report:
    """`runs`: where, when and how each was made, ours last; `results`: of the runs before. `also` is told of every
    writing. Threads: any."""

    def __init__(self, folder, runs, results=(), also=lambda report: None):
        self.folder = folder
        self.path = os.path.join(folder, "results.json")
        self.runs = runs
        self.results = list(results)
        self.also = also
        self.lock = threading.Lock()
        self.closed = False
        self.write()

    def close(self):
        """What comes later is no finding: its jobs are being ended."""
        with self.lock:
            self.closed = True

    def write(self):
        content = {"runs": self.runs, "rows": [asdict(result) for result in self.results]}
        replace(self.path, json.dumps(content, indent=1))
        self.also(self)

    def add(self, result):
        result.run = len(self.runs) - 1
        with self.lock:
            if self.closed:
                return
            say(line(result))
            before = [other for other in self.results if other.name == result.name]
            if result.verdict == LEFT_OUT and any(other.verdict != LEFT_OUT for other in before):
                return  # what a run before has found of it is more
            self.results = [other for other in self.results if other not in before] + [result]
            self.write()

    def failed(self):
        return any(result.verdict == FAIL for result in self.results)

    def sums(self):
        counts = {
            verdict: sum(result.verdict == verdict for result in self.results)
            for verdict in (PASS, FAIL, MEASURED, LEFT_OUT)
        }
        return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def replace(path, text):
    """At no moment is there half of it."""
    with open(path + ".new", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(path + ".new", path)


def read(path):
    """The runs and results of a results.json."""
    with open(path, encoding="utf-8") as text:
        content = json.load(text)
    return content["runs"], [Result(**row) for row in content["rows"]]


def say(text):
    """To whoever still listens: a pipe that was closed must not end what is written to a file as well."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")


def line(result):
    return f"{result.section:<11}  {result.name:<44} {result.verdict:<9} {result.seconds:6.1f} s  {result.says}"


def found(row, machine, budget):
    missing = machine.missing(row.needs)
    if missing:
        return Finding(LEFT_OUT, "needs " + ", ".join(missing), whole=False)
    if budget.left() < LEAST:
        return Finding(LEFT_OUT, "no time left", whole=False)
    cut_short = budget.left() < row.limit
    try:
        finding = row.find(Deadline(min(row.limit, budget.left())))
    except subprocess.TimeoutExpired as error:
        says = f"not over after {error.timeout:.0f} s"
        return Finding(LEFT_OUT, f"no time left: {says}", whole=False) if cut_short else Finding(FAIL, says)
    except Exception as error:  # a check that breaks must not take the others along
        traceback.print_exc(file=sys.stderr)
        return Finding(FAIL, f"the check itself broke: {error!r}")
    finding.whole &= not (cut_short and finding.verdict == LEFT_OUT)
    return finding


def run(rows, workers, machine, budget, report):
    """All rows, `workers` at a time, begun in their order."""

    def one(row):
        began = time.monotonic()
        finding = found(row, machine, budget)
        seconds = time.monotonic() - began
        report.add(Result(row.section, row.name, round(seconds, 2), **vars(finding)))

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(one, rows):
            pass
