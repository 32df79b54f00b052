"""Pins what a native call stack costs in instructions, which are repeatable where times are not. A change that makes it
longer must say so here."""
import os
import shutil
import sys
import tempfile
import unittest

from instructions import count

DEPTH, TAKES, ROUNDS = 20, 2000, 9
MOST_INSTRUCTIONS = 3400  # 3062 with GCC 12 on x86-64, and a tenth more for other compilers and libraries


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
class Instructions(unittest.TestCase):
    def test_native(self):
        with tempfile.TemporaryDirectory() as folder:
            total = count([os.environ["BENCH"], str(DEPTH), str(TAKES)], "MeasureTakes*", folder)
        instructions = total / (ROUNDS * TAKES + 1000)
        print(f"a native stack of {DEPTH} frames and a few: {instructions:.0f} instructions", file=sys.stderr)
        self.assertGreater(instructions, 100)  # the function was found
        self.assertLessEqual(instructions, MOST_INSTRUCTIONS)


if __name__ == "__main__":
    unittest.main()
