"""Why this exists: what simulate prints is how the engine is judged; names and statuses must hold still."""

import unittest

import command
import traces
from stats_test import job

FIELDS = (
    "requests planned arena passed conflicts mismatches plans iterations first_planned_iteration planned_after_plan "
    "planned_bytes_after_plan live_peak slab reserved_peak overlaps seconds"
).split()


class Simulate(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.write("job.csv", job(40))

    def test_fields(self):
        result = self.json("simulate", "job.csv")
        for field in FIELDS:
            self.assertIn(field, result)

    def test_a_job_that_repeats_is_served_by_plan(self):
        result = self.json("simulate", "job.csv")
        self.assertEqual(result["requests"], 481)
        self.assertEqual(result["planned"] + result["arena"] + result["passed"], 481)
        self.assertEqual((result["passed"], result["overlaps"]), (0, 0))
        self.assertGreaterEqual(result["plans"], 1)
        self.assertGreater(result["planned"], 0)
        self.assertGreater(result["planned_after_plan"], 0.9)
        self.assertEqual(result["live_peak"], (64 + 312) * 1024)

    def test_people(self):
        done = self.ok("simulate", "job.csv")
        self.assertRegex(done.out, r"live peak +376.00 KiB")
        self.assertIn("next: reprise plan job.csv", done.err)

    def test_what_is_too_small_for_a_plan_is_in_no_share_of_it(self):
        small = lambda row: f"alloc,{10**7 + int(row.split(',')[1])},100,0\n{row}\n"
        rows = job(40).splitlines()
        self.write("small.csv", "".join(small(row) if row.startswith("alloc") else f"{row}\n" for row in rows))
        result = self.json("simulate", "small.csv")
        self.assertLess(result["planned"], (result["requests"] - result["first_planned_request"]) * 0.6)
        self.assertEqual(result["planned_after_plan"], 1)
        out = self.ok("simulate", "small.csv").out
        self.assertIn("100.00 % of the requests, those of at least 4 KiB\n", out)
        self.assertRegex(out, "iterations +[0-9]+  found, the last of 12 allocations of at least 4 KiB\n")

    def test_capacity(self):
        self.ok("simulate", "job.csv", "--capacity", "64MiB")
        self.write("big.csv", f"event,id,bytes,stream\nalloc,0,{64 << 20},0\n")
        self.fails(4, "simulate", "big.csv", "--capacity", "32MiB", says="1 requests did not find room")

    def test_what_did_not_fit_is_live_and_nothing_is_reserved_for_it(self):
        self.write("two.csv", f"event,id,bytes,stream\nalloc,0,{64 << 20},0\nalloc,1,{32 << 20},0\n")
        result = self.json("simulate", "two.csv", "--capacity", "64MiB", status=4)
        self.assertEqual((result["live_peak"], result["reserved_peak"], result["passed"]), (96 << 20, 64 << 20, 1))
        out = self.reprise("simulate", "two.csv", "--capacity", "64MiB").out
        self.assertRegex(out, r"reserved peak +64.00 MiB  the most held for it, without what was left to the real allocator, in gran")
        self.assertNotIn("of the live peak", out)
        self.assertIn("the most held for it, 1.000 of the live peak, in gran", self.ok("simulate", "two.csv").out)

    def test_what_the_engine_cannot_hold_is_not_blamed_on_the_capacity(self):
        self.write("huge.csv", f"event,id,bytes,stream\nalloc,0,{64 << 20},0\nalloc,1,{1 << 40},0\n")
        says = ("1 requests did not find room in the engine's range of addresses, which no capacity makes larger; nothing is "
                "reserved for them")
        self.assertIn(says, self.ok("simulate", "huge.csv").err)
        done = self.fails(1, "simulate", "huge.csv", "--capacity", "2TiB", says=says)
        self.assertNotIn("does not fit", done.err)
        self.fails(4, "simulate", "huge.csv", "--capacity", "1TiB", says="does not fit: 1 requests")
        self.fails(4, "simulate", "huge.csv", "--capacity", "32MiB", says="does not fit: 2 requests")

    def test_the_next_run_begins_with_what_this_one_has_left(self):
        first = self.json("simulate", "job.csv")
        second = self.json("simulate", "job.csv", "--second-run")
        self.assertEqual((first["plans_resumed"], second["plans_resumed"]), (0, 1))
        self.assertLess(second["first_planned_request"], first["first_planned_request"])
        self.assertEqual(second["overlaps"], 0)

    def test_a_device_that_is_behind(self):
        at_once = self.json("simulate", "job.csv")
        behind = self.json("simulate", "job.csv", "--behind", "40")
        self.assertGreater(behind["first_planned_request"], at_once["first_planned_request"])
        self.assertEqual((at_once["host_waits"], behind["overlaps"]), (0, 0))
        self.fails(2, "simulate", "job.csv", "--behind", "-1", says="--behind")

    def test_memory_comes_as_where_the_job_was_recorded(self):
        kib = 1024
        self.write("host.trace", traces.trace([100 * kib], granule=256 * kib))
        self.write("old.trace", traces.trace([100 * kib]))
        for words, granule in (
            (("host.trace",), 256 * kib),
            (("host.trace", "--cuda"), 2048 * kib),
            (("old.trace",), 2048 * kib),
            (("old.trace", "--host"), 256 * kib),
            (("job.csv",), 2048 * kib),
            (("job.csv", "--host"), 256 * kib),
        ):
            result = self.json("simulate", *words)
            self.assertEqual(result["granule"], granule, words)
            self.assertEqual(result["reserved_peak"] % granule, 0, words)
            self.assertLess(result["reserved_peak"] - result["live_peak"], 2 * granule, words)
        self.fails(2, "simulate", "job.csv", "--host", "--cuda", says="--cuda excludes --host")
        self.write("no.trace", traces.trace([100 * kib], granule=3000))
        self.fails(3, "simulate", "no.trace", says="no.trace: memory cannot come in granules of 3000 bytes")

    def test_lifetimes_have_no_order(self):
        self.write("a.csv", command.LIFETIMES)
        self.fails(3, "simulate", "a.csv", says="a.csv:1: a lifetime CSV")


if __name__ == "__main__":
    unittest.main()
