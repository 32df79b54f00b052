"""Why this exists: what a user and an administrator of a cluster do, against a real Slurm of two virtual nodes, with a
real distributed job: its losses, its endings and its exit statuses must be those without Reprise."""

import glob
import json
import os
import subprocess
import sys
import unittest

import command
from report_test import head_of
from virtual_cluster import VirtualCluster, wait_for, why_not

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = [sys.executable, "-B", os.path.join(HERE, "rounds.py")]
TRAIN = os.path.join(HERE, "train_ddp.py")
STEPS = "400"
# Allocates without end, and says so in a file once it does and a summary so far is there. "polite": SIGTERM is a reason
# to exit. "hoard": rank 1 then keeps what it takes.
ENDLESS = """
import ctypes, glob, os, signal, sys
if "polite" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
rank = os.environ["SLURM_PROCID"]
summary = os.environ["REPRISE_OUT"] + f"/summary.rank{rank}.*json" if "REPRISE_OUT" in os.environ else "."
hoard = "hoard" in sys.argv and rank == "1"
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
count = 0
while True:
    for block in [libc.aligned_alloc(64, 8192 * (i + 1)) for i in range(16)]:
        libc.free(block)
    count += 1
    begun = count == 50000
    if begun:
        while not glob.glob(summary):
            libc.free(libc.aligned_alloc(64, 8192))
        open(sys.argv[1] + "." + rank, "w").write(str(os.getpid()))
    while hoard and begun:
        ctypes.memset(libc.aligned_alloc(64, 8 << 20), 1, 8 << 20)
"""
RECORD = f"{command.REPRISE} slurm --host --mode record -- "


def memory_group(limit):
    """A memory cgroup of the old kind or the new, or None."""
    for root, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = f"{root}/reprise-{os.getpid()}"
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(f"{group}/{name}", "w", encoding="ascii") as out:
                out.write(str(limit))
            return group
        except OSError:
            os.rmdir(group)
    return None


def python_with_torch():
    for python in (os.environ.get("PYTHON"), "python3", "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "import torch.distributed as d; assert d.is_gloo_available()"],
                                     capture_output=True).returncode == 0:
            return python
    return None


PYTHON = python_with_torch()
needs_torch = unittest.skipUnless(PYTHON, "no Python with PyTorch and gloo here (scripts/setup demo installs one)")
cluster = None


def setUpModule():
    global cluster
    cluster = VirtualCluster()
    unittest.addModuleCleanup(cluster.stop)
    cluster.start()


