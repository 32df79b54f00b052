"""Why this exists: a file that another tool does not open is worth nothing. Each format is read back here by what shares
no code with us: Python's unpickler, json, a reader of protobuf's wire format of twenty lines; and by ourselves where we
read it too."""

import copy
import json
import os
import pickle
import pickletools
import subprocess
import unittest

import command
import snapshots
import traces
from report_test import secret_snapshot
from stats_test import job
from wire import fields


def memory(ts, size, addr, device=0, allocated=0, reserved=0):
    return {
        "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
        "args": {"Total Reserved": reserved, "Total Allocated": allocated, "Bytes": size, "Addr": addr, "Device Id": device,
                 "Device Type": 1, "Ev Idx": 4},
    }


KINETO = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "[memory]"}],
    "traceEvents": [
        {"ph": "X", "name": "aten::empty", "ts": 1.0, "dur": 2.5, "args": {"Bytes": 7, "deep": {"args": [1, {"Bytes": 3}]}}},
        memory(20.5, 300, 0x7F0000000200),
        memory(10.25, 100, 0x7F0000000000),
        memory(30.0, -100, 0x7F0000000000),
        memory(31.0, -50, 0x7F0000000900),
        memory(12.0, 64, 16, device=1),
    ],
}


# The page of PyTorch's memory_viz reads pickles by itself, and only what the pickler of a snapshot writes.
READ_BY_MEMORY_VIZ = {
    "PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "NONE", "NEWTRUE",
    "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "EMPTY_LIST",
    "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_DICT", "DICT", "SETITEM",
    "SETITEMS",
}


