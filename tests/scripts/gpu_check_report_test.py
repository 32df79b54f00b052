"""Why this exists: what gpu-check has found on a GPU is all that comes back from there. It must say where and how it was
found, and a second run must go on where the first was ended."""

import importlib.util
import os
import py_compile
import sys
import tempfile
import unittest
from unittest import mock

from gpu_check_test import Folder, HasAll, HasNothing  # where the modules are found, too

import comparison
import entry
import gpu_check
import jobs
import machine
import rows
from rows import FAIL, LEFT_OUT, MEASURED, PASS, Deadline, Finding, Result, Row


class RestOf(Folder):
    """A second run goes on where the first was ended."""

    def result(self, name, verdict, whole=True, **figures):
        return Result("correctness", name, 1, verdict, "", figures, whole)

    def again(self, only=(), *before):
        rows.Report(self.folder, [{"n": 1}], before)
        runs, results = rows.read(os.path.join(self.folder, "results.json"))
        asked = []

        def find(name):
            return lambda _: asked.append(name) or Finding(PASS if name != "unlucky" else LEFT_OUT, "anew")

        names = dict.fromkeys([*(result.name for result in before), "never begun"])
        listed = [Row("correctness", name, 100, (), find(name)) for name in names]
        report = rows.Report(self.folder, [*runs, {"n": 2}], results)
        rows.run(gpu_check.Plan(only, results).of(listed), 1, HasAll(), Deadline(100), report)
        runs, results = rows.read(report.path)
        self.assertEqual(runs, [{"n": 1}, {"n": 2}])
        return asked, {result.name: (result.verdict, result.run) for result in results}

    def test_what_is_left(self):
        asked, found = self.again(
            (),
            self.result("passed", PASS),
            self.result("failed", FAIL),
            self.result("too late", LEFT_OUT, whole=False),
            self.result("of no use", LEFT_OUT),
            self.result("cut short", PASS, whole=False),
            self.result("unlucky", MEASURED, whole=False),
        )
        self.assertEqual(asked, ["too late", "cut short", "unlucky", "never begun"])
        expected = {"passed": (PASS, 0), "failed": (FAIL, 0), "too late": (PASS, 1), "of no use": (LEFT_OUT, 0)}
        expected.update({"cut short": (PASS, 1), "unlucky": (MEASURED, 0), "never begun": (PASS, 1)})
        self.assertEqual(found, expected)

    def test_only(self):
        asked, found = self.again(["pass", "gpt"], self.result("passed", FAIL), self.result("other", LEFT_OUT, False))
        self.assertEqual(asked, ["passed"])
        self.assertEqual(found, {"passed": (PASS, 1), "other": (LEFT_OUT, 0)})

    def test_what_is_no_report(self):
        for name, text in (("none", None), ("broken.json", "{"), ("other.json", '{"rows": []}')):
            path = os.path.join(self.folder, name) if text is None else self.write(name, text)
            with mock.patch.object(sys, "argv", ["gpu-check", "--rest-of", path]):
                with self.assertRaisesRegex(SystemExit, f"gpu-check: {path} is no results.json"):
                    gpu_check.main()

    def test_want_of_time_is_known(self):
        class Late(Deadline):
            def left(self):
                return rows.LEAST + 1

        def found(budget, verdict=LEFT_OUT, needs=HasAll()):
            row = Row("correctness", "x", 100, ("y",), lambda _: Finding(verdict))
            return rows.found(row, needs, budget).whole

        self.assertFalse(found(Deadline(0)))
        self.assertFalse(found(Late(0)))
        self.assertFalse(found(Deadline(1000), needs=HasNothing()))
        self.assertTrue(found(Deadline(1000)))
        self.assertTrue(found(Late(0), PASS))


class Entry(Folder):
    def test_it_says_where_and_how(self):
        with mock.patch.object(machine, "devices", lambda: [{"name": "GPU|X", "bytes": 80 << 30}]):
            with mock.patch.object(machine, "asked_of_nvml", lambda: {"driver": "580.1", "in_use": 1 << 30, "free": 7}):
                facts = machine.Machine().facts()
        bundle = {"version": "0.1", "commit": "abc", "built_on": "a system", "compiler": "a compiler"}
        run = {"started": "2026-01-02T03:04:05+00:00", "command": "gpu-check x", "bundle": bundle, "machine": facts}
        report = rows.Report(self.folder, [run], also=entry.write)
        figures = {"largest": 40, "complete": True}
        report.add(Result("comparison", "largest batch: native", 1, MEASURED, "a | b", figures))
        with open(os.path.join(self.folder, "results.md"), encoding="utf-8") as text:
            written = text.read()
        for said in ("2026-01-02", "commit abc", "GPU|X (80.0 GiB)", "driver 580.1", "1.0 GiB of the device in use",
                     "\n    gpu-check x\n", f"Python {facts['python']}", "| native | - | - | - | - | 40 | 1 |",
                     "| largest batch: native | measured | 1 | 1 | a \\| b |"):
            self.assertIn(said, written)
        self.assertNotIn("resnet", written)  # of which nothing was measured


