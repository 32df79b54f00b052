"""With --oversubscribe a job that needs more than its device has goes on in the host's memory, with the contents it
would have had, and leaves a plan and what that needs; without, or where the driver cannot, it is out of memory as ever.

The device is full for certain: 64 MiB, where the job needs 112.
"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import preloading
from cuda_programs import CudaTest, built

DEVICE = {"SIMCUDA_MEMORY": "64MiB", "SIMCUDA_STREAMS": "deferred"}
ON = {"REPRISE_OVERSUBSCRIBE": "1"}
ITERATIONS = 20
ACTIVATIONS = [2**20 + layer * 2**18 for layer in range(24)]
LIVE_PEAK = 16 * 2**20 + 4 * 2**16 + sum(ACTIVATIONS) + ACTIVATIONS[-1] // 2  # weights, inputs; the first gradient
GRANULE = 2 * 2**20
OUT_OF_MEMORY = 2

WAITS = """
import ctypes
cu = ctypes.CDLL("libcuda.so.1")
cu.simHostPhysicalBytes.restype = ctypes.c_ulonglong
def check(result):
    assert result == 0, result
check(cu.cuInit(0))
context, pool = ctypes.c_void_p(), ctypes.c_void_p()
check(cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cu.cuCtxSetCurrent(context))
check(cu.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0))
streams = [ctypes.c_void_p(), ctypes.c_void_p()]
for stream in streams:
    check(cu.cuStreamCreate(ctypes.byref(stream), 1))
in_host = []
def play(stream, mebibytes):
    block = ctypes.c_uint64()
    size = ctypes.c_size_t(mebibytes << 20)
    check(cu.cuMemAllocAsync(ctypes.byref(block), size, stream))
    for i in range(200):
        check(cu.simFill(block, ctypes.c_size_t(4096), ctypes.c_ulonglong(i), stream))
    check(cu.cuMemFreeAsync(block, stream))
    in_host.append(cu.simHostPhysicalBytes())
