"""What the tests of the CUDA library share: programs of CUDA, run on the simulated device, with and without the
preload library."""
import unittest

import preloading
from preloading import built

__all__ = ["CudaTest", "built", "option"]


def option(arguments, name, default):
    """The number behind `name`, taken out of what unittest.main() sees."""
    if name not in arguments:
        return default
    at = arguments.index(name)
    value = int(arguments[at + 1])
    del arguments[at:at + 2]
    return value


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
