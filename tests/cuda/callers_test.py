"""Every kind of caller is caught, and in none is anything else changed: the ways in which programs come by the
driver's functions (linked, looked up, asked for; shared and static runtime; plugins) are known to have escaped
preload libraries before. Each program makes the same few calls, and a fake core counts which of them come through."""
import json
import os
import re
import shutil
import sys
import unittest

from cuda_programs import CudaTest, built

CAUGHT = {"cuMemAlloc_v2": 1, "cuMemFree_v2": 1, "cuMemGetInfo_v2": 1, "cuMemAllocAsync": 2, "cuMemFreeAsync": 2}
PER_THREAD = {name + "_ptsz" * name.endswith("Async"): count for name, count in CAUGHT.items()}
HELD = "free + used <= total: 1\n"


def caught(stderr):
    """How often the fake core was called, by the names of CAUGHT and PER_THREAD."""
    counts = {name: int(count) for name, count in re.findall(r"^fake core: (\w+) (\d+)$", stderr, re.M)}
    return {name: count for name, count in counts.items() if name in CAUGHT or name in PER_THREAD}


class Callers(CudaTest):
    core = "FAKE_CUDA_CORE"

    def check(self, *command, expected=CAUGHT):
        without = self.run_job(command)
        self.assertEqual(without.stdout, HELD, without.stderr)
        under = self.run_job(command, [self.at.shim])
        self.assertEqual((under.returncode, under.stdout), (without.returncode, without.stdout), under.stderr)
        self.assertEqual(under.stderr.count("fake core: opened\n"), 1)
        self.assertEqual(caught(under.stderr), expected)
        self.check_served(command)

    def check_served(self, command):
        """By the real core: the two stream-ordered blocks; a first synchronous one is only recorded."""
        at = self.install("CORE")
        out = os.path.join(at.folder, "out")
        done = self.run_job(command, [at.shim], REPRISE_OUT=out)
        self.assertEqual(done.stdout, HELD, done.stderr)
        with open(os.path.join(out, "summary.json")) as file:
            summary = json.load(file)
        self.assertEqual({key: summary[key] for key in ("requests", "arena", "outside")},
                         {"requests": 3, "arena": 2, "outside": 1})

    def test_runtime(self):
        self.check(built("RUNTIME_SHARED"))

    def test_runtime_static(self):
        self.check(built("RUNTIME_STATIC"))

    def test_runtime_per_thread(self):
        self.check(built("RUNTIME_PER_THREAD"), expected=PER_THREAD)

    def test_plugin(self):
        self.check(built("LOADER"), built("RUNTIME_PLUGIN"))

    def test_plugin_with_the_static_runtime(self):
        self.check(built("LOADER"), built("RUNTIME_PLUGIN_STATIC"))

    def test_plugin_with_a_scope_of_its_own(self):
        """As a framework's extension: the runtime has been loaded before."""
        self.check(built("LOADER"), built("RUNTIME_PLUGIN"), "deepbind", "libcudart.so.13")

    def test_runtime_in_a_scope_of_its_own(self):
        """A runtime that is loaded in such a scope has the C library's dlsym. It is not caught; nor is it harmed."""
        for plugin in ["RUNTIME_PLUGIN", "RUNTIME_PLUGIN_STATIC"]:
            under = self.run_job([built("LOADER"), built(plugin), "deepbind"], [self.at.shim])
            self.assertEqual((under.stdout, under.stderr), (HELD, ""))

    def test_driver_linked(self):
        self.check(built("LINKED"))

    def test_driver_linked_per_thread(self):
        self.check(built("LINKED_PER_THREAD"), expected=PER_THREAD)

    def test_driver_looked_up_in_a_scope_of_its_own(self):
        self.check(built("LOADER"), built("LOCAL_SCOPE"))

    def test_driver_looked_up(self):
        for how in ["handle", "default", "self", "again", "changed"]:
            with self.subTest(how):
                self.check(built("OPENED"), how)

    def test_driver_looked_up_after_another_library(self):
        self.check(built("OPENED"), "again", built("CU_NAMES"))

    def test_driver_looked_up_per_thread(self):
        self.check(built("OPENED_PER_THREAD"), expected=PER_THREAD)

    def test_python(self):
        self.check(sys.executable, os.path.join(os.path.dirname(__file__), "callers", "caller.py"))


