"""What fit is for: a real PyTorch job at two batches tells what it needs at one that is twice as large.
Skipped where no Python has a PyTorch."""

import os
import subprocess
import unittest

from command import REPRISE, CommandTest, clean_environment

DEMO = os.path.join(os.environ["SOURCE_ROOT"], "scripts/demo.d")
PYTHON = subprocess.run([os.path.join(DEMO, "python")], capture_output=True, text=True).stdout.strip()
# The demo's GPT as it is, but for the batch.
TRAIN = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
import gpt
gpt.BATCH = int(sys.argv[2])
sys.argv = ["train.py", "gpt", "3", sys.argv[3]]
runpy.run_path(f"{sys.path[0]}/train.py")
"""


@unittest.skipUnless(PYTHON, "no Python with a PyTorch here")
class FitTorch(CommandTest):
    def recorded(self, batch):
        out = f"batch{batch}"
        # OpenMP's threads wait for each other busily, which beside other tests takes most of the time.
        environment = {**clean_environment(), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [REPRISE, "run", "--host", "--mode", "record", "--stacks", "python", "--out", out, "--", PYTHON, "-B", "-c",
             TRAIN, DEMO, str(batch), self.path("result.json")],
            cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return f"{out}/trace.reprise"

    def test_gpt(self):
        small, large = (f"{self.recorded(batch)}@{batch}" for batch in (4, 8))
        fit = self.json("fit", small, large)
        line = fit["live_peak"]
        print(f"live peak = {line['fixed'] / 2**20:.2f} MiB + {line['per_sample'] / 2**20:.3f} MiB a sample")
        self.assertEqual(os.path.basename(fit["sites"][0]["label"].split(":")[0]), "gpt.py")
        needed = self.json("stats", self.recorded(16))["live_peak"]
        predicted = line["fixed"] + 16 * line["per_sample"]
        print(f"batch 16: {predicted / 2**20:.2f} MiB predicted, {needed / 2**20:.2f} MiB needed, {predicted / needed - 1:+.3%}")
        self.assertLess(abs(predicted / needed - 1), 0.01)
        live = self.json("fit", small, large, "--capacity", str(int(1.01 * needed)))["largest_batch"][0]
        self.assertEqual((live["name"], live["expected"]), ("live peak", 16))
        # At a batch of 4 some blocks are too small to be recorded: by that much the line may be wrong, and it is.
        self.assertGreater(fit["inputs"][0]["error"], 0)
        live = self.json("fit", small, large, "--capacity", str(needed))["largest_batch"][0]
        self.assertLessEqual(live["cautious"], 16)
        self.assertGreaterEqual(live["most"], 16)


if __name__ == "__main__":
    unittest.main()