class Convert(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.write("s.pickle", snapshots.pickled(secret_snapshot()))
        self.write("e.csv", command.EVENTS)
        self.write("job.csv", job(5))

    def same(self, a, b, *but):
        one, other = self.json("stats", a), self.json("stats", b)
        for key in ("live_peak", "allocs", "frees", "live_at_end", "at_peak", "allocated", *but):
            self.assertEqual(one[key], other[key], key)

    def test_event_csv(self):
        self.ok("convert", "s.pickle", "out.csv")
        self.same("s.pickle", "out.csv")

    def test_an_event_csv_keeps_alignments(self):
        """Or what is worked out of it would be another thing: on a device every block has one."""
        odd = [snapshots.entry("alloc", snapshots.BASE + k * snapshots.MIB, 1000) for k in range(6)]
        self.write("odd.pickle", snapshots.pickled(snapshots.snapshot([], odd)))
        self.ok("convert", "odd.pickle", "odd.csv")
        plans = [self.json("plan", name) for name in ("odd.pickle", "odd.csv")]
        self.assertEqual([plan["slab"] for plan in plans], [5 * 1024 + 1000] * 2)

    def test_lifetime_csv(self):
        self.ok("convert", "e.csv", "out.lifetimes.csv")
        self.assertEqual(
            self.read("out.lifetimes.csv").decode(),
            "id,lower,upper,size,alignment,lane\n0,0,2,100,1,0\n1,1,4,50,1,0\n2,3,5,80,1,0\n")
        self.assertEqual(self.json("stats", "out.lifetimes.csv")["live_peak"], 150)

    def test_a_lifetime_csv_keeps_what_no_event_says(self):
        rows = ("id,lower,upper,size,alignment,offset,gaps,lane\n"
                "a,0,100,64,512,,20-30 50-60,0\nb,20,30,64,1,128,,2\nc,100,1000,32,1,,,0\n")
        self.write("a.csv", rows)
        self.ok("convert", "a.csv", "b.lifetimes.csv")
        self.assertEqual(self.read("b.lifetimes.csv").decode(), rows)
        self.ok("stats", "b.lifetimes.csv")
        self.write("mm.csv", "buffer,start,end,size,gaps\nx y,0,9,4,3-5\n")
        self.ok("convert", "mm.csv", "mm.lifetimes.csv")
        self.assertEqual(self.read("mm.lifetimes.csv").decode().splitlines()[1], "x y,0,10,4,1,,3-6,0")
        self.write("last.csv", f"id,lower,end,size\na,0,{1 << 62},4\n")
        self.fails(3, "convert", "last.csv", "-", "--to", "lifetimes", says="last.csv:2: end")

    def test_lifetimes_become_events(self):
        self.write("a.csv", command.LIFETIMES)
        out = self.ok("convert", "a.csv", "-", "--to", "events").out
        self.assertEqual([line.split(",")[0] for line in out.splitlines()[1:]],
                         ["alloc", "alloc", "free", "alloc", "free", "free"])

    def test_what_no_event_says_of_a_lifetime_is_said(self):
        self.write("gap.csv", "id,lower,upper,size,gaps\na,0,9,4,2-3 5-6\nb,0,9,4,2-3\n")
        gaps = "gap.csv: each of its 3 gaps is a free and a new allocation there, so that a block may lie at several offsets"
        self.write("pin.csv", "id,lower,upper,size,offset\na,0,9,4,64\nb,0,9,4,\n")
        pins = "pin.csv: the offset of 1 is not kept"
        for out in ("out.csv", "out.pickle"):
            self.assertIn(f"reprise: {gaps}\n", self.ok("convert", "gap.csv", out).err)
            self.assertIn(f"reprise: {pins}\n", self.ok("convert", "pin.csv", out).err)
        for quiet in ("out.lifetimes.csv", "out.folded"):
            self.assertNotIn("gap.csv:", self.ok("convert", "gap.csv", quiet).err)
        self.write("a.csv", command.LIFETIMES)
        self.assertNotIn("a.csv:", self.ok("convert", "a.csv", "out.csv").err)

    def test_events_of_lifetimes_keep_alignments(self):
        self.write("a.csv", "id,lower,upper,size,alignment\na,0,9,100,512\nb,1,9,100,512\nc,2,9,100,1\n")
        self.ok("convert", "a.csv", "out.csv")
        allocs = [line for line in self.read("out.csv").decode().splitlines() if line.startswith("alloc")]
        self.assertEqual(allocs, ["alloc,0,100,0,512", "alloc,1,100,0,512", "alloc,2,100,0,"])
        self.assertEqual(*(self.json("stats", name)["lower_bound"] for name in ("a.csv", "out.csv")))

    def test_a_lane_becomes_a_stream(self):
        self.write("a.csv", "id,lower,upper,size,lane\na,0,2,10,7\nb,2,4,10,3\n")
        self.ok("convert", "a.csv", "out.csv", "--to", "events")
        self.assertEqual(self.read("out.csv").decode().splitlines()[1:], ["alloc,0,10,7", "free,0,,7", "alloc,1,10,3", "free,1,,3"])
        for which, slab in (("shared", 10), ("apart", 20)):
            self.assertEqual([self.json("plan", name, "--streams", which)["slab"] for name in ("a.csv", "out.csv")], [slab] * 2)

    def test_json(self):
        self.ok("convert", "s.pickle", "out.json")
        out = json.loads(self.read("out.json"))
        self.assertEqual(len(out["events"]), 6)
        stack = out["stacks"][out["events"][1][out["columns"].index("stack")]]
        self.assertEqual([out["frames"][f - 1]["line"] for f in stack], [0, 3, 42])

    def test_folded(self):
        self.ok("convert", "s.pickle", "out.folded")
        lines = dict(line.rsplit(" ", 1) for line in self.read("out.folded").decode().splitlines())
        self.assertEqual(sum(map(int, lines.values())), self.json("stats", "s.pickle")["live_peak"])
        self.assertEqual(max(len(line.split(";")) for line in lines), 3)
        self.assertTrue(any(line.endswith("at::empty+0x0") or line.endswith("at::empty") for line in lines), lines)

    def test_folded_lines_move_no_cursor(self):
        entry = snapshots.entry("alloc", snapshots.BASE, snapshots.MIB)
        entry["frames"] = [{"name": "f\x1b[31m;g\n", "filename": "a\x9bb.py", "line": 1}]
        self.write("odd.pickle", snapshots.pickled(snapshots.snapshot([], [entry])))
        folded = self.ok("convert", "odd.pickle", "-", "--to", "folded").stdout
        self.assertEqual(folded, rb"f\x1b[31m:g\n (a\xc2\x9bb.py:1) 1048576" + b"\n")

    def test_speedscope(self):
        self.ok("convert", "s.pickle", "out.speedscope.json")
        out = json.loads(self.read("out.speedscope.json"))
        self.assertEqual(out["$schema"], "https://www.speedscope.app/file-format-schema.json")
        frames = out["shared"]["frames"]
        self.assertLessEqual(set(out), {"$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"})
        for frame in frames:
            self.assertLessEqual({"name"}, set(frame))
            self.assertLessEqual(set(frame), {"name", "file", "line"})
            self.assertIsInstance(frame.get("line", 0), int)
        for profile in out["profiles"]:
            self.assertEqual(set(profile), {"type", "name", "unit", "startValue", "endValue", "samples", "weights"})
            self.assertEqual((profile["type"], profile["unit"]), ("sampled", "bytes"))
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertEqual(profile["endValue"], sum(profile["weights"]))
            self.assertTrue(all(0 <= f < len(frames) for sample in profile["samples"] for f in sample))
        deepest = max(out["profiles"][0]["samples"], key=len)
        self.assertEqual([frames[f].get("line") for f in deepest], [42, 3, None], "outermost first")

    def test_perfetto(self):
        self.ok("convert", "e.csv", "out.pftrace")
        packets = [fields(packet) for packet in fields(self.read("out.pftrace"))[1]]
        tracks = [fields(p[60][0]) for p in packets if 60 in p]
        self.assertEqual([(t[1], t[2], fields(t[8][0])) for t in tracks], [([1], [b"live bytes"], {3: [3]})])
        values = [(p[8][0], fields(p[11][0])) for p in packets if 11 in p]
        self.assertEqual([time for time, _ in values], [0, 1000, 2000, 3000, 4000])
        self.assertEqual([v[30] for _, v in values], [[100], [150], [50], [130], [80]])
        for _, value in values:
            self.assertEqual((value[9], value[11]), ([4], [1]), "a counter's value, of the track")
        self.assertTrue(all(p[10] == [1] for p in packets))

    def test_perfetto_by_site(self):
        self.ok("convert", "s.pickle", "out.perfetto-trace")
        packets = [fields(packet) for packet in fields(self.read("out.perfetto-trace"))[1]]
        names = [fields(p[60][0])[2][0].decode() for p in packets if 60 in p]
        self.assertEqual(names[0], "live bytes")
        self.assertEqual(len(names), 3)
        last = {}
        for p in packets:
            if 11 in p:
                value = fields(p[11][0])
                last[value[11][0]] = value[30][0]
        self.assertEqual(last[1], last[2] + last[3])

    def test_snapshot_is_read_by_python_and_by_us(self):
        for name in ("job.csv", "s.pickle"):
            self.ok("convert", name, "out.pickle")
            out = pickle.loads(self.read("out.pickle"))
            used = {opcode.name for opcode, _, _ in pickletools.genops(self.read("out.pickle"))}
            self.assertLessEqual(used, READ_BY_MEMORY_VIZ)
            self.assertEqual(set(out), {"device_traces", "reprise", "segments"})
            self.same(name, "out.pickle", "sites")
            segment = out["segments"][0]
            at = segment["address"]
            for block in segment["blocks"]:
                self.assertEqual(block["address"], at, "blocks lie one behind the other")
                at += block["size"]
            self.assertEqual(at, segment["address"] + segment["total_size"])
            live = {}
            for entry in out["device_traces"][0]:
                if entry["action"] == "alloc":
                    for addr, size in live.items():
                        self.assertTrue(entry["addr"] >= addr + size or entry["addr"] + entry["size"] <= addr)
                    live[entry["addr"]] = entry["size"]
                elif entry["action"] == "free_completed":
                    live.pop(entry["addr"])

    def test_a_name_that_is_no_utf8_spoils_no_snapshot(self):
        # As the path of a library may be. Python would load none of the file.
        value = copy.deepcopy(snapshots.SMALL)
        for entry in value["device_traces"][0]:
            entry["frames"][0]["filename"] = "d\u00e9/train.py"
        content = snapshots.pickled(value)
        self.assertIn("\u00e9".encode(), content)
        self.write("odd.pickle", content.replace("\u00e9".encode(), b"\xff\xfe"))
        self.ok("convert", "odd.pickle", "out.pickle")
        entry = pickle.loads(self.read("out.pickle"))["device_traces"][0][-1]
        self.assertEqual(entry["frames"][0]["filename"], "d\ufffd\ufffd/train.py")

    def test_kineto(self):
        for content, begin in ((KINETO, ""), (KINETO["traceEvents"], ""), (KINETO, "\ufeff \n")):
            self.write("k.json", begin + json.dumps(content))
            done = self.ok("stats", "k.json", "--json")
            stats = json.loads(done.out)
            self.assertEqual((stats["format"], stats["allocs"], stats["frees"]), ("profiler trace", 3, 2))
            self.assertEqual((stats["live_peak"], stats["live_at_end"]), (450, 300))
            self.assertIn("1 blocks are freed that were not allocated", done.err)
            self.assertIn("2 devices in it", done.err)
        self.ok("report", "k.json", "-o", "k.html")

    def test_kineto_of_the_fullest_device(self):
        often = [memory(k, 64 * (1 if k % 2 else -1), 16) for k in range(1, 9)]
        late = [memory(9, -500, 32, device=2), memory(10, -500, 48, device=2)]
        self.write("k.json", json.dumps([*often, memory(3, 900, 16, device=1), *late]))
        done = self.ok("stats", "k.json", "--json")
        self.assertEqual(json.loads(done.out)["live_peak"], 1000)
        self.assertRegex(done.err, r"3 devices in it; only device type 1, number 2, .* not type 1 number 0 \(up to 64 B live\), "
                                   r"type 1 number 1 \(up to 900 B live\)")

    def test_kineto_that_begins_late_is_not_whole(self):
        # 700 B were there before, of which 100 are freed while it is on.
        late = [memory(1, 200, 16, allocated=900, reserved=950), memory(2, -100, 32, allocated=800, reserved=950)]
        first = [memory(1, 200, 16, allocated=200, reserved=200), memory(2, 100, 32, allocated=300, reserved=900)]
        for events, unseen, says in ((late, 650, r"may be higher, by up to 650 B: more was there"), (first, 0, "^$"),
                                     ([memory(1, 200, 16, allocated=900)], None, r"may be higher: it does not say")):
            self.write("k.json", json.dumps(events))
            done = self.ok("stats", "k.json", "--json")
            self.assertRegex(done.err, says)
            self.assertEqual(json.loads(done.out)["whole"], unseen == 0)
            if unseen is not None:
                self.ok("diff", "k.json", "k.json", "--fail-above", f"{unseen}")
            if unseen != 0:
                self.fails(3, "diff", "k.json", "k.json", "--fail-above", "649", says="switched on")

    def test_kineto_device_with_the_largest_peak_as_it_is_read(self):
        """What device 1 frees was there at the begin, though as much has come before it goes."""
        events = [memory(1, 600, 1), memory(1, 400, 1, device=1), memory(2, -400, 2, device=1)]
        self.write("k.json", json.dumps(events))
        done = self.ok("stats", "k.json", "--json")
        stats = json.loads(done.out)
        self.assertEqual((stats["device"], stats["live_peak"]), (1, 800))
        self.assertIn("not type 1 number 0 (up to 600 B live)", done.err)
        self.write("k.json", json.dumps(events + [memory(9, 300, 9)]))
        self.assertIn("not type 1 number 1 (up to 800 B live)", self.ok("stats", "k.json").err)

    def test_kineto_times_at_both_ends(self):
        far = float(1 << 52)
        for ts, lived, says in ((far, 1 << 53, "switched on\n$"), (2 * far, 1, "2 malformed memory events were ignored; of the first, .ts. is f")):
            self.write("k.json", json.dumps([memory(1, 8, 1), memory(2, -8, 1), memory(-ts, 8, 2), memory(ts, -8, 2)]))
            done = self.ok("stats", "k.json", "--json")
            self.assertRegex(done.err, says)
            self.assertEqual(json.loads(done.out)["lifetimes"]["classes"][-1]["from"], lived)

    def test_json_that_is_no_memory_trace(self):
        no_bytes = memory(1, "many", 1)
        for content, says in (
            ("{}", 'no "\\[memory\\]" event'),
            ('{"traceEvents": 3}', "no "),
            ('{"traceEvents": [', "byte 18: no JSON"),
            ("[" * 100000, "no JSON"),
            (json.dumps([memory(1, 1 << 61, 1), memory(2, 1 << 61, 2), memory(3, 1 << 61, 3)]), "memory event 2"),
            (json.dumps([{"name": "[memory]", "args": {"Bytes": "many"}}]),
             '''all of its "\\[memory\\]" events, 1, are malformed; of the first, "ts" is missing'''),
            (json.dumps([no_bytes, memory(1, 0, 1), memory(1e300, 1, 1)]), 'events, 3, are .* first, "Bytes" is missing in'),
            (json.dumps([memory(1, 0, 1), no_bytes]), 'events, 2, are malformed; of the first, "Bytes" is 0'),
            (json.dumps([memory(1, 1 << 62, 1)]), '"Bytes" is further from 0 than 2\\^61'),
            (json.dumps([memory(1e300, 1, 1)]), '"ts" is further from 0'),
            (json.dumps([memory(1, 1, "here")]), '"Addr" is missing'),
            ('[{"ts": 1e999}]', "byte 13: '1e999' is beyond any number"),
        ):
            self.write("k.json", content)
            self.fails(3, "stats", "k.json", says=says)

    def test_an_export_is_not_taken_for_a_profiler_trace(self):
        self.write("e.csv", command.EVENTS)
        self.ok("convert", "e.csv", "e.json")
        self.fails(3, "stats", "e.json", says="e.json: an export of `reprise convert`, .*; name the input")

    def test_what_could_not_be_read_again_is_not_written(self):
        self.write("big.reprise", traces.trace([100, 1 << 60, 1 << 60]))
        self.write("big.json", json.dumps([memory(k, 1 << 60, k) for k in (1, 2)]))
        for big in ("big.reprise", "big.json"):
            for out in ("out.lifetimes.csv", "out.csv", "out.pickle"):
                self.fails(3, "convert", big, out, says=f"{big}: buffer [12]: the sum of all sizes")
        self.write("big.csv", "event,id,bytes,stream\nalloc,1,100,0\nalloc,0,2305843009213693950,0\nfree,0,,0\n")
        self.fails(3, "convert", "big.csv", "out.lifetimes.csv", says="big.csv:3: .*largest offset")
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("out")])
        self.ok("convert", "big.reprise", "out.folded")

    def test_what_was_made_up_for_a_snapshot_is_not_taken_for_recorded(self):
        """Its one segment is as high as the places are, so above the live peak."""
        self.write("gap.csv", "event,id,bytes,stream\nalloc,0,4096,0\nalloc,1,8192,0\nfree,0,,0\nalloc,2,8192,0\n")
        self.ok("convert", "gap.csv", "out.pickle")
        segment = pickle.loads(self.read("out.pickle"))["segments"][0]
        self.assertGreater(segment["total_size"], self.json("stats", "out.pickle")["live_peak"])
        self.assertEqual(self.json("stats", "out.pickle")["notes"], [])
        self.assertTrue(self.json("stats", "out.pickle")["whole"])
        self.assertNotIn("as recorded", [row["name"] for row in self.json("compare", "out.pickle")["allocators"]])
        self.assertIn("no allocator has held its segments", self.ok("compare", "out.pickle").err)
        self.ok("report", "out.pickle", "-o", "out.html")

    def test_a_snapshot_keeps_alignments(self):
        """PyTorch's own are of a device, where every block has one."""
        blocks = "".join(f"alloc,{k},1000,0,{alignment}\n" for k, alignment in enumerate(("", 256, "", 4096)))
        self.write("mixed.csv", "event,id,bytes,stream,alignment\n" + blocks)
        self.write("none.csv", "event,id,bytes,stream\nalloc,0,100,0\nalloc,1,100,0\nfree,0,,0\n")
        for name in ("mixed.csv", "none.csv"):
            self.ok("convert", name, "out.pickle")
            self.same(name, "out.pickle", "lower_bound")
            self.assertEqual(*(self.json("plan", each)["slab"] for each in (name, "out.pickle")))
            self.ok("convert", "out.pickle", "back.csv")
            self.assertEqual(self.read("back.csv"), self.read(name))

    def test_a_snapshot_converted_before_alignments_were_kept_is_of_a_device(self):
        self.ok("convert", "e.csv", "out.pickle")
        old = pickle.loads(self.read("out.pickle"))
        for entry in old["device_traces"][0]:
            entry.pop("alignment", None)
        self.write("old.pickle", pickle.dumps(old))
        self.ok("convert", "old.pickle", "old.csv")
        self.assertIn("\nalloc,0,100,0,512\n", self.read("old.csv").decode())
        old["device_traces"][0][0]["alignment"] = -1
        self.write("odd.pickle", pickle.dumps(old))
        self.fails(3, "stats", "odd.pickle", says=r"device_traces\[0\]\[0\]: 'alignment' is -1; it must be")

    def test_a_snapshot_of_what_is_not_whole_is_not_whole_either(self):
        for end, whole in (("closed", True), ("size limit", False)):
            self.write("job.reprise", traces.trace([4096, 8192], end=end))
            self.ok("convert", "job.reprise", "out.pickle")
            self.assertEqual(pickle.loads(self.read("out.pickle"))["reprise"], {"whole": whole})
            stats = self.json("stats", "out.pickle")
            self.assertEqual(stats["whole"], whole)
            note = "it was converted from what is not all of the job: the job's live peak may be higher"
            self.assertEqual(stats["notes"], [] if whole else [note])
            for command_name in ("stats", "simulate", "compare"):
                self.assertEqual(f"out.pickle: {note}" in self.ok(command_name, "out.pickle").err, not whole)
        self.write("less.csv", "event,id,bytes,stream\nalloc,0,4096,0\n")
        self.fails(3, "diff", "less.csv", "out.pickle", "--fail-above", "1GiB", 
                   says="converted from what is not all of the job.*; record all of the job, ")

    def test_a_csv_cannot_say_that_it_is_not_whole_so_the_command_does(self):
        for end, whole in (("closed", True), ("size limit", False)):
            self.write("t.reprise", traces.trace([4096, 8192], end=end))
            for name in ("out.csv", "out.lifetimes.csv"):
                done = self.ok("convert", "t.reprise", name)
                self.assertTrue(self.json("stats", name)["whole"])
                (self.assertNotIn if whole else self.assertIn)("a CSV does not say so", done.err)
            self.assertNotIn("does not say so", self.ok("convert", "t.reprise", "out.pickle").err)

    def test_a_snapshot_without_a_block_is_not_written(self):
        half = 1 << 60
        large = half - 200  # offsets are enough for all three, but not when each is rounded up
        self.write("e.csv", f"event,id,bytes,stream\nalloc,7,100,0\nalloc,3,{half},0\nalloc,4,{large},0\nfree,4,,0\n")
        self.fails(3, "convert", "e.csv", "out.pickle", says="e.csv: event 2: there is no place for a block of")
        self.write("l.csv", f"id,lower,upper,size\na,0,9,100\nb,1,9,{half}\nlarge,2,9,{large}\n")
        self.fails(3, "convert", "l.csv", "out.pickle", says="l.csv: buffer large: there is no place for a block of")
        self.assertFalse(os.path.exists(self.path("out.pickle")))

    def test_what_cannot_be_converted(self):
        self.fails(2, "convert", "e.csv", "out.doc", says="no known ending")
        self.fails(2, "convert", "e.csv", "nowhere/out.csv", says="nowhere/out.csv.*No such file")
        self.fails(2, "convert", "e.csv", "/dev/full", "--to", "json", says="/dev/full.*No space left")
        self.fails(3, "convert", "nowhere.csv", "out.csv", says="nowhere.csv")
        self.fails(2, "convert", "e.csv", "-", "--to", "xml", says="xml")

    def test_a_failed_write_leaves_the_old_file_and_no_other(self):
        self.write("old.csv", "precious")
        there = sorted(os.listdir(self.folder))
        limit = ["sh", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "sh", command.REPRISE]
        done = subprocess.run([*limit, "convert", "e.csv", "old.csv"], cwd=self.folder, capture_output=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(self.read("old.csv"), b"precious")
        self.assertEqual(sorted(os.listdir(self.folder)), there)

    def test_a_pipe_and_a_link_are_written_to(self):
        os.mkfifo(self.path("pipe"))
        with subprocess.Popen(["cat", "pipe"], cwd=self.folder, stdout=subprocess.PIPE) as reader:
            self.ok("convert", "e.csv", "pipe", "--to", "events")
            self.assertEqual(reader.communicate()[0].decode(), command.EVENTS)
        self.write("target.csv", "old")
        os.symlink("target.csv", self.path("link.csv"))
        self.ok("convert", "e.csv", "link.csv")
        self.assertTrue(os.path.islink(self.path("link.csv")))
        self.assertEqual(self.read("target.csv").decode(), command.EVENTS)


if __name__ == "__main__":
    unittest.main()
