"""Why this exists: what is imported from a real snapshot must be what is in it. This computes peak, composition and
segments from the pickle by itself, with Python's own unpickler and none of our code, and holds the command to it; and
the model of PyTorch's allocator to the segments that the real one had. Needs the bench data (REPRISE_BENCH)."""

import collections
import os
import pickle
import unittest

import command

BENCH = os.environ.get("REPRISE_BENCH")


class DataOnly(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} in a snapshot")


def history(snapshot):
    """The blocks live before the history of device 0 as {address: bytes}, and its (is_alloc, address, bytes)."""
    before, seen, events = {}, set(), []
    for entry in snapshot["device_traces"][0]:
        address, size = entry["addr"], entry["size"]
        if entry["action"] == "alloc":
            events.append((True, address, size))
        elif entry["action"] == "free_completed":
            events.append((False, address, size))
            if address not in seen:
                before[address] = size
        elif entry["action"] != "free_requested":
            continue
        if entry["action"] != "free_requested":
            seen.add(address)
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"].startswith("active") and block["address"] not in seen:
                before[block["address"]] = block["requested_size"]
    return before, events


def peak(before, events):
    """The most bytes live at once, and how many blocks of which size were live then, at the first such moment."""
    live = dict(before)
    total = most = sum(live.values())
    at_peak = collections.Counter(live.values())
    for is_alloc, address, size in events:
        if is_alloc:
            live[address] = size
            total += size
            if total > most:
                most, at_peak = total, collections.Counter(live.values())
        else:
            total -= live.pop(address)
    return most, at_peak, live


@unittest.skipUnless(BENCH, "REPRISE_BENCH is not set: no snapshot to read")
class RealSnapshot(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(BENCH, "snapshots", "gpt_medium_ctx128.pickle")
        with open(self.file, "rb") as content:
            self.snapshot = DataOnly(content).load()
        self.before, self.events = history(self.snapshot)

    def test_peak_and_composition(self):
        most, at_peak, live = peak(self.before, self.events)
        stats = self.json("stats", self.file)
        self.assertEqual(stats["live_peak"], most)
        self.assertEqual({c["size"]: c["blocks"] for c in stats["at_peak"]}, dict(at_peak))
        self.assertEqual(stats["live_at_end"], sum(live.values()))
        self.assertEqual(stats["allocs"], len(self.before) + sum(is_alloc for is_alloc, _, _ in self.events))
        requested = sum(segment["requested_size"] for segment in self.snapshot["segments"])
        self.assertEqual(stats["live_at_end"], requested, "what PyTorch itself says is requested at the end")

    def test_the_model_reserves_what_the_real_allocator_did(self):
        segments = sum(segment["total_size"] for segment in self.snapshot["segments"])
        by_name = {a["name"]: a for a in self.json("compare", self.file)["allocators"]}
        self.assertEqual(by_name["as recorded"]["reserved_peak"], segments)
        self.assertAlmostEqual(by_name["torch-native"]["reserved_peak"] / segments, 1, delta=0.02)


if __name__ == "__main__":
    unittest.main()
