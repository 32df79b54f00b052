"""Why this exists: the figures reach people and scripts through this command alone."""

import json
import unittest

import command
import traces

KIB = 1024


def job(rounds):
    """A weight of 64 KiB, and rounds of twelve blocks of 4 to 48 KiB, freed at the end of each round."""
    rows = ["event,id,bytes,stream", f"alloc,w,{64 * KIB},0".replace("w", "1000000")]
    for number in range(rounds):
        ids = range(12 * number, 12 * number + 12)
        rows += [f"alloc,{i},{4 * KIB * (i % 12 + 1)},0" for i in ids]
        rows += [f"free,{i},,0" for i in ids]
        rows.append(f"mark,{number},,")
    return "\n".join(rows) + "\n"


class Stats(command.CommandTest):
    def test_what_a_trace_cannot_say_of_its_job_is_not_shown(self):
        self.write("a.reprise", traces.trace([100], rank=1, world_size=4, device=2))
        said = self.json("stats", "a.reprise")
        self.assertEqual((said["rank"], said["world_size"], said["device"]), (1, 4, 2))
        for number in (-1, -(2**63), 2**63 - 1, 2**64 - 1):
            self.write("a.reprise", traces.trace([100], rank=number, world_size=number, device=number, threshold=number))
            said = self.json("stats", "a.reprise")
            self.assertEqual((said["rank"], said["world_size"], said["device"]), (0, 0, 0))

    def test_events(self):
        self.write("e.csv", command.EVENTS)
        stats = self.json("stats", "e.csv")
        self.assertEqual(
            {name: stats[name] for name in ("events", "allocs", "frees", "marks", "live_peak", "peak_at", "live_at_end")},
            {"events": 5, "allocs": 3, "frees": 2, "marks": 0, "live_peak": 150, "peak_at": 1, "live_at_end": 80},
        )
        self.assertEqual(stats["lower_bound"], 150)
        self.assertEqual(stats["at_peak"], [{"size": 100, "blocks": 1}, {"size": 50, "blocks": 1}])
        self.assertEqual([c["from"] for c in stats["histogram"]], [32, 64])
        self.assertIsNone(stats["iteration"])

    def test_iterations(self):
        self.write("job.csv", job(8))
        stats = self.json("stats", "job.csv")
        self.assertGreater(stats["iterations"], 0)
        self.assertEqual(stats["iteration"]["tokens"], 12)
        self.assertEqual(stats["iteration"]["persistent"], 64 * KIB)
        self.assertEqual(stats["iteration"]["allocated"], 312 * KIB)
        self.assertRegex(self.ok("stats", "job.csv").out, r"iterations +\d+  the last of 12 allocations")

    def test_lifetimes_tell_the_tick(self):
        self.write("a.csv", "id,lower,upper,size\na,10,20,4\nb,20,30,4\nc,25,30,4\n")
        stats = self.json("stats", "a.csv")
        self.assertEqual((stats["live_peak"], stats["peak_at"]), (8, 25))

    def test_a_buffer_with_gaps_is_one(self):
        self.write("a.csv", "id,lower,upper,size,gaps\na,0,100,64,20-30 50-60\nb,20,30,64,\nc,100,1000,32,\n")
        stats = self.json("stats", "a.csv")
        self.assertEqual({name: stats[name] for name in ("events", "allocs", "frees", "allocated", "live_at_end")},
                         {"events": 6, "allocs": 3, "frees": 3, "allocated": 160, "live_at_end": 0})
        self.assertEqual((stats["live_peak"], stats["peak_at"]), (64, 0), "b fits into a gap")
        self.assertEqual(stats["at_peak"], [{"size": 64, "blocks": 1}])
        self.assertEqual(stats["histogram"], [{"from": 32, "blocks": 1, "bytes": 32}, {"from": 64, "blocks": 2, "bytes": 128}])
        self.assertRegex(self.ok("stats", "a.csv").out, r"buffers +3\b")

    def test_by_stream(self):
        self.write("e.csv", "event,id,bytes,stream\nalloc,0,4096,7\nalloc,1,300,0\nfree,0,,7\nalloc,2,100,7\n")
        self.assertEqual(self.json("stats", "e.csv")["streams"], [
            {"stream": "0x7", "allocs": 2, "allocated": 4196, "live_peak": 4096, "blocks_at_peak": 1, "bytes_at_peak": 4096},
            {"stream": "0x0", "allocs": 1, "allocated": 300, "live_peak": 300, "blocks_at_peak": 1, "bytes_at_peak": 300}])
        self.assertRegex(self.ok("stats", "e.csv").out, r"(?m)^ +0x7 +4.00 KiB +4.00 KiB +4.10 KiB  by 2 allocations$")
        self.write("one.csv", command.EVENTS)
        self.assertNotIn("by stream", self.ok("stats", "one.csv").out)

    def test_by_lane_of_a_lifetime_csv(self):
        self.write("l.csv", "id,lower,upper,size,lane,gaps\na,0,9,400,7,2-4\nb,2,4,300,0,\nc,2,4,200,0,\nd,5,6,50,7,\n")
        self.assertEqual(self.json("stats", "l.csv")["streams"], [
            {"stream": "0x7", "allocs": 2, "allocated": 450, "live_peak": 450, "blocks_at_peak": 0, "bytes_at_peak": 0},
            {"stream": "0x0", "allocs": 2, "allocated": 500, "live_peak": 500, "blocks_at_peak": 2, "bytes_at_peak": 500}])
        self.assertIn("by stream", self.ok("stats", "l.csv").out)

    def test_iterations_whose_peaks_differ(self):
        self.write("e.csv", job(8))
        peaks = self.json("stats", "e.csv")["iteration_peaks"]
        self.assertEqual((peaks["least"], peaks["most"]), (376 * KIB, 376 * KIB))
        self.assertNotIn("least peak", self.ok("stats", "e.csv").out)
        rows, block = ["event,id,bytes,stream"], 0
        for _ in range(12):  # each leaves 100 bytes behind, too few to be part of an iteration
            rows += [f"alloc,{block + i},{4096 * (i + 1)},0" for i in range(12)] + [f"alloc,{block + 12},100,0"]
            rows += [f"free,{block + i},,0" for i in range(12)]
            block += 13
        self.write("e.csv", "\n".join(rows) + "\n")
        peaks = self.json("stats", "e.csv")["iteration_peaks"]
        self.assertEqual(peaks["most"] - peaks["least"], 100 * (peaks["iterations"] - 1))
        self.assertRegex(self.ok("stats", "e.csv").out, r"least peak +\S+ KiB  of an iteration; the highest of \d+ reaches")

    def test_iterations_that_leave_too_much_behind(self):
        def leaking(size):
            rows, block = ["event,id,bytes,stream"], 0
            for _ in range(24):
                rows += [f"alloc,{block + i},{4096 * KIB * (i + 1)},0" for i in range(12)] + [f"alloc,{block + 12},{size},0"]
                rows += [f"free,{block + i},,0" for i in range(12)]
                block += 13
            return "\n".join(rows) + "\n"

        swing = 312 * 1024 * KIB
        self.write("slow.csv", leaking(swing // 128))
        self.assertEqual(self.json("stats", "slow.csv")["leak"]["bytes_per_iteration"], swing // 128)
        self.write("fast.csv", leaking(swing // 32))
        self.assertIsNone(self.json("stats", "fast.csv")["iteration"])
        out = self.ok("stats", "fast.csv").out
        self.assertRegex(out, r"iterations +none  nothing repeats and comes back to the same live bytes\n")

    def test_several_inputs_a_line_each(self):
        self.write("a.csv", command.LIFETIMES)
        self.write("e.csv", command.EVENTS)
        lines = self.ok("stats", "a.csv", "e.csv", "--json").out.splitlines()
        self.assertEqual([json.loads(line)["input"] for line in lines], ["a.csv", "e.csv"])

    def test_one_bad_input_does_not_hide_the_others(self):
        self.write("a.csv", command.LIFETIMES)
        done = self.fails(3, "stats", "nowhere.csv", "a.csv", "--json", says="nowhere.csv")
        self.assertEqual(json.loads(done.out)["input"], "a.csv")

    def test_the_hint_is_on_what_could_be_read(self):
        self.write("a.csv", command.LIFETIMES)
        self.assertIn("next: reprise plan a.csv", self.fails(3, "stats", "a.csv", "nowhere.csv", says="nowhere.csv").err)
        self.assertNotIn("next:", self.fails(3, "stats", "nowhere.csv", says="nowhere.csv").err)

    def test_an_iteration_that_leaks_is_on_top_of_what_was_live_when_it_began(self):
        rows = job(8).splitlines()
        kept = lambda row: f"{row}\nalloc,{2 * 10**6 + int(row.split(',')[1])},1000,0"
        self.write("leak.csv", "\n".join(kept(row) if row.startswith("mark") else row for row in rows) + "\n")
        stats = self.json("stats", "leak.csv")
        self.assertEqual(stats["leak"]["bytes_per_iteration"], 1000)
        self.assertEqual(stats["iteration"]["peak"] - stats["iteration"]["persistent"], 312 * KIB)
        self.assertRegex(self.ok("stats", "leak.csv").out, "iteration +312.00 KiB  on top of that at its peak")

    def test_people_read_sizes_with_units(self):
        self.write("a.csv", "id,lower,upper,size\na,0,1,65712603955\n")
        self.assertIn("61.20 GiB", self.ok("stats", "a.csv").out)

    def test_an_input_without_an_allocation_is_told_and_the_others_are_shown(self):
        self.write("none.csv", "event,id,bytes,stream\n")
        self.write("a.csv", "id,lower,upper,size\na,0,1,4\n")
        done = self.fails(3, "stats", "none.csv", "a.csv", says="none.csv: there is not one allocation in it\n")
        self.assertRegex(done.out, "^a.csv: ")


if __name__ == "__main__":
    unittest.main()
