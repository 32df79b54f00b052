"""A device that cannot be served is left to the driver, the job gets what it would have had, and the summary says why."""
import json
import os
import unittest

from cuda_programs import CudaTest, built


class RefusedDevice(CudaTest):
    def test_a_smaller_range_will_do(self):
        """Where addresses are short: twice the device's memory is a wish."""
        out = os.path.join(self.at.folder, "out")
        self.play([self.at.shim], SIMCUDA_FAIL="cuMemAddressReserve:1", REPRISE_OUT=out)
        with open(os.path.join(out, "summary.json")) as file:
            (device,) = json.load(file)["devices"]
        self.assertEqual(device["not_served"], "")
        self.assertGreater(device["arena"] + device["planned"], 0)

    def test_the_host_does_not_wait_for_memory_that_no_wait_can_give(self):
        """Where a device refuses ours as such, and the driver's own is there, a wait at each request would only take time."""
        without, _ = self.play([])
        for failure, said in (("cuMemCreate:1+:CUDA_ERROR_NOT_SUPPORTED", "cuMemCreate answered 801"),
                              ("cuMemMap:1+:CUDA_ERROR_UNKNOWN", "cuMemMap answered 999"),
                              ("cuMemSetAccess:1+:CUDA_ERROR_UNKNOWN", "cuMemSetAccess answered 999")):
            with self.subTest(failure):
                out = os.path.join(self.at.folder, failure.partition(":")[0])
                result, _ = self.play([self.at.shim], SIMCUDA_FAIL=failure, REPRISE_OUT=out)
                self.assertEqual(result, without)
                with open(os.path.join(out, "summary.json")) as file:
                    (device,) = json.load(file)["devices"]
                self.assertEqual((device["refusal"], device["memory_waits"]), (said, 0))
                self.assertEqual(device["passed"], device["requests"])

    def play(self, preload, **variables):
        done = self.run_job([built("TOO_LARGE"), "ordered", "3"], preload, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def test_it_is_named_in_the_summary(self):
        without, _ = self.play([])
        cases = {"cuMemAddressReserve": "cuMemAddressReserve answered 2", "cuDeviceTotalMem": "tells no size",
                 "cuMemGetAllocationGranularity": "tells no granularity"}
        for at, (call, why) in enumerate(cases.items()):
            with self.subTest(call):
                out = os.path.join(self.at.folder, f"out{at}")
                result, said = self.play([self.at.shim], SIMCUDA_FAIL=f"{call}:1+", REPRISE_OUT=out)
                self.assertEqual(result, without)
                with open(os.path.join(out, "summary.json")) as file:
                    (device,) = json.load(file)["devices"]
                self.assertIn(why, device["not_served"])
                self.assertEqual((device["device"], device["requests"]), (0, 0))
                self.assertIn(f"  not served: {device['not_served']}\n", said)
                self.assertEqual(said.count("; its memory is left as it is\n"), 1)


if __name__ == "__main__":
    unittest.main()
