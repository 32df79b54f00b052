"""What the tests of the CUDA library share: programs of CUDA, run on the simulated device, with and without the
preload library."""
import unittest

import preloading
from preloading import built

__all__ = ["CudaTest", "built"]


class CudaTest(unittest.TestCase):
    core = "CORE"  # or None, or a core for tests

    def setUp(self):
        self.at = self.install(self.core)

    def install(self, core):
        at = preloading.Installed(core, shim="CUDA_SHIM")
        self.addCleanup(at.close)
        return at

    def run_job(self, command, preload=(), **variables):
        return preloading.run(command, preload, cwd=self.at.folder, LD_LIBRARY_PATH=built("SIMCUDA"), SIMCUDA_QUIET="1",
                              **variables)
