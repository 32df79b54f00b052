"""What Python stacks cost: the processor's time of an allocation and free through ctypes, recorded without stacks and with, at
several depths; with the interpreter's lock held (PyDLL) and given up around each call (CDLL).

usage: python_stacks_bench.py REPRISE PYTHON
"""

import json
import statistics
import subprocess
import sys
import tempfile

SCRIPT = """
import ctypes, json, sys, time
out = {}
block = ctypes.c_void_p()
at = ctypes.byref(block)

def measure(library, depth):
    if depth > 1:
        return measure(library, depth - 1)
    take, give = library.posix_memalign, library.free
    begin = time.thread_time()
    for _ in range(20000):
        take(at, 64, 65536)
        give(block)
    return (time.thread_time() - begin) / 20000 * 1e9

for name, library in (("held", ctypes.PyDLL(None)), ("released", ctypes.CDLL(None))):
    for depth in (1, 10, 30):
        measure(library, depth)
        out[f"{name}, {depth} frames deeper"] = measure(library, depth)
print(json.dumps(out))
"""


def main(reprise, python):
    times = {}
    for _ in range(5):
        for stacks in ("off", "python"):  # side by side, so that both see the same machine
            with tempfile.TemporaryDirectory() as folder:
                command = [reprise, "run", "--host", "--mode", "record", "--stacks", stacks, "--out", folder, "--",
                           python, "-c", SCRIPT]
                found = subprocess.run(command, capture_output=True, text=True, check=True)
            for case, ns in json.loads(found.stdout).items():
                times.setdefault((case, stacks), []).append(ns)
    for case in dict.fromkeys(case for case, _ in times):
        off, on = (statistics.median(times[case, stacks]) for stacks in ("off", "python"))
        print(f"{case}: {off:.0f} ns a pair without stacks, {on:.0f} with: {on - off:.0f} more")


main(*sys.argv[1:])
