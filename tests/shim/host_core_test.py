"""The preload library and the real core, over jobs that misbehave and systems that refuse: the job's output and
status are what they are without Reprise, and what happened is in the summary."""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

from preloading import TIMEOUT, Installed, built, clean_environment, full_pipe, run


class CoreTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.at = Installed(core="CORE")
        cls.addClassCleanup(cls.at.close)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(self.folder, "out")

    def job(self, *arguments, program="JOB", status=0, preload=(), **variables):
        done = run([built(program), *arguments], preload=[self.at.shim, *preload], cwd=self.folder, **variables)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def summary(self, name="summary.json"):
        with open(os.path.join(self.out, name)) as file:
            summary = json.load(file)
        self.assertEqual(summary["errors"], 0)
        self.assertEqual(summary["unknown_frees"], 0)
        return summary

    def trace(self, path):
        done = run([built("TRACE_FACTS"), path])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def served(self, *arguments, **more):
        """Runs a job with an output folder and returns its summary."""
        self.job(*arguments, REPRISE_OUT=self.out, **more)
        return self.summary()


class Serving(CoreTest):
    def test_everything_is_served(self):
        summary = self.served("threads")
        self.assertEqual((summary["requests"], summary["passed"]), (16017, 0))
        self.assertTrue(summary["complete"])
        self.assertEqual(summary["command"], built("JOB") + " threads")

    def test_what_threads_cost_that_begin_together_is_counted(self):
        for run_number in range(20):  # of one the scheduler may let a single thread run until the core is open
            self.job("together", REPRISE_OUT=f"{self.out}/{run_number}")
            summary = self.summary(f"{run_number}/summary.json")
            self.assertEqual((summary["requests"], summary["passed"]), (8000, summary["passed_while_opening"]))
            if summary["passed"] > 0:
                return
        self.fail("nobody came while the core was opened")

    def test_answers_are_those_of_the_c_library(self):
        self.assertEqual(self.job("answers").stdout, run([built("JOB"), "answers"]).stdout)

    def test_large_blocks_grow_and_shrink(self):
        summary = self.served("reallocate_large", MALLOC_PERTURB_="0")  # which would touch all that malloc hands out
        self.assertEqual(summary["passed"], 2, "one that grows, and one that shrinks by most of it")
        grown, shrunk = (192 << 20) + 12345 + 65536, (10 << 20) + 321
        self.assertEqual(self.trace(os.path.join(self.out, "trace.reprise"))["passed"], grown + shrunk)

    def test_blocks_that_shrink_keep_what_they_hold(self):
        self.assertLess(self.served("shrink_many")["live_peak"], 2 << 20)

    def test_what_is_free_goes_back_when_the_job_asks(self):
        self.assertEqual(self.served("trims")["passed"], 0)

    def test_more_than_the_machine_has_is_refused_as_ever(self):
        untouched = {"MALLOC_PERTURB_": "0"}
        without = run([built("JOB"), "more_than_there_is"], **untouched)
        self.assertEqual(self.job("more_than_there_is", **untouched).stdout, without.stdout)

    def test_a_limit_that_the_job_sets_later_counts_what_is_the_jobs(self):
        self.assertEqual(self.served("limits_itself")["passed"], 1, "what is more than the limit")

    def test_a_job_outlives_the_end_of_its_memory(self):
        for job in ["out_of_memory", "little_memory"]:
            for stacks in ["off", "native"]:
                with self.subTest(job=job, stacks=stacks):
                    self.job(job, REPRISE_STACKS=stacks, REPRISE_OUT=self.out if stacks == "native" else "")

    def test_a_job_outlives_that_from_any_moment_on(self):
        """While the core is being opened too, and while a stack is taken. Few are left: where a thread has seen that there
        is memory for what must not fail, and the very next call has none."""
        ended = []
        for call in range(1, 700, 6):
            done = run([built("JOB"), "iterate", "3"], preload=[self.at.shim, built("NO_MALLOC")],
                       NO_MALLOC_FROM=str(call), REPRISE_STACKS="native", REPRISE_OUT=os.path.join(self.out, str(call)))
            self.assertNotIn("unwinding", done.stderr, call)
            if done.returncode != 0:
                ended.append((call, done.stderr))
        self.assertLess(len(ended), 15, ended)

    def test_an_iteration_is_served_by_plan(self):
        # The plan is made beside the job, so how many iterations pass until then depends on the machine.
        for iterations in [2000, 8000, 32000, 128000]:
            self.out = os.path.join(self.folder, str(iterations))
            summary = self.served("iterate", str(iterations))
            if summary["planned"] > 20000:
                break
        self.assertGreaterEqual(summary["plans"], 1)
        self.assertGreater(summary["planned_bytes_after_plan"], 0.99)
        self.assertLessEqual(summary["slab"], 1.05 * summary["lower_bound"])

    def test_a_job_that_gives_itself_a_title_finds_its_plans(self):
        # How many iterations pass until there is a plan depends on the machine.
        cache = os.path.join(self.folder, "cache")
        for iterations in ["2000", "8000", "32000", "128000"]:
            self.out = os.path.join(self.folder, iterations)
            first = self.served("titled", iterations, REPRISE_CACHE=cache)
            if first["plans"] > 0:
                break
        self.out = os.path.join(self.folder, "second")
        second = self.served("titled", iterations, REPRISE_CACHE=cache)
        self.assertEqual(second["plans_read"], first["plans_written"])
        self.assertEqual(second["plans_resumed"], 1)
        self.assertEqual(second["command"], f"{built('JOB')} titled {iterations}")

    def test_what_a_block_leaves_untouched_is_no_memory(self):
        untouched = {"MALLOC_PERTURB_": "0"}
        without = int(run([built("JOB"), "sparse"], **untouched).stdout)
        pages = int(self.job("sparse", **untouched).stdout)
        self.assertLess((pages - without) * resource.getpagesize(), 64 << 20)

    def test_capacity_is_kept(self):
        summary = self.served("iterate", "10", REPRISE_CAPACITY="2MiB")
        self.assertLessEqual(summary["reserved_peak"], 2 << 20)
        self.assertGreater(summary["passed"], 0)

    def test_static_objects_that_allocate(self):
        self.assertEqual(self.job(program="STATIC_OBJECTS").stdout, "4097 1\n")

    def test_frees_after_our_destructors(self):
        """The plugin is initialized before the core is opened and ends after it; its block is freed then."""
        self.job("ordinary", program="JOB", preload=[built("PLUGIN")])

    def test_jemalloc(self):
        self.assertEqual(self.served("threads", program="JOB_JEMALLOC")["requests"], 16017)
        self.job("ordinary", program="JOB_JEMALLOC_STATIC")
        self.job("ordinary", preload=["libjemalloc.so.2"])

    def test_two_copies(self):
        second = Installed(core="CORE")
        self.addCleanup(second.close)
        self.job("threads", preload=[second.shim], REPRISE_OUT=self.out)
        left = set(os.listdir(self.out)) - {"plans.json"}  # there if a plan came in time
        self.assertEqual(left, {"summary.json", "trace.reprise"})
        self.assertEqual(self.summary()["requests"], 16017)

    def test_everyday_programs(self):
        for command in [["bash", "-c", "x=$(echo a b | wc -w); (exit 3); echo $? $x"], ["git", "--version"],
                        ["python3", "-c", "import ctypes, json, subprocess, threading; print(json.dumps([1]))"]]:
            with self.subTest(command=command[0]):
                done = run(command, preload=[self.at.shim], REPRISE_THRESHOLD="1")
                without = run(command)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, without.stdout, without.stderr))


