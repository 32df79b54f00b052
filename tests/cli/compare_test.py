"""Why this exists: compare is how people judge whether Reprise is worth it, so its figures must be those of the models
and of the engine, and what it is fed may come from strangers."""

import os
import pickle
import subprocess
import unittest

import command
import snapshots
from snapshots import MIB
from stats_test import job

NAMES = ["torch-native", "torch-expandable", "driver-pool", "bfc-arena", "plain-arena", "reprise"]


class Compare(command.CommandTest):
    def compared(self, *words, **options):
        result = self.json("compare", *words, **options)
        return {allocator["name"]: allocator for allocator in result["allocators"]}, result

    def test_every_allocator_and_what_it_reserves(self):
        # 1 MiB and 9 MiB at once.
        self.write("e.csv", f"event,id,bytes,stream\nalloc,0,{MIB},0\nalloc,1,{9 * MIB},0\nfree,0,,0\n")
        by_name, result = self.compared("e.csv")
        self.assertEqual(list(by_name), NAMES)
        self.assertEqual((result["live_peak"], result["capacity"]), (10 * MIB, None))
        reserved = {name: allocator["reserved_peak"] // MIB for name, allocator in by_name.items()}
        self.assertEqual(reserved, dict(zip(NAMES, [22, 22, 32, 10, 10, 10])))
        self.assertEqual(by_name["torch-native"]["driver_allocations"], 2)
        for allocator in by_name.values():
            self.assertEqual((allocator["fits"], allocator["failed_at"]), (None, None))
            self.assertGreaterEqual(allocator["allocated_peak"], 10 * MIB)

    def test_reprise_is_what_simulate_says(self):
        self.write("job.csv", job(40))
        simulated = self.json("simulate", "job.csv")["reserved_peak"]
        self.assertEqual(self.compared("job.csv")[0]["reprise"]["reserved_peak"], simulated)

    def test_capacity(self):
        self.write("e.csv", f"event,id,bytes,stream\nalloc,0,{MIB},0\nalloc,1,{9 * MIB},0\nfree,0,,0\n")
        by_name, result = self.compared("e.csv", "--capacity", "21MiB")
        self.assertEqual(result["capacity"], 21 * MIB)
        self.assertEqual(
            {name: allocator["fits"] for name, allocator in by_name.items()},
            dict(zip(NAMES, [False, False, False, True, True, True])),
        )
        self.assertEqual([by_name[name]["failed_at"] for name in NAMES], [1, 1, 0, None, None, None])
        self.fails(4, "compare", "e.csv", "--capacity", "8MiB", says="does not fit: none of them")
        self.fails(2, "compare", "e.csv", "--capacity", "plenty", says="plenty")

    def test_cached_memory_goes_back_before_it_is_too_little(self):
        rows = f"alloc,0,{30 * MIB},0\nfree,0,,0\nalloc,1,{40 * MIB},0\nfree,1,,0\n"
        self.write("e.csv", "event,id,bytes,stream\n" + rows)
        by_name, _ = self.compared("e.csv", "--capacity", "64MiB")
        self.assertEqual(by_name["torch-native"]["reserved_peak"], 70 * MIB)
        self.assertTrue(by_name["torch-native"]["fits"])

    def test_people(self):
        self.write("e.csv", f"event,id,bytes,stream\nalloc,0,{MIB},0\nalloc,1,{9 * MIB},0\n")
        done = self.ok("compare", "e.csv", "--capacity", "21MiB")
        self.assertRegex(done.out, r"torch-native +22\.00 MiB +\+120\.00 % +no ")
        self.assertRegex(done.out, r"reprise +10\.00 MiB +\+0\.00 % +yes ")
        self.assertIn("live peak 10.00 MiB, capacity 21.00 MiB", done.out)
        self.assertIn("next: reprise simulate e.csv", done.err)
        self.assertNotIn("fits", self.ok("compare", "e.csv").out)

    def test_a_request_that_no_machine_could_serve(self):
        half = 1 << 60  # twice that is the end of all offsets, but each block is rounded up
        self.write("e.csv", f"event,id,bytes,stream\nalloc,0,100,0\nalloc,1,{half},0\nalloc,2,{half - 200},0\n")
        done = self.ok("compare", "e.csv")
        for name in NAMES:
            self.assertIn(f"{name}: found no room even without a limit", done.err)
            self.assertRegex(done.out, rf"{name} +not known")
        for row in self.compared("e.csv", "--capacity", "1TiB", status=4)[0].values():
            figures = [row[name] for name in ("reserved_peak", "allocated_peak", "driver_allocations", "fits")]
            self.assertEqual((figures, row["reason"]), ([None] * 4, "found no room even without a limit"))

    def test_inputs_that_cannot_be_compared(self):
        self.write("a.csv", command.LIFETIMES)
        self.fails(3, "compare", "a.csv", says="a.csv:1: a lifetime CSV")
        self.write("none.csv", "event,id,bytes,stream\n")
        self.fails(3, "compare", "none.csv", says="not one allocation")


class Snapshots(command.CommandTest):
    def test_every_protocol(self):
        for protocol in range(2, 6):
            self.write("s.pickle", snapshots.pickled(protocol=protocol))
            result = self.json("compare", "s.pickle")
            recorded = result["allocators"][0]
            self.assertEqual((recorded["name"], recorded["reserved_peak"]), ("as recorded", 22 * MIB))
            self.assertEqual(result["live_peak"], 20 * MIB + 100)
            self.assertEqual(result["allocators"][1]["reserved_peak"], 22 * MIB)

    def test_segments_that_were_gone_at_the_end(self):
        # The history does not say that a segment of 30 MiB came and went.
        gone = [snapshots.entry(action, snapshots.BASE + 64 * MIB, 30 * MIB)
                for action in ("alloc", "free_requested", "free_completed")]
        value = {**snapshots.SMALL, "device_traces": [snapshots.SMALL["device_traces"][0] + gone]}
        self.write("s.pickle", snapshots.pickled(value))
        done = self.ok("compare", "s.pickle")
        self.assertIn("s.pickle: the snapshot tells of 22.00 MiB in segments", done.err)
        self.assertNotIn(" -", done.out, "nothing holds less than what is live")
        self.assertNotIn("as recorded", [each["name"] for each in self.json("compare", "s.pickle")["allocators"]])
        self.ok("report", "s.pickle", "-o", "page.html")
        self.assertIn(b"what was reserved as recorded: ", self.read("page.html"))

    def test_the_other_commands_read_it(self):
        self.write("s.pickle", snapshots.pickled())
        stats = self.json("stats", "s.pickle")
        self.assertEqual((stats["format"], stats["allocs"], stats["frees"]), ("snapshot", 5, 4))
        self.assertIn("1 blocks were live before", self.ok("stats", "s.pickle").err)
        self.assertEqual(self.json("simulate", "s.pickle")["live_peak"], 20 * MIB + 100)
        self.assertGreaterEqual(self.json("plan", "s.pickle", "-o", "p.json")["slab"], 20 * MIB + 100)
        self.ok("check", "s.pickle", "p.json")
        self.ok("compare", "-", input=snapshots.pickled())

    def test_nothing_in_a_pickle_is_run(self):
        class Hostile:
            def __reduce__(self):
                return os.system, ("touch was-run",)

        honest = {**snapshots.SMALL, "more": Hostile()}
        for protocol in range(2, 6):
            self.write("evil.pickle", pickle.dumps(honest, protocol))
            for words in (["compare"], ["stats"], ["simulate"], ["plan"]):
                self.fails(3, *words, "evil.pickle", says=r"evil\.pickle: byte \d+: (STACK_)?GLOBAL would run code")
        self.assertEqual(os.listdir(self.folder), ["evil.pickle"])
        # The same file does run in Python: the test would see it.
        done = subprocess.run(
            ["python3", "-c", "import pickle; pickle.load(open('evil.pickle', 'rb'))"], cwd=self.folder
        )
        self.assertEqual((done.returncode, sorted(os.listdir(self.folder))), (0, ["evil.pickle", "was-run"]))

    def test_what_is_no_snapshot(self):
        for what, says in (
            ([1, 2], "not a dict"),
            ({"segments": []}, "no list 'device_traces'"),
            ({"segments": [{"device": 0}], "device_traces": []}, r"segments\[0\]: 'address' is missing"),
        ):
            self.write("s.pickle", pickle.dumps(what, 4))
            self.fails(3, "compare", "s.pickle", says=says)
        self.write("s.pickle", snapshots.pickled()[:-10])
        self.fails(3, "compare", "s.pickle", says=r"s\.pickle: byte \d+")


if __name__ == "__main__":
    unittest.main()
