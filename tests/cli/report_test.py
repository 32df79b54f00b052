"""Why this exists: the page is what people keep and hand on, so it must say what the other commands say, hold nothing
but what was meant to leave the house, and be written whole or not at all."""

import base64
import json
import os
import re
import resource
import struct
import subprocess
import unittest
import zlib

import command
import snapshots
import traces
from stats_test import KIB, job

HEAD = re.compile(r'<script type="application/json" id="head">(.*?)</script>', re.DOTALL)
DATA = re.compile(r'<script type="application/octet-stream" id="data">(.*?)</script>', re.DOTALL)


def head_of(page):
    return json.loads(HEAD.search(page).group(1))


def data_of(page):
    """The text and the columns behind the head, read without any of our code."""
    raw = zlib.decompress(base64.b64decode(DATA.search(page).group(1)), -15)
    (length,) = struct.unpack_from("<I", raw)
    text = json.loads(raw[4 : 4 + length])
    first = (4 + length + 7) // 8 * 8
    columns = {}
    for name, column in text["columns"].items():
        form = {"u32": "I", "f64": "d"}[column["type"]]
        columns[name] = struct.unpack_from(f"<{column['count']}{form}", raw, first + column["at"])
    return text, columns


SECRET = "/srv/secret-project/train.py"


def secret_snapshot():
    """One with stacks of its own: a job's file, an installed package's, and a name that tries to end the script."""
    frames = [
        {"name": "at::empty", "filename": "??", "line": 0},
        {"name": "linear", "filename": "/opt/venv/lib/python3.12/site-packages/torch/nn/functional.py", "line": 3},
        {"name": "</script><script>alert(1)</script>", "filename": SECRET, "line": 42},
    ]
    other = [{"name": "optimize", "filename": SECRET, "line": 50}]
    base, mib = snapshots.BASE, snapshots.MIB
    events = []
    for k in range(6):
        entry = snapshots.entry("alloc", base + k * mib, mib)
        entry["frames"] = frames if k % 2 else other
        events.append(entry)
    return snapshots.snapshot([], events)


def job_with_state(rounds):
    """A weight of 256 KiB, and rounds of twelve blocks and a state of 192 KiB, made anew before the last one is freed."""
    rows = ["event,id,bytes,stream", f"alloc,1000000,{256 * KIB},0"]
    for number in range(rounds):
        ids, state = range(20 * number, 20 * number + 12), 20 * number + 12
        rows += [f"alloc,{i},{4 * KIB * (i % 20 + 1)},0" for i in ids]
        rows += [f"alloc,{state},{192 * KIB},0"] + [f"free,{state - 20},,0"] * (number > 0)
        rows += [f"free,{i},,0" for i in ids]
    return "\n".join(rows) + "\n"