class Cancelled(CudaTest):
    def test_no_call_is_where_a_thread_is_cancelled(self):
        without = self.run_job([built("CANCELLED")]).stdout
        self.assertEqual(without, "0 0\ncancelled: 1\n")
        for variables in [{}, {"REPRISE_MODE": "record", "REPRISE_OUT": os.path.join(self.at.folder, "out")}]:
            under = self.run_job([built("CANCELLED")], [self.at.shim], **variables)
            self.assertEqual((under.returncode, under.stdout), (0, without), under.stderr)


class CancelledWaiting(CudaTest):
    core = "CORE_PLANNING_IN_CALLER"

    def test_no_call_that_waits_for_another_is_either(self):
        variables = {"SIMCUDA_STREAMS": "deferred", "SIMCUDA_SLOW": "cuCtxDestroy"}
        without = self.run_job([built("CANCELLED_WAITING")], **variables).stdout
        self.assertEqual(without, "ended: 0\ncancelled: 1\n")
        under = self.run_job([built("CANCELLED_WAITING")], [self.at.shim], **variables)
        self.assertEqual((under.returncode, under.stdout), (0, without), under.stderr)
        self.assertNotIn("planned             nothing", under.stderr)


class CapturedWhileOpening(CudaTest):
    def test_what_is_asked_for_belongs_to_the_graph(self):
        did = "0 0 0 0 0 0 0, 3 nodes\n0 0 0\n"
        self.assertEqual(self.run_job([built("CAPTURED")]).stdout, "begun before: 0\n" + did)
        under = self.run_job([built("CAPTURED")], [self.at.shim])
        self.assertEqual((under.returncode, under.stdout), (0, "begun before: 1\n" + did), under.stderr)


class WhileOpening(CudaTest):
    core = "FAKE_CUDA_CORE"

    def test_other_threads_pass_to_the_driver(self):
        done = self.run_job([built("LINKED")], [self.at.shim], FAKE_CORE="thread")
        self.assertEqual((done.returncode, done.stdout), (0, HELD), done.stderr)
        self.assertEqual(caught(done.stderr), CAUGHT)


class Asked(CudaTest):
    """cuGetProcAddress of both versions, by the program itself."""

    core = "FAKE_CUDA_CORE"
    OURS = {"cuGetProcAddress 11030 0", "cuGetProcAddress 12000 0", "cuMemAlloc 3020 0", "cuMemAlloc 12000 1",
            "cuMemAlloc 12000 2", "cuMemAllocAsync 11020 0", "cuMemAllocAsync 11020 1", "cuMemAllocAsync 11020 2",
            "cuMemAllocAsync 13000 2", "cuMemCreate 12000 0", "cuStreamBeginCapture 10010 2",
            "cuStreamDestroy 2000 0", "cuStreamDestroy 4000 0"}

    def test_answers(self):
        without = self.run_job([built("ASKED")]).stdout
        under = self.run_job([built("ASKED")], [self.at.shim])
        self.assertEqual(under.stdout.replace("ours", "driver's"), without)
        swapped = {line.split(":")[0] for line in under.stdout.splitlines() if line.count("ours") == 2}
        self.assertEqual(swapped, self.OURS)
        self.assertEqual(under.stdout.count("ours"), 2 * len(self.OURS))
        self.assertEqual(caught(under.stderr), CAUGHT)

    def test_a_later_cuda_in_which_the_functions_are_the_same(self):
        asked = [built("ASKED"), "13080"]
        without = self.run_job(asked, SIMCUDA_VERSION="13080").stdout
        under = self.run_job(asked, [self.at.shim], SIMCUDA_VERSION="13080")
        self.assertEqual(under.stdout.replace("ours", "driver's"), without)
        self.assertEqual(under.stdout.count("ours"), 2 * len(self.OURS) + 2)
        self.assertEqual(caught(under.stderr), CAUGHT)

    def test_a_later_cuda_in_which_a_function_is_another(self):
        """It would free a block of ours, had any been served: none is."""
        asked = [built("ASKED"), "13090"]
        without = self.run_job(asked, SIMCUDA_VERSION="13090").stdout
        self.assertIn(HELD, without)
        under = self.run_job(asked, [self.at.shim], SIMCUDA_VERSION="13090")
        self.assertEqual(under.stderr.count("fake core: stopped\n"), 1)
        at = self.install("CORE")
        under = self.run_job(asked, [at.shim], SIMCUDA_VERSION="13090")
        self.assertEqual((under.returncode, under.stdout.replace("ours", "driver's")), (0, without))
        self.assertIn("reprise: this driver has a newer function than is known here: cuMemFreeAsync; memory is left as it "
                      "is\n", under.stderr)

    def test_off(self):
        without = self.run_job([built("ASKED")])
        for variables in [{"REPRISE_DISABLE": "1"}, {"REPRISE_MODE": "off"}]:
            under = self.run_job([built("ASKED")], [self.at.shim], **variables)
            self.assertEqual((under.stdout, under.stderr), (without.stdout, without.stderr))