class Chaos(CoreTest):
    def test_chaos(self):
        for variables in [{}, {"REPRISE_THRESHOLD": "1"}, {"REPRISE_THRESHOLD": "64KiB"},
                          {"REPRISE_MODE": "record"}, {"REPRISE_CAPACITY": "4MiB"}]:
            with self.subTest(**variables):
                without = run([built("CHAOS"), "1", "3", "5000"])
                done = self.job("1", "3", "5000", program="CHAOS", **variables)
                self.assertEqual(done.stdout, without.stdout)

    def test_a_child_leaves_nothing(self):
        done = self.job("7", "1", "3000", program="CHAOS", REPRISE_OUT=self.out, REPRISE_LOG="info")
        self.assertEqual(done.stderr.count("reprise: next"), 1)  # it forks three times
        summary = self.summary()
        self.assertEqual(sorted(os.listdir(self.out)), ["summary.json", "trace.reprise"])
        self.assertTrue(self.trace(summary["trace"])["closed"])

    def test_fork_handlers_of_the_job(self):
        self.job("fork_handlers")

    def test_children_that_ask_the_loader(self):
        for stacks in ["off", "native", "python"]:
            with self.subTest(stacks=stacks):
                self.job("forks_beside_threads", REPRISE_STACKS=stacks, REPRISE_MODE="record", REPRISE_OUT=self.out)

    def test_children_that_nobody_was_told_of(self):
        for stacks in ["off", "native", "python"]:
            with self.subTest(stacks=stacks):
                self.job("forks_unseen", REPRISE_STACKS=stacks, REPRISE_MODE="record", REPRISE_OUT=self.out)

    def test_a_job_that_closes_what_it_has_not_opened(self):
        for stacks in ["off", "native", "python"]:
            with self.subTest(stacks=stacks):
                self.job("own_descriptors", REPRISE_STACKS=stacks, REPRISE_MODE="record", REPRISE_OUT=self.out)

    def test_no_allocation_is_where_a_thread_is_cancelled(self):
        for stacks in ["off", "native", "python"]:
            with self.subTest(stacks=stacks):
                done = self.job("cancelled", REPRISE_STACKS=stacks, REPRISE_MODE="record", REPRISE_OUT=self.out)
                self.assertEqual(done.stdout, "went on\n" * 3)

    def test_a_job_whose_main_thread_ends(self):
        for mode in ["serve", "record"]:
            with self.subTest(mode=mode):
                self.out = os.path.join(self.folder, mode)
                done = self.job("main_thread_ends", REPRISE_MODE=mode, REPRISE_OUT=self.out)
                self.assertEqual(done.stdout, "done\n")
                self.assertTrue(self.summary()["complete"])
        self.assertEqual(self.job("main_thread_ends").stdout, "done\n")

    def test_a_job_that_begins_when_its_main_thread_has_ended(self):
        self.assertEqual(self.served("main_thread_ends_first")["command"], built("JOB") + " main_thread_ends_first")

    def test_an_execed_child_starts_anew(self):
        self.job("forks", REPRISE_OUT=self.out)
        names = sorted(os.listdir(self.out))
        self.assertEqual(len(names), 4, names)
        self.assertEqual(self.summary()["requests"], 1)
        child = self.summary(next(name for name in names if name.count(".") == 2 and name.endswith(".json")))
        self.assertEqual(child["requests"], 12)


