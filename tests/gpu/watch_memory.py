"""The device's memory as another process sees it: asks NVML again and again until its input ends, then prints the
baseline, the peak and how it was sampled. What it sees is all of the device: nothing else may run there meanwhile."""

import ctypes
import json
import select
import sys
import time

from machine import Memory

INTERVAL = 0.005  # seconds


def main():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device = ctypes.c_void_p()
    if nvml.nvmlInit_v2() != 0 or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) != 0:
        sys.exit("NVML shows no device")

    def used():
        memory = Memory()
        error = nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
        if error != 0:
            sys.exit(f"NVML error {error}")
        return memory.used

    baseline = peak = used()
    print("ready", flush=True)
    samples, began = 0, time.monotonic()
    while not select.select([sys.stdin], [], [], INTERVAL)[0]:
        peak = max(peak, used())
        samples += 1
    seconds = time.monotonic() - began
    print(
        json.dumps(
            {"baseline": baseline, "peak": peak, "samples": samples, "mean_interval_s": seconds / max(1, samples)}
        )
    )


if __name__ == "__main__":
    main()
