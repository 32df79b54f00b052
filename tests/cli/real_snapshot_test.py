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


def is_python(frame):
    """A snapshot does not say so; frames of C++ have no line here, and Python's end in .py."""
    return frame["filename"].endswith(".py")


def stack_key(frames):
    return tuple((f["name"], "" if f["filename"] == "??" else f["filename"], f["line"]) for f in frames)


def bytes_by_stack(snapshot):
    """What is live at the peak by stack, innermost frame first: the history again, with its frames."""
    before, _ = history(snapshot)
    frames_of = {address: (size, ()) for address, size in before.items()}
    # A block that the history names is another one at the end than at the beginning.
    named = {entry["addr"] for entry in snapshot["device_traces"][0] if entry["action"] in ("alloc", "free_completed")}
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["address"] not in named and block["state"].startswith("active"):
                frames_of[block["address"]] = (before[block["address"]], stack_key(block["frames"]))
    live, total = dict(frames_of), sum(before.values())
    most, at_peak = total, dict(live)
    for entry in snapshot["device_traces"][0]:
        if entry["action"] == "alloc":
            live[entry["addr"]] = (entry["size"], stack_key(entry["frames"]))
            total += entry["size"]
            if total > most:
                most, at_peak = total, dict(live)
        elif entry["action"] == "free_completed":
            total -= live.pop(entry["addr"])[0]
    sums = collections.Counter()
    for size, stack in at_peak.values():
        sums[stack] += size
    return sums


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

    def test_bytes_by_stack_at_the_peak(self):
        """The folded stacks of `convert` are all that is known of where the peak's bytes come from."""
        expected = collections.Counter()
        for stack, size in bytes_by_stack(self.snapshot).items():
            names = [f"{name} ({file}:{line})" if file else name for name, file, line in reversed(stack) if name or file]
            expected[";".join(name.replace(";", ":") for name in names) or "(no stack)"] += size
        self.ok("convert", self.file, "out.folded")
        found = collections.Counter()
        for line in self.read("out.folded").decode().splitlines():
            names, size = line.rsplit(" ", 1)
            found[names] += int(size)
        self.assertEqual(found, expected)

    def test_bytes_of_the_jobs_own_lines(self):
        """Sites whose innermost own Python frame this finds by itself get the same bytes from `stats`."""
        own = collections.Counter()
        for stack, size in bytes_by_stack(self.snapshot).items():
            for name, file, line in stack:
                if is_python({"filename": file}) and "/site-packages/" not in file:
                    own[file, line, name] += size
                    break
        sites = self.json("stats", self.file)["sites"]
        found = {(s["file"], s["line"], s["function"]): s["bytes"] for s in sites}
        self.assertTrue(own)
        self.assertEqual({key: found.get(key) for key in own}, dict(own))

    def test_the_model_reserves_what_the_real_allocator_did(self):
        segments = sum(segment["total_size"] for segment in self.snapshot["segments"])
        by_name = {a["name"]: a for a in self.json("compare", self.file)["allocators"]}
        self.assertEqual(by_name["as recorded"]["reserved_peak"], segments)
        self.assertAlmostEqual(by_name["torch-native"]["reserved_peak"] / segments, 1, delta=0.02)


if __name__ == "__main__":
    unittest.main()
