"""Why this exists: of a job that is killed nothing is known but what it has left while it ran, and `run` must neither
keep that back nor say it of a job that came to its end."""

import json
import os
import signal
import sys
import unittest

import command

# Until a file is there: one kills it, with the other it ends by itself.
JOB = """
import ctypes, os, signal
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
while True:
    for block in [libc.aligned_alloc(64, 8192 * (i + 1)) for i in range(int(os.environ.get("BLOCKS", "16")))]:
        libc.free(block)
    if os.path.exists(os.environ.get("LEFT_BY", "nothing")):
        break
    if os.path.exists(os.environ.get("KILLED_BY", "nothing")):
        os.kill(os.getpid(), signal.SIGKILL)
    if os.path.exists(os.environ.get("EXITED_BY", "nothing")):
        os._exit(int(os.environ["STATUS"]))
"""
# Asks for little, and now and then.
SELDOM = JOB.replace("while True:", "while True:\n    time.sleep(0.2)").replace("import ctypes", "import time, ctypes")


class Killed(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.write("job.py", JOB)

    def run_into(self, folder, *words, **env):
        return self.run_host("--out", folder, "--", *words, env=env)

    def test_a_job_that_is_killed_has_left_a_summary(self):
        done = self.run_into("out", sys.executable, "job.py", KILLED_BY="out/summary.json")
        self.assert_status(done, -signal.SIGKILL)
        self.assertIn("reprise: no summary of its end: the job was ended by a signal", done.err)
        self.assertRegex(done.err, r"(?m)^reprise: +0 +\S+ +\S+ MiB +\S+ MiB ")
        summary = json.loads(self.read("out/summary.json"))
        self.assertTrue(summary["running"])
        self.assertGreater(summary["requests"], 256)
        self.assertGreater(summary["ended"], summary["started"] + 1)
        self.assertEqual(summary["trace"], self.path("out/trace.reprise"))
        said = r"not at its end but at \d+-\S+Z: rank 0; killed since, ended by _exit, or still running\n"
        self.assertRegex(done.err, said)
        merged = self.reprise("merge", "out")
        self.assert_status(merged, 1)
        self.assertRegex(merged.out, said)
        ((rank,),) = (job["ranks"] for job in self.json("merge", "out", status=1)["jobs"])
        self.assertTrue(rank["running"])
        # One that goes on replaces it by that of its end.
        self.assert_status(self.run_into("whole", sys.executable, "job.py", LEFT_BY="whole/summary.json"), 0)
        whole = json.loads(self.read("whole/summary.json"))
        self.assertFalse(whole["running"])
        self.assertEqual(whole["requests"] % 16, 0)
        self.ok("merge", "whole")

    def test_so_has_one_that_runs_no_exit_handlers(self):
        for status in (0, 7):
            with self.subTest(status):
                out = f"out{status}"
                done = self.run_into(out, sys.executable, "job.py", EXITED_BY=f"{out}/summary.json", STATUS=str(status))
                self.assert_status(done, status)
                self.assertIn(f"reprise: no summary of its end: the job ended with status {status} and ran no exit handlers",
                              done.err)
                self.assertRegex(done.err, r"(?m)^reprise: +0 +\S+ +\S+ MiB +\S+ MiB ")

    def test_so_has_one_that_asks_for_little(self):
        self.write("job.py", SELDOM)
        done = self.run_into("out", sys.executable, "job.py", KILLED_BY="out/summary.json")
        self.assert_status(done, -signal.SIGKILL)
        self.assertLess(json.loads(self.read("out/summary.json"))["requests"], 256)

    def test_a_job_is_not_said_to_be_killed_for_a_helper(self):
        script = f"KILLED_BY=$1/summary.json {sys.executable} job.py; BLOCKS=8 LEFT_BY=$1 {sys.executable} job.py; exit $2"
        done = self.run_into("well", "sh", "-c", script, "sh", "well", "0")
        self.assert_status(done, 0)
        self.assertNotIn("no summary", done.err)
        done = self.run_into("badly", "sh", "-c", script, "sh", "badly", "7")
        self.assert_status(done, 7)
        self.assertIn("reprise: no summary of its end: a process of the job was ended", done.err)

    def test_of_ranks_their_table_says_which_were_killed(self):
        script = (
            f"RANK=1 KILLED_BY=out/summary.rank1.json {sys.executable} job.py; "
            f"RANK=0 LEFT_BY=out/summary.rank0.json {sys.executable} job.py; exit 7"
        )
        done = self.run_into("out", "sh", "-c", script, WORLD_SIZE="2")
        self.assert_status(done, 7)
        self.assertRegex(done.err, r"not at its end but at \d+-\S+Z: rank 1; killed since, ended by _exit, or still running\n")
        self.assertNotIn("this is how it was", done.err)

    def test_what_has_left_a_trace_alone_can_be_reported_on(self):
        os.mkdir(self.path("out"))
        self.fails(3, "merge", "out", says=r"no summary\*\.json in out")
        self.write("out/trace.reprise", command.EVENTS)
        done = self.fails(3, "merge", "out", says=r"no summary\*\.json in out")
        self.assertIn("reprise: next: reprise report out\n", done.err)
        self.ok("report", "out")


if __name__ == "__main__":
    unittest.main()
