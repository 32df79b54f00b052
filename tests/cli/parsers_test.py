"""Why this exists: an export is good if the tool that it is for reads it. Perfetto's own protobuf schema (from its Python
package, `scripts/setup parsers`) and PyTorch's own memory_viz (of the PyTorch that `scripts/test --frameworks` installs)
read here what convert writes. Each is skipped where it is not installed."""

import glob
import os
import re
import subprocess
import sys
import unittest

import command
import snapshots
from report_test import secret_snapshot
from stats_test import job

BUILD = os.environ["REPRISE_BUILD"]
PARSERS = os.path.join(BUILD, "..", "parsers", "bin", "python3")
MEMORY_VIZ = glob.glob(os.path.join(BUILD, "..", "frameworks", "torch", "lib*", "python*", "site-packages/torch/cuda/_memory_viz.py"))

# Reads a trace by the schema; what the schema does not know, or knows as something else, is unknown to it.
BY_SCHEMA = """
import json, sys
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

def unknown(message):
    inner = [value for field, value in message.ListFields() if field.type == field.TYPE_MESSAGE]
    messages = [m for value in inner for m in ([value] if hasattr(value, "ListFields") else value)]
    return len(UnknownFieldSet(message)) + sum(map(unknown, messages))

trace = schema.Trace.FromString(open(sys.argv[1], "rb").read())
tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
values = [p for p in trace.packet if p.HasField("track_event")]
print(json.dumps({
    "unknown": unknown(trace),
    "units": sorted({schema.CounterDescriptor.Unit.Name(t.counter.unit) for t in tracks.values()}),
    "names": [t.name for t in tracks.values()],
    "types": sorted({schema.TrackEvent.Type.Name(p.track_event.type) for p in values}),
    "tracks_known": all(p.track_event.track_uuid in tracks for p in values),
    "most": max(p.track_event.counter_value for p in values),
}))
"""


class Parsers(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.write("s.pickle", snapshots.pickled(secret_snapshot()))
        self.write("job.csv", job(5))

    def read_by(self, *words):
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @unittest.skipUnless(os.path.exists(PARSERS), "no build/parsers here")
    def test_perfetto(self):
        for name in ("s.pickle", "job.csv"):
            self.ok("convert", name, "out.pftrace")
            found = command.json.loads(self.read_by(PARSERS, "-c", BY_SCHEMA, "out.pftrace"))
            self.assertEqual((found["unknown"], found["tracks_known"]), (0, True))
            self.assertEqual((found["units"], found["types"]), (["UNIT_SIZE_BYTES"], ["TYPE_COUNTER"]))
            self.assertEqual(found["names"][0], "live bytes")
            self.assertEqual(found["most"], self.json("stats", name)["live_peak"])

    @unittest.skipUnless(MEMORY_VIZ, "no build/frameworks/torch here")
    def test_memory_viz(self):
        for name in ("s.pickle", "job.csv"):
            self.ok("convert", name, "out.pickle")
            stats = self.json("stats", name)
            trace = self.read_by(sys.executable, MEMORY_VIZ[0], "trace", "out.pickle")
            self.assertEqual(len(re.findall(r"^\w+ = seg_0\[|^\w+ = MEM\[", trace, re.MULTILINE)), stats["allocs"])
            self.assertEqual(trace.count("# free completed"), stats["frees"])
            sums = self.read_by(sys.executable, MEMORY_VIZ[0], "stats", "out.pickle")
            (allocated,) = re.findall(r"total_allocated: ([\d.]+)([KMG]i)?B", sums)
            scale = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30}[allocated[1]]
            self.assertAlmostEqual(float(allocated[0]), stats["live_at_end"] / 2**scale, delta=0.06)
            for kind in ("trace_plot", "segment_plot"):
                self.read_by(sys.executable, MEMORY_VIZ[0], kind, "out.pickle", "-o", "out.html")
                self.assertIn(b"<html>", self.read("out.html"))


if __name__ == "__main__":
    if not os.path.exists(PARSERS) and not MEMORY_VIZ:
        print("skipped: neither build/parsers nor build/frameworks/torch is here")
        sys.exit(77)
    unittest.main()