class Files(CoreTest):
    def test_nothing_is_written_unasked(self):
        done = self.job("ordinary")
        self.assertEqual((os.listdir(self.folder), done.stderr), ([], ""))

    def test_recording_writes_to_its_folder(self):
        done = self.job("threads", REPRISE_MODE="record")
        self.out = os.path.join(self.folder, "reprise-out")
        summary = self.summary()
        facts = self.trace(os.path.join(self.out, "trace.reprise"))
        self.assertEqual(facts, {"events": 2 * 16017 - 8, "allocations": 16017, "dropped": 0, "closed": True,
                                 "words": 2, "passed": 0})
        self.assertEqual(summary["trace_events"], facts["events"])
        self.assertIn(f"reprise: next: reprise stats {self.out}/trace.reprise\n", done.stderr)

    def test_a_job_that_goes_to_another_folder(self):
        # How many iterations pass until there is a plan depends on the machine.
        for iterations in ["2000", "8000", "32000", "128000"]:
            self.job("elsewhere", iterations, REPRISE_OUT=iterations, REPRISE_CACHE="cache")
            self.out = os.path.join(self.folder, iterations)
            first = self.summary()
            if first["plans"] > 0:
                break
        self.job("elsewhere", iterations, REPRISE_OUT="second", REPRISE_PLAN=f"{iterations}/plans.json")
        self.out = os.path.join(self.folder, "second")
        second = self.summary()
        self.assertEqual(first["plans_written"].split("/")[:-1], [*self.folder.split("/"), "cache"])
        self.assertEqual((second["plans_read"], second["plans_resumed"]),
                         (os.path.join(self.folder, iterations, "plans.json"), 1))

    def test_an_unwritable_folder_costs_one_line(self):
        with open(os.path.join(self.folder, "file"), "w"):
            pass
        for folder in ["/proc/reprise", os.path.join(self.folder, "file"), "/dev/full/out"]:
            with self.subTest(folder=folder):
                done = self.job("ordinary", REPRISE_OUT=folder)
                self.assertIn("cannot make the folder " + folder, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_full_disk(self):
        """A limit on the size of files stands for the disk: the write that crosses it fails."""
        limit = 128 * 1024
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        command = [built("CHAOS"), "1", "0", "120000"]
        done = subprocess.run(command, preexec_fn=limited, capture_output=True, text=True, timeout=TIMEOUT,
                              env=clean_environment([self.at.shim], REPRISE_MODE="record", REPRISE_OUT=self.out,
                                                     REPRISE_THRESHOLD="1"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, run(command).stdout)
        summary = self.summary()
        self.assertGreater(summary["trace_after_end"], 0)
        self.assertFalse(summary["trace_full"])
        self.assertNotEqual(summary["trace_stopped"], "")
        facts = self.trace(summary["trace"])
        self.assertGreater(facts["events"], 0)
        self.assertFalse(facts["closed"])

    def test_a_disk_that_is_full_is_no_limit_that_was_set(self):
        """`merge` counts the one as a fault, and not the other."""
        os.mkdir(self.out)
        small = 'mount -t tmpfs -o size=16k none "$1" || exit 77; LD_PRELOAD=$2 "$3" 1 0 400000 >&2; cat "$1/summary.json"'
        done = subprocess.run(["unshare", "--mount", "sh", "-c", small, "sh", self.out, self.at.shim, built("CHAOS")],
                              capture_output=True, text=True, timeout=TIMEOUT,
                              env=clean_environment([], REPRISE_MODE="record", REPRISE_OUT=self.out, REPRISE_THRESHOLD="1"))
        if done.returncode in (1, 77):
            self.skipTest(f"no disk of our own here: {done.stderr}")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(done.stdout)
        self.assertIn("No space left on device", summary["trace_stopped"])
        self.assertFalse(summary["trace_full"])

    def test_no_file_may_be_written(self):
        """Not even a trace's first blocks, which the job's own thread writes, nor the line that says so."""
        with open(os.path.join(self.folder, "stderr"), "w") as stderr:
            done = subprocess.run([built("JOB"), "ordinary"], stdout=subprocess.PIPE, stderr=stderr, timeout=TIMEOUT,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
                                  env=clean_environment([self.at.shim], REPRISE_MODE="record", REPRISE_OUT=self.out))
        self.assertEqual((done.returncode, done.stdout), (0, b"not served\n"))
        self.assertEqual(os.listdir(self.out), [])

    def test_the_jobs_files_have_the_numbers_that_they_have_without_a_trace(self):
        self.served("ordinary")

    def test_trace_limit(self):
        summary = self.served("1", "0", "60000", program="CHAOS", REPRISE_TRACE_LIMIT="64KiB")
        self.assertLessEqual(os.path.getsize(summary["trace"]), 64 * 1024)
        self.assertGreater(summary["trace_after_end"], 0)
        self.assertTrue(summary["trace_full"])

    def test_killed_while_recording(self):
        job = subprocess.Popen([built("CHAOS"), "1", "0", "1000000000"], stderr=subprocess.DEVNULL,
                               env=clean_environment([self.at.shim], REPRISE_MODE="record", REPRISE_OUT=self.out))
        trace = os.path.join(self.out, "trace.reprise")
        try:
            while not (os.path.exists(trace) and os.path.getsize(trace) > 100_000):
                self.assertIsNone(job.poll())
        finally:
            job.send_signal(signal.SIGKILL)
            job.wait()
        facts = self.trace(trace)
        self.assertGreater(facts["events"], 10000)
        self.assertFalse(facts["closed"])


class Refused(CoreTest):
    def test_limited_memory_is_left_to_the_job(self):
        """Enough for the job, and not for the core and its libraries."""
        for limit, little in [(resource.RLIMIT_AS, 8 << 20), (resource.RLIMIT_DATA, 2 << 20)]:
            with self.subTest(limit=limit):
                done = subprocess.run([built("JOB"), "ordinary"], capture_output=True, text=True, timeout=TIMEOUT,
                                      preexec_fn=lambda: resource.setrlimit(limit, (little, little)),
                                      env=clean_environment([self.at.shim]))
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "not served\n", ""))

    def test_bad_values_cost_one_line_each(self):
        done = self.job("ordinary", REPRISE_MODE="fast", REPRISE_LOG="loud", REPRISE_THRESHOLD="many")
        self.assertEqual(done.stderr.count("reprise: REPRISE_"), 3)
        self.assertEqual(done.stderr.count("\n"), 3)

    def test_an_unwinder_that_cannot_be_used(self):
        with open(os.path.join(self.folder, "libunwind.so.8"), "w") as file:
            file.write("not an ELF file\n" * 100)
        done = self.job("ordinary", REPRISE_STACKS="native", REPRISE_OUT=self.out, LD_LIBRARY_PATH=self.folder)
        self.assertRegex(done.stderr, "needs libunwind.so.8, and cannot use one: .*invalid ELF header; ")

    def test_a_cache_that_cannot_be_made_costs_one_line(self):
        # How many iterations pass until there is a plan depends on the machine.
        for iterations in ["2000", "8000", "32000", "128000"]:
            done = self.job("iterate", iterations, REPRISE_CACHE="/sys/reprise")
            if done.stderr:
                break
        self.assertEqual(done.stderr.count("cannot make the folder /sys/reprise: "), 1, done.stderr)

    def test_off_is_off(self):
        for variables in [{"REPRISE_DISABLE": "1"}, {"REPRISE_MODE": "off"}]:
            done = self.job("threads", REPRISE_OUT=self.out, REPRISE_LOG="info", **variables)
            self.assertEqual((done.stderr, os.path.exists(self.out)), ("", False))


