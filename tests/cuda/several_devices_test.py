"""A process on two devices: each has its trace and its plans, and the next run, given the one file, follows both."""
import json
import os
import sys
import unittest

from cuda_programs import CudaTest

JOB = """
import ctypes
cu = ctypes.CDLL("libcuda.so.1")
def check(result):
    assert result == 0, result
check(cu.cuInit(0))
contexts = []
for device in range(2):
    contexts.append(ctypes.c_void_p())
    check(cu.cuDevicePrimaryCtxRetain(ctypes.byref(contexts[-1]), device))
for step in range(40):
    for device, context in enumerate(contexts):
        check(cu.cuCtxSetCurrent(context))
        blocks = []
        for layer in range(40):
            blocks.append(ctypes.c_uint64())
            size = ctypes.c_size_t((layer + 1 + 7 * device) << 14)
            check(cu.cuMemAllocAsync(ctypes.byref(blocks[-1]), size, None))
        for block in reversed(blocks):
            check(cu.cuMemFreeAsync(block, None))
"""

# It ends while another of its threads is inside the second device's engine, with more granules to give back, each of
# which takes a millisecond, than the end has patience for.
ENDS_WITHIN = JOB.replace("range(40)", "range(2)") + """
import threading
cu.simPhysicalBytes.restype = ctypes.c_ulonglong
def allocate():
    check(cu.cuCtxSetCurrent(contexts[1]))
    cu.cuMemAllocAsync(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(4 << 30), None)
enough = cu.simPhysicalBytes(1) + (3 << 30)
threading.Thread(target=allocate, daemon=True).start()
while cu.simPhysicalBytes(1) < enough:
    pass
"""


# Killed once it has left a summary.
KILLED = "import os\n" + JOB.replace("range(40):\n    for device", "iter(int, 1):\n    for device") + """
    if os.path.exists(os.environ["REPRISE_OUT"] + "/summary.json"):
        os.kill(os.getpid(), 9)
"""


class SeveralDevices(CudaTest):
    core = "CORE_PLANNING_IN_CALLER"

    def play(self, out, job=JOB, **variables):
        out = os.path.join(self.at.folder, out)
        done = self.run_job([sys.executable, "-c", job], [self.at.shim], SIMCUDA_DEVICES="2", REPRISE_OUT=out, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "summary.json")) as file:
            self.summary = json.load(file)
        return sorted(os.listdir(out)), self.summary["devices"], done.stderr

    def test_a_process_that_is_killed_has_left_a_summary_of_both(self):
        out = os.path.join(self.at.folder, "killed")
        done = self.run_job([sys.executable, "-c", KILLED], [self.at.shim], SIMCUDA_DEVICES="2", REPRISE_OUT=out)
        self.assertEqual(done.returncode, -9, done.stderr)
        with open(os.path.join(out, "summary.json")) as file:
            summary = json.load(file)
        self.assertEqual((summary["running"], len(summary["devices"])), (True, 2))
        for device in summary["devices"]:
            self.assertGreater(device["requests"], 40)
            self.assertEqual((device["plans"], device["complete"]), (1, True))
            self.assertTrue(device["plans_written"].endswith(".json"))

    def test_a_device_that_is_not_used_has_no_trace(self):
        files, devices, _ = self.play("second", JOB.replace("range(2)", "range(1, 2)"))
        self.assertEqual([device["device"] for device in devices], [1])
        self.assertEqual(files, ["plans-device1.json", "summary.json", "trace-device1.reprise"])

    def test_each_has_its_plans(self):
        files, first, _ = self.play("first")
        self.assertEqual(files, ["plans-device1.json", "plans.json", "summary.json", "trace-device1.reprise", "trace.reprise"])
        self.assertEqual([device["plans_resumed"] for device in first], [0, 0])
        for name in ("live_peak", "plans", "plans_written", "trace"):
            self.assertEqual(self.summary[name], first[1][name], "as a whole it says what the device says that held most")
        _, second, said = self.play("second", REPRISE_PLAN=os.path.join("first", "plans.json"))
        self.assertEqual([device["plans_refused"] for device in second], ["", ""], said)
        self.assertEqual([device["plans_resumed"] for device in second], [1, 1], said)
        self.assertGreater(min(device["planned"] for device in second), max(device["planned"] for device in first))

    def test_synchronous_blocks_are_served_where_there_is_one_device(self):
        job = JOB.replace("cuMemAllocAsync(", "cuMemAlloc_v2(").replace("cuMemFreeAsync(block, None)", "cuMemFree_v2(block)")
        job = job.replace("size, None)", "size)")
        for at, (devices, served) in enumerate([(1, True), (2, False)]):
            with self.subTest(devices=devices):
                # The second device is in use, though it cannot be served.
                _, found, said = self.play(f"out{at}", job.replace("range(2)", f"range({devices})"),
                                           SIMCUDA_FAIL="cuMemAddressReserve:2+")
                self.assertEqual([device["not_served"] != "" for device in found], [False, True][:devices], said)
                self.assertEqual(found[0]["planned"] + found[0]["arena"] > 0, served, said)

    def test_a_file_of_another_name_is_the_first_devices(self):
        self.play("first")
        os.rename(os.path.join(self.at.folder, "first/plans.json"), os.path.join(self.at.folder, "mine.json"))
        _, second, said = self.play("second", REPRISE_PLAN="mine.json")
        self.assertEqual([device["plans_resumed"] for device in second], [1, 0], said)
        self.assertIn("this is", second[1]["plans_refused"])

    def test_a_summary_is_complete_only_where_that_of_each_device_is(self):
        _, devices, said = self.play("out", ENDS_WITHIN, SIMCUDA_SLOW="cuMemCreate,cuMemUnmap,cuMemRelease")
        self.assertEqual([device["complete"] for device in devices], [True, False], said)
        self.assertEqual(self.summary["complete"], False)


if __name__ == "__main__":
    unittest.main()
