"""The largest batch that can be trained for a few iterations in the memory that is free.

usage: largest_batch.py resnet|gpt LENGTH RESULT.json

Doubles, then bisects to the nearest sixteenth. All in one process: what an attempt leaves behind weighs on the next,
as it would in a job that changes its batch.
"""

import gc
import json
import os
import re
import sys

import torch
from models import Job

ITERATIONS = 6


def fits(model, length, batch):
    torch.manual_seed(7)
    try:
        job = Job(model, batch, length, amp=False)
        for _ in range(ITERATIONS):
            job.step()
        return True
    except RuntimeError as error:  # torch.OutOfMemoryError is one; cuBLAS has words of its own
        if not re.search("out of memory|alloc_failed", str(error), re.IGNORECASE):
            raise
        return False


def attempt(model, length, batch):
    done = fits(model, length, batch)
    gc.collect()
    torch.cuda.empty_cache()
    return done


def main(model, length, result):
    tried = {}

    def ask(batch):
        tried[batch] = attempt(model, int(length), batch)
        with open(result + ".new", "w") as out:
            good = [batch for batch, done in tried.items() if done]
            json.dump({"largest": max(good, default=0), "tried": tried}, out)
        os.replace(result + ".new", result)  # whoever runs out of patience finds what was found until then
        return tried[batch]

    low, high = 0, 8
    while ask(high):
        low, high = high, 2 * high
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if ask(middle) else (low, middle)
    print("done")


main(*sys.argv[1:])
