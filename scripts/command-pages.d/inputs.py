"""Makes the inputs of the command pages in a folder: a small job, as a script that runs and as what tools have recorded.

The job trains six layers. A layer has a weight and, from the first step on, the optimizer's state; a step takes an
activation a layer forwards and a gradient a layer backwards. Activations grow with the batch, nothing else does.
"""

import os
import pickle
import textwrap

KIB, MIB = 1 << 10, 1 << 20
LAYERS, STEPS = 6, 10

TRAIN = '''\
"""Stands for a training job: the same allocations in each step, aligned as frameworks align theirs."""

import ctypes

libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


def step():
    for block in [libc.aligned_alloc(64, 65536 * (i % 7 + 1)) for i in range(40)]:
        libc.free(ctypes.c_void_p(block))


for _ in range(2000):  # the planner has time even where the machine is busy
    step()
'''

SBATCH = """\
#!/bin/sh
# Stands for Slurm's: keeps the batch script that it is given, and says what number the job has.
cat >batch.sh
echo 17
"""


class Job:
    """The calls of the job in order, as (action, id, bytes, site)."""

    def __init__(self, batch, waste=0):
        self.calls, self.blocks = [], 0
        self.weights = [self.alloc(4 * MIB, "model.py", 12, "__init__") for _ in range(LAYERS)]
        for step in range(STEPS):
            self.step(batch, waste, first=step == 0)

    def alloc(self, size, *site):
        self.blocks += 1
        self.calls.append(("alloc", self.blocks - 1, size, site))
        return self.blocks - 1

    def free(self, block):
        self.calls.append(("free", block, 0, None))

    def step(self, batch, waste, first):
        kept = []
        for _ in range(LAYERS):
            scores = self.alloc(batch * 256 * KIB, "model.py", 21, "attend")
            kept.append(self.alloc(batch * 768 * KIB + waste, "model.py", 27, "forward"))
            self.free(scores)
        gradients = []
        for activation in reversed(kept):
            gradients.append(self.alloc(4 * MIB, "train.py", 9, "backward"))
            self.free(activation)
        if first:
            for _ in range(LAYERS):
                self.alloc(8 * MIB, "train.py", 10, "optimize")
        for gradient in gradients:
            self.free(gradient)


def csv(job):
    rows = [f"{action},{block},{size or ''},0" for action, block, size, _ in job.calls]
    return "\n".join(["event,id,bytes,stream", *rows, ""])


def snapshot(job):
    """As torch.cuda.memory._dump_snapshot() writes it, its history from the beginning of the job."""
    trace, top, places = [], 0x7F0000000000, {}
    for action, block, size, site in job.calls:
        if action == "alloc":
            places[block] = (top, size, site)
            top += size
        at, size, (file, line, name) = places[block]
        for kind in ("alloc",) if action == "alloc" else ("free_requested", "free_completed"):
            trace.append({"action": kind, "addr": at, "size": size, "stream": 0,
                          "frames": [{"filename": file, "line": line, "name": name}]})
        if action == "free":
            del places[block]
    segments = [{"device": 0, "address": at, "total_size": size, "stream": 0, "segment_type": "large", "blocks": [
        {"address": at, "size": size, "requested_size": size, "state": "active_allocated"}]} for at, size, _ in places.values()]
    return pickle.dumps({"segments": segments, "device_traces": [trace]}, protocol=4)


LIFETIMES = """
    id,lower,upper,size
    weights,0,12,24
    a,0,4,8
    b,2,9,12
    c,3,6,8
    d,4,8,6
    e,6,12,8
    f,8,12,10
"""


def write(folder, reprise, python):
    """The inputs, and `reprise`, `python3` and an `sbatch` in bin/."""
    files = {
        "train.py": TRAIN.encode(),
        "lifetimes.csv": textwrap.dedent(LIFETIMES).lstrip().encode(),
        "job.csv": csv(Job(8)).encode(),
        "batch8.pickle": snapshot(Job(8)),
        "batch16.pickle": snapshot(Job(16)),
        "batch32.pickle": snapshot(Job(32)),
        "before.pickle": snapshot(Job(8)),
        "after.pickle": snapshot(Job(8, waste=640 * KIB)),
        "bin/sbatch": SBATCH.encode(),
    }
    os.mkdir(os.path.join(folder, "bin"))
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(content)
    os.chmod(os.path.join(folder, "bin/sbatch"), 0o755)
    os.symlink(reprise, os.path.join(folder, "bin/reprise"))
    os.symlink(python, os.path.join(folder, "bin/python3"))
