"""What the tests of the CUDA library share: programs of CUDA, run on the simulated device, with and without the
preload library."""
import unittest

import preloading
from preloading import built, option

__all__ = ["CudaTest", "built", "option"]


class CudaTest(unittest.TestCase):
    core = "CORE"  # or None, or a core for tests
    libraries = ()  # folders that the loader is to look into before the simulated device's

    def setUp(self):
        self.at = self.install(self.core)

    def install(self, core):
        at = preloading.Installed(core, shim="CUDA_SHIM")
        self.addCleanup(at.close)
        return at

    def run_job(self, command, preload=(), **variables):
        libraries = [*self.libraries, built("SIMCUDA")]
        return preloading.run(command, preload, cwd=self.at.folder, LD_LIBRARY_PATH=":".join(libraries),
                              SIMCUDA_QUIET="1", **variables)
