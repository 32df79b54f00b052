"""Why this exists: people let a change of their model fail on what this says, so it must see growth, name what grew,
and not cry out over a line that has moved."""

import json
import unittest

import command
import snapshots
import traces

MIB = snapshots.MIB


def with_sites(*sites):
    """A snapshot with a block for each (function, line, size)."""
    events = []
    for k, (function, line, size) in enumerate(sites):
        entry = snapshots.entry("alloc", snapshots.BASE + 64 * MIB * k, size)
        entry["frames"] = [{"name": function, "filename": "/job/train.py", "line": line}]
        events.append(entry)
    return snapshots.pickled(snapshots.snapshot([], events))


class Diff(command.CommandTest):
    def test_by_size_without_stacks(self):
        self.write("a.csv", "event,id,bytes,stream\nalloc,0,100,0\nalloc,1,50,0\n")
        self.write("b.csv", "event,id,bytes,stream\nalloc,0,100,0\nalloc,1,100,0\nalloc,2,70,0\n")
        result = self.json("diff", "a.csv", "b.csv")
        self.assertEqual((result["change"], result["by"], result["failed"]), (120, "size", False))
        self.assertEqual(
            [(row["kind"], row["change"]) for row in result["rows"]], [("changed", 100), ("new", 70), ("gone", -50)]
        )

    def test_by_site(self):
        self.write("a.pickle", with_sites(("step", 7, MIB), ("load", 9, MIB)))
        self.write("b.pickle", with_sites(("step", 7, 3 * MIB), ("save", 11, MIB)))
        result = self.json("diff", "a.pickle", "b.pickle")
        self.assertEqual(
            {row["name"]: (row["kind"], row["change"]) for row in result["rows"]},
            {
                "train.py:7 step": ("changed", 2 * MIB),
                "train.py load": ("gone", -MIB),
                "train.py save": ("new", MIB),
            },
        )

    def test_files_of_one_name_are_told_apart(self):
        def job(encoder, decoder, line=27):
            events = []
            for k, (folder, size) in enumerate((("encoder", encoder), ("decoder", decoder))):
                entry = snapshots.entry("alloc", snapshots.BASE + 64 * MIB * k, size)
                entry["frames"] = [{"name": "forward", "filename": f"/job/{folder}/model.py", "line": line + k}]
                events.append(entry)
            return snapshots.pickled(snapshots.snapshot([], events))

        self.write("a.pickle", job(4 * MIB, 2 * MIB))
        for line, places in ((27, ("encoder/model.py:27 forward", "decoder/model.py:28 forward")),
                             (40, ("encoder/model.py forward", "decoder/model.py forward"))):
            self.write("b.pickle", job(2 * MIB, 4 * MIB, line))
            rows = self.json("diff", "a.pickle", "b.pickle")["rows"]
            self.assertEqual({row["name"]: row["change"] for row in rows}, dict(zip(places, (-2 * MIB, 2 * MIB))))

    def test_a_line_that_moved_is_no_change(self):
        self.write("a.pickle", with_sites(("step", 7, MIB)))
        self.write("b.pickle", with_sites(("step", 8, MIB)))
        self.assertEqual([row["kind"] for row in self.json("diff", "a.pickle", "b.pickle")["rows"]], ["same"])

    def test_fail_above(self):
        self.write("a.csv", "event,id,bytes,stream\nalloc,0,1000,0\n")
        self.write("b.csv", "event,id,bytes,stream\nalloc,0,1050,0\n")
        for limit, status in (("5%", 0), ("4.9%", 1), ("50", 0), ("49", 1), ("0", 1), ("1KiB", 0)):
            with self.subTest(limit=limit):
                self.assert_status(self.reprise("diff", "a.csv", "b.csv", "--fail-above", limit), status)
        self.assert_status(self.reprise("diff", "b.csv", "a.csv", "--fail-above", "0"), 0)
        self.fails(1, "diff", "a.csv", "b.csv", "--fail-above", "1%", says="grown by 50 B, more than 1%")
        for limit in ("much", "%", "-1%", "nan%", "0x10%", " 5%", "1e3%"):
            self.fails(2, "diff", "a.csv", "b.csv", "--fail-above", limit, says="neither a size")

    def test_people(self):
        self.write("a.csv", "event,id,bytes,stream\nalloc,0,1000,0\n")
        self.write("b.csv", "event,id,bytes,stream\nalloc,0,1050,0\n")
        done = self.ok("diff", "a.csv", "b.csv")
        self.assertRegex(done.out, r"live peak +1000 B -> +1.03 KiB  \+50 B \(\+5.00 %\)")
        self.assertIn("next: reprise report b.csv", done.err)
        self.assertIn("1 are the same", self.ok("diff", "a.csv", "a.csv").out.replace("  1", "1"))

    def test_a_limit_that_is_none_is_refused_before_anything_is_read(self):
        for limit in (" ", "much"):
            self.fails(2, "diff", "no.csv", "no.csv", "--fail-above", limit, says=f'--fail-above: "{limit}" is neither')
        for empty in (["--fail-above", ""], ["--fail-above="]):
            self.fails(2, "diff", "no.csv", "no.csv", *empty, says="--fail-above: ")
        self.fails(3, "diff", "no.csv", "no.csv", "--fail-above", "5", says="no.csv")

    def test_nothing_is_no_smaller_peak(self):
        self.write("none.csv", "event,id,bytes,stream\n")
        self.write("none.lifetimes.csv", "id,lower,upper,size\n")
        self.write("b.csv", "event,id,bytes,stream\nalloc,0,1050,0\n")
        for none in ("none.csv", "none.lifetimes.csv"):
            for words in ([none, "b.csv"], ["b.csv", none], ["b.csv", none, "--fail-above", "1%"], ["b.csv", none, "--json"]):
                with self.subTest(words=words):
                    done = self.fails(3, "diff", *words, says=f"reprise: {none}: there is not one allocation")
                    self.assertEqual(done.out, "")

    def test_a_trace_that_is_not_all_of_its_job_passes_no_limit(self):
        self.write("whole.reprise", traces.trace([MIB, MIB]))
        self.ok("diff", "whole.reprise", "whole.reprise", "--fail-above", "0")
        for why, part in (
            ("recording was not finished", {"closed": False}),
            ("recording stopped at its size limit", {"end": "size limit"}),
            ("recording stopped because it could not be written fast enough", {"end": "overrun"}),
            ("recording ended when the first plan was adopted", {"end": "first plan"}),
            ("recording stopped for a reason that this version does not know", {"end": "eclipse"}),
            ("events were dropped", {"dropped": 2}),
        ):
            with self.subTest(why):
                self.write("part.reprise", traces.trace([MIB], **part))
                self.assertIn("reprise: part.reprise: ", self.ok("diff", "whole.reprise", "part.reprise").err)
                result = self.json("diff", "whole.reprise", "part.reprise")
                self.assertEqual((result["before"]["whole"], result["after"]["whole"]), (True, False))
                done = self.fails(3, "diff", "whole.reprise", "part.reprise", "--fail-above", "1%",
                                  says=f"part.reprise: {why}, so .* with --mode record")
                self.assertEqual(done.out, "")
                self.ok("diff", "part.reprise", "whole.reprise", "--fail-above", "1GiB")
        self.write("lifetimes.csv", command.LIFETIMES)
        self.ok("diff", "lifetimes.csv", "lifetimes.csv", "--fail-above", "0")

    def test_what_the_real_allocator_has_served_counts_against_the_limit(self):
        self.write("before.reprise", traces.trace([MIB]))
        self.write("after.reprise", traces.trace([MIB], passed=MIB))
        self.assertFalse(self.json("diff", "before.reprise", "after.reprise")["after"]["whole"])
        self.ok("diff", "before.reprise", "after.reprise", "--fail-above", str(MIB))
        self.fails(3, "diff", "before.reprise", "after.reprise", "--fail-above", str(MIB - 1),
                   says="after.reprise: some requests were left to the real allocator, so that nothing says")

    def test_what_a_higher_threshold_leaves_out_passes_no_limit(self):
        self.write("low.reprise", traces.trace([MIB, 4 * MIB], threshold=4096))
        self.write("high.reprise", traces.trace([4 * MIB], threshold=2 * MIB))
        says = "high.reprise: blocks under 2.00 MiB were not recorded, in low.reprise those from 4.00 KiB on were"
        done = self.fails(3, "diff", "low.reprise", "high.reprise", "--fail-above", "1GiB",
                          says=f"^reprise: {says}, so that nothing says .* the same --threshold, or leave out --fail-above\n$")
        self.assertEqual(done.out, "")
        self.assertIn(f"reprise: {says}\n", self.ok("diff", "low.reprise", "high.reprise").err)
        # The other way round it has grown by that much at most.
        self.ok("diff", "high.reprise", "low.reprise", "--fail-above", str(MIB))
        self.assertIn(says, self.fails(1, "diff", "high.reprise", "low.reprise", "--fail-above", "0", says="has grown").err)
        self.assertNotIn("not recorded", self.ok("diff", "high.reprise", "high.reprise", "--fail-above", "0").err)
        self.write("low.csv", f"event,id,bytes,stream\nalloc,0,{MIB},0\n")  # says nothing of a threshold
        self.ok("diff", "low.csv", "high.reprise", "--fail-above", "1GiB")

    def test_a_snapshot_that_may_have_missed_the_peak_passes_no_limit(self):
        base, weight = snapshots.BASE, (snapshots.BASE, 4 * MIB, 4 * MIB, "active_allocated")
        step = [snapshots.entry(action, base + 8 * MIB, 8 * MIB) for action in ("alloc", "free_completed")]
        reserved_in_it = [snapshots.entry("segment_alloc", base + 8 * MIB, 16 * MIB), *step]
        late = [snapshots.segment(base, 4 * MIB, [weight]), snapshots.segment(base + 8 * MIB, 16 * MIB, [])]
        self.write("late.pickle", snapshots.pickled(snapshots.snapshot(late, reserved_in_it)))
        self.assertTrue(self.json("stats", "late.pickle")["whole"], "what was reserved before is less than its peak")
        self.ok("diff", "late.pickle", "late.pickle", "--fail-above", "0")

        self.write("ring.pickle", snapshots.pickled(snapshots.snapshot(late, step)))
        self.ok("diff", "late.pickle", "ring.pickle", "--fail-above", str(8 * MIB))
        self.fails(3, "diff", "late.pickle", "ring.pickle", "--fail-above", str(8 * MIB - 1),
                   says="ring.pickle: its history begins when more was reserved .* switch the history on before")
        self.ok("diff", "ring.pickle", "late.pickle", "--fail-above", "0")

        self.write("none.pickle", snapshots.pickled(snapshots.snapshot(late, [])))
        self.write("no_list.pickle", snapshots.pickled(snapshots.snapshot(late)))
        for name in ("none.pickle", "no_list.pickle"):
            self.fails(3, "diff", "late.pickle", name, "--fail-above", "1TiB", says=f"{name}: there is no history in it")
        for name in ("ring.pickle", "none.pickle", "no_list.pickle"):
            with self.subTest(name):
                self.assertFalse(self.json("stats", name)["whole"])
                self.assertFalse(self.json("diff", "late.pickle", name)["after"]["whole"])
                self.ok("compare", name)
                self.ok("plan", name)

    def of_devices(self, name, *sizes):
        """A snapshot in which each device has taken one block of so many MiB."""
        histories = [[snapshots.entry("alloc", snapshots.BASE, size * MIB)] for size in sizes]
        return self.write(name, snapshots.pickled(snapshots.snapshot([], *histories)))

    def test_which_device_is_compared_is_said(self):
        self.of_devices("a.pickle", 6, 4)
        self.of_devices("b.pickle", 6, 5)
        result = self.json("diff", "a.pickle", "b.pickle", "--fail-above", "1%")
        for side in ("before", "after"):
            self.assertEqual((result[side]["device"], result[side]["devices"]), (0, 2))
        self.assertRegex(self.ok("diff", "a.pickle", "b.pickle").out, r"\ndevice +0 of 2 -> +0 of 2\n")
        self.of_devices("one.pickle", 6)
        self.assertNotIn("device ", self.ok("diff", "one.pickle", "one.pickle").out)
        self.write("l.csv", command.LIFETIMES)
        side = self.json("diff", "l.csv", "one.pickle")["before"]
        self.assertEqual((side["device"], side["devices"]), (None, 1))

    def test_one_device_held_against_another_passes_no_limit(self):
        self.of_devices("a.pickle", 40, 39)
        self.of_devices("b.pickle", 38, 41)
        says = "b.pickle: of device 1, and a.pickle of device 0"
        done = self.fails(3, "diff", "a.pickle", "b.pickle", "--fail-above", "5%",
                          says=f"{says}, so that nothing says how far the peak of either grew; .* or leave out --fail-above")
        self.assertEqual(done.out, "")
        self.assertIn(says, self.fails(1, "diff", "a.pickle", "b.pickle", "--fail-above", "1%").err)
        done = self.ok("diff", "a.pickle", "b.pickle")
        self.assertIn(says, done.err)
        self.assertRegex(done.out, r"\ndevice +0 of 2 -> +1 of 2\n")

    def test_the_devices_of_other_inputs(self):
        for device in (0, 1):
            self.write(f"{device}.reprise", traces.trace([MIB], device=device))
            self.write(f"{device}.json", json.dumps({"traceEvents": [{"name": "[memory]", "ts": 1, "args": {
                "Bytes": MIB, "Addr": 512, "Device Type": 1, "Device Id": device, "Total Reserved": MIB}}]}))
        for ending in ("reprise", "json"):
            self.ok("diff", f"1.{ending}", f"1.{ending}", "--fail-above", "0")
            self.assertEqual(self.json("diff", f"0.{ending}", f"1.{ending}", "--fail-above", "0")["after"]["device"], 1)
        self.ok("convert", "1.reprise", "1.pickle")  # which says nothing of the device
        self.ok("diff", "1.pickle", "1.reprise", "--fail-above", "0")
        self.write("1.csv", f"event,id,bytes,stream\nalloc,0,{MIB},0\n")
        self.ok("diff", "1.csv", "1.reprise", "--fail-above", "0")

    def test_sizes_that_look_alike_are_told_apart(self):
        self.write("none.csv", "event,id,bytes,stream\nalloc,9,7,0\n")
        self.write("b.csv", "event,id,bytes,stream\nalloc,0,1048576,0\nalloc,1,1048577,0\nalloc,2,64,0\n")
        rows = self.json("diff", "none.csv", "b.csv")["rows"]
        self.assertEqual([row["size"] for row in rows], [1048577, 1048576, 64, 7])
        self.assertEqual(rows[0]["name"], "blocks of 1.00 MiB (1048577 B)")
        self.assertEqual(rows[2]["name"], "blocks of 64 B")

    def test_what_cannot_be_read(self):
        self.write("a.csv", command.EVENTS)
        self.fails(3, "diff", "a.csv", "nowhere.csv", says="nowhere.csv")


if __name__ == "__main__":
    unittest.main()
