"""Why this exists: gpu-check runs where nobody of us looks on, once. That it would say so if something were wrong, that
it comes to an end, and that what it found until then is not lost, is shown here, on jobs that need no GPU."""

import ast
import glob
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "gpu"))

import compiler  # noqa: E402
import correctness  # noqa: E402
import gpu_check  # noqa: E402
import jobs  # noqa: E402
import machine  # noqa: E402
import rows  # noqa: E402
import scenarios  # noqa: E402
from rows import FAIL, LEFT_OUT, PASS, Deadline, Finding, Result, Row  # noqa: E402

# In the place of the command: leaves a summary, changes the job as the variable FAKE says.
FAKE_REPRISE = r"""#!/bin/sh
[ "$1" = stats ] && { echo "$STATS"; exit; }
[ "$FAKE" = none ] && echo "reprise: no time line: there is no CUPTI" >&2
while [ "$1" != -- ]; do [ "$1" = --out ] && out=$2; shift; done
shift
mkdir -p "$out"
[ "$FAKE" = nothing ] || echo '{"devices": [{"requests": 3, "planned": 2}, {"requests": 9, "name": "x"}]}' > "$out/summary.json"
[ "$FAKE" = line ] && echo of ours
[ "$FAKE" = status ] && exit 5
if [ "$FAKE" = summary ]; then
  SERVED=1 "$@"; status=$?
  printf 'reprise: job (pid 7), served\n  trace  724 B  in x\nreprise: in x: all\n' >&2
  exit $status
fi
exec "$@"
"""


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, mode)
        return path