class OnTheCluster(command.CommandTest):
    def setUp(self):
        super().setUp()
        cluster.set_prolog("#!/bin/sh\n")
        self.environment = {"SLURM_CONF": cluster.environment["SLURM_CONF"], "PATH": cluster.environment["PATH"],
                            "OMP_NUM_THREADS": "1",
                            "MALLOC_PERTURB_": "0"}  # set by Meson: every block filled, which is most of such a job's time

    def go(self, *words, status=0, **variables):
        environment = {**command.clean_environment(), **self.environment, **variables}
        done = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, timeout=300)
        done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        self.assert_status(done, status)
        return done

    def batch(self, *lines, options=(), wait=True, status=0, **variables):
        """Submits a script and waits until it has ended with `status`, unless told not to; its job's number."""
        name = self.write("job.sh", "\n".join(("#!/bin/sh", *lines, "")))
        words = ("sbatch", "--parsable", "-N2", "-n2", "-o", "out.txt", *options, name)
        number = self.go(*words, **variables).out.strip()
        if wait:
            self.end_of(number)
            self.assertEqual(cluster.show(number, "ExitCode"), f"{status}:0", self.said())
        return number

    def said(self):
        return self.read("out.txt").decode(errors="replace")

    def job(self, *folders, status=0):
        (job,) = self.json("merge", *folders, status=status)["jobs"]
        return job

    def losses(self, name):
        return [self.read(f"{name}.{rank}") for rank in (0, 1)]

    def train(self, name):
        return f"{PYTHON} -B {TRAIN} {STEPS} {self.path(name)}"

    @needs_torch
    def test_a_distributed_job_is_the_same_job(self):
        reprise = f"{command.REPRISE} slurm --host --cache cache -- "
        self.batch(f"srun {self.train('without')}")
        first = self.batch(f"{reprise.replace('--cache', '--report --cache')} srun {self.train('with')}")
        self.assertEqual(self.losses("with"), self.losses("without"))
        self.assertNotEqual(*self.losses("without"))
        self.assertRegex(self.said(), rf"reprise: job {first}: summaries of 2 of 2 ranks\n")
        self.assertEqual(self.said().count("next: reprise"), 1, self.said())
        job = self.job(f"reprise-out/{first}")
        self.assertEqual([(rank["rank"], rank["launcher"]) for rank in job["ranks"]], [(0, "Slurm"), (1, "Slurm")])
        self.assertEqual(job["faults"], 0)
        self.assertEqual([rank["plans_resumed"] for rank in job["ranks"]], [0, 0])
        self.assertTrue(all(rank["plans"] for rank in job["ranks"]), job)

        page = head_of(self.read(f"reprise-out/{first}/report.html").decode())
        self.assertEqual(page["merge"]["jobs"], [job])
        self.assertEqual([trace["rank"] for trace in page["jobs"][0]["traces"]], [0, 1])

        # Whatever they had to solve in common was solved by one of them.
        solved = glob.glob(self.path("cache/solves/*"))
        self.assertEqual(sum(rank["plans_solved_for_ranks"] for rank in job["ranks"]), len(solved))
        self.assertTrue(all(name.endswith(".solved.json") for name in solved), solved)
        shared = sum(rank["plans_taken_from_ranks"] for rank in job["ranks"])
        print(f"solved while running: {len(solved)}, taken from the other rank: {shared}", file=sys.stderr)

        self.assertEqual(len(glob.glob(self.path("cache/*.entry"))), 2)
        self.assertEqual(len(glob.glob(self.path("cache/*.plans.json"))), 1, "one sequence, laid once")

        # The second submission: the same command line, so the losses go over those of the first.
        second = self.batch(f"{reprise} srun {self.train('with')}")
        self.assertEqual(self.losses("with"), self.losses("without"))
        again = self.job(f"reprise-out/{second}")
        for before, rank in zip(job["ranks"], again["ranks"]):
            self.assertGreaterEqual(rank["plans_resumed"], 1, again)
            self.assertEqual(rank["plans_refused"], "")
            self.assertLess(rank["first_planned_request"], before["first_planned_request"])
            print(f"rank {rank['rank']}: planned from request {before['first_planned_request']}, the second time from "
                  f"{rank['first_planned_request']}", file=sys.stderr)

        # One rank's entry is damaged: it records again, says so, and mends it.
        (entry,) = glob.glob(self.path("cache/*.rank1.entry"))
        self.write(entry, self.read(entry)[:20])
        third = self.batch(f"{reprise} srun {self.train('with')}")
        self.assertEqual(self.losses("with"), self.losses("without"))
        ranks = self.job(f"reprise-out/{third}")["ranks"]
        self.assertGreaterEqual(ranks[0]["plans_resumed"], 1)
        self.assertEqual(ranks[1]["plans_resumed"], 0)
        self.assertIn("damaged", ranks[1]["plans_refused"])
        self.assertIn("cut short or damaged", self.said())
        self.assertGreater(len(self.read(entry)), 20)

    @needs_torch
    def test_torchrun(self):
        # Debian 13's PyTorch is built without libuv, and its torchrun asks for that wherever it meets its ranks by TCP:
        # so they meet at a file, and the ranks' own store is told to do without.
        self.environment |= {"USE_LIBUV": "0", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}

        def torchrun(name):
            meeting = ["--rdzv_backend=c10d", "--rdzv_conf=store_type=file", "--rdzv_id=one",
                       f"--rdzv_endpoint={self.path('meeting.' + name)}"]
            # Streams of one rank named: PyTorch 1.13 under Python 3.11 fails without.
            return [PYTHON, "-m", "torch.distributed.run", "-r", "9:1", "-t", "9:1", *meeting, "--nproc_per_node=2",
                    TRAIN, STEPS, self.path(name)]

        self.go(*torchrun("without"))
        done = self.go(command.REPRISE, "run", "--host", "--", *torchrun("with"))
        self.assertEqual(self.losses("with"), self.losses("without"))
        job = self.job("reprise-out")
        self.assertEqual([(rank["rank"], rank["launcher"]) for rank in job["ranks"]], [(0, "torchrun"), (1, "torchrun")])
        self.assertEqual(done.err.count("next: reprise"), 1, done.err)

    @needs_torch
    def test_mpirun(self):
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", PYTHON, "-B", TRAIN, STEPS]
        self.go(*mpirun, self.path("without"))
        self.go(command.REPRISE, "run", "--host", "--", *mpirun, self.path("with"))
        self.assertEqual(self.losses("with"), self.losses("without"))
        self.assertEqual([rank["launcher"] for rank in self.job("reprise-out")["ranks"]], ["Open MPI"] * 2)

    def test_srun_around_run(self):
        self.batch(f"srun {command.REPRISE} run --host --mode record -- {' '.join(ROUNDS)} 50")
        self.assertEqual(len(self.job("reprise-out")["ranks"]), 2)
        self.assertEqual(self.said().count("next: reprise merge"), 1, self.said())

    def test_exit_statuses(self):
        line = " ".join(ROUNDS)
        self.batch(f"srun {line} 50 7", status=7)
        self.batch(f"{command.REPRISE} slurm --host -- srun {line} 50 7", status=7)

    def test_variables_that_srun_does_not_hand_on(self):
        line = f"{command.REPRISE} slurm --host -- srun {' '.join(ROUNDS)} 50"
        self.batch(line, options=("--export=NONE",))
        self.assertIn("nothing was caught (srun hands on no other variables than sbatch's --export=NONE said", self.said())
        number = self.batch("unset SLURM_EXPORT_ENV", line, options=("--export=NONE",))
        self.assertEqual(len(self.job(f"reprise-out/{number}")["ranks"]), 2)

    def test_submit(self):
        submit = (command.REPRISE, "slurm", "--host", "--mode", "record", "submit", "--wait", "-N2", "-n2", "-o", "out.txt")
        done = self.go(*submit, "--", *ROUNDS, "50")
        number = done.out.strip()
        self.assertIn(f"next: reprise merge reprise-out/{number}", done.err)
        self.assertEqual(len(self.job(f"reprise-out/{number}")["ranks"]), 2)
        self.assertIn("summaries of 2 of 2 ranks", self.said())
        self.go(*submit, "--", *ROUNDS, "50", "7", status=7)
        named = (*submit[:3], "--out", "runs/%j", *submit[3:])
        number = self.go(*named, "--", *ROUNDS, "50").out.strip()
        self.assertIn("summaries of 2 of 2 ranks", self.said())
        self.assertEqual(len(self.job(f"runs/{number}")["ranks"]), 2)
        array = self.go(*submit, "--array=0-1", "-o", "out.%a.txt", "--", *ROUNDS, "50")
        self.assertIn("an array; one summary at the end of each task's output", array.err)
        self.assertNotIn("next:", array.err)
        for task in ("0", "1"):
            self.assertIn("summaries of 2 of 2 ranks", self.read(f"out.{task}.txt").decode())
        parts = self.go(*submit[:-4], "-N1", "-n1", "-o", "out.txt", ":", "-N1", "-n1", "--", *ROUNDS, "50")
        self.assertEqual(len(self.job(f"reprise-out/{parts.out.strip()}")["ranks"]), 2, "of both parts")
        self.go(command.REPRISE, "slurm", "submit", "--", *ROUNDS, status=127, PATH="/nowhere")
        self.go(command.REPRISE, "slurm", "submit", "--partition=none", "--", *ROUNDS, status=1)

    def test_task_prolog(self):
        with open(os.environ["REPRISE_PROLOG"], encoding="utf-8") as prolog:
            cluster.set_prolog(prolog.read())
        line = "srun " + " ".join(ROUNDS) + " 50"
        host = {"REPRISE_LIBRARY": os.environ["REPRISE_HOST_LIBRARY"]}
        number = self.batch(line, **host)
        self.assertEqual(len(self.job(f"reprise-out/{number}")["ranks"]), 2)
        self.batch(line, REPRISE_DISABLE="1", **host)
        self.batch(line, REPRISE_LIBRARY="/nowhere/libreprise.so")
        self.assertEqual(os.listdir(self.path("reprise-out")), [number])
        said = {folder: subprocess.run(["sh", os.environ["REPRISE_PROLOG"]], check=True, stdout=subprocess.PIPE, text=True,
                                       env={**os.environ, **host, "SLURM_SUBMIT_DIR": folder}).stdout
                for folder in (r"/projects/a\tb%", "/projects/a\nexport A=b")}
        self.assertIn("export REPRISE_OUT=/projects/a\\tb%%/reprise-out/%j\n", said[r"/projects/a\tb%"])
        self.assertEqual(said["/projects/a\nexport A=b"].count("\n"), 1, "the library alone")
        # What it sets for CUDA is what `reprise run` sets.
        names = ("PYTORCH_CUDA_ALLOC_CONF", "TF_GPU_ALLOCATOR", "XLA_PYTHON_CLIENT_ALLOCATOR",
                 "XLA_PYTHON_CLIENT_PREALLOCATE")
        run = self.go(command.REPRISE, "run", "--cuda", "--mode", "record", "--", "printenv", *names)
        self.go("srun", "-N1", "-n1", "-o", "names.txt", "printenv", *names,
                REPRISE_LIBRARY=os.environ["REPRISE_CUDA_LIBRARY"])
        self.assertEqual(self.said_in("names.txt"), run.out)

    def said_in(self, name):
        return self.read(name).decode()

    def endless(self, *arguments, wrapper=RECORD, task="", begun="begun", srun="srun", options=()):
        """A job whose two ranks have allocated for a while."""
        self.write("endless.py", ENDLESS)
        words = f"{srun} {task} {sys.executable} -B {self.path('endless.py')} {self.path(begun)} {' '.join(arguments)}"
        number = self.batch(f"{wrapper}{words}", "echo status $?", wait=False, options=options)
        self.addCleanup(cluster.ask, "scancel", number)  # or it keeps the nodes from other tests when this one fails
        self.wait_until_begun(number, begun)
        return number

    def wait_until_begun(self, number, begun="begun"):
        wait_for(lambda: len(glob.glob(self.path(begun + ".*"))) == 2 or cluster.show(number, "JobState") == "FAILED")

    def forget_begun(self):
        for begun in glob.glob(self.path("begun.*")):
            os.remove(begun)

    def end_of(self, number):
        def ended():
            state = cluster.show(number, "JobState")
            return state not in ("PENDING", "RUNNING", "SIGNALING", "COMPLETING", "") and state

        return wait_for(ended, 240)

    def traces_of(self, number):
        traces = sorted(glob.glob(self.path(f"reprise-out/{number}/trace.rank*.reprise")))
        self.assertEqual(len(traces), 2)
        for trace in traces:
            self.assertGreater(self.json("stats", trace)["allocs"], 1000)

    def test_scancel(self):
        number = self.endless()
        self.go("scancel", number)
        self.assertEqual(self.end_of(number), "CANCELLED")
        self.traces_of(number)
        job = self.job(f"reprise-out/{number}", status=1)
        self.assertEqual(([rank["running"] for rank in job["ranks"]], job["missing"]), ([True, True], []))

    def test_scancel_with_a_grace_period_leaves_summaries(self):
        number = self.endless("polite")
        self.go("scancel", "--signal=TERM", number)
        self.end_of(number)
        self.assertIn("status 9", self.said())
        self.traces_of(number)
        self.assertEqual(len(self.job(f"reprise-out/{number}")["ranks"]), 2)
        self.assertIn("summaries of 2 of 2 ranks", self.said())

    def test_one_rank_is_killed(self):
        statuses = []
        for wrapper in ("", RECORD):
            self.forget_begun()
            number = self.endless("polite", wrapper=wrapper)
            wait_for(lambda: self.read("begun.1"))
            os.kill(int(self.read("begun.1")), 9)
            statuses.append(self.status_without_rank_1(number))
        self.assertEqual(*statuses)
        self.without_rank_1(number)

    def status_without_rank_1(self, number):
        wait_for(lambda: "SIGKILL" in self.said() or "Killed" in self.said() or "oom-kill" in self.said())
        cluster.ask("scancel", "--signal=TERM", f"{number}.0")  # where srun has not ended the other one itself
        self.end_of(number)
        (line,) = [line for line in self.said().splitlines() if line.startswith("status")]
        return line

    def without_rank_1(self, number):
        self.traces_of(number)
        job = self.job(f"reprise-out/{number}", status=1)
        self.assertEqual(([rank["running"] for rank in job["ranks"]], job["missing"]), ([False, True], []))
        self.ok("report", f"reprise-out/{number}")
        (page,) = head_of(self.read(f"reprise-out/{number}/report.html").decode())["jobs"]
        self.assertEqual([trace["rank"] for trace in page["traces"]], [0, 1])

    def test_the_kernel_ends_a_rank_for_memory(self):
        group = memory_group(200 << 20)
        if group is None:
            self.skipTest("no memory cgroup can be made here")
        self.addCleanup(os.rmdir, group)
        # What a cgroup plugin of Slurm's does for the whole step, done for one rank.
        self.write("limited", f'#!/bin/sh\n[ $SLURM_PROCID != 1 ] || echo $$ > {group}/cgroup.procs\nexec "$@"\n')
        os.chmod(self.path("limited"), 0o755)
        statuses = []
        for wrapper in ("", RECORD):
            self.forget_begun()
            number = self.endless("polite", "hoard", wrapper=wrapper, task=self.path("limited"))
            statuses.append(self.status_without_rank_1(number))
        self.assertEqual(*statuses)
        self.without_rank_1(number)

    def test_a_time_limit_without_and_with_a_grace_period(self):
        # At once, as Slurm looks at its limits twice a minute: two ranks to a node. Limits are set when the ranks have
        # begun, because Slurm sends such a signal up to half a minute early: so much that it does when it looks next.
        two = {"srun": "srun -n2 --overcommit"}
        grace = self.endless("polite", begun="grace", **two,
                             options=("-N1", "-n1", "--time=10", "--signal=TERM@50", "-o", "polite.txt"))
        limited = self.endless(**two, options=("-N1", "-n1"))
        self.go("scontrol", "update", f"JobId={limited}", "EndTime=now+1")
        self.go("scontrol", "update", f"JobId={grace}", "EndTime=now+75")
        self.assertEqual(self.end_of(limited), "TIMEOUT")
        self.traces_of(limited)
        self.assertEqual(self.end_of(grace), "COMPLETED")
        said = self.said_in("polite.txt")
        self.assertIn("status 9", said)
        self.assertIn("summaries of 2 of 2 ranks", said)
        self.traces_of(grace)
        self.assertEqual(len(self.job(f"reprise-out/{grace}")["ranks"]), 2)

    def test_requeue(self):
        number = self.endless("polite")
        self.forget_begun()
        before = {name: self.read(name) for name in self.files_of(number) if "summary" not in name}
        self.go("scontrol", "requeue", number)
        wait_for(lambda: cluster.show(number, "JobState") == "PENDING")
        # Not in the same second: nodes refuse a start whose credential is no younger than what the requeue revoked.
        self.go("scontrol", "update", f"JobId={number}", "StartTime=now+3")
        self.wait_until_begun(number)
        # Refused for a moment after a requeue, as for a job that is not there.
        wait_for(lambda: cluster.does("scancel", "--signal=TERM", number))
        self.end_of(number)
        self.assertEqual(cluster.show(number, "Restarts"), "1")
        for name, content in before.items():
            self.assertEqual(self.read(name)[: len(content)], content, "what the first run wrote is still there")
        for rank in (0, 1):
            for run in ("", ".restart1"):
                trace = self.path(f"reprise-out/{number}/trace.rank{rank}{run}.reprise")
                self.assertGreater(self.json("stats", trace)["allocs"], 1000)
        again = self.merge_of(number)[-1]
        self.assertEqual((again["restart"], [rank["rank"] for rank in again["ranks"]]), (1, [0, 1]))
        self.assertIn(f"job {number}, restart 1: summaries of 2 of 2 ranks", self.said())

    def files_of(self, number):
        return glob.glob(self.path(f"reprise-out/{number}/*"))

    def merge_of(self, number):
        return self.json("merge", f"reprise-out/{number}")["jobs"]


if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
