"""Pins what the hot path costs in instructions, which are repeatable where times are not. A change that makes it
longer must say so here."""
import json
import os
import shutil
import sys
import tempfile
import unittest

from instructions import count

# 1253 and 27 with GCC 12 on x86-64, 1317 and 29 with GCC 13, and a little more for other compilers.
MOST_INSTRUCTIONS_OF_A_SERVED_PAIR = 1330
MOST_INSTRUCTIONS_ADDED_TO_A_SMALL_PAIR = 30
ROUNDS, PAIRS = 3, 2000 * 48


def pair(part, calls, folder, preload=None):
    """Instructions of one pair of one part of the benchmark, which measures it `calls` times."""
    total = count([os.environ["BENCH"], str(ROUNDS), part], f"Measure{part.capitalize()}", folder, preload)
    return total / (calls * PAIRS)


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
class Instructions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_served_pair(self):
        instructions = pair("served", ROUNDS + 1, self.folder, os.environ["SHIM"])
        with open(os.path.join(self.folder, "out", "summary.json")) as file:
            summary = json.load(file)
        print(f"a served pair: {instructions:.1f} instructions", file=sys.stderr)
        self.assertGreater(summary["planned"], 0.9 * ROUNDS * PAIRS)
        self.assertLessEqual(instructions, MOST_INSTRUCTIONS_OF_A_SERVED_PAIR)

    def test_small_pair(self):
        without = pair("small", ROUNDS, self.folder)
        under = pair("small", ROUNDS, self.folder, os.environ["SHIM"])
        print(f"a small pair: {under:.1f} instructions, {without:.1f} without", file=sys.stderr)
        self.assertLessEqual(under - without, MOST_INSTRUCTIONS_ADDED_TO_A_SMALL_PAIR)


if __name__ == "__main__":
    unittest.main()
