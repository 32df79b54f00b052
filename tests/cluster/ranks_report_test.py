"""Why this exists: one page has to say which rank is unlike the others and what it holds more of, from whatever the
ranks had time to leave."""

import glob
import os
import shutil
import sys
import textwrap
import unittest

import command
import traces
from by_hand import UNEVEN, RanksByHand
from report_test import data_of, head_of


class RanksReport(RanksByHand):
    def page(self, *words, status=0):
        self.assert_status(self.reprise("report", *words, "-o", "page.html"), status)
        return self.read("page.html").decode()

    def test_the_outlier_and_its_line(self):
        self.record("out", [0, 0, 4, 0])
        page = self.page("out")
        head = head_of(page)
        self.assertEqual(head["merge"], self.merge("out"))
        (job,) = head["jobs"]
        self.assertEqual((job["by"], [trace["rank"] for trace in job["traces"]]), ("site", [0, 1, 2, 3]))
        padding, weights = job["rows"][:2]
        self.assertRegex(padding["label"], r"uneven.py:\d+ .*padding|uneven.py:\d+ ")
        self.assertEqual((padding["least"], padding["median"], padding["most"], padding["most_rank"]), (0, 0, 4 << 20, 2))
        self.assertEqual((weights["least"], weights["most"]), (8 << 20, 8 << 20))
        columns = data_of(page)[1]
        self.assertEqual(columns[padding["column"]], (0, 0, 4 << 20, 0))
        self.assertRegex(job["verdict"], r"Rank 2 on .* stands out: 12.\d+ MiB, 1.5\d times the median of 8.\d+ MiB; "
                                         r"most above the median in its trace: 4.00 MiB at uneven.py")

    def test_the_rows_are_those_of_stats(self):
        self.record("out", [1, 0])
        job = head_of(self.page("out"))["jobs"][0]
        for trace in job["traces"]:
            stats = self.json("stats", trace["file"])
            self.assertEqual(trace["live_peak"], stats["live_peak"])
            held = {site["label"]: site["bytes"] for site in stats["sites"]}
            columns = data_of(self.read("page.html").decode())[1]
            rows = {row["label"]: columns[row["column"]][trace["column"]] for row in job["rows"]}
            self.assertEqual({label: count for label, count in rows.items() if count}, held)

    def test_lines_of_files_with_one_name_are_told_apart(self):
        """By their folders, as stats does: together they would be one line, with the bytes of both."""
        script = textwrap.dedent("""
            import ctypes
            libc = ctypes.CDLL(None)
            libc.aligned_alloc.restype = ctypes.c_void_p
            libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
            libc.aligned_alloc(64, 8192)  # the first of a process has no line
            for folder in ("here", "there"):
                exec(compile("libc.aligned_alloc(64, 1 << 20)", f"/job/{folder}/model.py", "exec"))
            """)
        run = (command.REPRISE, "run", "--host", "--mode", "record", "--stacks", "python", "--out", "out", "--")
        self.end([self.start(rank, 2, *run, sys.executable, "-c", script) for rank in (0, 1)])
        (job,) = head_of(self.page("out"))["jobs"]
        most = {row["label"]: row["most"] for row in job["rows"]}
        stats = self.json("stats", job["traces"][0]["file"])
        self.assertEqual(most, {site["label"]: site["bytes"] for site in stats["sites"]})
        self.assertEqual(most["here/model.py:1 <module>"], 1 << 20)

    def test_without_stacks_by_size(self):
        self.record("out", [0, 1], stacks="off")
        (job,) = head_of(self.page("out"))["jobs"]
        self.assertEqual(job["by"], "size")
        self.assertEqual((job["rows"][0]["label"], job["rows"][0]["most"]), (f"blocks of {1 << 19} B", 1 << 20))

    def test_nobody_stands_out(self):
        self.record("out", [0, 0])
        self.assertIn("No rank stands out", head_of(self.page("out"))["jobs"][0]["verdict"])

    def test_a_rank_without_a_summary_is_known_by_its_trace(self):
        self.record("out", [0, 0, 2])
        os.remove(self.path("out/summary.rank2.json"))
        head = head_of(self.page("out"))
        self.assertEqual(head["merge"]["jobs"][0]["missing"], [2])
        self.assertEqual([trace["rank"] for trace in head["jobs"][0]["traces"]], [0, 1, 2])
        self.assertEqual(head["jobs"][0]["rows"][0]["most_rank"], 2)

    def test_it_is_so_where_each_rank_or_host_has_a_folder(self):
        run = (command.REPRISE, "run", "--host", "--mode", "record", "--out")
        for out, folders in (("%j/%r", ("9/0", "9/1", "9/2")), ("%j/$HOST", ("9/a", "9/a", "9/b"))):
            self.end([self.start(rank, 3, *run, out.replace("$HOST", folder[-1]), "--", *UNEVEN, str(rank), "1",
                                 SLURM_JOB_ID="9") for rank, folder in enumerate(folders)])
            for missing in ([2], [0, 1, 2]):
                for folder in {folders[rank] for rank in missing}:
                    for summary in glob.glob(self.path(f"{folder}/summary*")):
                        os.remove(summary)
                head = head_of(self.page("9"))
                (job,) = head["merge"]["jobs"]
                self.assertEqual((job["job"], job["world_size"], job["missing"]), ("9", 3, missing))
                self.assertEqual([trace["rank"] for trace in head["jobs"][0]["traces"]], [0, 1, 2])
            shutil.rmtree(self.path("9"))

    def test_a_trace_alone_is_of_its_own_step(self):
        run = (command.REPRISE, "run", "--host", "--mode", "record", "--stacks", "python", "--out", "out", "--", *UNEVEN)
        job = {"SLURM_JOB_ID": "9"}
        self.end([self.start(0, 2, *run, "0", "1", SLURM_STEP_ID="0", **job)])
        self.end([self.start(rank, 2, *run, "3", "1", SLURM_STEP_ID="1", **job) for rank in (0, 1)])
        os.remove(self.path("out/summary.rank1.json"))
        head = head_of(self.page("out"))
        steps = [(job["step"], job["missing"]) for job in head["merge"]["jobs"]]
        self.assertEqual(steps, [("0", [1]), ("1", [1])])
        self.assertEqual([[trace["rank"] for trace in job["traces"]] for job in head["jobs"]], [[0], [0, 1]])

    def test_traces_alone(self):
        self.record("out", [0, 3])
        for rank in (0, 1):
            os.remove(self.path(f"out/summary.rank{rank}.json"))
        head = head_of(self.page("out"))
        self.assertEqual(head["merge"]["jobs"][0]["missing"], [0, 1])
        self.assertEqual(head["jobs"][0]["rows"][0]["most"], 3 << 20)

    def test_traces_alone_beside_what_has_summaries(self):
        """A step, and a start of a step, that were over before any rank had left one, in the folder of those that came."""
        run = (command.REPRISE, "run", "--host", "--mode", "record", "--out", "out", "--", *UNEVEN, "0", "1")
        for step, variables in (("0", {}), ("1", {}), ("1", {"SLURM_RESTART_COUNT": "1"})):
            self.end([self.start(rank, 3, *run, SLURM_JOB_ID="9", SLURM_STEP_ID=step, **variables) for rank in (0, 1)])
            if not variables:
                for summary in glob.glob(self.path("out/summary.*")):
                    os.remove(summary)
        head = head_of(self.page("out"))
        self.assertEqual([(job["step"], job["restart"], len(job["ranks"]), job["missing"]) for job in head["merge"]["jobs"]],
                         [("1", 1, 2, [2]), ("0", 0, 0, [0, 1, 2]), ("1", 0, 0, [0, 1, 2])])
        self.assertEqual([[trace["rank"] for trace in job["traces"]] for job in head["jobs"]], [[0, 1]] * 3)

    def test_traces_alone_beside_the_summary_of_what_started_them(self):
        self.record("out", [0, 3])
        for rank in (0, 1):
            os.remove(self.path(f"out/summary.rank{rank}.json"))
        self.ok("run", "--host", "--mode", "record", "--out", "out", "--", *UNEVEN, "0", "1")
        head = head_of(self.page("out"))
        self.assertEqual([job["missing"] for job in head["merge"]["jobs"]], [[], [0, 1]])
        self.assertEqual([[trace["rank"] for trace in job["traces"]] for job in head["jobs"]], [[0], [0, 1]])

    def test_a_name_with_a_number_that_no_rank_has_is_no_rank(self):
        os.mkdir(self.path("out"))
        for rank in (0, 1, (1 << 31) - 1):
            self.write(f"out/trace.rank{rank}.reprise", traces.trace([1 << 20]))
        head = head_of(self.page("out"))
        self.assertEqual([job["world_size"] for job in head["merge"]["jobs"]], [2])
        self.assertIn("summaries of 0 of 2 ranks", head["jobs"][0]["verdict"])

    def test_what_cannot_be_read_is_named_and_the_rest_shown(self):
        self.record("out", [0, 0, 0])
        trace = self.read("out/trace.rank0.reprise")
        self.write("out/trace.rank0.reprise", trace[: len(trace) // 2])
        self.write("out/trace.rank1.reprise", b"no trace at all")
        self.write("out/summary.rank2.json", "{")
        head = head_of(self.page("out", status=3))
        self.assertEqual(len(head["merge"]["errors"]), 1)
        notes = "\n".join(head["jobs"][0]["notes"])
        self.assertIn("trace.rank1.reprise", notes)
        self.assertIn("1 of 1 traces are not whole: recording was not finished", notes)

    def test_a_trace_that_cannot_be_read_is_said_and_is_the_status(self):
        self.record("out", [0, 0])
        self.write("out/trace.rank1.reprise", b"no trace at all")
        for more in ([], ["--redact"]):
            done = self.fails(3, "report", "out", "-o", "page.html", *more, says="out/trace.rank1.reprise: byte 0: not a")
            self.assertIn("wrote page.html", done.err)

    def test_a_trace_that_ended_early_makes_no_outlier_of_the_others_unsaid(self):
        self.record("out", [0, 0, 4, 0])
        for rank in (0, 1, 2, 3):
            self.write(f"out/trace.rank{rank}.reprise",
                       traces.trace([1 << 20] * (8 if rank == 2 else 1), end="closed" if rank == 2 else "size limit",
                                    rank=rank, world_size=4))
        (job,) = head_of(self.page("out"))["jobs"]
        said = "3 of 4 traces are not whole: recording stopped at its size limit"
        self.assertRegex(job["verdict"], rf"most above the median in its trace: .* \({said}\)")
        self.assertIn(said, job["notes"][0])
        self.assertEqual([trace["why_not_whole"] for trace in job["traces"]],
                         ["recording stopped at its size limit"] * 2 + ["", "recording stopped at its size limit"])

    def test_several_folders_and_jobs(self):
        self.record("a", [0, 0])
        shutil.copytree(self.path("a"), self.path("b"))
        os.remove(self.path("a/summary.rank1.json"))
        os.remove(self.path("a/trace.rank1.reprise"))
        os.remove(self.path("b/summary.rank0.json"))
        os.remove(self.path("b/trace.rank0.reprise"))
        self.assertEqual(len(head_of(self.page("a", "b"))["merge"]["jobs"][0]["ranks"]), 2)
        done = self.ok("report", "a", "b")
        self.assertIn("wrote a/report.html", done.err)
        self.write("e.csv", command.EVENTS)
        self.fails(3, "report", "e.csv", "e.csv", says="no ranks in them")

    def test_by_folder_by_summaries_and_by_traces_it_is_the_same(self):
        self.record("out", [0, 2, 0])
        shutil.copyfile(self.path("out/trace.rank1.reprise"), self.path("out/trace-device1.rank1.reprise"))
        summaries = [f"out/summary.rank{rank}.json" for rank in range(3)]
        traces = [f"out/trace.rank{rank}.reprise" for rank in range(3)]
        (by_folder,) = head_of(self.page("out"))["jobs"]
        self.assertEqual(by_folder["rows"][0]["most"], 16 << 20, "the weights on two devices")
        for named in (summaries, traces, summaries + traces, ["out", *traces], [*traces, "./out/trace.rank1.reprise"],
                      ["out/trace-device1.rank1.reprise", *traces]):
            with self.subTest(named=named):
                head = head_of(self.page(*named))
                same = ("rows", "traces", "verdict", "notes")
                self.assertEqual([head["jobs"][0][name] for name in same], [by_folder[name] for name in same])
                self.assertEqual(head["merge"]["jobs"][0]["missing"], [])

    def test_what_comes_next_is_a_command_that_works(self):
        self.record("out", [0, 1])
        traces = [f"out/trace.rank{rank}.reprise" for rank in (0, 1)]
        self.assertIn(f"next: reprise merge {' '.join(traces)}\n", self.ok("report", *traces).err)
        self.merge(*traces)
        for rank in (0, 1):
            os.remove(self.path(f"out/summary.rank{rank}.json"))
        self.assertIn(f"next: reprise stats {traces[0]}\n", self.ok("report", *traces).err)
        self.assertIn(f"next: reprise stats {traces[0]}\n", self.ok("report", "out").err)

    def test_of_one_trace_the_page_is_that_of_one(self):
        self.record("out", [0, 0])
        self.assertIn("blocks", head_of(self.page("out/trace.rank1.reprise")))

    def test_capacity_and_time(self):
        self.record("out", [0, 60])
        head = head_of(self.page("out", "--capacity", "32MiB", "--time-limit", "0.000001ms"))
        self.assertIn("1 of them reserved more than 32.00 MiB", head["jobs"][0]["verdict"])
        self.assertEqual(head["jobs"][0]["notes"], ["ranks' traces not read, for want of time: 2"])

    def test_redacted(self):
        self.record("out", [0, 4])
        plain, page = self.page("out"), self.page("out", "--redact")
        host = os.uname().nodename
        self.assertIn("uneven.py", plain)
        everything = str([head_of(page), data_of(page)[0]])
        for secret in ("uneven", "padding", "weights", f'"{host}"', f"'{host}'", "out/", ".json", ".reprise"):
            self.assertNotIn(secret, everything)
        rows = [[row[name] for name in ("least", "median", "most", "most_rank")] for row in head_of(plain)["jobs"][0]["rows"]]
        self.assertEqual(rows, [[row[name] for name in ("least", "median", "most", "most_rank")]
                                for row in head_of(page)["jobs"][0]["rows"]])
        self.assertIn("host-1", head_of(page)["jobs"][0]["verdict"])

    def test_run_around_a_launcher_writes_it(self):
        launcher = f"for r in 0 1; do RANK=$r WORLD_SIZE=2 {' '.join(UNEVEN)} $((2 * r)) & done; wait"
        done = self.ok("run", "--host", "--mode", "record", "--stacks", "python", "--report", "--", "sh", "-c", launcher)
        self.assertIn("wrote reprise-out/report.html", done.err)
        head = head_of(self.read("reprise-out/report.html").decode())
        self.assertEqual([rank["rank"] for rank in head["merge"]["jobs"][0]["ranks"]], [0, 1])
        said = self.end([self.start(0, 2, command.REPRISE, "run", "--host", "--report", "--out", "o", "--", *UNEVEN, "0")])
        self.assertIn("next: reprise report o\n", said[0])


if __name__ == "__main__":
    unittest.main()
