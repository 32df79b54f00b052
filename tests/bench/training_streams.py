#!/usr/bin/env python3
"""Records what small nets of many kinds allocate as they are trained on the CPU, for planner_bench and simulate; and what
jobs do whose steps vary.

  training_streams.py REPRISE DIR [--steps 12] [--times 64] [--optimizer sgd|adam] [--zero-grad early|late]
                      [--micro-batches 1] [--jobs] [NAME...]

Run it with a Python that has PyTorch. Leaves DIR/events/NAME.csv and DIR/lifetimes/NAME.csv of each net, or with --jobs of
each job, all by default, with every block so many times as large as it was: then they are as large beside a granule as
those of real jobs. Gradients of a net are freed at the begin of a step, or (late) when its first forward pass is over; a
step's are the sums over its micro-batches. Jobs have an optimizer of their own, and 30 steps unless told.
"""
import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional as F
from training_jobs import JOBS
from training_models import MODELS


def train(options):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    random.seed(1)
    if options.jobs:
        JOBS[options.train](options.steps)
    else:
        train_net(options)


def train_net(options):
    make, draw = MODELS[options.train]
    model = make()
    of_optimizer = {"sgd": (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}), "adam": (torch.optim.AdamW, {})}
    optimizer, settings = of_optimizer[options.optimizer]
    optimizer = optimizer(model.parameters(), **settings)
    for _ in range(options.steps):
        if options.zero_grad == "early":
            optimizer.zero_grad(set_to_none=True)
        for batch in range(options.micro_batches):
            given, wanted = draw()
            output = model(given)
            loss = F.cross_entropy(output.reshape(-1, output.shape[-1]), wanted.reshape(-1))
            if options.zero_grad == "late" and batch == 0:
                optimizer.zero_grad(set_to_none=True)
            loss.backward()
        optimizer.step()


def record(reprise, arguments, out):
    """What a child that is given `arguments` allocates: [event, id, bytes] as they happened."""
    with tempfile.TemporaryDirectory() as folder:
        child = [sys.executable, "-B", os.path.abspath(__file__), *arguments]
        run = [reprise, "run", "--host", "--mode", "record", "--threshold", "64", "--out", f"{folder}/run", "--"]
        subprocess.run([*run, *child], check=True, stderr=subprocess.DEVNULL)
        convert = [reprise, "convert", f"{folder}/run/trace.reprise", out, "--to", "events"]
        subprocess.run(convert, check=True, stderr=subprocess.DEVNULL)
    with open(out, encoding="ascii") as rows:
        return [(r["event"], int(r["id"]), int(r["bytes"] or 0)) for r in csv.DictReader(rows) if r["event"] != "mark"]


def write_events(events, times, path):
    with open(path, "w", encoding="ascii") as out:
        out.write("event,id,bytes,stream\n")
        out.writelines(f"{event},{block},{times * size},0\n" for event, block, size in events)


def write_lifetimes(events, times, path):
    """On a line, all steps in a row; what is never freed lives to the end."""
    begun, lifetimes = {}, []
    for tick, (event, block, size) in enumerate(events):
        if event == "alloc":
            begun[block] = (tick, size)
        else:
            begin, size = begun.pop(block)
            lifetimes.append((begin, tick, size))
    lifetimes += [(begin, len(events), size) for begin, size in begun.values()]
    with open(path, "w", encoding="ascii") as out:
        out.write("id,lower,upper,size\n")
        for number, (begin, end, size) in enumerate(sorted(lifetimes)):
            out.write(f"{number},{begin},{end},{times * size}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reprise", metavar="REPRISE", help="the command")
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"{', '.join(MODELS)}; with --jobs {', '.join(JOBS)}")
    parser.add_argument("--jobs", action="store_true", help="jobs whose steps vary in place of nets")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--times", type=int, default=64)
    parser.add_argument("--optimizer", choices=("sgd", "adam"), default="sgd")
    parser.add_argument("--zero-grad", choices=("early", "late"), default="late")
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--train", help=argparse.SUPPRESS)  # the child's
    options = parser.parse_intermixed_args()
    known = JOBS if options.jobs else MODELS
    options.steps = options.steps or (30 if options.jobs else 12)
    if options.train:
        train(options)
        return
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"no such {'job' if options.jobs else 'net'}: {', '.join(sorted(unknown))}")
    for kind in ("events", "lifetimes"):
        os.makedirs(os.path.join(options.folder, kind), exist_ok=True)
    for name in options.names or known:
        path = os.path.join(options.folder, "events", f"{name}.csv")
        arguments = [options.reprise, options.folder, "--train", name, "--steps", str(options.steps),
                     "--optimizer", options.optimizer, "--zero-grad", options.zero_grad,
                     "--micro-batches", str(options.micro_batches)]
        arguments += ["--jobs"] if options.jobs else []
        events = record(options.reprise, arguments, path)
        write_events(events, options.times, path)
        write_lifetimes(events, options.times, os.path.join(options.folder, "lifetimes", f"{name}.csv"))
        print(f"{name}: {len(events)} events")


if __name__ == "__main__":
    main()
