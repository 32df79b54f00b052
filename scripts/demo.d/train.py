"""An ordinary training job. It knows nothing of Reprise.

usage: train.py gpt|resnet|lengths ITERATIONS RESULT.json

Writes every loss as a hexadecimal float (all bits), those of evaluations behind the others, and the seconds of every
iteration.
"""

import importlib
import json
import sys
import time

import torch


def main(model, iterations, result):
    torch.manual_seed(7)
    optimizer, loss = importlib.import_module(model).job()
    losses, seconds = [], []
    for _ in range(iterations):
        began = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item().hex())
        seconds.append(time.perf_counter() - began)
    losses += [value.hex() for value in getattr(loss, "evaluations", [])]
    with open(result, "w") as out:
        json.dump({"torch": torch.__version__, "losses": losses, "seconds": seconds}, out)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