class Stderr(CoreTest):
    """The summary is ours; the job's stderr is not."""

    def check(self, stderr, **keywords):
        done = subprocess.run([built("JOB"), "threads"], stderr=stderr, timeout=TIMEOUT,
                              env=clean_environment([self.at.shim], REPRISE_LOG="info"), **keywords)
        self.assertEqual(done.returncode, 0)

    def test_nobody_reads_it(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as pipe:
            self.check(pipe)

    def test_it_is_full_or_closed(self):
        with open("/dev/full", "w") as full:
            self.check(full)
        self.check(None, preexec_fn=lambda: os.close(2))
        with full_pipe() as pipe:
            self.check(pipe)

    def test_its_number_went_to_a_file_of_the_job(self):
        code = ("import ctypes, os; c = ctypes.CDLL(None); c.memalign(64, 65536); os.close(2); "
                "os.open('data', os.O_WRONLY | os.O_CREAT)")
        run([sys.executable, "-c", code], preload=[self.at.shim], cwd=self.folder, REPRISE_LOG="info")
        self.assertEqual(os.path.getsize(os.path.join(self.folder, "data")), 0)

    def test_its_number_went_to_a_file_of_the_job_before_it_allocated(self):
        use = ("import ctypes, os; assert os.open('data', os.O_WRONLY | os.O_CREAT) == 2; "
               "ctypes.CDLL(None).memalign(64, 65536)")
        closed = [sys.executable, "-c", "import os; os.close(2); " + use]
        without = ["sh", "-c", 'exec "$0" "$@" 2>&-', sys.executable, "-c", use]
        beside = ["sh", "-c", 'exec "$0" "$@" 2>said', *closed]  # a file on the same device as the job's
        for command in (closed, without, beside):
            done = run(command, preload=[self.at.shim], cwd=self.folder, REPRISE_LOG="info")
            self.assertEqual((done.returncode, os.path.getsize(os.path.join(self.folder, "data"))), (0, 0), command)
        os.rename(self.at.core, self.at.core + ".away")  # then the preloaded library itself has something to say
        self.addCleanup(os.rename, self.at.core + ".away", self.at.core)
        for command in (closed, without, beside):
            done = run(command, preload=[self.at.shim], cwd=self.folder)
            self.assertEqual((done.returncode, os.path.getsize(os.path.join(self.folder, "data"))), (0, 0), command)

    def test_small_helpers_say_nothing(self):
        self.assertEqual(self.job("ordinary").stderr, "")
        self.assertIn("16017", self.job("threads", REPRISE_LOG="info").stderr)
        self.assertEqual(self.job("threads", REPRISE_LOG="quiet", REPRISE_MODE="record").stderr, "")


if __name__ == "__main__":
    unittest.main()
