"""Why this exists: most rows of gpu-check need a GPU, which is there once, for minutes. Here every row is run, on the
simulated device: jobs of frameworks are stood in for by scenarios of tests/cuda, which ask it for memory, too."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ["REPRISE_BUILD"]
sys.path.insert(0, os.path.join(ROOT, "tests", "gpu"))

import comparison  # noqa: E402
import correctness  # noqa: E402
import gpu_check  # noqa: E402
from rows import FAIL, LEFT_OUT, MEASURED, PASS  # noqa: E402

# Each leaves the file that the real program leaves, where it was asked for one.
STAND_IN = """
import json, os, sys
figures = {"seconds": [0.5] * 10 + [0.25] * 20, "peak_allocated": 1 << 20, "peak_reserved": 2 << 20, "largest": 24, "tried": {"24": True}}
for path in sys.argv:
    if path.endswith(".json"):
        json.dump(figures, open(path, "w"))
os.execv(os.environ["SCENARIOS"], ["scenarios", "training_stream_ordered"])
"""
DEMO = """
import os, subprocess, sys
subprocess.run([sys.argv[1], "run", "--cuda", "--", os.environ["SCENARIOS"], "training_stream_ordered"], check=True)
print("  losses identical           3 of 3 in each of 2 runs")
"""
WATCH = """
import sys
print("ready", flush=True)
sys.stdin.read()
print('{"baseline": 1073741824, "peak": 3221225472}')
"""
WAITING = """#!/bin/sh
echo '{"beside a kernel on a stream": [{"call": "cuMemFree", "waits": true}, {"call": "cuMemMap", "waits": false}]}'
"""
OVERSUBSCRIBED = "PyTorch cudaMallocAsync: GPT on a device too small for it, --oversubscribe"


class Machine(gpu_check.Machine):
    """The simulated device, and all that a row may need."""

    def __init__(self, simulated):
        super().__init__(simulated)
        self.nvml = {"driver": "0", "in_use": 0, "free": 64 << 30}
        self.sanitizer = os.environ["SANITIZER"]

    def missing(self, needs):
        return []


class FewScenarios(gpu_check.Scenarios):
    """All of them are played elsewhere, and take long."""

    def names(self, *how):
        return set(sorted(super().names(*how))[:3])


class EveryRow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        for name in ("train.py", "graph.py", "prefetch.py", "use_cupy.py", "largest_batch.py"):
            cls.write(name, STAND_IN)
        cls.write("compare.py", DEMO)
        cls.write("watch_memory.py", WATCH)
        cls.write("waiting_calls", WAITING, 0o755)
        cls.write("sanitizer", '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift 2; done\nexec "$@"\n', 0o755)
        cls.write("reprise", f'#!/bin/sh\nexec {os.environ["REPRISE_COMMAND"]} "$@"\n', 0o755, "bin")
        manifest = dict.fromkeys(("version", "commit", "built_on", "compiler"), "ours")
        cls.write("MANIFEST.json", json.dumps(manifest))
        cls.status, cls.out = cls.gpu_check("--seconds", "250")
        with open(os.path.join(cls.folder, "out", "results.json"), encoding="utf-8") as text:
            cls.results = {row["name"]: row for row in json.load(text)["rows"]}

    @classmethod
    def write(cls, name, text, mode=0o644, below="."):
        path = os.path.join(cls.folder, below, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, mode)

    @classmethod
    def gpu_check(cls, *words):
        made = {name: os.path.join(BUILD, "tests/cuda", name) for name in ("scenarios", "workload")}
        made["waiting_calls"] = os.path.join(cls.folder, "waiting_calls")
        simulated = os.path.join(BUILD, "tests/simcuda")
        arguments = ["gpu-check", cls.folder, "--out", os.path.join(cls.folder, "out"), "--simulated", simulated, *words]
        variables = {
            "SCENARIOS": made["scenarios"],
            "SANITIZER": os.path.join(cls.folder, "sanitizer"),
            "SIMCUDA_QUIET": "1",
        }
        out = io.StringIO()
        with contextlib.ExitStack() as stack:
            for patch in (
                mock.patch.object(gpu_check, "Machine", Machine),
                mock.patch.object(gpu_check.Compiler, "compile_cuda", lambda _, name, *__: made[name]),
                mock.patch.object(gpu_check, "Scenarios", FewScenarios),
                mock.patch.object(gpu_check.Correctness, "jax", gpu_check.Correctness.cupy),  # the only one from elsewhere
                mock.patch.object(gpu_check.signal, "signal"),
                mock.patch.object(correctness, "PROGRAMS", cls.folder),
                mock.patch.object(correctness, "DEMO", os.path.join(cls.folder, "compare.py")),
                mock.patch.object(comparison, "PROGRAMS", cls.folder),
                mock.patch.object(comparison, "HERE", cls.folder),
                mock.patch.dict(os.environ, variables),
                mock.patch.object(sys, "argv", arguments),
                contextlib.redirect_stdout(out),
            ):
                stack.enter_context(patch)
            return gpu_check.main(), out.getvalue()

    def test_no_row_is_left_out_or_breaks(self):
        wrong = {
            name: row["says"]
            for name, row in self.results.items()
            if row["verdict"] not in (PASS, MEASURED) and name != OVERSUBSCRIBED
        }
        self.assertEqual(wrong, {}, self.out)
        self.assertGreater(len(self.results), 49)

    def test_a_device_that_was_large_enough_proves_nothing(self):
        row = self.results[OVERSUBSCRIBED]
        self.assertEqual((row["verdict"], self.status), (FAIL, 1))
        self.assertIn("nothing was out of memory", row["says"])

    def test_the_demo_says_what_it_compared(self):
        row = self.results["scripts/demo --quick"]
        self.assertEqual((row["verdict"], row["says"]), (PASS, "losses identical: 3 of 3 in each of 2 runs"))

    def test_what_waits_is_counted_by_what_ran(self):
        row = self.results["calls of the driver that wait"]
        self.assertEqual((row["verdict"], row["says"]), (MEASURED, "1 of 2 beside a kernel on a stream"))

    def test_figures(self):
        figures = self.results["gpt: Reprise over cudaMallocAsync"]["figures"]
        self.assertEqual((figures["device_peak"], figures["iterations"]), (2 << 30, 15))
        self.assertEqual(figures["per_second"], {"median": 4, "p10": 4, "p90": 4})
        self.assertGreater(figures["reprise"]["requests"], 2000)
        with open(os.path.join(self.folder, "out", "results.md"), encoding="utf-8") as text:
            self.assertIn("| native | 2.00 GiB | 0.00 GiB | 0.00 GiB | 4.00 (4.00 to 4.00) | 24 | 1 |", text.read())

    def test_a_second_run_has_the_plans_of_the_first(self):
        for model in ("gpt", "resnet"):
            first = self.results[f"{model}: Reprise over cudaMallocAsync"]["figures"]["reprise"]
            second = self.results[f"{model}: Reprise, second run"]["figures"]["reprise"]
            self.assertEqual((first["plans_resumed"], second["plans_resumed"]), (0, 1))
            self.assertLess(second["first_planned_request"], first["first_planned_request"])
            figures = self.results[f"PyTorch cudaMallocAsync: {model}, second run"]["figures"]
            self.assertEqual((figures["first"]["plans_resumed"], figures["with"]["plans_resumed"]), (0, 1))

    def test_what_matters_most_comes_first(self):
        """What is timed; then what plays long, alone, since it does not end beside others; at last what nobody uses."""
        names = list(self.results)
        order = ("PyTorch cudaMallocAsync: gpt, second run", "gpt: Reprise, second run", "PyTorch cudaMallocAsync: gpt, recorded",
                 "largest batch: cudaMallocAsync", "tests/cuda: scenarios, without and with",
                 "tests/cuda: scenarios, without and with, warm", "gpt: Reprise over uncached")
        self.assertEqual(sorted(order, key=names.index), list(order))

    def test_recordings_are_left(self):
        for model in ("gpt", "resnet", "varying", "amp", "turns", "accumulated"):
            path = os.path.join(self.folder, "out", "recordings", model + ".reprise")
            self.assertIn(f"KiB in recordings/{model}.reprise", self.results[f"PyTorch cudaMallocAsync: {model}, recorded"]["says"])
            stats = subprocess.run([os.environ["REPRISE_COMMAND"], "stats", "--json", path], capture_output=True, check=True)
            self.assertGreater(json.loads(stats.stdout)["allocs"], 1000)

    def test_again_it_has_nothing_to_do(self):
        before = os.path.join(self.folder, "before.json")
        os.replace(os.path.join(self.folder, "out", "results.json"), before)
        self.addCleanup(os.replace, before, os.path.join(self.folder, "out", "results.json"))
        status, out = self.gpu_check("--rest-of", before)
        with open(os.path.join(self.folder, "out", "results.json"), encoding="utf-8") as text:
            again = json.load(text)
        self.assertEqual(({row["name"]: row for row in again["rows"]}, len(again["runs"])), (self.results, 2))
        self.assertNotIn(LEFT_OUT + " ", out)


if __name__ == "__main__":
    unittest.main()
