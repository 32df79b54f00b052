"""Runs each model in pairs, without and with Reprise, and shows one table a model.

usage: compare.py REPRISE PAIRS FOLDER

On the GPU where this Python's PyTorch can use one, else in host mode.

The runs of a pair follow each other, and which comes first alternates, so that a machine that slows down or warms up
weighs on both alike. Status 1 if any loss of any run differs, or if Reprise never served by a plan.
"""

import glob
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

ITERATIONS = {"gpt": 40, "resnet": 40, "lengths": 200}
REPEATS = ("gpt", "resnet")  # the others may get a plan or not
HERE = os.path.dirname(os.path.abspath(__file__))
# What an administrator or a shell has set for Reprise would have it in the runs without it too.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("REPRISE_")}


def mode():
    """What `reprise run` is told to catch."""
    usable = subprocess.run([sys.executable, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"])
    if usable.returncode == 0:
        return "--cuda"
    gpu = os.path.exists("/dev/nvidiactl")
    why = "this PyTorch cannot use the GPU that is here" if gpu else "there is no NVIDIA GPU here"
    print(f"demo: in host mode, as {why}", file=sys.stderr)
    return "--host"


def train(model, folder, prefix=()):
    """One run of train.py in `folder`: its result, with the wall time of the whole process under "wall"."""
    os.makedirs(folder, exist_ok=True)
    result = os.path.join(folder, "result.json")
    job = [sys.executable, "-B", os.path.join(HERE, "train.py"), model, str(ITERATIONS[model]), result]
    began = time.perf_counter()
    with open(os.path.join(folder, "stderr.txt"), "w+") as stderr:
        status = subprocess.run([*prefix, *job], stderr=stderr, env=ENVIRONMENT).returncode
        if status != 0:
            stderr.seek(0)
            sys.exit(f"{stderr.read()}demo: {model} ended with status {status}")
    wall = time.perf_counter() - began
    with open(result) as text:
        return {**json.load(text), "wall": wall}


def size(count):
    return f"{count / 2**20:,.1f} MiB"


def ratios(pairs, value):
    """The median over the pairs of with/without, and the smallest and the largest of them."""
    all_ratios = [value(served) / value(plain) for plain, served in pairs]
    return f"{statistics.median(all_ratios):.3f}  ({min(all_ratios):.3f} to {max(all_ratios):.3f})"


def first_planned(summary):
    return f"allocation {summary['first_planned_request']:,} of {summary['requests']:,}"


def plan_rows(summary, again):
    if summary["plans"] == 0:
        return [("served by plan", "nothing: no iteration was like another")]
    return [
        ("slab", size(summary["slab"])),
        ("lower bound", size(summary["lower_bound"])),
        ("slab / lower bound", f"{summary['slab'] / summary['lower_bound']:.4f}"),
        ("served by plan", f"{summary['planned_bytes_after_plan']:.2%} of the bytes, from the plan on"),
        ("plan in use from", first_planned(summary)),
        ("with the last run's plan", first_planned(again) if again["plans_resumed"] else "not met again"),
    ]


def table(model, pairs, summary, again):
    plain_wall = statistics.median(plain["wall"] for plain, _ in pairs)
    served_wall = statistics.median(served["wall"] for _, served in pairs)
    losses = pairs[0][0]["losses"]
    steps = ITERATIONS[model]
    rows = [
        ("losses identical", f"{len(losses)} of {len(losses)} in each of {2 * len(pairs)} runs"),
        ("first and last loss", f"{float.fromhex(losses[0]):.4f}, {float.fromhex(losses[steps - 1]):.4f}"),
        ("peak of live bytes", size(summary["live_peak"])),
        *plan_rows(summary, again),
        ("most bytes reserved", size(summary["reserved_peak"])),
        ("reserved / live peak", f"{summary['reserved_peak'] / summary['live_peak']:.4f}"),
        ("time without", f"{plain_wall:.2f} s"),
        ("time with Reprise", f"{served_wall:.2f} s"),
        ("with / without, process", ratios(pairs, lambda run: run["wall"])),
        ("with / without, iteration", ratios(pairs, lambda run: statistics.median(run["seconds"]))),
    ]
    first = pairs[0][0]
    print(f"\n{model}, {steps} iterations, {len(pairs)} pair(s), PyTorch {first['torch']}, {first['device']}")
    for name, value in rows:
        print(f"  {name:26} {value}")


def summary_in(folder):
    """Of the process and the device that was asked most: whether others are there is the framework's business."""
    summaries = []
    for path in glob.glob(os.path.join(folder, "summary*.json")):
        with open(path) as text:
            summary = json.load(text)
        summaries += [{**summary, **device} for device in summary.get("devices") or [{}]]
    return max(summaries, key=lambda summary: summary["requests"])


def differences(expected, losses):
    return [i for i, (a, b) in enumerate(itertools.zip_longest(expected, losses)) if a != b]


def compare(model, reprise, count, folder):
    """Runs the pairs of one model, with `reprise` before the job's words, and prints its table. True when all is as it
    must be."""
    pairs = []
    for number in range(count):
        print(f"demo: {model}, pair {number + 1} of {count}", file=sys.stderr, flush=True)
        here = os.path.join(folder, f"{model}-{number}")
        out = os.path.join(here, "reprise-out")
        runs = {
            "plain": lambda: train(model, os.path.join(here, "plain")),
            "served": lambda: train(model, os.path.join(here, "served"), (*reprise, "--out", out, "--")),
        }
        order = ("plain", "served") if number % 2 == 0 else ("served", "plain")
        done = {kind: runs[kind]() for kind in order}
        pairs.append((done["plain"], done["served"]))
        for kind, run in done.items():
            differing = differences(pairs[0][0]["losses"], run["losses"])
            if differing:
                print(f"{model}: LOSSES DIFFER ({kind}, pair {number + 1}) from iteration {differing[0]}")
                return False
    summary = summary_in(out)
    if summary["plans"] == 0:
        if model in REPEATS:
            print(f"{model}: the losses are identical, but Reprise found no plan; see {out}")
            return False
        table(model, pairs, summary, None)
        return True
    again = os.path.join(here, "reprise-out-again")
    prefix = (*reprise, "--plan", os.path.join(out, "plans.json"), "--out", again, "--")
    if differences(pairs[0][0]["losses"], train(model, os.path.join(here, "served"), prefix)["losses"]):
        print(f"{model}: LOSSES DIFFER with the plan of the last run")
        return False
    table(model, pairs, summary, summary_in(again))
    return True


def main(reprise, count, folder):
    shutil.rmtree(folder, ignore_errors=True)
    run = (os.path.abspath(reprise), "run", mode())
    good = [compare(model, run, int(count), os.path.abspath(folder)) for model in ITERATIONS]
    return 0 if all(good) else 1


sys.exit(main(*sys.argv[1:]))