play(streams[0], 320)
check(cu.cuCtxSynchronize())
check(cu.cuMemPoolTrimTo(pool, ctypes.c_size_t(0)))
play(streams[0], 48)
play(streams[1], 48)
print(f"in the host: {in_host[0] > 0}, {in_host[1]}, {in_host[2]}")
check(cu.cuCtxSynchronize())
free, total = ctypes.c_size_t(), ctypes.c_size_t()
check(cu.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
print(f"free: {free.value >> 20} of {total.value >> 20}")
check(cu.cuMemPoolTrimTo(pool, ctypes.c_size_t(0)))
check(cu.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(32 << 20)))
play(streams[0], 320)
"""


class Oversubscribe(CudaTest):
    core = "CORE_PLANNING_IN_CALLER"

    def play(self, kind="ordered", out="out", preload=True, **variables):
        out = os.path.join(self.at.folder, out)
        done = self.run_job([built("TOO_LARGE"), kind, str(ITERATIONS)], [self.at.shim] if preload else [],
                            REPRISE_OUT=out, **{**DEVICE, **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["corrupted"], result["strange"]), (0, 0), done.stderr)
        if not preload:
            return result, None, done.stderr
        with open(os.path.join(out, "summary.json")) as file:
            return result, json.load(file)["devices"][0], done.stderr

    def check_served(self, result, device, said):
        self.assertEqual((result["iterations"], result["result"]), (ITERATIONS, 0), said)
        self.assertEqual(device["live_peak"], LIVE_PEAK)
        self.assertGreater(device["in_host_peak"], 0)
        self.assertEqual(device["in_host_peak"], result["in_host_peak"])
        self.assertEqual(device["in_host_peak"], GRANULE * device["granules_in_host_peak"])
        self.assertIn("device 0: its memory is full; going on in the host's, which is slow\n", said)

    def check_out_of_memory(self, result):
        self.assertEqual((result["iterations"], result["result"], result["in_host_peak"]), (0, OUT_OF_MEMORY, 0))

    def test_served_to_the_end_and_planned(self):
        result, device, said = self.play(**ON)
        self.check_served(result, device, said)
        self.assertEqual(device["on_device_full"], 64 * 2**20)
        # No more than there has to be: what the device has is used up, and granules that are free move.
        self.assertLess(device["in_host_peak"] + device["on_device_full"], 1.05 * LIVE_PEAK)
        self.assertGreater(device["planned_bytes_after_plan"], 0.9)
        self.assertGreaterEqual(device["plan_needs"], LIVE_PEAK)
        self.assertLess(device["plan_needs"], 1.05 * LIVE_PEAK)
        self.assertRegex(said, r"oversubscribed +\S+ MiB  at most in the host's memory, \d+ granules, which is slow; "
                               r"the device gave 64.00 MiB\n  plan needs +\S+ MiB  \S+ MiB more than the device gave")
        self.assertTrue(os.path.exists(device["plans_written"]))

    def test_with_its_plan_where_that_fits(self):
        _, first, _ = self.play(**ON)
        for variables in (ON, {}):
            with self.subTest(variables):
                result, device, said = self.play(out="second" + "".join(variables), REPRISE_PLAN=first["plans_written"],
                                                 SIMCUDA_MEMORY=str(first["plan_needs"]), **variables)
                self.assertEqual((result["iterations"], result["result"], result["in_host_peak"]), (ITERATIONS, 0, 0))
                self.assertEqual(device["in_host_peak"], 0)
                self.assertGreater(device["plans_resumed"], 0)
                self.assertLessEqual(device["reserved_peak"], first["plan_needs"])
                self.assertNotIn("oversubscribed", said)

    def test_a_job_that_is_killed_has_said_whether_the_next_attempt_fits(self):
        environment = preloading.clean_environment(LD_LIBRARY_PATH=built("SIMCUDA"), SIMCUDA_QUIET="1", **DEVICE)
        command = [built("REPRISE"), "run", "--cuda", "--oversubscribe", "--out", "out", "--", built("TOO_LARGE"), "ordered",
                   "1000000"]
        summary = os.path.join(self.at.folder, "out", "summary.json")

        def planned():
            if not os.path.exists(summary):
                return None
            with open(summary) as file:
                content = json.load(file)
            return content if content["devices"][0]["plan_needs"] else None

        with subprocess.Popen(command, env=environment, cwd=self.at.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as run:
            self.addCleanup(run.kill)
            while not (content := planned()):
                self.assertIsNone(run.poll())
                time.sleep(0.05)  # between two looks
            os.kill(content["pid"], signal.SIGKILL)
            said = run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, -signal.SIGKILL)
        verdict = (r"rank 0, device 0: \S+ MiB at most in the host's memory, which is slow; the device gave 64\.00 MiB\n"
                   r".* its plan needs \S+ MiB: \S+ MiB more than the device gave: the next attempt does not fit either\n")
        self.assertRegex(said, verdict)
        merged = subprocess.run([built("REPRISE"), "merge", "out"], cwd=self.at.folder, capture_output=True, text=True)
        self.assertRegex(merged.stdout, verdict)

    def test_synchronous_memory(self):
        result, device, said = self.play("synchronous", **ON)
        self.check_served(result, device, said)
        self.assertGreater(device["planned"], 0)

    def test_recorded_only(self):
        result, device, said = self.play(REPRISE_MODE="record", **ON)
        self.check_served(result, device, said)
        self.assertRegex(said, "plan needs +unknown")
        self.assertTrue(os.path.exists(device["trace"]))

    def test_without_being_asked(self):
        without, _, _ = self.play(preload=False)
        self.check_out_of_memory(without)
        for variables in ({}, {"REPRISE_OVERSUBSCRIBE": "0"}):
            result, device, said = self.play(out="out" + "".join(variables), **variables)
            self.check_out_of_memory(result)
            self.assertEqual(device["in_host_peak"], 0)
            self.assertNotIn("host's", said)

    def test_a_driver_that_has_to_be_told_the_node(self):
        self.check_served(*self.play(SIMCUDA_HOST_ANYWHERE="0", **ON))

    def test_where_the_host_cannot(self):
        """A driver that cannot, a host that is full, and a limit of the user's own."""
        cases = [({"SIMCUDA_HOST_MEMORY": "0"}, "cuMemCreate of the host's memory answered 801"),
                 ({"SIMCUDA_HOST_MEMORY": "8MiB"}, "cuMemCreate of the host's memory answered 2 (out of memory)"),
                 ({"REPRISE_CAPACITY": "48MiB"}, "the arena is at its limit"),
                 ({"SIMCUDA_VMM": "0"}, "the arena is at its limit")]
        for at, (variables, why) in enumerate(cases):
            with self.subTest(variables):
                result, _, said = self.play(out=f"out{at}", **ON, **variables)
                self.assertEqual((result["iterations"], result["result"]), (0, OUT_OF_MEMORY))
                self.assertEqual(said.count(f"its memory is full, and the host's cannot stand in: {why}\n"), 1, said)

    def test_each_time_anew(self):
        """Where the device's memory only has to be waited for, the host's does not stand in, though it has before: for a
        block larger than whatever the device could have been."""
        done = self.run_job([sys.executable, "-c", WAITS], [self.at.shim], REPRISE_OUT="out", **DEVICE, **ON)
        self.assertEqual((done.returncode, done.stdout), (0, "in the host: True, 0, 0\nfree: 64 of 64\n"), done.stderr)
        with open(os.path.join(self.at.folder, "out", "summary.json")) as file:
            device = json.load(file)["devices"][0]
        self.assertEqual(device["on_device_full"], 64 * 2**20, "what it gave the first time, when half was not in use")

    def test_random_jobs(self):
        """Streams and threads that are short of memory: no call fails, nothing is corrupted."""
        short = {"SIMCUDA_STREAMS": "deferred", "SIMCUDA_MEMORY": "32MiB"}
        shim = self.install("CORE").shim
        in_host = failed = 0
        for seed in range(1, 25):
            command = [built("WORKLOAD"), str(seed), "1", "12"]
            out = os.path.join(self.at.folder, f"out{seed}")
            without = json.loads(self.run_job(command, **short).stdout)
            done = self.run_job(command, [shim], REPRISE_OUT=out, REPRISE_LOG="quiet", **short, **ON)
            result = json.loads(done.stdout)
            self.assertEqual((result["corrupted_bytes"], result["failed_calls"]), (0, 0), f"in seed {seed}")
            failed += without["failed_calls"] > 0
            with open(os.path.join(out, "summary.json")) as file:
                in_host += json.load(file)["devices"][0]["in_host_peak"] > 0
        self.assertGreater(failed, 12)
        self.assertGreater(in_host, 12)


if __name__ == "__main__":
    unittest.main()
