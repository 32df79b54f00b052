"""A random program of the host's memory (random_host.cc) sees the same with and without the preload library, to the last
line, and nothing that it has written is lost: each seed is played in each of the ways below.

By hand: random_host_test.py --seeds 300 --from 1 --steps 300
"""
import functools
import glob
import itertools
import json
import os
import sys
import tempfile
import unittest

from preloading import Installed, built, option, run

STEPS = 100
SEEDS = (1, 2)  # so that what fails here fails again

# How the program goes on. In the second it has other threads beside it, and a fault may show in some runs only.
ALONE = ("train", "threads", "signals")
BESIDE = ("train", "threads", "beside")


def play(seed, words, preload, folder, **variables):
    done = run([built("RANDOM_HOST"), "@", str(STEPS), *words], preload, folder, RANDOM_SEED=str(seed),
               RANDOM_PLUGIN=built("RANDOM_PLUGIN"), **variables)
    return done.stdout.splitlines() + done.stderr.splitlines() + [f"status {done.returncode}"]


@functools.cache
def play_without(seed, words):
    with tempfile.TemporaryDirectory() as folder:
        return play(seed, words, [], folder)


class RandomHost(unittest.TestCase):
    def install(self, core):
        self.at = Installed(core)
        self.addCleanup(self.at.close)

    def setUp(self):
        self.install("CORE_PLANNING_IN_CALLER")  # so that a plan is followed at the same step each time
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.total = {"requests": 0, "planned": 0, "plans_resumed": 0, "passed": 0}

    def count(self, out):
        """Of the program and its children: where one of those came first, the program's own summary has a number."""
        for path in glob.glob(os.path.join(out, "summary*.json")):
            with open(path) as file:
                summary = json.load(file)
            self.assertEqual((summary["errors"], summary["unknown_frees"]), (0, 0))
            for name in self.total:
                self.total[name] += summary[name]

    def check_seed(self, seed, words, run_number, **variables):
        without = play_without(seed, words)
        self.assertEqual(without[-1], "status 0", f"seed {seed}, without us: {without[-3:]}")
        out = os.path.join(self.folder, f"out{seed}.{run_number}")
        under = play(seed, words, [self.at.shim], self.folder, REPRISE_OUT=out, REPRISE_LOG="quiet", **variables)
        for at, (one, other) in enumerate(itertools.zip_longest(without, under)):
            if one != other:
                before = "".join(f"  {line}\n" for line in without[max(0, at - 5):at])
                self.fail(f"seed {seed}, line {at + 1}:\n{before}- without: {one}\n+ under:   {other}\n{under[-1]}")
        self.count(out)

    def check(self, words, runs=1, **variables):
        for seed in SEEDS:
            for run_number in range(runs):
                with self.subTest(seed=seed, run=run_number):
                    self.check_seed(seed, words, run_number, **variables)
        self.assertGreater(self.total["requests"], 0)

    def test_alone(self):
        self.check(ALONE)
        self.assertGreater(self.total["planned"], 0)

    def test_alone_with_a_planner_beside(self):
        self.install("CORE")
        self.check(ALONE)

    def test_beside_threads(self):
        self.install("CORE")
        self.check(BESIDE)

    def test_small_blocks_too(self):
        self.check(ALONE, REPRISE_THRESHOLD="1")

    def test_large_blocks_only(self):
        self.check(ALONE, REPRISE_THRESHOLD="64KiB")

    def test_little_capacity(self):
        self.check(ALONE, REPRISE_CAPACITY="4MiB")
        self.assertGreater(self.total["passed"], 0)

    def test_recorded_with_stacks(self):
        self.check(ALONE, REPRISE_MODE="record", REPRISE_STACKS="native")

    def test_plans_of_earlier_runs(self):
        """Of the same seed, and of the one before, which is the same job to us, as its command is the same."""
        self.check(ALONE, runs=2, REPRISE_CACHE=os.path.join(self.folder, "cache"))
        self.assertGreater(self.total["plans_resumed"], 0)


if __name__ == "__main__":
    STEPS = option(sys.argv, "--steps", STEPS)
    first = option(sys.argv, "--from", SEEDS[0])
    SEEDS = range(first, first + option(sys.argv, "--seeds", len(SEEDS)))
    unittest.main()