class Compared(Folder):
    def finding(self, script, fake="", limit=30):
        reprise = self.write("reprise", FAKE_REPRISE, 0o755)
        runner = jobs.Jobs(reprise, self.folder, {"COUNTER": os.path.join(self.folder, "counter")})
        return jobs.compared(runner, "a job", ["sh", "-c", script], Deadline(limit), {"FAKE": fake})

    def test_the_same(self):
        finding = self.finding("echo 0x1p-1")
        self.assertEqual((finding.verdict, finding.figures["with"]["requests"]), (PASS, 9))

    def test_another_loss(self):
        finding = self.finding("echo 0x1p-1", "line")
        self.assertEqual((finding.verdict, finding.says), (FAIL, "DIFFERS: line 1: '0x1p-1' without, 'of ours' with"))

    def test_another_status(self):
        finding = self.finding("true", "status")
        self.assertEqual(finding.verdict, FAIL)
        self.assertIn("status 5 under Reprise", finding.says)

    def test_a_job_that_fails_under_reprise_says_why(self):
        """Its own last line, not ours, which come after it; and more of it, as nobody can look at its files later."""
        script = '[ -z "$SERVED" ] || { echo first >&2; echo CUDA error >&2; exit 4; }'
        finding = self.finding(script, "summary")
        self.assertEqual((finding.verdict, finding.says), (FAIL, "status 4 under Reprise: CUDA error"))
        self.assertIn("first\nCUDA error\n", finding.figures["err"])

    def test_a_job_that_is_slow_by_itself(self):
        """Its time under Reprise would not be enough, and that would be said of Reprise."""
        finding = self.finding("sleep 2", limit=3)
        self.assertEqual((finding.verdict, finding.says), (LEFT_OUT, "the job takes too long without Reprise"))

    def test_a_job_that_is_slow_under_reprise(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            self.finding('[ -z "$SERVED" ] || exec tail -f /dev/null', "summary", limit=3)

    def test_nothing_caught(self):
        self.assertEqual(self.finding("echo 1", "nothing").verdict, FAIL)

    def test_a_job_that_fails_by_itself(self):
        finding = self.finding("echo no such thing >&2; exit 3")
        self.assertEqual((finding.verdict, finding.says), (LEFT_OUT, "the job fails without Reprise: no such thing"))

    def test_a_job_that_does_not_repeat_itself(self):
        finding = self.finding("echo x >> $COUNTER; wc -l < $COUNTER")
        self.assertEqual(finding.verdict, LEFT_OUT)

    def test_what_steers_an_allocator_comes_from_nobody_else(self):
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:native"
        self.addCleanup(os.environ.pop, "PYTORCH_CUDA_ALLOC_CONF")
        self.assertEqual(self.finding("echo ${PYTORCH_CUDA_ALLOC_CONF-unset}").figures["out"], "unset\n")


class TimeLine(Folder):
    def finding(self, fake="", totals=()):
        self.write("train.py", "open('result.json', 'w').write('{\"seconds\": [2, 1, 1]}')\nprint('0x1p-1')")
        stats = {"device_activity": {"totals": [*totals], "by_name": []}} if totals else {}
        out = tempfile.mkdtemp(dir=self.folder)
        variables = {"FAKE": fake, "STATS": json.dumps(stats)}
        runner = jobs.Jobs(self.write("reprise", FAKE_REPRISE, 0o755), out, variables)
        with mock.patch.object(correctness, "PROGRAMS", self.folder):
            return correctness.Correctness(None, ROOT, runner, None, None).timeline(Deadline(30))

    def test_kernels(self):
        finding = self.finding(totals=[{"kind": "kernel", "count": 1200}, {"kind": "copy", "count": 3}])
        self.assertEqual(finding.verdict, PASS)
        self.assertRegex(finding.says, "1,200 kernels of 0 names, an iteration takes 1.000 times")

    def test_none(self):
        self.assertEqual(self.finding().verdict, FAIL)
        self.assertEqual(self.finding(totals=[{"kind": "copy", "count": 3}]).verdict, FAIL)
        finding = self.finding("none", [{"kind": "kernel", "count": 1}])
        self.assertEqual((finding.verdict, finding.says), (FAIL, "reprise: no time line: there is no CUPTI"))

    def test_another_loss(self):
        finding = self.finding("line", [{"kind": "kernel", "count": 1}])
        self.assertEqual((finding.verdict, finding.says[:7]), (FAIL, "DIFFERS"))


class Compiled:
    """In the place of the compiler: has made `program`."""

    def __init__(self, program):
        self.program = program

    def compile(self, name, deadline, runtime="shared"):
        return self.program

    def compile_cuda(self, name, sources, deadline):
        return self.program


class Memcheck(Folder):
    """The sanitizer writes to stdout. Unless it is told otherwise, a call of the driver that answers other than success is
    an error to it; ours are answered `not ready` as a matter of course."""

    SANITIZER = """#!/bin/sh
echo "========= COMPUTE-SANITIZER"
case "$*" in
  *"--report-api-errors no"*) ;;
  *) [ -n "$SERVED" ] && { echo "========= Program hit CUDA_ERROR_NOT_READY"; exit 9; } ;;
esac
[ "$HOW" = hangs ] && exec tail -f /dev/null
[ "$HOW" = "wrong$SERVED" ] && { echo "========= Invalid __global__ write of size 4 bytes"; exit 9; }
echo "========= ERROR SUMMARY: 0 errors"
"""

    def finding(self, how="", fake="", limit=30):
        made = machine.Machine()
        made.sanitizer = self.write("compute-sanitizer", self.SANITIZER, 0o755)
        reprise = self.write("reprise", FAKE_REPRISE.replace("exec", "SERVED=1 exec"), 0o755)
        runner = jobs.Jobs(reprise, self.folder, {"HOW": how, "FAKE": fake})
        return correctness.Correctness(made, ROOT, runner, Compiled("a program"), None).memcheck(Deadline(limit))

    def test_clean(self):
        self.assertEqual(self.finding().verdict, PASS)

    def test_an_error(self):
        finding = self.finding("wrong1")
        self.assertEqual(finding.verdict, FAIL)
        self.assertEqual(finding.says, "status 9 under Reprise: Invalid __global__ write of size 4 bytes")

    def test_the_sanitizer_is_too_slow_by_itself(self):
        finding = self.finding("hangs", limit=1)
        self.assertEqual((finding.verdict, finding.whole), (LEFT_OUT, False))

    def test_an_error_of_the_programs_own(self):
        finding = self.finding("wrong")
        self.assertEqual((finding.verdict, finding.says[-40:]), (LEFT_OUT, "Invalid __global__ write of size 4 bytes"))

    def test_nothing_caught(self):
        self.assertEqual(self.finding(fake="nothing").verdict, FAIL)


class Workload(Folder):
    """The fake command changes the line that the program prints: by the resident memory, as any run does."""

    LINE = '{"corrupted_bytes": %s, "resident_mib": %s}'

    def finding(self, corrupted, fake=""):
        script = f"""#!/bin/sh
if [ -n "$SERVED" ]; then echo '{self.LINE % (corrupted, 36.2)}'; else echo '{self.LINE % (0, 4.4)}'; fi
"""
        program = self.write("workload", script, 0o755)
        reprise = self.write("reprise", FAKE_REPRISE.replace("exec", "SERVED=1 exec"), 0o755)
        runner = jobs.Jobs(reprise, self.folder, {"FAKE": fake})
        return correctness.Correctness(None, ROOT, runner, Compiled(program), None).workload(Deadline(30))

    def test_unharmed(self):
        self.assertEqual(self.finding(0).verdict, PASS)

    def test_corrupted(self):
        finding = self.finding(4096)
        self.assertEqual((finding.verdict, finding.says[:7]), (FAIL, "DIFFERS"))

    def test_nothing_caught(self):
        self.assertEqual(self.finding(0, "nothing").verdict, FAIL)


class Scenarios(Folder):
    """`one` and `two`, and `three`, which is played alone; HOW: which of them does what with Reprise."""

    PROGRAM = """#!/bin/sh
[ "$1" = --alone ] && { echo three; exit; }
[ $# = 0 ] && { printf 'one\\ntwo\\nthree\\n'; exit; }
for name; do :; done
[ -n "$SERVED" ] && [ "$HOW" = "hangs $name" ] && echo so far && exec tail -f /dev/null
[ "$HOW" = "endless $name" ] && echo so far && exec tail -f /dev/null
[ -n "$SERVED" ] && [ "$HOW" = "differs $name" ] && name=another
[ "$HOW" = "fails $name" ] || [ "$HOW" = "all fail" ] && exit 3
echo "memory: total ${TOTAL} MiB"
echo "$name"
"""

    def found(self, how="", fake="", alone=False, warm=False, total="8192", longest=20, together=2):
        program = self.write("scenarios", self.PROGRAM, 0o755)
        reprise = self.write("reprise", FAKE_REPRISE.replace("exec", "SERVED=1 exec"), 0o755)
        simulated = os.path.join(self.folder, "simulated")
        os.makedirs(simulated)
        for name in ("one", "three"):
            self.write(f"simulated/{name}.txt", f"memory: total 8192 MiB\n{name}\n")
        runner = jobs.Jobs(reprise, self.folder, {"FAKE": fake, "HOW": how, "TOTAL": total})
        with mock.patch.object(scenarios, "LONGEST", longest):
            plays = scenarios.Scenarios(ROOT, simulated, runner, Compiled(program), together)
            return plays.find(alone, warm)(Deadline(60))

    def test_the_same(self):
        finding = self.found()
        self.assertEqual((finding.verdict, finding.says, finding.whole), (PASS, "2 plays the same", True))
        self.assertEqual(finding.figures["compared_with_simulator"], 1)

    def test_warm(self):
        finding = self.found(warm=True)
        self.assertEqual((finding.verdict, finding.says), (PASS, "2 plays the same"))
        self.assertEqual(finding.figures["compared_with_simulator"], 0)

    def test_what_may_not_end_is_begun_first(self):
        with mock.patch.object(scenarios, "MAY_NOT_END", {"two"}):
            self.found(together=1)
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "jobs")))[2], "003-scenario-two-without")

    def test_alone(self):
        self.assertEqual(self.found(alone=True).says, "1 plays the same")

    def test_one_that_is_refused(self):
        with mock.patch.object(scenarios, "REFUSED", {"two"}):
            self.assertEqual(self.found("differs two").verdict, PASS)

    def test_one_that_should_be_refused(self):
        with mock.patch.object(scenarios, "REFUSED", {"two"}):
            self.assertIn("two: it is not refused", self.found().says)

    def test_one_that_a_training_changes(self):
        with mock.patch.object(scenarios, "ENDS_WITH_ITS_RELEASE", {"two"}):
            self.assertEqual(self.found(warm=True).says, "1 plays the same")

    def test_one_that_the_driver_here_does_not_know(self):
        with mock.patch.object(scenarios, "NEWER", {"one"}):
            self.assertEqual(self.found().figures["compared_with_simulator"], 0)

    def test_another_device_is_larger(self):
        self.assertEqual(self.found(total="81920").figures["simulator_differs"], [])

    def test_one_that_differs(self):
        finding = self.found("differs two")
        self.assertEqual(finding.verdict, FAIL)
        self.assertEqual(len(finding.figures["differs"]), 1)
        self.assertIn("line 2: 'two' without, 'another' with", finding.says)

    def test_one_that_fails_by_itself_is_not_the_same(self):
        finding = self.found("fails two")
        self.assertEqual((finding.verdict, finding.says), (PASS, "1 plays the same; 1 fail here without Reprise"))

    def test_where_all_fail_nothing_is_the_same(self):
        finding = self.found("all fail")
        self.assertEqual((finding.verdict, finding.says), (FAIL, "0 plays the same; 2 fail here without Reprise"))

    def test_one_that_hangs_takes_no_other_along(self):
        finding = self.found("hangs one", longest=1)
        self.assertEqual(sorted(finding.figures["differs"]), ["one: it does not end, after 'so far'"])
        self.assertEqual(finding.figures["played"], 2)

    def test_one_that_does_not_end_by_itself_is_not_played(self):
        finding = self.found("endless one", longest=1)
        self.assertEqual((finding.verdict, finding.whole), (PASS, False))
        self.assertEqual(finding.says, "1 plays the same; 1 not played, no end in 1 s without Reprise")
        self.assertEqual(finding.figures["endless_without"], ["one: it does not end, after 'so far'"])
        self.assertEqual((finding.figures["played"], finding.figures["fails_without"]), (1, 0))
        self.assertEqual(finding.figures["simulator_differs"], [])

    def test_nothing_caught(self):
        finding = self.found(fake="nothing", warm=True)
        self.assertEqual(finding.verdict, FAIL)
        self.assertEqual([text.split(":")[0] for text in finding.figures["differs"]], ["warm one", "warm two"])

    def test_no_time_left(self):
        play = scenarios.Scenarios(ROOT, self.folder, None, None).play("a program", ["one"], Deadline(0))
        self.assertFalse(play.played)
        finding = scenarios.Scenarios.told([play, scenarios.Play()])
        self.assertEqual((finding.verdict, finding.says), (PASS, "1 plays the same; 1 not played, no time left"))
        self.assertFalse(finding.whole)
        self.assertEqual(scenarios.Scenarios.told([play]).verdict, LEFT_OUT)
        both = [play, scenarios.Play(played=False, endless="one: it does not end")]
        said = "0 plays the same; 1 not played, no end in 20 s without Reprise; 1 not played, no time left"
        self.assertEqual(scenarios.Scenarios.told(both).says, said)

    def test_where_the_simulator_differs(self):
        def section(*findings):
            report = rows.Report(self.folder, [{}])
            for finding in findings:
                report.results.append(Result("correctness", "x", 1, PASS, "", finding))
            return gpu_check.simulator_section(report)

        none = {"compared_with_simulator": 0, "simulator_differs": []}
        self.assertEqual(section(), ["not asked: no scenario of tests/cuda was compared"])
        self.assertEqual(section(none), section())
        self.assertIn("as far as 3 scenarios", section({"compared_with_simulator": 3, "simulator_differs": []})[0])
        other = {"compared_with_simulator": 2, "simulator_differs": ["one: line 1"]}
        self.assertEqual(section(none, other)[0], "one: line 1")

    def test_they_are_one_unit(self):
        """The file that is compiled where nobody can mend it."""
        made = compiler.Compiler(machine.Machine(), ROOT, self.folder, None)
        unit = made.one_unit("scenarios", scenarios.Scenarios(ROOT, "", None, None).sources())
        words = ["c++", "-std=c++17", "-fsyntax-only", "-x", "c++", "-I" + ROOT]
        done = subprocess.run(
            [*words, "-I" + os.path.join(ROOT, "tests/simcuda/include"), unit], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_of_a_device_too_small_after_a_training(self):
        """The real ones, on the simulated device: no list of exceptions here is another than that of the tests."""
        build = os.environ["REPRISE_BUILD"]
        variables = {"LD_LIBRARY_PATH": os.path.join(build, "tests/simcuda"), "SIMCUDA_QUIET": "1"}
        runner = jobs.Jobs(os.environ["REPRISE_COMMAND"], self.folder, variables)
        program = Compiled(os.path.join(build, "tests/cuda/scenarios"))
        finding = scenarios.Scenarios(ROOT, self.folder, runner, program).find(alone=True, warm=True)(Deadline(200))
        self.assertEqual((finding.verdict, finding.figures["differs"]), (PASS, []))

    @unittest.skipUnless(machine.tool("nvcc"), "no nvcc")
    def test_they_compile_with_nvcc(self):
        made = compiler.Compiler(machine.Machine(), ROOT, self.folder, None)
        for name, sources in (
            ("scenarios", scenarios.Scenarios(ROOT, "", None, None).sources()),
            ("workload", ["tests/cuda/workload.cc"]),
        ):
            words = [made.machine.nvcc, "-std=c++17", "-c", "-I" + ROOT, made.one_unit(name, sources), "-o", "/dev/null"]
            done = subprocess.run(words, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


class ScenariosAlone(Folder):
    """They fill what there is, and a whole device would take them too long: most of it is held meanwhile."""

    HOG = """#!/bin/sh
echo "$1" > {0}/left; echo "ready $1"
read end; rm {0}/left
"""

    def test_the_device_is_small(self):
        scenario = "#!/bin/sh\n[ $# = 1 ] && [ $1 = --alone ] && echo one || cat " + self.folder + "/left\n"
        programs = mock.Mock()
        programs.compile.return_value = self.write("hog", self.HOG.format(self.folder), 0o755)
        programs.compile_cuda.return_value = self.write("scenarios", scenario, 0o755)
        runner = jobs.Jobs(self.write("reprise", FAKE_REPRISE, 0o755), self.folder, {})
        played = scenarios.Scenarios(ROOT, self.folder, runner, programs)
        alone = correctness.Correctness(None, ROOT, runner, programs, played).on_a_small_device()
        finding = next(row for row in alone if "scenarios" in row.name).find(Deadline(30))
        self.assertEqual((finding.verdict, finding.says), (PASS, "1 plays the same"))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "left")))


