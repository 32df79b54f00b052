"""Rows: what is checked or measured, within its own limit and the budget of all; and the report, written anew after
every row so that whatever ends the run leaves what was found until then."""

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


class Deadline:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return max(0.0, self.end - time.monotonic())


class Report:
    """Threads: any."""

    def __init__(self, folder, facts):
        self.path = os.path.join(folder, "results.json")
        self.facts = facts
        self.results = []
        self.lock = threading.Lock()
        self.write()

    def write(self):
        with open(self.path + ".new", "w", encoding="utf-8") as out:
            json.dump({**self.facts, "rows": [asdict(result) for result in self.results]}, out, indent=1)
        os.replace(self.path + ".new", self.path)

    def add(self, result):
        with self.lock:
            self.results.append(result)
            self.write()
            print(line(result), flush=True)

    def failed(self):
        return any(result.verdict == FAIL for result in self.results)

    def sums(self):
        counts = {
            verdict: sum(result.verdict == verdict for result in self.results)
            for verdict in (PASS, FAIL, MEASURED, LEFT_OUT)
        }
        return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def line(result):
    return f"{result.section}  {result.name:<44} {result.verdict:<9} {result.seconds:6.1f} s  {result.says}"


def found(row, machine, budget):
    missing = machine.missing(row.needs)
    if missing:
        return Finding(LEFT_OUT, "needs " + ", ".join(missing))
    if budget.left() < LEAST:
        return Finding(LEFT_OUT, "no time left")
    cut_short = budget.left() < row.limit
    try:
        return row.find(Deadline(min(row.limit, budget.left())))
    except subprocess.TimeoutExpired as error:
        says = f"not over after {error.timeout:.0f} s"
        return Finding(LEFT_OUT, f"no time left: {says}") if cut_short else Finding(FAIL, says)
    except Exception as error:  # a check that breaks must not take the others along
        traceback.print_exc(file=sys.stderr)
        return Finding(FAIL, f"the check itself broke: {error!r}")


def run(rows, workers, machine, budget, report):
    """All rows, `workers` at a time, begun in their order."""

    def one(row):
        began = time.monotonic()
        finding = found(row, machine, budget)
        seconds = time.monotonic() - began
        report.add(Result(row.section, row.name, round(seconds, 2), finding.verdict, finding.says, finding.figures))

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(one, rows):
            pass
