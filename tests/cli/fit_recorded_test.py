"""Why this exists: a trace leaves out what is below its threshold, and that shrinks with the batch: a prediction that did not
know would be too narrow."""

import sys
import unittest

import command

# usage: BATCH; in every round 64 blocks of as many KiB and one of as many MiB are live at once.
SMALL_AND_LARGE = """
import ctypes, sys
libc, batch = ctypes.CDLL(None), int(sys.argv[1])
for _ in range(32):
    blocks = [ctypes.c_void_p() for _ in range(65)]
    for i, block in enumerate(blocks):
        libc.posix_memalign(ctypes.byref(block), ctypes.c_size_t(64), ctypes.c_size_t(batch << (20 if i == 0 else 10)))
    for block in blocks:
        libc.free(block)
"""


class FitOfTraces(command.CommandTest):
    def record(self, batch):
        done = self.run_host("--mode", "record", "--threshold", "16K", "--out", f"out{batch}", "--",
                             sys.executable, "-c", SMALL_AND_LARGE, str(batch))
        self.assert_status(done, 0)
        return f"out{batch}/trace.reprise@{batch}"

    def test_what_was_too_small_to_be_recorded_widens_the_range(self):
        small, large = self.json("fit", self.record(8), self.record(32))["inputs"]
        self.assertGreaterEqual(small["error"], 64 * 8 * 1024, "64 blocks of 8 KiB were not recorded")
        self.assertLess(large["error"], small["error"])


if __name__ == "__main__":
    unittest.main()
