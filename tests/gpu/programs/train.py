"""Trains a model on the GPU; prints every loss and what the weights have come to, to the last bit.

usage: train.py resnet|gpt|varying|turns|at-once|streamed [--batch N] [--length N] [--accumulate N] [--iterations N] [--seconds S] [--amp]
                [--deterministic] [--result FILE]

FILE gets the seconds of every iteration and PyTorch's own peaks of allocated and reserved bytes.
"""

import argparse
import json
import math
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("model", choices=("resnet", "gpt", "varying", "turns", "at-once", "streamed"))
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--length", type=int, default=256)
parser.add_argument("--accumulate", type=int, default=1, help="batches an iteration of resnet and gpt")
parser.add_argument("--iterations", type=int, default=24)
parser.add_argument("--seconds", type=float, default=1e9, help="no further iteration after this time")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--deterministic", action="store_true")
parser.add_argument("--device", default="cuda")
parser.add_argument("--result")
options = parser.parse_args()
if options.deterministic:
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch  # noqa: E402  (reads the environment)

from models import AtOnce, Job, Turns, VaryingJob  # noqa: E402
from streamed import StreamedJob  # noqa: E402

torch.manual_seed(7)
if options.deterministic:
    # What has no deterministic form warns; whether that matters is seen by running twice without Reprise.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
if options.model in ("varying", "turns"):
    job = {"varying": VaryingJob, "turns": Turns}[options.model](
        options.batch, options.length, options.amp, options.device
    )
elif options.model in ("at-once", "streamed"):
    job = {"at-once": AtOnce, "streamed": StreamedJob}[options.model](options.batch, options.length, options.device)
else:
    job = Job(options.model, options.batch, options.length, options.amp, options.device, options.accumulate)
seconds = []
while len(seconds) < options.iterations and sum(seconds) < options.seconds:
    began = time.perf_counter()
    loss = job.step()  # waits for the device, as it fetches the loss
    seconds.append(time.perf_counter() - began)
    print(loss.hex(), flush=True)
    if not math.isfinite(loss):
        sys.exit("the loss is no number, and would be none whatever became of it")
print(job.weights())

if options.result:
    try:
        peaks = [torch.cuda.max_memory_allocated() or None, torch.cuda.max_memory_reserved() or None]
    except RuntimeError:  # without its cache PyTorch keeps no statistics
        peaks = [None, None]
    result = {"torch": torch.__version__, "seconds": seconds, "peak_allocated": peaks[0], "peak_reserved": peaks[1]}
    with open(options.result, "w") as out:
        json.dump(result, out)
