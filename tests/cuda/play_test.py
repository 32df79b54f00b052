"""What is simulated is what is served: recorded streams of real training jobs, played through cudaMallocAsync and
cudaFreeAsync under the preload library, must be placed by plan as often, and reserve as much, as `reprise simulate`
says for the same events. Needs the bench data (REPRISE_BENCH)."""
import json
import os
import subprocess
import unittest

from cuda_programs import CudaTest, built

BENCH = os.environ.get("REPRISE_BENCH")
SAME = ["requests", "planned", "planned_after_plan", "plans", "slab", "lower_bound", "live_peak", "reserved_peak"]


@unittest.skipUnless(BENCH, "REPRISE_BENCH does not name the folder of the bench data")
class Play(CudaTest):
    def check(self, name):
        events = os.path.join(BENCH, "events", name + ".csv")
        simulated = json.loads(subprocess.run([built("REPRISE"), "simulate", "--json", events], capture_output=True,
                                              text=True, check=True).stdout)
        out = os.path.join(self.at.folder, name)
        done = self.run_job([built("PLAY"), events], [self.at.shim], REPRISE_OUT=out, SIMCUDA_MEMORY="64GiB")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "summary.json")) as file:
            served = json.load(file)
        self.assertGreater(simulated["planned"], 0)
        self.assertEqual({key: served[key] for key in SAME}, {key: simulated[key] for key in SAME})

    def test_recorded_streams(self):
        for name in ["alexnet", "googlenet", "gpt", "resnet50"]:
            with self.subTest(name):
                self.check(name)


if __name__ == "__main__":
    unittest.main()
