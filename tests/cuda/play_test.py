"""What is simulated is what is served: recorded streams of real training jobs, played through cudaMallocAsync and
cudaFreeAsync under the preload library, must be placed by plan as often, and reserve as much, as `reprise simulate`
says for the same events. The core is one that plans in the caller, as the simulation does. Needs the bench data
(REPRISE_BENCH)."""
import json
import os
import subprocess
import unittest

from cuda_programs import CudaTest, built

BENCH = os.environ.get("REPRISE_BENCH")
DEVICE_ALIGNMENT = 512
MORE_ITERATIONS = 12  # the recordings end about when a plan is ready
SAME = ["requests", "planned", "planned_after_plan", "plans", "lower_bound", "live_peak"]
# The planner stops at the clock where it does not reach its bound, so its slab differs from run to run:
# a little, and by more on a machine whose processors are taken.
CLOSE = ["slab", "reserved_peak"]


def prolonged(rows, copies):
    """The events up to the last mark, with the last whole iteration played over again `copies` times."""
    marks = [at for at, row in enumerate(rows) if row[0] == "mark"]
    before, last, end = marks[-3], marks[-2], marks[-1]
    number = {}  # of a block in its iteration: the two last ones are alike
    for begin in (before, last):
        allocs = [row for row in rows[begin:begin + end - last] if row[0] == "alloc"]
        number.update({row[1]: (begin == last, at) for at, row in enumerate(allocs)})
    previous = {at: block for block, (in_last, at) in number.items() if in_last}
    rows = list(rows[:end])
    fresh = 1 + max(int(row[1]) for row in rows if row[1])
    for _ in range(copies):
        current = {}
        for kind, block, size, stream in rows[last:end]:
            if kind == "alloc":
                current[number[block][1]] = str(fresh)
                rows.append([kind, str(fresh), size, stream])
                fresh += 1
            elif kind == "mark":
                rows.append([kind, block, size, stream])
            elif block in number:
                in_last, at = number[block]
                rows.append([kind, (current if in_last else previous)[at], size, stream])
        previous = current
    return rows


@unittest.skipUnless(BENCH, "REPRISE_BENCH does not name the folder of the bench data")
class Play(CudaTest):
    def write_events(self, name):
        with open(os.path.join(BENCH, "events", name + ".csv")) as file:
            head, *rows = [line.rstrip("\n").split(",") for line in file]
        for row in rows:
            if row[0] == "alloc":  # the file says nothing of alignment, and on a device all blocks have this one
                row[2] = str(-(-int(row[2]) // DEVICE_ALIGNMENT) * DEVICE_ALIGNMENT)
        events = os.path.join(self.at.folder, name + ".csv")
        with open(events, "w") as file:
            file.writelines(",".join(row) + "\n" for row in [head, *prolonged(rows, MORE_ITERATIONS)])
        return events

    def check(self, name):
        events = self.write_events(name)
        simulated = json.loads(subprocess.run([built("REPRISE"), "simulate", "--json", events], capture_output=True,
                                              text=True, check=True).stdout)
        out = os.path.join(self.at.folder, name)
        done = self.run_job([built("PLAY"), events], [self.at.shim], REPRISE_OUT=out, SIMCUDA_MEMORY="64GiB")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "summary.json")) as file:
            served = json.load(file)
        self.assertGreater(simulated["planned_after_plan"], 0.9)
        self.assertEqual({key: served[key] for key in SAME}, {key: simulated[key] for key in SAME})
        for key in CLOSE:
            self.assertAlmostEqual(served[key] / simulated[key], 1, delta=0.02, msg=key)

    def test_recorded_streams(self):
        for name in ["alexnet", "googlenet", "gpt", "resnet50"]:
            with self.subTest(name):
                self.check(name)


if __name__ == "__main__":
    unittest.main()
