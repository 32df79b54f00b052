"""Where the host's memory is short for a moment, or from a moment on, the job gets what it would have had: each
allocation of the core's fails in turn."""
import itertools
import unittest

from cuda_programs import CudaTest, built


class NoHostMemory(CudaTest):
    def play(self, scenario, preload=(), **variables):
        return self.run_job([built("SCENARIOS"), scenario], preload, SIMCUDA_STREAMS="deferred", **variables)

    def check(self, scenario, *, allocations, **variables):
        """With each allocation of the core's, and as many after it, failing."""
        without = self.play(scenario, **variables)
        for first in itertools.count(1):
            under = self.play(scenario, [built("NO_HOST_MEMORY"), self.at.shim],
                              NO_HOST_MEMORY_FROM=str(first), NO_HOST_MEMORY_FOR=str(allocations), **variables)
            with self.subTest(scenario, first=first, allocations=allocations):
                self.assertEqual((under.returncode, under.stdout), (0, without.stdout), under.stderr)
            if "no_host_memory: it begins\n" not in under.stderr:
                break
        self.assertGreater(first, 50, "the core has allocated")

    def test_for_a_moment(self):
        for allocations in (1, 2):
            self.check("contexts_of_one_device", allocations=allocations)

    def test_from_then_on(self):
        self.check("contexts_of_one_device", allocations=10**6)

    def test_what_is_idle_is_given_back_afterwards(self):
        self.check("limit_after_many_streams", allocations=1, SIMCUDA_MEMORY="64MiB")


if __name__ == "__main__":
    unittest.main()