class OutOfOrder(CudaTest):
    """Whatever is wrong with the core, the job runs; one line says what."""

    core = None

    def check(self, said, **variables):
        for program in ["RUNTIME_SHARED", "LINKED"]:
            done = self.run_job([built(program)], [self.at.shim], **variables)
            self.assertEqual((done.returncode, done.stdout), (0, HELD), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1 if said else 0, done.stderr)
            self.assertIn(said, done.stderr)

    def test_no_core(self):
        self.check("reprise: cannot open the core library: ")

    def test_no_core_and_quiet(self):
        self.check("", REPRISE_LOG="quiet")

    def test_core_refuses(self):
        shutil.copy(built("FAKE_CUDA_CORE"), self.at.core)
        self.check("", FAKE_CORE="refuse")

    def test_core_of_another_version(self):
        shutil.copy(built("FAKE_CUDA_CORE"), self.at.core)
        done = self.run_job([built("LINKED")], [self.at.shim], FAKE_CORE="newer")
        self.assertEqual(done.stdout, HELD)
        self.assertIn("reprise: the core library is of another version", done.stderr)

    def test_off_needs_no_core(self):
        self.check("", REPRISE_DISABLE="1")
        self.check("", REPRISE_MODE="off")


class Processes(CudaTest):
    core = "FAKE_CUDA_CORE"

    def loaded(self, command, preload, **variables):
        """Which of our libraries a process has in its memory at its end."""
        done = self.run_job(command, preload, **variables)
        return set(re.findall(r"(libreprise\w*(?:-host)?\.so|libcuda\.so\S*)", done.stdout))

    def test_a_process_without_cuda_opens_no_core(self):
        for command in [["cat", "/proc/self/maps"], [sys.executable, "-c", "print(open('/proc/self/maps').read())"]]:
            self.assertEqual(self.loaded(command, [self.at.shim]), {"libreprise.so"})

    def test_two_copies(self):
        """The first serves; the second passes through to it."""
        another = self.install("FAKE_CUDA_CORE")
        done = self.run_job([built("RUNTIME_SHARED")], [self.at.shim, another.shim])
        self.assertEqual(done.stdout, HELD)
        self.assertEqual(done.stderr.count("fake core: opened\n"), 1, done.stderr)
        self.assertEqual(caught(done.stderr), CAUGHT)

    def test_beside_the_library_for_host_memory(self):
        shutil.copy(built("SHIM"), os.path.join(self.at.folder, "libreprise-host.so"))
        host = os.path.join(self.at.folder, "libreprise-host.so")
        for preload in [[self.at.shim, host], [host, self.at.shim]]:
            done = self.run_job([built("RUNTIME_SHARED")], preload, REPRISE_LOG="quiet")
            self.assertEqual(done.stdout, HELD)
            self.assertEqual(caught(done.stderr), CAUGHT)

    def test_exec_children_are_caught(self):
        done = self.run_job(["sh", "-c", f"{built('RUNTIME_SHARED')}; exec {built('LINKED')}"], [self.at.shim])
        self.assertEqual(done.stdout, HELD * 2)
        self.assertEqual(done.stderr.count("fake core: opened\n"), 2)


if __name__ == "__main__":
    unittest.main()
