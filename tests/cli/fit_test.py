"""Why this exists: who asks for the largest batch queues a job by the answer. What is predicted is held here to the job at
the batch that was predicted."""

import json
import os
import sys
import unittest
from random import Random

import command
import snapshots
import stats_test
import traces

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/command-pages.d"))
import inputs

MIB = 1 << 20
CAPACITY = 1024 * MIB


def uneven(batch):
    """Rounds of a large block and of 16 MiB in others, which come in some rounds when the large one is gone."""
    rows, block, random = ["event,id,bytes,stream"], 0, Random(1)
    for _ in range(24):
        frees = [f"free,{block + i},,0" for i in range(9)]
        allocs = [f"alloc,{block},{batch * 4 * MIB},0"] + [f"alloc,{block + i},{2 * MIB},0" for i in range(1, 9)]
        early = random.random() < 0.4
        rows += allocs[:1] + frees[:1] + allocs[1:] + frees[1:] if early else allocs + frees
        block += 9
    return "\n".join(rows) + "\n"


class Fit(command.CommandTest):
    def job(self, batch, **more):
        name = f"batch{batch}.pickle"
        self.write(name, inputs.snapshot(inputs.Job(batch, **more)))
        return f"{name}@{batch}"

    def by_name(self, result):
        return {row["name"]: row for row in result["largest_batch"]}

    def test_what_is_expected_is_what_a_job_of_that_batch_needs(self):
        result = self.json("fit", self.job(32), self.job(16), "--capacity", str(CAPACITY))
        self.assertEqual([run["batch"] for run in result["inputs"]], [16, 32])
        self.assertEqual(result["live_peak"], {"fixed": 72 * MIB, "per_sample": 4.75 * MIB, "residual": 0})
        live = self.by_name(result)["live peak"]
        self.assertEqual((live["cautious"], live["expected"], live["most"]), (200, 200, 200))
        for batch, fits in ((200, True), (201, False)):
            name, _ = self.job(batch).split("@")
            self.assertEqual(self.json("stats", name)["live_peak"] <= CAPACITY, fits)

    def needs(self, batch):
        """What each allocator reserves for the job of that batch, in bytes."""
        path, _ = self.job(batch).split("@")
        return {each["name"]: each["reserved_peak"] for each in self.json("compare", path)["allocators"]}

    def test_what_is_cautious_fits_and_what_is_above_the_most_does_not(self):
        result = self.json("fit", self.job(16), self.job(24), self.job(32), "--capacity", str(CAPACITY))
        rows = self.by_name(result)
        live = rows.pop("live peak")
        for name, row in rows.items():
            with self.subTest(name):
                self.assertLess(row["cautious"], row["expected"])
                self.assertLessEqual(row["expected"], row["most"])
                self.assertEqual(row["most"], live["most"])
                self.assertLessEqual(self.needs(row["cautious"])[name], CAPACITY)
                self.assertGreater(self.needs(row["most"] + 1)[name], CAPACITY)

    def test_an_input_that_fits_is_no_estimate(self):
        words = self.job(16), self.job(32)
        for batch in (16, 32):
            for name, needed in {"live peak": self.json("stats", f"batch{batch}.pickle")["live_peak"], **self.needs(batch)}.items():
                with self.subTest(name, batch=batch):
                    row = self.by_name(self.json("fit", *words, "--capacity", str(needed)))[name]
                    self.assertGreaterEqual(row["cautious"], batch)
                    self.assertLessEqual(row["cautious"], row["expected"])
                    self.assertLessEqual(row["expected"], row["most"])

    def test_an_input_that_does_not_fit_by_a_byte(self):
        for batch in (1, 2):
            self.write(f"{batch}.csv", f"event,id,bytes,stream\nalloc,0,{batch * (3 << 30)},0\nfree,0,,0\n")
        row = self.by_name(self.json("fit", "1.csv@1", "2.csv@2", "--capacity", str((6 << 30) - 1)))["live peak"]
        self.assertEqual((row["cautious"], row["expected"], row["most"]), (1, 1, 1))

    def test_segments_that_blocks_outgrow(self):
        # From a batch of 73 on the activations need segments that no smaller batch has shown: 73 to 77 need more
        # than 78 does.
        capacity = 500 * MIB
        self.assertGreater(self.needs(73)["torch-native"], capacity)
        self.assertLessEqual(self.needs(78)["torch-native"], capacity)
        rows = self.by_name(self.json("fit", self.job(16), self.job(32), "--capacity", str(capacity)))
        self.assertLess(rows["torch-native"]["cautious"], 73)
        self.assertGreaterEqual(rows["torch-native"]["most"], 78)
        # And at 90 what is live fills this one to the last byte.
        self.assertLessEqual(self.needs(90)["bfc-arena"], capacity)
        self.assertEqual(rows["bfc-arena"]["most"], 90)

    def test_what_is_an_estimate_is_called_one(self):
        out = self.ok("fit", self.job(16), self.job(32), "--capacity", "500MiB").out
        self.assertNotIn("at least", out)
        self.assertRegex(out, r"cautious and\s+expected are estimates")

    def test_no_allocator_does_without_what_is_live(self):
        for batch in (9, 19):
            self.write(f"{batch}.csv", f"event,id,bytes,stream\nalloc,0,{3 * batch * MIB + MIB // 2},0\n")
        rows = self.by_name(self.json("fit", "9.csv@9", "19.csv@19", "--capacity", "299.5MiB"))
        self.assertEqual(rows["live peak"]["most"], 99)
        for row in rows.values():
            self.assertLessEqual(row["most"], 99, row)

    def test_sites_that_grow(self):
        sites = self.json("fit", self.job(16), self.job(32))["sites"]
        self.assertEqual(sites[0], {"label": "model.py:27 forward", "fixed": 0, "per_sample": 4.5 * MIB,
                                    "at_smallest": 72 * MIB, "at_largest": 144 * MIB})
        self.assertEqual(sum(site["per_sample"] for site in sites), 4.75 * MIB)
        self.assertEqual({site["label"]: site["fixed"] for site in sites}["train.py:10 optimize"], 48 * MIB)

    def test_iterations_that_differ_widen_the_range(self):
        for batch in (16, 64):
            self.write(f"{batch}.csv", uneven(batch))
        result = self.json("fit", "16.csv@16", "64.csv@64", "--capacity", str(CAPACITY))
        self.assertEqual([run["error"] for run in result["inputs"]], [16 * MIB, 16 * MIB])
        live = self.by_name(result)["live peak"]
        self.assertLess(live["cautious"], live["expected"] - 20)
        self.assertGreater(live["most"], live["expected"] + 20)
        self.assertRegex(self.ok("fit", "16.csv@16", "64.csv@64").out, "iterations lie 16.00 MiB apart")

    def test_a_third_input_off_the_line(self):
        # At 24 the activations waste 8 MiB each: no line goes through all three.
        self.job(24, waste=8 * MIB)
        words = ("fit", self.job(16), "batch24.pickle@24", self.job(32), "--capacity", str(CAPACITY))
        result = self.json(*words)
        self.assertGreater(result["live_peak"]["residual"], 10 * MIB)
        live = self.by_name(result)["live peak"]
        self.assertLess(live["cautious"], live["expected"])
        self.assertGreater(live["most"], live["expected"])

    def test_a_peak_that_has_moved(self):
        # At a batch of 1 the peak is in the optimizer, where all gradients are live and no activation.
        result = self.json("fit", self.job(1), self.job(16))
        self.assertGreater(result["moved"], 10 * MIB)
        self.assertIn("the peak has moved", self.ok("fit", "batch1.pickle@1", "batch16.pickle@16").out)
        self.assertNotIn("moved", self.ok("fit", self.job(32), "batch16.pickle@16").out)

    def test_a_job_that_does_not_grow(self):
        self.write("a.csv", uneven(4))
        done = self.fails(1, "fit", "a.csv@1", "a.csv@2", "--capacity", "1GiB", says="does not grow")
        self.assertIn("no end", done.out)
        self.assertIsNone(self.by_name(self.json("fit", "a.csv@1", "a.csv@2", "--capacity", "1GiB", status=1))["reprise"]["most"])

    def test_not_even_one(self):
        self.fails(4, "fit", self.job(8), self.job(16), "--capacity", "64MiB", says="not even a batch of 1")

    def test_not_even_one_by_any_allocator(self):
        # What is live would fit, but granules of 2 MiB do not.
        for batch in (1, 2):
            self.write(f"{batch}.csv", f"event,id,bytes,stream\nalloc,0,{batch * MIB // 2},0\n")
        done = self.fails(4, "fit", "1.csv@1", "2.csv@2", "--capacity", "768KiB", says="not even a batch of 1")
        self.assertRegex(done.out, r"live peak +\d+ +1 ")

    def test_an_allocator_that_found_no_room_is_left_out(self):
        for batch, size in ((1, 1 << 30), (2, 1 << 40)):
            self.write(f"{batch}.csv", f"event,id,bytes,stream\nalloc,0,{size},0\nfree,0,,0\n")
        done = self.ok("fit", "1.csv@1", "2.csv@2", "--capacity", "1TiB", "--json")
        rows = self.by_name(json.loads(done.out))
        self.assertIn("torch-native", rows)
        failed = [row["name"] for row in self.json("compare", "2.csv")["allocators"] if row["reason"]]
        self.assertIn("reprise", failed)
        for name in failed:
            self.assertNotIn(name, rows)
            self.assertIn(f"2.csv: {name}: found no room", done.err)

    def test_where_too_few_iterations_were_seen_that_is_said(self):
        says = "fewer than two iterations are known to be whole, so how far the peaks of others lie apart is not known\n"
        for rounds, few in ((3, True), (5, True), (9, False)):  # none is found, one, and several
            self.write("8.csv", stats_test.job(rounds))
            self.write("16.csv", stats_test.job(rounds).replace("alloc,1000000,65536", "alloc,1000000,131072"))
            out = self.ok("fit", "8.csv@8", "16.csv@16").out
            with self.subTest(rounds=rounds):
                (self.assertIn if few else self.assertNotIn)(f"  8.csv: {says}", out)

    def test_a_trace_that_is_not_all_of_its_job_is_named(self):
        self.write("8.reprise", traces.trace([8 * MIB]))
        self.write("16.reprise", traces.trace([16 * MIB], end="first plan"))
        out = self.ok("fit", "8.reprise@8", "16.reprise@16").out
        self.assertIn("  16.reprise: recording ended when the first plan was adopted; the job's peak may be above its\n", out)
        self.assertNotIn("8.reprise: recording", out)

    def test_files_of_one_name_are_told_apart(self):
        for batch in (1, 2):
            events = []
            for k, folder in enumerate(("encoder", "decoder")):
                entry = snapshots.entry("alloc", snapshots.BASE + 64 * MIB * k, (batch if k else 1) * MIB)
                entry["frames"] = [{"name": "forward", "filename": f"/job/{folder}/model.py", "line": 27}]
                events.append(entry)
            self.write(f"{batch}.pickle", snapshots.pickled(snapshots.snapshot([], events)))
        sites = self.json("fit", "1.pickle@1", "2.pickle@2")["sites"]
        self.assertEqual([(site["label"], site["per_sample"]) for site in sites],
                         [("decoder/model.py:27 forward", MIB), ("encoder/model.py:27 forward", 0)])
        stats = self.json("stats", "2.pickle")["sites"]
        self.assertEqual([site["label"] for site in stats], [site["label"] for site in sites])

    def test_what_names_no_batch(self):
        self.job(8)
        for word in ("batch8.pickle", "batch8.pickle@", "batch8.pickle@0", "batch8.pickle@-1", "batch8.pickle@8x", "@8"):
            self.fails(2, "fit", word, "batch8.pickle@8", says="names no batch")
        most = 1 << 53
        self.fails(2, "fit", f"batch8.pickle@{most}", f"batch8.pickle@{most + 1}", says=f"{most + 1}. names no .* to 2.53")
        self.job(16)
        self.ok("fit", f"batch8.pickle@{most - 1}", f"batch16.pickle@{most}")
        self.fails(2, "fit", "batch8.pickle@8", "batch8.pickle@8", says="two different batches")
        self.fails(2, "fit", "batch8.pickle@8", says="INPUT@BATCH")

    def test_inputs_that_are_none(self):
        self.write("a.csv", command.LIFETIMES)
        self.fails(3, "fit", "a.csv@1", self.job(8), says="a.csv:1: a lifetime CSV")
        self.fails(3, "fit", "nowhere@1", "batch8.pickle@8", says="nowhere")

    def test_standard_input_is_no_file_to_go_on_with(self):
        self.job(16)
        words = self.job(8), "-@16"
        for order in (words, words[::-1], (words[0], "--", words[1])):
            done = self.ok("fit", *order, input=self.read("batch16.pickle"))
            self.assertIn("standard input", done.out)
            self.assertEqual(done.err, "")
        self.fails(2, "fit", "-@0", words[0], says='"-@0" names no batch')
        self.assertIn("next: reprise compare batch16.pickle\n", self.ok("fit", "batch16.pickle@16", *words[:1]).err)


if __name__ == "__main__":
    unittest.main()
