"""Device memory by the lines that asked for it: the calls of the driver take the thread's call stack as the host's
allocations do, on every way to them."""
import json
import os
import subprocess
import sys
import unittest

from cuda_programs import CudaTest, built

SCRIPT = """\
import ctypes
import threading
cuda = ctypes.CDLL("libcudart.so.13")
block = ctypes.c_void_p()
at = ctypes.byref(block)

def weights(kib):
    assert cuda.cudaMalloc(at, ctypes.c_size_t(kib << 10)) == 0

def step(kib):
    assert cuda.cudaMallocAsync(at, ctypes.c_size_t(kib << 10), None) == 0

weights(64)  # opens the core
weights(1024)
step(2048)
thread = threading.Thread(target=step, args=(4096,))
thread.start()
thread.join()
"""


class Stacks(CudaTest):
    def sites(self, stacks, command):
        self.run_job(command, [self.at.shim], REPRISE_MODE="record", REPRISE_OUT="out", REPRISE_STACKS=stacks)
        trace = os.path.join(self.at.folder, "out", "trace.reprise")
        stats = subprocess.run([built("REPRISE_COMMAND"), "stats", trace, "--json"], capture_output=True, check=True)
        return json.loads(stats.stdout)["sites"]

    def test_python(self):
        with open(os.path.join(self.at.folder, "train.py"), "w") as script:
            script.write(SCRIPT)
        sites = {site["bytes"] >> 10: site for site in self.sites("python", [sys.executable, "train.py"])}
        self.assertEqual(sites[6144]["function"], "step")
        self.assertEqual(sites[6144]["line"], 11)
        self.assertEqual(sites[1024]["function"], "weights")

    def test_native(self):
        sites = self.sites("native", [built("SCENARIOS"), "pool_attributes"])
        self.assertTrue(sites)
        self.assertTrue(any(site["library"] == "" and site["function"] for site in sites), sites)
        self.assertFalse(any(site["library"] in ("Reprise", "CUDA driver", "CUDA runtime") for site in sites), sites)


if __name__ == "__main__":
    unittest.main()