class Report(command.CommandTest):
    def page(self, *words, **options):
        self.ok("report", *words, "-o", "out.html", **options)
        return self.read("out.html").decode()

    def test_figures_are_those_of_stats_and_compare(self):
        self.write("job.csv", job(40))
        head = head_of(self.page("job.csv"))
        self.assertEqual(head["stats"], self.json("stats", "job.csv"))
        self.assertEqual(
            sorted(a["name"] for a in head["compare"]["allocators"]),
            sorted(a["name"] for a in self.json("compare", "job.csv")["allocators"]),
        )
        self.assertEqual(
            {a["name"]: a["reserved_peak"] for a in head["compare"]["allocators"]},
            {a["name"]: a["reserved_peak"] for a in self.json("compare", "job.csv")["allocators"]},
        )

    def test_blocks_and_places(self):
        self.write("e.csv", command.EVENTS)
        page = self.page("e.csv")
        _, columns = data_of(page)
        self.assertEqual(columns["start"], (0, 1, 2))  # differences of 0, 1, 3
        self.assertEqual(columns["length"], (2, 3, 2))
        self.assertEqual([columns["kind.bytes"][k] for k in columns["kind"]], [100, 50, 80])
        self.assertEqual(columns["live.most"], (100, 150, 50, 130, 80))
        plan = head_of(page)["layouts"][0]
        self.assertEqual((plan["name"], plan["height"]), ("plan", 150))

    def test_the_plan_of_an_iteration_overlaps_nowhere(self):
        self.write("job.csv", job(40))
        page = self.page("job.csv")
        plan = head_of(page)["plan"]
        _, columns = data_of(page)
        taken = {}
        for start, length, offset, kind in zip(*(columns[f"plan.{c}"] for c in ("start", "length", "offset", "kind"))):
            begin, size = offset * plan["unit"], int(columns["kind.bytes"][kind])
            self.assertLessEqual(begin + size, plan["slab"])
            for tick in range(start, start + length):
                for a, b in taken.setdefault(tick % plan["period"], []):
                    self.assertTrue(b <= begin or begin + size <= a, "two blocks share bytes")
                taken[tick % plan["period"]].append((begin, begin + size))
        self.assertEqual(len(columns["plan.start"]), plan["blocks"])

    def test_what_a_plan_has_at_the_cut_counts_once(self):
        self.write("job.csv", job_with_state(40))
        head = head_of(self.page("job.csv"))
        plan, iteration = head["plan"], head["stats"]["iteration"]
        self.assertEqual(iteration["persistent"], (256 + 192) * KIB)
        self.assertEqual((plan["rounds"], plan["period"]), (2, 2 * iteration["tokens"]))
        self.assertEqual(plan["beside"], 256 * KIB, "the state is in the slab")
        self.assertEqual(plan["slab"] + plan["beside"], iteration["peak"])

    def test_nothing_is_loaded(self):
        self.write("e.csv", command.EVENTS)
        page = self.page("e.csv")
        self.assertIn("default-src 'none'", page)
        self.assertNotRegex(page, r"https?://")
        self.assertNotRegex(page, r"<(link|img|iframe)\b")

    def test_every_kind_of_input(self):
        self.write("a.csv", command.LIFETIMES)
        self.write("s.pickle", snapshots.pickled())
        self.assertIn("in no recorded order", head_of(self.page("a.csv"))["coverage"])
        head = head_of(self.page("s.pickle"))
        self.assertIn("1 of the 5 allocations were live before", head["coverage"])
        self.assertEqual(head["compare"]["allocators"][0]["name"], "as recorded")
        self.assertIn("as recorded", [layout["name"] for layout in head["layouts"]])
        head_of(self.page("-", input=command.EVENTS.encode()))

    def test_names_from_outside_do_not_end_the_script(self):
        self.write("s.pickle", snapshots.pickled(secret_snapshot()))
        page = self.page("s.pickle")
        self.assertNotIn("<script>alert", page)
        labels = [site["label"] for site in head_of(page)["stats"]["sites"]]
        self.assertIn("train.py:42 </script><script>alert(1)</script>", labels)

    def test_redacted(self):
        self.write("s.pickle", snapshots.pickled(secret_snapshot()))
        open_page, page = self.page("s.pickle"), self.page("s.pickle", "--redact")
        def outside(page):  # all that is not the page's own source
            return json.dumps([head_of(page), data_of(page)[0]])

        everything = outside(page)
        for secret in ("secret-project", "train.py", "optimize", "linear", "alert", "s.pickle", "/opt/venv", "torch/nn"):
            self.assertIn(secret, outside(open_page))
            self.assertNotIn(secret, everything)
        plain, redacted = head_of(open_page)["stats"]["sites"], head_of(page)["stats"]["sites"]
        self.assertEqual([site["bytes"] for site in plain], [site["bytes"] for site in redacted])
        self.assertEqual([site["line"] for site in plain], [site["line"] for site in redacted])
        self.assertEqual(len({site["file"] for site in redacted}), 1, "one file has one name")
        self.assertTrue(head_of(page)["provenance"]["redacted"])

    def test_a_summary_that_is_none_is_said_and_left_out(self):
        deep = '{"live_peak":1,"reserved_peak":1,"x":' + "[" * 50000 + "]" * 50000 + "}"
        for content, says in (
            ("not json", "summary.json: is not JSON, or cut short"),
            ("[1]", "summary.json: is not the summary of a process"),
            (deep, "summary.json: is nested more than 100 deep"),
        ):
            os.makedirs(self.path("out"), exist_ok=True)
            self.write("out/trace.reprise", command.EVENTS)
            self.write("out/summary.json", content)
            for words in (["out"], ["out/trace.reprise"], ["out", "--redact"]):
                with self.subTest(says=says, words=words):
                    done = self.fails(3, "report", *words, "-o", "out.html", says=says)
                    self.assertEqual(done.err.count("summary.json"), 1)
                    page = self.read("out.html").decode()
                    self.assertIsNone(head_of(page)["counters"])
                    self.assertEqual([line for line in head_of(page)["left_out"] if "counters" in line],
                                     ["the run's counters: no summary can be read"])
                    self.assertNotIn("is nested", page)

    def test_counters_that_are_not_of_the_end_are_said_to_be_that(self):
        os.mkdir(self.path("out"))
        self.write("out/trace.reprise", command.EVENTS)
        summary = {"live_peak": 150, "reserved_peak": 200, "started": 1795700000, "ended": 1795700060.5}
        for running, lacking in ((True, ["the run's counters after 2026-11-26T13:34:20Z: it was killed since, ended by _exit, or still runs"]),
                                 (False, [])):
            self.write("out/summary.json", json.dumps({**summary, "running": running}))
            done = self.ok("report", "out", "-o", "out.html")
            self.assertEqual([line for line in head_of(self.read("out.html").decode())["left_out"] if "counters" in line], lacking)
            self.assertEqual(done.err.count("reprise: left out: the run's counters"), len(lacking))

    def test_a_summary_of_another_process_is_left_out_and_said(self):
        os.mkdir(self.path("out"))
        own = {"pid": 4711, "run": "aa", "host": "node17"}
        self.write("out/trace.reprise", traces.trace([1 << 20], **own))
        counts = {"live_peak": 3 << 20, "reserved_peak": 4 << 20, "requests": 30}
        for of, taken in ((own, True), ({}, True), ({**own, "run": ""}, True), ({**own, "pid": 4712}, False), ({**own, "run": "bb"}, False),
                          ({**own, "host": "node18"}, False)):
            self.write("out/summary.json", json.dumps({**counts, **of}))
            for words in (["out"], ["out/trace.reprise", "--redact"]):
                with self.subTest(of=of, words=words):
                    done = self.ok("report", *words, "-o", "out.html")
                    head = head_of(self.read("out.html").decode())
                    self.assertEqual(head["counters"] is not None, taken)
                    self.assertEqual("which the trace does not reach" in head["verdict"], taken)
                    self.assertEqual("of the job's 30 allocations" in head["coverage"], taken)
                    left = "the run's counters: the summary beside the trace is of another process"
                    self.assertEqual(left in head["left_out"], not taken)
                    self.assertEqual(f"left out: {left}\n" in done.err, not taken)

    def test_a_summary_beside_the_traces_of_others_is_said_too(self):
        os.mkdir(self.path("out"))
        self.write("out/trace.reprise", command.EVENTS)
        self.write("out/summary.4711.json", "not json")
        self.fails(3, "report", "out", "-o", "out.html", says="out/summary.4711.json: is not JSON")
        self.fails(3, "report", "out", "-o", "out.html", "--capacity", "3MiB", says="is not JSON")

    def test_a_redacted_run_tells_no_command_and_no_host(self):
        os.mkdir(self.path("out"))
        self.write("out/trace.reprise", command.EVENTS)
        peaks = {"live_peak": 150, "reserved_peak": 200}
        self.write("out/summary.json", json.dumps({**peaks, "requests": 30, "host": "node17", "deep": {"path": "/srv/x", "n": 4}}))
        plain = self.page("out")
        self.assertIn("node17", plain)
        self.assertIn("not say what part", head_of(plain)["coverage"], "an event CSV, whatever it is called")
        head = head_of(self.page("out", "--redact"))
        self.assertEqual(head["counters"], {**peaks, "requests": 30, "deep": {"n": 4}})

    def test_a_trace_that_ends_before_the_peak_is_not_taken_for_the_job(self):
        os.mkdir(self.path("out"))
        self.write("out/trace.reprise", traces.trace([1 << 20], end="first plan"))
        peaks = {"live_peak": 3 << 20, "reserved_peak": 4 << 20}
        self.write("out/summary.json", json.dumps({**peaks, "requests": 30}))
        for words in ([], ["--redact"]):
            with self.subTest(words=words):
                head = head_of(self.page("out", *words))
                self.assertRegex(head["verdict"], r"^Peak 3\.00 MiB, which the trace does not reach\. Of the trace: peak 1\.00 MiB; Reprise")
                self.assertIn("1 of the job's 30 allocations (3.33 %): recording ended when the first plan", head["coverage"])
                (note,) = head["notes"]
                self.assertIn("--mode record", note)
                self.assertFalse(head["stats"]["whole"])
        self.write("out/trace.reprise", traces.trace([3 << 20]))
        self.assertRegex(head_of(self.page("out"))["verdict"], r"^Peak 3\.00 MiB; Reprise")

    def test_what_was_recorded_on_the_host_is_not_said_to_reserve_there_what_it_would_on_a_gpu(self):
        for granule, where in ((256 * KIB, "on a GPU, in granules of 2.00 MiB, "), (2048 * KIB, ""), (0, "")):
            self.write("t.reprise", traces.trace([1 << 20], granule=granule))
            self.assertIn(f"Peak 1.00 MiB; {where}Reprise would reserve 2.00 MiB", head_of(self.page("t.reprise"))["verdict"])

    def test_an_allocator_that_found_no_room_has_no_figures(self):
        self.write("e.csv", f"event,id,bytes,stream\nalloc,0,100,0\nalloc,1,{1 << 40},1\n")
        head = head_of(self.page("e.csv"))
        self.assertNotIn("Reprise would reserve", head["verdict"])
        self.assertIn("reprise: found no room even without a limit", head["left_out"])
        shown = [a["name"] for a in head["compare"]["allocators"]]
        shown += [layout["name"] for layout in head["layouts"]] + [m["name"] for m in head["what_if"]["merged"]]
        self.assertIn("torch-native", shown)
        self.assertNotIn("reprise", shown)

    def test_capacity(self):
        self.write("e.csv", command.EVENTS)
        head = head_of(self.page("e.csv", "--capacity", "3MiB"))
        fits = {a["name"]: a["fits"] for a in head["compare"]["allocators"]}
        self.assertEqual((fits["reprise"], fits["torch-native"]), (True, True))
        self.assertEqual(head["compare"]["capacity"], 3 << 20)

    def test_time_limit_leaves_out_and_says_so(self):
        self.write("job.csv", job(40))
        done = self.ok("report", "job.csv", "-o", "out.html", "--time-limit", "0.000001ms")
        self.assertIn("left out: reprise: not finished within", done.err)
        head = head_of(self.read("out.html").decode())
        self.assertTrue(any("reprise" in line for line in head["left_out"]))
        self.assertEqual(head["stats"], self.json("stats", "job.csv"))

    def test_what_fails_is_left_out_for_its_own_reason(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

        if self.reprise("--version", preexec_fn=limited).returncode != 0:
            self.skipTest("a sanitizer needs more addresses than that")
        self.write("e.csv", command.EVENTS)
        done = self.ok("report", "e.csv", "-o", "out.html", preexec_fn=limited)
        self.assertIn("left out: reprise: the system gives no addresses for the arena's tables", done.err)

    def test_where_it_goes(self):
        self.write("e.csv", command.EVENTS)
        self.assertIn("wrote e.html", self.ok("report", "e.csv").err)
        self.assertIn("next: reprise stats e.csv", self.ok("report", "e.csv").err)
        os.mkdir(self.path("out"))
        self.write("out/trace.reprise", command.EVENTS)
        self.ok("report", "out")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["report.html", "trace.reprise"])
        self.fails(2, "report", "e.csv", "-o", "nowhere/x.html", says="nowhere/x.html.*No such file")
        self.assertEqual([f for f in os.listdir(self.folder) if f.endswith(".part")], [])

    def test_what_a_shell_hands_over_open_is_standard_input(self):
        # As `reprise report <(gzip -dc e.csv.gz)` names it: not a place for the page, and no name to read again.
        self.write("e.csv", command.EVENTS)
        for name in ("-", "/dev/stdin", "/dev/fd/0"):
            with open(self.path("e.csv"), "rb") as content:
                done = self.ok("report", name, stdin=content)
            self.assertIn("wrote report.html", done.err)
            self.assertNotIn("next:", done.err)
            os.remove(self.path("report.html"))

    def test_the_hint_names_the_trace_of_a_folder(self):
        os.mkdir(self.path("out"))
        self.write("out/trace.reprise", command.EVENTS)
        self.assertIn("next: reprise stats out/trace.reprise\n", self.ok("report", "out").err)
        self.ok("stats", "out/trace.reprise")

    def test_a_trace_that_is_a_link_to_nothing_is_passed_over(self):
        os.mkdir(self.path("out"))
        os.symlink("gone.reprise", self.path("out/trace.reprise"))
        self.fails(3, "report", "out", says="out: a folder without a trace that can be read")
        self.write("out/trace.4711.reprise", command.EVENTS)
        self.assertIn("next: reprise stats out/trace.4711.reprise\n", self.ok("report", "out").err)

    def test_what_is_there_is_written_to_and_what_lies_beside_stays(self):
        self.write("e.csv", command.EVENTS)
        page = self.ok("report", "e.csv", "-o", "-").out
        self.assertTrue(page.startswith("<!DOCTYPE html>"), page[:80])
        self.assertFalse(os.path.exists(self.path("-")))
        os.mkfifo(self.path("pipe"))
        with subprocess.Popen(["cat", "pipe"], cwd=self.folder, stdout=subprocess.PIPE) as reader:
            self.ok("report", "e.csv", "-o", "pipe")
            self.assertTrue(reader.communicate()[0].startswith(b"<!DOCTYPE html>"))
        self.write("target.html", "old")
        self.write("link.html.part", "precious")
        os.symlink("target.html", self.path("link.html"))
        self.ok("report", "e.csv", "-o", "link.html")
        self.assertTrue(os.path.islink(self.path("link.html")))
        self.assertTrue(self.read("target.html").startswith(b"<!DOCTYPE html>"))
        self.assertEqual(self.read("link.html.part"), b"precious")
        self.fails(2, "report", "e.csv", "-o", "/dev/full", says="/dev/full.*No space left")

    def test_a_time_limit_beyond_all_clocks(self):
        self.write("e.csv", command.EVENTS)
        self.assertNotIn("left out", self.ok("report", "e.csv", "--time-limit", "99999999999999999999h").err)

    def test_a_buffer_with_gaps_is_one_block_to_plan(self):
        gaps = " ".join(f"{k}-{k + 1}" for k in range(1, 13000, 3))
        self.write("l.csv", "id,lower,upper,size,gaps\n" + "".join(f"{k},0,13000,8,{gaps}\n" for k in range(5)))
        done = self.ok("report", "l.csv", "-o", "l.html")
        self.assertNotIn("too many to plan", done.err)
        self.assertEqual([layout["name"] for layout in head_of(self.read("l.html").decode())["layouts"]], ["plan"])

    def test_what_cannot_be_reported(self):
        self.write("none.csv", "event,id,bytes,stream\n")
        self.fails(3, "report", "none.csv", says="not one allocation")
        os.mkdir(self.path("empty"))
        self.fails(3, "report", "empty", says="a folder without a trace")
        self.fails(3, "report", "nowhere.csv", says="nowhere.csv")


if __name__ == "__main__":
    unittest.main()
