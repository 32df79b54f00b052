"""Why this exists: the comparison downloads gigabytes and mostly finds nothing. That it would find something is shown
here, with a Python of this machine in the place of a framework."""

import subprocess
import sys
import unittest

import without_and_with as subject

Done = subprocess.CompletedProcess


class Differences(unittest.TestCase):
    def found(self, plain, preloaded):
        return list(subject.differences(Done([], *plain), Done([], *preloaded)))

    def test_the_same(self):
        self.assertEqual(self.found((3, "a\n", "b\n"), (3, "a\n", "b\n")), [])

    def test_status(self):
        self.assertEqual(self.found((0, "", ""), (-11, "", "")), ["exit status 0 without, -11 with"])

    def test_a_loss(self):
        found = self.found((0, "0x1p-1\n0x1p-2\n", ""), (0, "0x1p-1\n0x1p-3\n", ""))
        self.assertEqual(found, ["stdout: without '0x1p-2', with '0x1p-3'"])

    def test_a_line_of_ours(self):
        found = self.found((0, "", ""), (0, "", "reprise: served\n"))
        self.assertEqual(found, ["stderr: without None, with 'reprise: served'"])

    def test_a_line_that_is_missing(self):
        self.assertEqual(self.found((0, "a\nb\n", ""), (0, "a\n", "")), ["stdout: without 'b', with None"])

    def test_times_and_processes_differ_by_nature(self):
        before = "2026-01-02 03:04:05.678901: I tensorflow/core\nE0000 00:00:1732194000.123456   12345 cuda.cc:1] x\n"
        after = "2026-01-02 03:04:06.000001: I tensorflow/core\nE0000 00:00:1732194001.000000   99 cuda.cc:1] x\n"
        self.assertEqual(self.found((0, "", before), (0, "", after)), [])


class Modes(unittest.TestCase):
    def test_what_differs_is_told_with_the_mode(self):
        with self.assertRaisesRegex(subject.Failure, "^from the host's memory: exit status 0 without, 1 with$"):
            subject.compare(Done([], 0, "", ""), Done([], 1, "", ""), "from the host's memory")

    def test_a_program_that_breaks_has_nothing_to_compare(self):
        for code in ("print(1); raise ValueError", "pass"):
            with self.assertRaises(subject.Failure):
                subject.to_compare_with([sys.executable, "-c", code])
        self.assertEqual(subject.to_compare_with([sys.executable, "-c", "print(1); exit(3)"]).returncode, 3)

    def test_a_program_that_asks_for_nothing(self):
        words = [sys.executable, "-c", "print(1)"]
        served = subject.served_from_host(words, subject.run(words), None)
        self.assertEqual(served, "nothing asked for")

    def test_a_run_that_was_served(self):
        counted = '{"requests": 7, "plans": 0, "plans_resumed": 1, "planned_bytes_after_plan": 0.25}'
        leave_summary = """import os, sys
if "REPRISE_OUT" in os.environ: open(os.environ["REPRISE_OUT"] + "/summary.json", "w").write(sys.argv[1])"""
        words = [sys.executable, "-c", leave_summary, counted]
        served = subject.served_from_host(words, subject.run(words), None)
        self.assertEqual(served, "7 allocations, 25.00% of the bytes by plan")


class Import(unittest.TestCase):
    def test_a_module_that_cannot_be_imported(self):
        with self.assertRaisesRegex(subject.Failure, "no_such_module"):
            subject.timed_import(sys.executable, "no_such_module", None)

    def test_a_library_that_was_not_loaded(self):
        with self.assertRaisesRegex(subject.Failure, "not as it should be"):
            subject.timed_import(sys.executable, "json", "/no/such/library.so")

    def test_an_environment_that_is_none(self):
        self.assertFalse(subject.works("/no/such/python", "json"))
        self.assertFalse(subject.works(sys.executable, "no_such_module"))
        self.assertTrue(subject.works(sys.executable, "json"))


if __name__ == "__main__":
    unittest.main()
