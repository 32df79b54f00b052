"""Why this exists: the plans of one run must place the next run of the same job from its first iteration that recurs,
and those of another job, or a damaged file, must do nothing but say so."""

import json
import os
import signal
import subprocess
import sys
import unittest

import command

# Weights, an optimizer's state in the first round, and rounds that repeat.
JOB = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
stay = [libc.aligned_alloc(64, 4096 * (i % 5 + 2)) for i in range(20)]
for round in range(int(sys.argv[1])):
    for block in [libc.aligned_alloc(64, 4096 * (i * 7 % 30 + 2)) for i in range(40)]:
        libc.free(block)
    if round == 0:
        stay += [libc.aligned_alloc(64, 4096 * (i % 5 + 2)) for i in range(20)]
"""

# The same, killed once there is a file.
KILLED = "import glob, os\n" + JOB.replace("sys.argv[1]", "os.environ['ROUNDS']") + """
    if glob.glob(os.environ.get("KILLED_BY", "")):
        os.kill(os.getpid(), 9)
"""


class Plans(command.CommandTest):
    def run_job(self, *options, rounds):
        done = self.run_host(*options, "--", sys.executable, "-c", JOB, str(rounds))
        self.assert_status(done, 0)
        return done

    def summary(self, folder):
        return json.loads(self.read(folder + "/summary.json"))

    def learn(self, *options):
        """A first run; how many rounds it takes until the plan is there depends on the machine."""
        for rounds in (500, 4000, 32000, 256000):
            out = f"first{rounds}"
            self.run_job("--out", out, *options, rounds=rounds)
            first = self.summary(out)
            if first["plans"] > 0:
                return rounds, first
        self.fail("no plan")

    def test_the_next_run_begins_with_the_plans_in_the_cache(self):
        rounds, first = self.learn("--cache", "plans")
        self.assertEqual((first["plans_read"], first["plans_resumed"]), ("", 0))
        entry, plans = sorted(os.listdir(self.path("plans")), key=lambda name: name.endswith(".plans.json"))
        self.assertRegex(entry, r"^[0-9a-f]{16}\.rank0\.entry$")
        self.assertEqual(plans, os.path.basename(first["plans_written"]))
        done = self.run_job("--cache", "plans", "--out", "second", rounds=rounds)
        second = self.summary("second")
        self.assertEqual(second["plans_resumed"], 1, second)
        self.assertEqual(second["plans_refused"], "")
        self.assertIn("were followed", done.err)
        # Twenty weights, a round, the optimizer's state, and then the first round that recurs.
        self.assertLess(second["first_planned_request"], 20 + 40 + 20 + 40)
        self.assertGreater(first["first_planned_request"], 20 + 40 + 20 + 40)
        self.assertGreater(second["planned"], first["planned"])
        self.assertEqual((second["conflicts"], second["passed"]), (0, 0))

    def test_a_trace_that_ends_with_the_first_plan_says_so(self):
        rounds, first = self.learn()
        stats = self.json("stats", f"first{rounds}/trace.reprise")
        self.assertLess(stats["allocs"], first["requests"])
        self.assertFalse(stats["whole"])
        self.assertRegex(stats["notes"][0], "^recording ended when the first plan was adopted: .* --mode record")
        self.run_job("--mode", "record", "--out", "all", rounds=rounds)
        stats = self.json("stats", "all/trace.reprise")
        self.assertEqual((stats["allocs"], stats["notes"], stats["whole"]), (self.summary("all")["requests"], [], True))

    def test_a_file_named_by_the_user(self):
        rounds, _ = self.learn()
        plans = f"first{rounds}/plans.json"
        self.run_job("--plan", plans, "--out", "second", rounds=rounds)
        self.assertEqual(self.summary("second")["plans_resumed"], 1)
        checks = self.json("doctor", env={"REPRISE_PLAN": plans})["checks"]
        [found] = [check["found"] for check in checks if check["check"] == "REPRISE_PLAN"]
        self.assertIn(f"{plans}, of {sys.executable} -c", found)

    def test_what_does_not_fit_is_refused_with_the_reason(self):
        rounds, _ = self.learn()
        plans = f"first{rounds}/plans.json"
        text = self.read(plans)
        self.write("short.json", text[: len(text) // 2])
        self.write("no.json", b"{}")
        for file, count, reason in (
            (plans, rounds + 1, "made for the command"),
            ("short.json", rounds, "checksum"),
            ("no.json", rounds, "plans.json of its folder"),
        ):
            with self.subTest(file, count=count):
                done = self.run_job("--plan", file, "--out", f"out-{file.replace('/', '-')}-{count}", rounds=count)
                self.assertRegex(done.err, "the plans in .* are not used: (?!the file: )")
                self.assertIn(reason, done.err)
                summary = self.summary(f"out-{file.replace('/', '-')}-{count}")
                self.assertIn(reason, summary["plans_refused"])
                self.assertEqual(summary["plans_resumed"], 0)

    def test_plans_that_cannot_be_read_are_named_once(self):
        run = ("run", "--host", "--", sys.executable, "-c", JOB, "3")
        done = self.reprise(*run, env={"REPRISE_PLAN": "nosuch"})
        self.assert_status(done, 0)
        self.assertRegex(done.err, "reprise: the plans in .*nosuch are not used: .*No such file")
        self.assertEqual(done.err.count("nosuch"), 1, done.err)

    def test_a_job_that_is_killed_has_left_its_plans(self):
        job = ["--", sys.executable, "-c", KILLED]
        for out, options, left in (("first", ["--cache", "plans"], "plans/*.entry"), ("second", [], "second/plans.json")):
            done = self.run_host("--out", out, *options, *job, env={"ROUNDS": "256000", "KILLED_BY": left})
            self.assert_status(done, -signal.SIGKILL)
            if not options:
                self.assertIn(f"reprise: plans for the next run: {left}\n", done.err)
            options = options or ["--plan", left]
            self.ok("run", "--host", "--out", "after-" + out, *options, *job, env={"ROUNDS": "20"})
            summary = self.summary("after-" + out)
            self.assertEqual((summary["plans_resumed"], summary["plans_refused"]), (1, ""), summary)

    def test_two_jobs_that_save_at_once(self):
        rounds, _ = self.learn()
        words = [command.REPRISE, "run", "--host", "--cache", "plans", "--", sys.executable, "-c", JOB, str(rounds)]
        both = [
            subprocess.Popen(words, cwd=self.folder, env=command.clean_environment(), stderr=subprocess.DEVNULL)
            for _ in range(2)
        ]
        for process in both:
            self.assertEqual(process.wait(timeout=120), 0)
        self.run_job("--cache", "plans", "--out", "third", rounds=rounds)
        self.assertEqual(self.summary("third")["plans_refused"], "")
        self.assertEqual([name for name in os.listdir(self.path("plans")) if name.endswith(".part")], [])

    def test_a_cache_that_cannot_be_written(self):
        self.write("file", b"")
        done = self.run_job("--cache", "file/plans", "--out", "out", rounds=4000)
        self.assertIn("served", done.err)


if __name__ == "__main__":
    unittest.main()
