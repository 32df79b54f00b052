"""What a time line costs beside CUPTI itself: the processor's time and the trace's bytes for each kernel, recorded on the
simulated device without --timeline and with. What the simulated CUPTI needs for its records is in it.

usage: timeline_bench.py REPRISE FOLDER_OF_THE_SIMULATED_DEVICE
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

SCRIPT = """
import ctypes
runtime, driver = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcuda.so.1")
block, stream = ctypes.c_void_p(), ctypes.c_void_p()
assert runtime.cudaStreamCreate(ctypes.byref(stream)) == 0
fill = lambda: driver.simFill(block, ctypes.c_size_t(64), ctypes.c_ulonglong(1), stream)
for _ in range(1000):
    assert runtime.cudaMallocAsync(ctypes.byref(block), ctypes.c_size_t(4096), stream) == 0
    for _ in range(500):
        assert fill() == 0
    assert runtime.cudaFreeAsync(block, stream) == 0
"""


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def recorded(reprise, simulated, options):
    """Seconds of the processor, bytes of the trace, activities in it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [reprise, "run", "--cuda", "--mode", "record", *options, "--out", folder, "--", sys.executable, "-c", SCRIPT]
        environment = {**os.environ, "LD_LIBRARY_PATH": simulated, "SIMCUDA_QUIET": "1"}
        before = seconds_of_children()
        subprocess.run(command, env=environment, stderr=subprocess.DEVNULL, check=True)
        with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        assert summary["trace_activities_dropped"] == 0
        return seconds_of_children() - before, summary["trace_bytes"], summary["trace_activities"]


def main(reprise, simulated):
    nanoseconds, sizes = [], []
    for _ in range(7):  # side by side, so that both see the same machine
        off = recorded(reprise, simulated, [])
        on = recorded(reprise, simulated, ["--timeline"])
        nanoseconds.append((on[0] - off[0]) / on[2] * 1e9)
        sizes.append((on[1] - off[1]) / on[2])
    print(f"{on[2]} kernels: {statistics.median(nanoseconds):.0f} ns of the processor each "
          f"({min(nanoseconds):.0f} to {max(nanoseconds):.0f}), {statistics.median(sizes):.2f} bytes of the trace")


main(*sys.argv[1:])
