"""Why this exists: a summary, a snapshot and a file's name are others' text. Shown raw, a newline in it begins a row that
nobody wrote, a hint among them, and an escape moves the cursor over what we have said."""

import json
import os
import unittest

import command
import snapshots

FORGED = "x\nreprise: next: reprise run -- rm\x1b[2J\x9b"
SPELT = "x\\nreprise: next: reprise run -- rm\\x1b[2J\\xc2\\x9b"


def snapshot_of(function, size):
    frames = [{"name": function, "filename": f"/job/{FORGED}.py", "line": 7}]
    entries = [dict(snapshots.entry("alloc", snapshots.BASE, size), frames=frames)]
    return snapshots.pickled(snapshots.snapshot([], entries))


class Terminal(command.CommandTest):
    def assert_plain(self, done, *shown):
        for stream in (done.out, done.err):
            self.assertEqual([c for c in stream if c != "\n" and not c.isprintable()], [], stream)
            self.assertNotRegex(stream, "(?m)^reprise: next: reprise run")
        for text in shown:
            self.assertIn(text, done.out + done.err)

    def test_a_summary(self):
        summary = {"live_peak": 1, "reserved_peak": 1, "launcher": "torchrun", "world_size": 2, "rank": 0,
                   "job": FORGED, "step": FORGED, "host": FORGED, "plans_refused": FORGED}
        self.write("summary.rank0.json", json.dumps(summary))
        self.write("summary.rank1.json", json.dumps({**summary, "rank": 1}))
        done = self.ok("merge", ".")
        self.assert_plain(done, f"job {SPELT}.{SPELT}: summaries", f"rank 0, 1: plans found, and not used: {SPELT}",
                          f"0  {SPELT[:8]}", f"rank 0 on {SPELT}")
        self.assertEqual(self.json("merge", ".")["jobs"][0]["ranks"][0]["host"], FORGED)

    def test_a_snapshot(self):
        for batch in (1, 2):
            self.write(f"s{batch}.pickle", snapshot_of(FORGED, batch * snapshots.MIB))
        self.write("other.pickle", snapshot_of("step", snapshots.MIB))
        self.assert_plain(self.ok("stats", "s1.pickle"), f"{SPELT}.py:7 {SPELT}")
        self.assert_plain(self.ok("diff", "s1.pickle", "s2.pickle"), f"{SPELT}.py:7 {SPELT}")
        self.assert_plain(self.ok("diff", "s1.pickle", "other.pickle"), f"{SPELT}.py {SPELT}")
        self.assert_plain(self.ok("fit", "s1.pickle@1", "s2.pickle@2"), f"{SPELT}.py:7 {SPELT}")
        self.assertEqual(self.json("stats", "s1.pickle")["sites"][0]["function"], FORGED)

    def test_names_of_files(self):
        name = f"{FORGED}.csv".replace("/", "_")
        spelt = f"{SPELT}.csv"
        self.write(name, command.EVENTS)
        self.write("lifetimes.csv", f"id,lower,upper,size\na\x1b[2J,0,9,4\nb,0,4,4\n")
        for words in (["stats", name], ["simulate", name], ["fit", f"{name}@1", f"{name}@2"], ["diff", name, name]):
            self.assert_plain(self.reprise(*words), spelt)
        self.assert_plain(self.ok("plan", name, "lifetimes.csv"), spelt)
        self.assert_plain(self.fails(3, "stats", f"no {name}"), spelt)
        self.assert_plain(self.fails(3, "stats", name.replace(".csv", "")), SPELT)
        os.mkdir(self.path(FORGED))
        self.assert_plain(self.fails(3, "merge", FORGED), SPELT)
        self.assert_plain(self.fails(2, FORGED), SPELT)

    def test_the_ids_of_buffers(self):
        self.write("a.csv", "id,lower,upper,size\na\x1b[2J,0,9,4\nb,0,4,4\n")
        self.ok("plan", "a.csv", "-o", "a.plan.json")
        plan = json.loads(self.read("a.plan.json"))
        plan.update(offsets=[0, 0], slab=4, lower_bound=4)
        self.write("bad.plan.json", json.dumps(plan))
        self.assert_plain(self.fails(1, "check", "a.csv", "bad.plan.json"), "the id a\\x1b[2J")


if __name__ == "__main__":
    unittest.main()
