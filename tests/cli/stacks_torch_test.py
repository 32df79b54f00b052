"""What the sites are for: of a real PyTorch job on the CPU, the script's own lines are named for nearly all bytes at the
peak, and its losses are what they are without. Skipped where no Python has a PyTorch."""

import json
import os
import subprocess
import unittest

from command import CommandTest

DEMO = os.path.join(os.environ["SOURCE_ROOT"], "scripts/demo.d")
PYTHON = subprocess.run([os.path.join(DEMO, "python")], capture_output=True, text=True).stdout.strip()


@unittest.skipUnless(PYTHON, "no Python with a PyTorch here")
class Torch(CommandTest):
    def losses(self, *wrapper):
        done = subprocess.run([*wrapper, PYTHON, "-B", os.path.join(DEMO, "train.py"), "gpt", "3", "result.json"],
                              cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.read("result.json"))["losses"]

    def test_gpt(self):
        run = (os.environ["REPRISE_COMMAND"], "run", "--host", "--mode", "record", "--out", "out", "--stacks", "python")
        self.assertEqual(self.losses(*run, "--"), self.losses())
        stats = self.json("stats", "out/trace.reprise")
        own = sum(site["bytes"] for site in stats["sites"] if os.path.dirname(site["file"]) == DEMO)
        print(f"the script's own lines: {100 * own / stats['live_peak']:.2f} % of {stats['live_peak']} bytes")
        self.assertGreaterEqual(own, 0.9 * stats["live_peak"])
        functions = {site["function"].split(".")[-1] for site in stats["sites"]}
        self.assertIn("forward", functions)
        self.assertIn("__init__", functions)


if __name__ == "__main__":
    unittest.main()
