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
