"""Why this exists: whatever is wrong with a file, every command that reads it ends with status 3 and says where."""

import json
import os
import unittest

import command
import traces

E = "event,id,bytes,stream\n"
L = "id,lower,upper,size\n"
LA = "id,lower,upper,size,alignment,offset\n"

# What the file holds, and what must be said of it.
EVENT_FILES = {
    "truncated row": (E + "alloc,0,10,0\nalloc,1", ":3:"),
    "corrupted number": (E + "alloc,0,1\x0000,0\n", ":2:"),
    "unknown event": (E + "alloc,0,10,0\nresize,0,20,0\n", ":3: .*resize"),
    "free of an unknown id": (E + "alloc,0,10,0\nfree,1,,0\n", ":3: .*1"),
    "freed twice": (E + "alloc,0,10,0\nfree,0,,0\nfree,0,,0\n", ":4:"),
    "id reused while live": (E + "alloc,0,10,0\nalloc,0,10,0\n", ":3: .*live"),
    "negative size": (E + "alloc,0,-10,0\n", ":2: .*-10"),
    "size of zero": (E + "alloc,0,0,0\n", ":2:"),
    "size that overflows": (E + "alloc,0,99999999999999999999,0\n", ":2:"),
    "sizes whose sum overflows": (E + f"alloc,0,{2**60},0\nalloc,1,{2**60},0\n", ":3: .*offset"),
    "more than an offset can be": (E + f"alloc,1,5,0\n\nalloc,0,{2**61 - 2},0\nfree,0,,0\n", ":4: .*offset"),
    "a size that no offset is above": (E + f"alloc,0,{2**62},0\n", f":2: bytes is .* from 1 to {2**61 - 2}\n"),
    "more than an offset can be, one after the other": (E + f"alloc,0,{2**60},0\nfree,0,,0\n" * 2, ":4: .*offset"),
}
LIFETIME_FILES = {
    "truncated row": (L + "a,0,5,10\nb,0", ":3:"),
    "upper equal to lower": (L + "a,5,5,10\n", ":2:"),
    "upper below lower": (L + "a,5,4,10\n", ":2:"),
    "negative size": (L + "a,0,5,-10\n", ":2:"),
    "negative lower": (L + "a,-1,5,10\n", ":2:"),
    "size that overflows": (L + "a,0,5,99999999999999999999\n", ":2:"),
    "more than an offset can be": (L + f"a,0,5,{2**60}\nb,0,5,{2**60}\n", ":3: .*offset"),
    "an alignment beyond all offsets": (LA + f"a,0,5,2,{2**61 - 2},\n", ":2: .*offset"),
    "pinned beyond all offsets": (LA + f"a,0,5,8,1,\nb,0,5,8,1,{2**61 - 10}\n", ":3: .*offset"),
    "id used twice": (L + "a,0,5,10\na,5,9,10\n", ":3:"),
}
OTHER_FILES = {
    "empty": ("", "empty"),
    "wrong header": ("name,size\na,10\n", ":1:"),
    "no text at all": (bytes(range(256)), ":1:|byte"),
    "a pickle cut short": (b"\x80\x04}(", "byte 4"),
    "a pickle of something else": (b"\x80\x04].", "not a dict"),
}


class BadInput(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.write("good.csv", command.LIFETIMES)
        self.ok("plan", "good.csv", "-o", "good.plan.json")

    def assert_refused(self, files):
        for what, (content, says) in files.items():
            self.write("bad.csv", content)
            for words in (
                ["plan", "bad.csv"],
                ["plan", "bad.csv", "--json"],
                ["plan", "bad.csv", "-o", "new.json"],
                ["check", "bad.csv", "good.plan.json"],
                ["simulate", "bad.csv"],
                ["stats", "bad.csv"],
                ["stats", "bad.csv", "--json"],
                ["compare", "bad.csv"],
            ):
                with self.subTest(what, words=words):
                    done = self.fails(3, *words, says=f"bad.csv.*({says})")
                    self.assertEqual(done.out, "")

    def test_events(self):
        self.assert_refused(EVENT_FILES)

    def test_lifetimes(self):
        self.assert_refused(LIFETIME_FILES)

    def test_neither(self):
        self.assert_refused(OTHER_FILES)

    def test_pinned_onto_each_other(self):
        self.write("bad.csv", LA + "alpha,0,4,5,1,0\nbeta,2,3,5,1,3\n")
        says = "bad.csv: buffer alpha: pinned, it overlaps buffer beta, pinned as well, at tick 2"
        for words in (["plan", "bad.csv"], ["check", "bad.csv", "good.plan.json"], ["stats", "bad.csv"]):
            self.fails(3, *words, says=says)

    def test_not_a_file(self):
        for name in ("nowhere.csv", "."):
            for words in (["plan"], ["simulate"], ["stats"], ["compare"]):
                self.fails(3, *words, name)
            self.fails(3, "check", name, "good.plan.json")

    def test_the_folder_of_a_run(self):
        os.mkdir(self.path("out"))
        self.fails(3, "stats", "out", says="out: is a folder; name a file in it\n")
        self.write("out/trace.reprise", "no trace, and not read")
        self.fails(3, "stats", "out", says="name a file in it, such as out/trace.reprise\n")

    def test_no_allocation(self):
        self.write("events.csv", E + "mark,1,,\n")
        self.write("lifetimes.csv", "id,lower,upper,size\n")
        self.write("some.csv", command.EVENTS)
        formats = "events lifetimes json perfetto speedscope folded snapshot".split()
        for none in ("events.csv", "lifetimes.csv"):
            commands = [["stats", none], ["stats", "--json", none], ["plan", none, "-o", "out"], ["check", none, "good.plan.json"],
                        ["report", none, "-o", "out"], ["diff", none, "some.csv"], ["diff", "some.csv", none],
                        *(["convert", none, "out", "--to", format] for format in formats)]
            if none == "events.csv":
                commands += [["simulate", none], ["simulate", "--json", none], ["compare", none], ["fit", "some.csv@1", f"{none}@2"]]
            for words in commands:
                with self.subTest(words=words):
                    done = self.fails(3, *words, says=f"^reprise: {none}: there is not one allocation in it\n$")
                    self.assertEqual(done.out, "")
        self.assertFalse(os.path.exists(self.path("out")))

    def test_a_time_line_without_an_allocation(self):
        self.write("t.reprise", traces.trace([], kernels=3))
        out = self.ok("stats", "t.reprise").out
        self.assertIn("kernel time        3.0 ms  of the device's streams, in 3", out)
        self.assertNotIn("peak", out)
        device = self.json("stats", "t.reprise")["device_activity"]
        self.assertEqual((device["totals"][0]["count"], device["at_peak"]), (3, []))
        self.assertEqual(len(json.loads(self.ok("convert", "t.reprise", "-", "--to", "json").out)["activities"]), 3)
        self.ok("convert", "t.reprise", "out.pftrace")
        for words in (["simulate", "t.reprise"], ["compare", "t.reprise"], ["plan", "t.reprise"], ["report", "t.reprise"],
                      ["convert", "t.reprise", "out.csv"], ["convert", "t.reprise", "out.folded"]):
            self.fails(3, *words, says="t.reprise: there is not one allocation in it")

    def test_standard_input_is_named(self):
        self.fails(3, "plan", "-", input=b"", says="standard input: .*empty")


if __name__ == "__main__":
    unittest.main()
