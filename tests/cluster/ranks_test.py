"""Why this exists: ranks start at once, in one folder, under launchers that name them each in its own way. No file may be
lost, one voice speaks, and a thousand summaries have to be read in seconds."""

import ctypes
import json
import os
import resource
import shutil
import sys
import time
import unittest

import command
from by_hand import ROUNDS, RanksByHand
from report_test import head_of

libc = ctypes.CDLL(None)
IN_ACCESS = 1  # of linux/inotify.h: of a folder, that its names were read, or a file in it
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]


class Ranks(RanksByHand):
    def test_64_at_once_in_one_folder_that_is_not_there_yet(self):
        preload = {"LD_PRELOAD": os.environ["REPRISE_HOST_LIBRARY"], "REPRISE_OUT": "a/b/%j", "REPRISE_CACHE": "cache"}
        # No more events than half a recorder's ring: none is lost, however late its thread comes to run.
        self.end([self.start(rank, 64, *ROUNDS, "800", **preload) for rank in range(64)])
        files = os.listdir(self.path("a/b/0"))
        for rank in range(64):
            self.assertIn(f"summary.rank{rank}.json", files)
            self.assertIn(f"trace.rank{rank}.reprise", files)
        job = self.job("a/b")
        self.assertEqual([rank["rank"] for rank in job["ranks"]], list(range(64)))
        self.assertEqual((job["world_size"], job["missing_count"], job["faults"]), (64, 0, 0))
        self.assertEqual([name for name in os.listdir(self.path("a/b/0")) if name.endswith(".part")], [])
        # Each problem was solved once, by one of them, and the others took the plan.
        solves = os.listdir(self.path("cache/solves"))
        self.assertEqual([name for name in solves if not name.endswith(".solved.json")], [])
        self.assertEqual(sum(rank["plans_solved_for_ranks"] for rank in job["ranks"]), len(solves))
        taken = sum(rank["plans_taken_from_ranks"] for rank in job["ranks"])
        self.assertGreater(taken, 32)
        print(f"64 ranks: {len(solves)} solved, {taken} taken from another", file=sys.stderr)

    def test_what_a_rank_costs_at_its_start(self):
        # Processor time, not the clock's: as many as there are cores run at once, whatever else the machine does.
        served = {"LD_PRELOAD": os.environ["REPRISE_HOST_LIBRARY"], "REPRISE_OUT": "out", "REPRISE_CACHE": "cache"}
        cost = {}
        for variables in ({}, served):
            ranks = [self.start(rank, 64, *ROUNDS, "2", REPRISE_RUN="test", **variables) for rank in range(64)]
            used = 0.0
            for process in ranks:
                process.stderr.close()
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(process.returncode, 0)
                used += usage.ru_utime + usage.ru_stime
            cost[bool(variables)] = used / 64
        self.assertEqual(len(os.listdir(self.path("out"))), 2 * 64)
        added = 1000 * (cost[True] - cost[False])
        print(f"start of a rank: {added:.1f} ms of a core more than {1000 * cost[False]:.1f} ms", file=sys.stderr)
        self.assertLess(added, 50)

    def test_a_job_that_comes_again_under_its_number(self):
        preload = {"LD_PRELOAD": os.environ["REPRISE_HOST_LIBRARY"], "REPRISE_OUT": "out/%j", "SLURM_JOB_ID": "7",
                   "REPRISE_MODE": "record"}
        for restart in ({}, {"SLURM_RESTART_COUNT": "1"}):
            self.end([self.start(rank, 2, *ROUNDS, "20", **preload, **restart) for rank in range(2)])
        names = [f"{kind}.rank{rank}{restart}.{end}" for rank in (0, 1) for restart in ("", ".restart1")
                 for kind, end in (("trace", "reprise"), ("summary", "json"))]
        self.assertEqual(sorted(os.listdir(self.path("out/7"))), sorted(names))
        jobs = self.merge("out")["jobs"]
        self.assertEqual([(job["job"], job["restart"], len(job["ranks"]), len(job["further"])) for job in jobs],
                         [("7", 0, 2, 0), ("7", 1, 2, 0)])
        self.assertIn("job 7, restart 1: summaries of 2 of 2 ranks", self.ok("merge", "out").out)

    def test_runs_that_have_no_number(self):
        preload = {"LD_PRELOAD": os.environ["REPRISE_HOST_LIBRARY"], "REPRISE_OUT": "out", "REPRISE_MODE": "record"}
        for ranks in ((0, 1), (1,)):
            self.end([self.start(rank, 2, *ROUNDS, "20", **preload) for rank in ranks])
        jobs = self.merge("out", status=1)["jobs"]
        self.assertEqual([(job["run"], len(job["ranks"]), job["missing"], job["further"]) for job in jobs],
                         [(1, 2, [], []), (2, 1, [0], [])])
        self.assertLess(jobs[0]["ranks"][0]["ended"], jobs[1]["started"])
        self.assertRegex(self.fails(1, "merge", "out").out,
                         r"the job, run 2, started 20[0-9-]+T[0-9:]+Z: summaries of 1 of 2 ranks\n")

    def test_a_rank_does_not_look_through_what_the_others_left(self):
        """All of them would read as many names as the square of their number."""
        os.mkdir(self.path("out"))
        watch = libc.inotify_init1(os.O_NONBLOCK)
        self.addCleanup(os.close, watch)
        self.assertGreater(libc.inotify_add_watch(watch, self.path("out").encode(), IN_ACCESS), 0)
        self.end([self.start(rank, 2, command.REPRISE, "run", "--host", "--out", "out", "--", *ROUNDS, "20")
                  for rank in range(2)])
        self.assertRaises(BlockingIOError, os.read, watch, 4096)
        self.assertEqual(len(self.job("out")["ranks"]), 2)
        self.assertTrue(os.read(watch, 4096), "merge does, and that is seen")

    def test_only_the_first_speaks(self):
        words = (command.REPRISE, "run", "--host", "--mode", "record", "--", *ROUNDS, "50")
        said = self.end([self.start(rank, 4, *words) for rank in range(4)])
        self.assertIn("files of all ranks are in reprise-out", said[0])
        self.assertEqual(said[1:], ["", "", ""])
        self.assertEqual(os.listdir(self.folder), ["reprise-out"])
        self.assertEqual(len(self.job("reprise-out")["ranks"]), 4)

    def test_the_first_says_where_each_has_a_folder(self):
        words = (command.REPRISE, "run", "--host", "--out", "runs/%r", "--", *ROUNDS, "5")
        said = self.end([self.start(rank, 3, *words) for rank in range(3)])
        self.assertRegex(said[0], r"files are below runs, .*\nreprise: next: reprise merge runs\n\Z")
        self.assertEqual(said[1:], ["", ""])
        self.assertEqual(len(self.job("runs")["ranks"]), 3)

    def test_ranks_that_leave_traces_alone_are_ranks(self):
        self.write("job.py", f"import os, runpy, sys\ntry:\n    runpy.run_path({ROUNDS[-1]!r})\nexcept SystemExit:\n    os._exit(0)\n")
        self.write("job.sh", f"for RANK in 0 1; do export RANK; {sys.executable} -B job.py 100; done\n")
        done = self.ok("run", "--host", "--mode", "record", "--", "env", "WORLD_SIZE=2", "sh", "job.sh")
        self.assertIn("no summary: ", done.err)
        self.assertIn("next: reprise report reprise-out\n", done.err)

    def test_the_first_says_where_there_are_no_files(self):
        for out, job, why in (("out", ["true"], r"no process left a summary: nothing was caught \("),
                              ("/proc/x", [*ROUNDS, "20"], r"no files came: /proc/x cannot be made \(")):
            words = (command.REPRISE, "run", "--host", "--out", out, "--", *job)
            said = self.end([self.start(rank, 2, *words) for rank in range(2)])
            self.assertRegex(said[0], why)
            self.assertNotIn("files of all ranks", said[0])
            self.assertNotIn("next: reprise merge", said[0])

    def test_the_end_of_a_job_of_many_steps_or_ranks_is_no_longer_than_a_screen_or_two(self):
        """A step of 18 ranks that cannot use the plans that are there, and 17 more of which one rank has come each."""
        self.write("plans.json", "{}")
        step = "SLURM_STEP_ID=$step SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=18 REPRISE_PLAN=plans.json " + " ".join(ROUNDS)
        self.write("job.sh", f"exec 2> /dev/null; step=100; for rank in $(seq 0 17); do {step} 20; done\n"
                             f"rank=0; for step in $(seq 101 117); do {step} 20; done\n")
        done = self.ok("run", "--host", "--out", "out", "--", "env", "SLURM_JOB_ID=7", "sh", "job.sh")
        self.assertEqual((done.err.count("summaries of 18 of 18"), done.err.count("summaries of 1 of 18")), (1, 15))
        self.assertIn("  ...  2 more\n", done.err)
        self.assertIn("\nreprise: ... 2 more steps or runs\nreprise: next: reprise merge out\n", done.err)
        self.assertEqual(done.err.count("plans found, and not used"), 16, done.err)
        self.assertEqual(self.reprise("merge", "out").out.count(" of 18 ranks\n"), 18)

    def test_a_rank_ends_as_its_job_does(self):
        process = self.start(1, 2, command.REPRISE, "run", "--host", "--", *ROUNDS, "5", "7")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 7)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_run_around_mpirun(self):
        done = self.ok("run", "--host", "--", *MPIRUN, *ROUNDS, "200")
        job = self.job("reprise-out")
        self.assertEqual([rank["launcher"] for rank in job["ranks"]], ["Open MPI"] * 4)
        self.assertRegex(done.err, r"reprise: .*summaries of 4 of 4 ranks\n")
        self.assertEqual(done.err.count("next: reprise"), 1, done.err)
        self.assertIn("next: reprise merge reprise-out\n", done.err)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_mpirun_around_run(self):
        done = self.reprise(*MPIRUN[1:], command.REPRISE, "run", "--host", "--", *ROUNDS, "200", program=MPIRUN[0])
        self.assert_status(done, 0)
        (folder,) = os.listdir(self.path("reprise-out"))  # by mpirun's number of the job
        self.assertEqual(len(self.job(f"reprise-out/{folder}")["ranks"]), 4)
        self.assertEqual(done.err.count("next: reprise merge"), 1, done.err)

    def test_merge_names_what_is_wrong_and_loses_nothing(self):
        self.end([self.start(rank, 4, command.REPRISE, "run", "--host", "--out", "out", "--", *ROUNDS, "20")
                  for rank in (0, 1, 3)])
        done = self.fails(1, "merge", "out")
        self.assertIn("summaries of 3 of 4 ranks", done.out)
        self.assertIn("no summary of rank 2\n", done.out)
        self.write("out/summary.rank1.json", self.read("out/summary.rank1.json")[:100])
        done = self.fails(3, "merge", "out", says=r"out/summary.rank1.json: is not JSON, or cut short")
        self.assertIn("no summary of rank 1, 2\n", done.out)
        self.assertEqual(len(self.merge("out", status=3)["errors"]), 1)
        self.assertIn("next: reprise report out\n",
                      self.reprise("merge", "out/summary.rank0.json", "out/summary.rank3.json").err)
        self.fails(3, "merge", self.folder + "/out/summary.rank9.json", says="No such file")
        os.mkdir(self.path("empty"))
        self.fails(3, "merge", "empty", says="no summary")

    def test_ranks_without_a_plan_have_no_sum_of_slabs(self):
        self.record("out", [0, 0])
        self.assertRegex(self.ok("merge", "out").out, r"(?m)^ +sum +\S+ MiB +\S+ MiB +- +- +0$")

    def thousand(self):
        """A folder with what a thousand ranks would leave, made of real ones; rank 617 holds more."""
        self.record("one", [0, 8], world=1000, rounds=1000)
        summary = json.loads(self.read("one/summary.rank0.json"))
        os.mkdir(self.path("many"))
        for rank in range(1000):
            odd = rank == 617
            summary.update(rank=rank, host=f"node{rank // 8}", live_peak=(1 << 30) + rank * 4096 + (1 << 30) * odd)
            self.write(f"many/summary.rank{rank}.json", json.dumps(summary))
            shutil.copy(self.path(f"one/trace.rank{int(odd)}.reprise"), self.path(f"many/trace.rank{rank}.reprise"))

    def measured(self, what, run):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        done = run()
        seconds = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # One thread: on a machine that is left alone the clock says the same.
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        memory = after.ru_maxrss  # KiB, of the largest child so far
        print(f"1000 {what}: {used:.2f} s of a core, {seconds:.2f} s by the clock, at most {memory / 1024:.0f} MiB",
              file=sys.stderr)
        self.assertLess(used, 10)
        self.assertLess(memory, 1 << 20)
        return done

    def test_a_thousand_ranks(self):
        self.thousand()
        (job,) = self.measured("summaries", lambda: self.json("merge", "many"))["jobs"]
        self.assertEqual((job["largest_rank"], len(job["ranks"]), job["missing_count"]), (617, 1000, 0))
        self.assertAlmostEqual(job["largest_over_median"], 2.0, places=2)
        self.measured("summaries and traces", lambda: self.ok("report", "many"))
        page = head_of(self.read("many/report.html").decode())
        self.assertEqual(page["merge"]["jobs"], [job])
        self.assertEqual(len(page["jobs"][0]["traces"]), 1000)
        self.assertIn("Rank 617 on node77 stands out", page["jobs"][0]["verdict"])
        self.assertIn("8.00 MiB at uneven.py", page["jobs"][0]["verdict"])


if __name__ == "__main__":
    unittest.main()