class HasNothing:
    def missing(self, needs):
        return list(needs)


class HasAll:
    def missing(self, needs):
        return []


class Rows(Folder):
    def setUp(self):
        super().setUp()
        self.report = rows.Report(self.folder, [{}])
        self.jobs = jobs.Jobs("no reprise", self.folder, {})

    def run_rows(self, *finds, has=HasAll(), budget=100, limit=100, workers=1):
        listed = [Row("correctness", f"row {number}", limit, ("a GPU",), find) for number, find in enumerate(finds)]
        rows.run(listed, workers, has, Deadline(budget), self.report)
        return [(result.verdict, result.says) for result in self.report.results]

    def test_what_is_missing_is_left_out(self):
        self.assertEqual(self.run_rows(lambda _: Finding(PASS), has=HasNothing()), [(LEFT_OUT, "needs a GPU")])

    def test_no_time_left(self):
        self.assertEqual(self.run_rows(lambda _: Finding(PASS), budget=1), [(LEFT_OUT, "no time left")])

    def test_a_job_that_does_not_end(self):
        ((verdict, says),) = self.run_rows(
            lambda end: self.jobs.run("endless", ["tail", "-f", "/dev/null"], end), limit=0.2
        )
        self.assertEqual(verdict, FAIL)
        self.assertIn("not over", says)

    def test_a_job_that_the_budget_ends(self):
        ((verdict, says),) = self.run_rows(
            lambda end: self.jobs.run("endless", ["tail", "-f", "/dev/null"], Deadline(min(0.2, end.left()))), budget=20
        )
        self.assertEqual((verdict, says[:12]), (LEFT_OUT, "no time left"))

    def test_told_to_end(self):
        def find(deadline):
            return Finding(
                PASS, str(self.jobs.run("endless", ["sh", "-c", "tail -f /dev/null & wait"], deadline).status)
            )

        def stop(_):
            while not self.jobs.running:
                threading.Event().wait(0.01)
            self.jobs.stop()
            return Finding(PASS)

        self.assertIn((PASS, "-9"), self.run_rows(find, stop, workers=2))

    def test_a_job_that_cannot_be_ended(self):
        """As one in a call of the driver that does not return: the signal does nothing to it."""
        with mock.patch.object(jobs.os, "killpg") as killpg, mock.patch.object(jobs, "DYING", 0.2):
            ((verdict, says),) = self.run_rows(
                lambda end: self.jobs.run("endless", ["tail", "-f", "/dev/null"], end), limit=0.2
            )
        self.assertEqual((verdict, says[:8]), (FAIL, "not over"))
        os.killpg(*killpg.call_args[0])

    def test_a_helper_that_says_nothing(self):
        with mock.patch.object(jobs.Beside, "PATIENCE", 0.2):
            with self.assertRaisesRegex(RuntimeError, "of no use"):
                with jobs.Beside(["tail", "-f", "/dev/null"], None, "of no use"):
                    pass

    def test_a_helper_that_does_not_end(self):
        with mock.patch.object(jobs.Beside, "PATIENCE", 2):
            with jobs.Beside(["sh", "-c", "echo ready 7; exec tail -f /dev/null"], None, "") as helper:
                pass
        self.assertEqual((helper.ready, helper.last, helper.process.returncode), ("7", "", -9))

    def test_what_ends_with_us_is_no_finding(self):
        self.report.close()
        self.assertEqual(self.run_rows(lambda _: Finding(FAIL, "status -9")), [])

    def test_a_check_that_breaks_takes_no_other_along(self):
        stderr, sys.stderr = sys.stderr, open(os.devnull, "w")
        self.addCleanup(lambda: (sys.stderr.close(), setattr(sys, "stderr", stderr)))
        found = self.run_rows(lambda _: 1 // 0, lambda _: Finding(PASS))
        self.assertEqual([verdict for verdict, _ in found], [FAIL, PASS])

    def test_results_are_there_after_every_row(self):
        seen = []

        def look(_):
            with open(self.report.path, encoding="utf-8") as text:
                seen.append(len(json.load(text)["rows"]))
            return Finding(PASS, "", {"a": 1.5})

        self.run_rows(look, look, look)
        self.assertEqual(seen, [0, 1, 2])

    def test_nobody_listens(self):
        there, here = os.pipe()
        os.close(there)
        closed = open(here, "w")
        with mock.patch.object(sys, "stdout", closed):
            self.assertEqual(len(self.run_rows(lambda _: Finding(PASS), lambda _: Finding(PASS))), 2)
            sys.stdout.close()
        with self.assertRaises(BrokenPipeError):
            closed.close()

    def test_rows_together(self):
        both = threading.Barrier(2, timeout=30)
        self.run_rows(
            lambda _: both.wait() and Finding(PASS) or Finding(PASS),
            lambda _: both.wait() and Finding(PASS) or Finding(PASS),
            workers=2,
        )
        self.assertFalse(self.report.failed())


class Script(Folder):
    def gpu_check(self, *words):
        script = os.path.join(ROOT, "scripts", "gpu-check")
        return subprocess.run(
            [script, *words],
            env={**os.environ, "PYTHON": sys.executable},
            cwd=self.folder,
            capture_output=True,
            text=True,
        )

    @unittest.skipIf(machine.devices(), "this machine has a GPU")
    def test_no_gpu(self):
        done = self.gpu_check()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no NVIDIA GPU here; --simulated", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_driver_that_refuses(self):
        variables = {"LD_LIBRARY_PATH": os.path.join(os.environ["REPRISE_BUILD"], "tests/simcuda"), "SIMCUDA_QUIET": "1"}
        with mock.patch.dict(os.environ, {**variables, "SIMCUDA_FAIL": "cuInit:1+:999"}):
            done = self.gpu_check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("the driver is here, but answers with error 999", done.stderr)

    def test_no_bundle(self):
        with self.assertRaisesRegex(SystemExit, "no bundle in .*scripts/bundle makes one"):
            gpu_check.bundle_at(self.folder, self.folder)

    def test_on_the_simulated_device(self):
        build = os.environ["REPRISE_BUILD"]
        if not os.path.exists(os.path.join(build, "tests/simcuda/libcudart.so.13")):
            self.skipTest("the simulated device is not built")
        bundle = subprocess.run(
            [sys.executable, "-B", os.environ["REPRISE_PACK"], build, self.folder],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        done = self.gpu_check(bundle, "--out", "out", "--simulated", os.path.join(build, "tests/simcuda"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(self.folder, "out", "results.json"), encoding="utf-8") as text:
            results = {row["name"]: row for row in json.load(text)["rows"]}
        for runtime in ("shared", "static"):
            caught = results[f"libcudart {runtime}: caught, every byte right"]
            self.assertEqual(caught["verdict"], PASS, caught)
        self.assertIn("needs a GPU", results["PyTorch cudaMallocAsync: gpt"]["says"])

    def test_told_to_end_in_the_middle(self):
        """What was under way has found nothing, and nothing of it is left."""
        self.write("MANIFEST.json", json.dumps(dict.fromkeys(("version", "commit", "built_on", "compiler"), "")))
        os.mkdir(os.path.join(self.folder, "bin"))
        self.write("bin/reprise", f"#!/bin/sh\necho $$ > {self.folder}/pid.new\nmv {self.folder}/pid.new {self.folder}/pid\n"
                   "exec tail -f /dev/null\n", 0o755)
        build = os.path.join(os.environ["REPRISE_BUILD"], "tests/simcuda")
        script = os.path.join(ROOT, "scripts", "gpu-check")
        words = [script, self.folder, "--out", "out", "--simulated", build, "--only", "static"]
        checking = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        path = os.path.join(self.folder, "pid")
        while not os.path.exists(path):
            self.assertIsNone(checking.poll())
            threading.Event().wait(0.01)
        checking.terminate()
        said, _ = checking.communicate(timeout=30)
        self.assertEqual(checking.returncode, 1)
        self.assertRegex(said, "ended early(.|\n)*0 pass, 0 fail, .*\n.*--rest-of")
        self.assertEqual(rows.read(os.path.join(self.folder, "out", "results.json"))[1], [])
        with open(path, encoding="utf-8") as text:
            job = int(text.read())
        while True:
            try:
                with open(f"/proc/{job}/stat", encoding="utf-8") as text:
                    if text.read().rpartition(")")[2].split()[0] == "Z":
                        break  # nobody has asked for it yet
            except FileNotFoundError:
                break
            threading.Event().wait(0.01)

    def test_programs_are_python(self):
        """They run for the first time where nobody can mend them."""
        for path in glob.glob(os.path.join(ROOT, "tests/gpu/programs/*.py")):
            with open(path, encoding="utf-8") as source:
                ast.parse(source.read(), path)


if __name__ == "__main__":
    unittest.main()
