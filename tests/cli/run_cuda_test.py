"""Why this exists: on CUDA a job is caught only if its framework asks the driver for every tensor, which a variable
decides that is ours to set and the user's to keep."""

import os
import signal
import sys
import unittest

import command

PRINT = "import os, sys; print(*(f'{name}={os.environ.get(name)}' for name in sys.argv[1:]), sep='\\n')"
PYTORCH = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
TENSORFLOW = {"TF_GPU_ALLOCATOR": "cuda_malloc_async"}
JAX = {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
OURS = {**PYTORCH, **TENSORFLOW, **JAX}
# Leaves the summary that the core would leave.
LEAVE = (
    "import os; out = os.environ['REPRISE_OUT']; os.makedirs(out, exist_ok=True); "
    "open(os.path.join(out, 'summary.json'), 'w').write({!r})"
)


class RunCuda(command.CommandTest):
    def variables(self, *options, names=tuple(OURS), **keywords):
        done = self.ok("run", *options, "--mode", "record", "--", sys.executable, "-c", PRINT, *names, **keywords)
        return dict(line.split("=", 1) for line in done.out.splitlines())

    def test_each_framework_is_told(self):
        self.assertEqual(self.variables("--cuda"), OURS)

    def test_host_mode_tells_nobody(self):
        self.assertEqual(self.variables("--host"), dict.fromkeys(OURS, "None"))

    def test_time_line(self):
        for options, value in (((), "None"), (("--timeline",), "1")):
            self.assertEqual(self.variables("--cuda", *options, names=["REPRISE_TIMELINE"]), {"REPRISE_TIMELINE": value})
        self.fails(2, "run", "--host", "--timeline", "--", "true", says="with --host there is none")

    def test_oversubscription(self):
        for options, value in (((), "None"), (("--oversubscribe",), "1")):
            names = ["REPRISE_OVERSUBSCRIBE"]
            self.assertEqual(self.variables("--cuda", *options, names=names), {"REPRISE_OVERSUBSCRIBE": value})
        self.fails(2, "run", "--host", "--oversubscribe", "--", "true", says="with --host there is none")

    def test_what_the_user_has_set_stays(self):
        for name in OURS:
            with self.subTest(name):
                self.assertEqual(self.variables("--cuda", env={name: "mine"}), {**OURS, name: "mine"})

    def test_another_way_to_choose_for_pytorch(self):
        for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"):
            with self.subTest(name):
                told = self.variables("--cuda", env={name: "1"})
                self.assertEqual(told, {**OURS, "PYTORCH_CUDA_ALLOC_CONF": "None"})

    def test_the_library(self):
        preload = self.variables("--cuda", names=["LD_PRELOAD"], env={"LD_PRELOAD": "libc.so.6"})["LD_PRELOAD"]
        self.assertEqual(preload, os.path.realpath(os.environ["REPRISE_CUDA_LIBRARY"]) + ":libc.so.6")

    @command.without_driver
    def test_no_driver(self):
        done = self.fails(2, "run", "--", "true", says="no CUDA driver here")
        self.assertIn("needs --host", done.err)

    def test_a_driver_is_enough(self):
        self.assertEqual(self.variables(env=self.with_driver()), OURS)

    def test_a_driver_that_cannot_be_opened_is_none(self):
        environment = self.with_driver()
        self.write("driver/libcuda.so.1", "no library")
        self.fails(2, "run", "--", "true", says="no CUDA driver here", env=environment)

    def test_host_and_cuda_exclude_each_other(self):
        self.fails(2, "run", "--host", "--cuda", "--", "true", says="--cuda")

    def test_nothing_caught(self):
        done = self.ok("run", "--cuda", "--", "true")
        self.assertIn("no process asked the CUDA driver for memory", done.err)
        self.assertEqual(os.listdir(self.folder), [])

    def test_status_is_the_jobs(self):
        self.assert_status(self.reprise("run", "--cuda", "--", "sh", "-c", "exit 7"), 7)

    def run_with_summary(self, summary, **options):
        return self.ok("run", "--cuda", "--", sys.executable, "-c", LEAVE.format(summary), **options).err

    def test_a_job_that_fails_hears_what_was_set(self):
        for job, environment, said in (
            (7, {}, True),
            (0, {}, False),
            (7, {"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}, False),
            (-signal.SIGSEGV, {}, True),
            (-signal.SIGTERM, {}, False),
            (-signal.SIGKILL, {}, False),
        ):
            ends = f"os._exit({job})" if job >= 0 else f"os.kill(os.getpid(), {-job})"
            leave = LEAVE.format('{"devices": [{"segments_only": false}]}') + f"; {ends}"
            done = self.reprise("run", "--cuda", "--", sys.executable, "-c", leave, env=environment)
            self.assert_status(done, job)
            self.assertEqual("if that is why, set PYTORCH_CUDA_ALLOC_CONF=backend:native" in done.err, said, done.err)

    def test_a_job_that_fails_on_a_device_without_memory_pools(self):
        environment = self.with_driver(CUDA_WITHOUT_POOLS="1")
        leave = LEAVE.format('{"devices": [{}]}') + "; os._exit(7)"
        said = self.reprise("run", "--", sys.executable, "-c", leave, env=environment).err
        self.assertIn("a device here has no memory pools; set PYTORCH_NO_CUDA_MEMORY_CACHING=1", said)
        self.assertNotIn("CUDA graph trees", said)

    def test_segments_alone(self):
        said = self.run_with_summary('{"devices": [{"segments_only": false}, {"segments_only": true}]}')
        self.assertIn("only whole segments were seen", said)
        for name, value in OURS.items():
            self.assertIn(f"{name}={value}", said)
        self.assertIn("set inside the job", said)

    def test_segments_by_the_users_own_choice(self):
        environment = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}
        said = self.run_with_summary('{"devices": [{"segments_only": true}]}', env=environment)
        self.assertIn("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64 is yours", said)

    def test_nothing_is_said_of_segments_otherwise(self):
        for summary in ('{"devices": [{"segments_only": false}]}', '{"devices": [{}, 3]}', "{}", "[1]", "not JSON"):
            with self.subTest(summary):
                self.assertNotIn("segments", self.run_with_summary(summary))


if __name__ == "__main__":
    unittest.main()
