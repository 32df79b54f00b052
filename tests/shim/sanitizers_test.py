"""Programs that are built with a real sanitizer start under the preload libraries, are left alone, and hear of their
faults. Sanitizers look functions up before any of theirs can be called, and AddressSanitizer's library wants to be the
first that is loaded."""
import re
import sys
import unittest

from preloading import Installed, built, run

OF_ADDRESSES, OF_THREADS = "OF_ADDRESSES", "OF_THREADS"
WATCHED = "reprise: a sanitizer watches this program's memory and threads"


class Sanitized(unittest.TestCase):
    def installed(self, shim):
        at = Installed({"SHIM": "FAKE_CORE_LIBRARY", "CUDA_SHIM": "FAKE_CUDA_CORE"}[shim], shim=shim)
        self.addCleanup(at.close)
        return at.shim

    def run_both(self, shim, command):
        plain, under = run(command), run(command, preload=[self.installed(shim)])
        if plain.returncode not in (1, 7):
            self.skipTest(f"does not run here at all: {plain.stderr}")
        self.assertEqual((under.returncode, under.stdout), (plain.returncode, plain.stdout), under.stderr)
        return plain, under

    def test_they_run_and_are_left_alone(self):
        for program in [OF_ADDRESSES, OF_THREADS]:
            for shim in ["SHIM", "CUDA_SHIM"]:
                with self.subTest(program=program, shim=shim):
                    _, under = self.run_both(shim, [built(program)])
                    self.assertEqual((under.returncode, under.stdout), (7, "took memory\n"))
                    self.assertEqual(under.stderr.count(WATCHED), 1 if shim == "SHIM" else 0, under.stderr)

    def test_a_fault_is_found(self):
        for shim in ["SHIM", "CUDA_SHIM"]:
            with self.subTest(shim=shim):
                plain, under = self.run_both(shim, [built(OF_ADDRESSES), "twice"])
                self.assertIn("attempting double-free", plain.stderr)
                self.assertIn("attempting double-free", under.stderr)

    def test_one_that_comes_with_a_plugin_complains_as_without_us(self):
        load = [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", built("LATE_SANITIZER")]
        for shim in ["SHIM", "CUDA_SHIM"]:
            with self.subTest(shim=shim):
                plain, under = self.run_both(shim, load)
                process_id = re.compile("==[0-9]+==")
                self.assertEqual(process_id.sub("", under.stderr), process_id.sub("", plain.stderr))


if __name__ == "__main__":
    unittest.main()
