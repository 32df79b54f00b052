"""Pins what an event costs the job in instructions, which are repeatable where times are not. A change that makes it
longer must say so here."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

MOST_INSTRUCTIONS = 50  # 45.0 with GCC 12 on x86-64, and a tenth more for other compilers
APPENDS = 40_000


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
class Instructions(unittest.TestCase):
    def test_append(self):
        with tempfile.TemporaryDirectory() as folder:
            counts = os.path.join(folder, "counts")
            run = subprocess.run(
                ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}",
                 "--toggle-collect=reprise::profiler::Recorder::Append*",
                 os.environ["BENCH"], "--count", str(APPENDS)],
                env={**os.environ, "TMPDIR": folder}, check=True, capture_output=True, text=True)
            with open(counts) as file:
                total = int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M).group(1))
        self.assertIn(f"appended {APPENDS} dropped 0", run.stdout)
        print(f"an event: {total / APPENDS:.1f} instructions", file=sys.stderr)
        self.assertGreater(total, APPENDS)  # the function was found
        self.assertLessEqual(total / APPENDS, MOST_INSTRUCTIONS)


if __name__ == "__main__":
    unittest.main()
