"""An ordinary training job. It knows nothing of Reprise.

usage: train.py gpt|resnet|lengths ITERATIONS RESULT.json

Trains on the GPU where PyTorch finds one, with deterministic kernels, so that losses of two runs can be compared. Writes
every loss as a hexadecimal float (all bits), those of evaluations behind the others, the seconds of every iteration, and
the device.
"""

import importlib
import json
import os
import sys
import time

import torch


def prepare():
    """The name of the device that all tensors will be on."""
    if not torch.cuda.is_available():
        return "CPU"
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.set_default_device("cuda")
    return torch.cuda.get_device_name()


def main(model, iterations, result):
    device = prepare()
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
        json.dump({"torch": torch.__version__, "device": device, "losses": losses, "seconds": seconds}, out)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