class Bytecode(Folder):
    """Frameworks whose installer has made none are compiled once for all jobs, not by each of them."""

    def test_where_there_is_none(self):
        self.write("framework.py", "")
        script = "import framework; print(framework.__cached__)"

        def cached():
            runner = jobs.Jobs("reprise", tempfile.mkdtemp(dir=self.folder), variables)
            done = runner.run("a job", [sys.executable, "-c", script], Deadline(30), {"PYTHONPATH": self.folder})
            return done.out.strip(), os.path.exists(done.out.strip())

        with mock.patch.object(sys, "path", [self.folder, *sys.path]):
            with mock.patch.object(machine, "FRAMEWORKS", {"a": "framework", "b": "no_such_framework"}):
                with mock.patch.dict(os.environ, {"PYTHONDONTWRITEBYTECODE": "1"}):
                    variables = machine.bytecode(os.path.join(self.folder, "made"))
                    path, exists = cached()
                    self.assertTrue(exists and path.startswith(os.path.join(self.folder, "made")), path)
                py_compile.compile(os.path.join(self.folder, "framework.py"))
                self.write("framework.py", "# another")
                variables = machine.bytecode(os.path.join(self.folder, "again"))
                self.assertEqual(cached()[0], importlib.util.cache_from_source(os.path.join(self.folder, "framework.py")))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "again")))


class Libraries(Folder):
    """What a row needs is found where its framework is installed, and read."""

    def test_those_of_the_frameworks_that_are_needed(self):
        for folder in ("one/lib", "shared/a/b", "another"):
            os.makedirs(os.path.join(self.folder, folder))
        for name in ("one/__init__.py", "one/lib/libone.so.1", "shared/a/b/libtwo.so", "another/other.so"):
            self.write(name, "x")
        known = {"One": ("one", "no_such_module", "shared"), "Two": ("shared",), "Other": ("another",)}
        with mock.patch.object(sys, "path", [self.folder, *sys.path]), mock.patch.object(machine, "LIBRARIES", known):
            found = machine.libraries(["a GPU", "One", "Two"])
        self.assertEqual(found, [os.path.join(self.folder, name) for name in ("one/lib/libone.so.1", "shared/a/b/libtwo.so")])

    def test_they_are_read_to_their_ends(self):
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        thread = machine.read_in([os.path.join(self.folder, "gone"), pipe])
        with open(pipe, "wb") as out:
            out.write(bytes(1 << 20))  # raises where nobody reads on
        thread.join()


class Together(unittest.TestCase):
    def test_as_many_as_there_is_room_for(self):
        with mock.patch.object(gpu_check.os, "sched_getaffinity", lambda _: range(16)):
            for free, expected in ((75, 8), (30, 3), (2, 1)):
                self.assertEqual(gpu_check.together(mock.Mock(nvml={"free": free << 30})), expected)
            self.assertEqual(gpu_check.together(mock.Mock(nvml={})), 8)


class Table(unittest.TestCase):
    def test_what_was_not_measured_has_no_figure(self):
        rate = {"median": 12.5, "p10": 12.0, "p90": 13.0}
        figures = {"device_peak": 3 << 30, "torch_peak": 2 << 30, "per_second": rate, "reserved": 5 << 29, "reprise": {}}
        without = {**figures, "torch_peak": None, "reserved": None}  # PyTorch keeps none without its cache
        results = [
            Result("comparison", "gpt: uncached", 1, MEASURED, "", without),
            Result("comparison", "gpt: Reprise over uncached", 1, MEASURED, "", {**without, "reprise": {"reserved_peak": 1 << 30}}),
            Result("comparison", "gpt: native", 1, MEASURED, "", figures),
            Result("comparison", "gpt: Reprise over cudaMallocAsync", 1, MEASURED, "", {**figures, "reprise": {"reserved_peak": 3 << 30}}),
            Result("comparison", "largest batch: native", 1, MEASURED, "", {"largest": 40, "complete": False}),
            Result("comparison", "gpt: cudaMallocAsync", 1, FAIL, "", {}),
        ]
        lines = {line[:29].strip(): line[29:].split() for line in comparison.table(results)[: 1 + len(comparison.ALLOCATORS)]}
        self.assertEqual(lines["uncached"], "3.00 GiB - - 12.50 (12.00 to 13.00) - 1".split())
        self.assertEqual(lines["Reprise over uncached"], "3.00 GiB 1.00 GiB - 12.50 (12.00 to 13.00) - 1".split())
        self.assertEqual(
            lines["Reprise over cudaMallocAsync"],
            "3.00 GiB 2.50 GiB 2.00 GiB 12.50 (12.00 to 13.00) - 1".split(),
            "PyTorch's word, as in the other rows: Reprise's holds what others ask the driver for, too",
        )
        self.assertEqual(lines["native"], "3.00 GiB 2.50 GiB 2.00 GiB 12.50 (12.00 to 13.00) >= 40 1".split())
        self.assertEqual(lines["cudaMallocAsync"], ["-"] * 5)


if __name__ == "__main__":
    unittest.main()
