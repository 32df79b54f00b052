"""Why this exists: ranks start at once, in one folder, under launchers that name them each in its own way. No file may be
lost, one voice speaks, and a thousand summaries have to be read in seconds."""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
import unittest

import command

ROUNDS = [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "rounds.py")]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]


class Ranks(command.CommandTest):
    def merge(self, *words, status=0):
        return self.json("merge", *words, status=status)

    def job(self, *words, **options):
        (job,) = self.merge(*words, **options)["jobs"]
        return job

    def start(self, rank, world, *words, **variables):
        environment = {**command.clean_environment(), "RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": "0",
                       **variables}
        return subprocess.Popen(words, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True)

    def end(self, processes):
        said = []
        for process in processes:
            said.append(process.communicate(timeout=240)[1])
            self.assertEqual(process.returncode, 0, said[-1])
        return said

    def test_64_at_once_in_one_folder_that_is_not_there_yet(self):
        preload = {"LD_PRELOAD": os.environ["REPRISE_HOST_LIBRARY"], "REPRISE_OUT": "a/b/%j", "REPRISE_CACHE": "cache"}
        self.end([self.start(rank, 64, *ROUNDS, "200", **preload) for rank in range(64)])
        files = os.listdir(self.path("a/b/0"))
        for rank in range(64):
            self.assertIn(f"summary.rank{rank}.json", files)
            self.assertIn(f"trace.rank{rank}.reprise", files)
        job = self.job("a/b")
        self.assertEqual([rank["rank"] for rank in job["ranks"]], list(range(64)))
        self.assertEqual((job["world_size"], job["missing_count"], job["faults"]), (64, 0, 0))
        self.assertEqual([name for name in os.listdir(self.path("a/b/0")) if name.endswith(".part")], [])

    def test_only_the_first_speaks(self):
        words = (command.REPRISE, "run", "--host", "--mode", "record", "--", *ROUNDS, "50")
        said = self.end([self.start(rank, 4, *words) for rank in range(4)])
        self.assertIn("files of all ranks are in reprise-out", said[0])
        self.assertEqual(said[1:], ["", "", ""])
        self.assertEqual(os.listdir(self.folder), ["reprise-out"])
        self.assertEqual(len(self.job("reprise-out")["ranks"]), 4)

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
        self.fails(3, "merge", self.folder + "/out/summary.rank9.json", says="No such file")
        os.mkdir(self.path("empty"))
        self.fails(3, "merge", "empty", says="no summary")

    def test_a_thousand_summaries(self):
        self.end([self.start(0, 1000, command.REPRISE, "run", "--host", "--out", "one", "--", *ROUNDS, "20")])
        summary = json.loads(self.read("one/summary.rank0.json"))
        os.mkdir(self.path("many"))
        for rank in range(1000):
            peak = (1 << 30) + rank * 4096 + (1 << 30) * (rank == 617)
            summary.update(rank=rank, host=f"node{rank // 8}", live_peak=peak)
            self.write(f"many/summary.rank{rank}.json", json.dumps(summary))
        began = time.monotonic()
        done = self.json("merge", "many")
        seconds = time.monotonic() - began
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # KiB, of the largest child so far
        print(f"1000 summaries: {seconds:.2f} s, at most {memory / 1024:.0f} MiB", file=sys.stderr)
        (job,) = done["jobs"]
        self.assertEqual((job["largest_rank"], len(job["ranks"]), job["missing_count"]), (617, 1000, 0))
        self.assertAlmostEqual(job["largest_over_median"], 2.0, places=2)
        self.assertLess(seconds, 10)
        self.assertLess(memory, 1 << 20)


if __name__ == "__main__":
    unittest.main()
