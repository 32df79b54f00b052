"""Pins what a served pair of stream-ordered calls costs in instructions, which are repeatable where times are not. A
change that makes it longer must say so here."""
import json
import os
import shutil
import sys
import tempfile
import unittest

from instructions import count

# 1602 with GCC 12 on x86-64, 1699 with GCC 13, and some more for other compilers.
MOST_INSTRUCTIONS_OF_A_SERVED_PAIR = 1720
ROUNDS, PAIRS = 3, 2000 * 48


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
class Instructions(unittest.TestCase):
    def test_served_pair(self):
        with tempfile.TemporaryDirectory() as folder:
            total = count([os.environ["BENCH"], str(ROUNDS), "served"], "MeasureServed", folder, os.environ["SHIM"])
            with open(os.path.join(folder, "out", "summary.json")) as file:
                summary = json.load(file)
        instructions = total / ((ROUNDS + 1) * PAIRS)
        print(f"a served pair: {instructions:.1f} instructions", file=sys.stderr)
        self.assertGreater(summary["planned"], 0.9 * ROUNDS * PAIRS)
        self.assertLessEqual(instructions, MOST_INSTRUCTIONS_OF_A_SERVED_PAIR)


if __name__ == "__main__":
    unittest.main()
