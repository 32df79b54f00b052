"""Why this exists: whoever reads a job's summaries side by side takes a live peak for what the job needs, and a name for its
name. Real ranks are in tests/cluster; here are summaries as they may be found."""

import json
import os
import unittest

import command
import report_test
import traces


class Merge(command.CommandTest):
    def summary(self, rank, **more):
        fields = {"live_peak": 100 << 20, "reserved_peak": 100 << 20, "rank": rank, "world_size": 2, "launcher": "torchrun"}
        self.write(f"summary.rank{rank}.json", json.dumps({**fields, **more}))

    def test_a_peak_that_leaves_requests_out(self):
        self.summary(0)
        self.summary(1, passed=12)
        self.assertIn("\n  left to the real allocator, and not in the peaks: 12 requests of rank 1\n", self.ok("merge", ".").out)
        (job,) = self.json("merge", ".")["jobs"]
        self.assertEqual([rank["not_in_peaks"] for rank in job["ranks"]], [0, 12])
        self.summary(1)
        self.assertNotIn("left to the real allocator", self.ok("merge", ".").out)

    def test_one_rank_alone_that_holds_anything(self):
        """It is no multiple of what the others hold, and not their equal either."""
        for rank, peak in enumerate((0, 10 << 30, 0)):
            self.summary(rank, live_peak=peak, reserved_peak=peak, world_size=3, host="node")
        self.assertIn("\n  largest live peak: rank 1 on node, 10.00 GiB, above the median of 0 B\n", self.ok("merge", ".").out)
        self.assertIsNone(self.json("merge", ".")["jobs"][0]["largest_over_median"])
        self.ok("report", ".", "-o", "page.html")
        (job,) = report_test.head_of(self.read("page.html").decode())["jobs"]
        self.assertIn("Rank 1 on node stands out: 10.00 GiB, above the median of 0 B", job["verdict"])

    def test_why_plans_were_not_used_is_said_once_for_all_ranks(self):
        for rank in range(40):
            self.summary(rank, world_size=40, plans_refused="of another job" if rank else "damaged")
        said = self.ok("merge", ".").out
        self.assertRegex(said, r"\n  rank 1, 2, 3, .*, 39: plans found, and not used: of another job\n")
        self.assertIn("\n  rank 0: plans found, and not used: damaged\n", said)

    def test_what_is_not_there_is_no_folder_to_go_on_with(self):
        self.summary(0, world_size=1)
        self.write("trace.rank0.reprise", traces.trace([1 << 20]))
        done = self.fails(3, "merge", ".", "w/nope", "nope", says="nope")
        self.assertTrue(done.err.endswith("reprise: next: reprise report .\n"), done.err)

    def test_a_folder_that_may_not_be_read_is_not_one_without_summaries(self):
        os.mkdir(self.path("closed"), 0o000)
        for words in (("merge", "closed"), ("report", "closed")):
            done = self.fails(3, *words, says="\\Areprise: closed: Permission denied\n", preexec_fn=command.bound_by_modes)
            self.assertEqual(done.err.count("\n"), 1, done.err)

    def test_only_a_report_that_can_be_made_is_next(self):
        self.summary(0, world_size=1, launcher="")
        self.assertNotIn("next:", self.ok("merge", ".").err)
        self.fails(3, "report", ".")
        self.write("trace.rank0.reprise", traces.trace([1 << 20]))
        self.assertIn("next: reprise report .\n", self.ok("merge", ".").err)
        self.ok("report", ".", "-o", "page.html")
        os.mkdir(self.path("deep"))
        self.write("deep/summary.json", json.dumps({"live_peak": 1, "reserved_peak": 1}))
        self.assertNotIn("next:", self.reprise("merge", ".", "deep").err)
        self.fails(3, "report", ".", "deep", says="no ranks in them")
        self.fails(3, "report", ".", "nosuch", says="nosuch: cannot be opened: No such file or directory")

    def test_a_field_that_is_wrong_is_named(self):
        self.summary(0, live_peak=-1)
        self.fails(3, "merge", ".", says="summary.rank0.json: the file's field \"live_peak\" is not a whole number from 0 to")
        self.summary(0, devices=[{"live_peak": "1"}])
        self.fails(3, "merge", ".", says="summary.rank0.json: a device's field \"live_peak\" is not a whole number")

    def test_a_summary_that_names_no_job(self):
        self.summary(0, job="0", step="0")
        self.summary(1)
        self.assertRegex(self.ok("merge", ".").out, r"\Athe job: summaries of 2 of 2 ranks\n")
        for rank in (0, 1):
            self.summary(rank, job="17")
        self.assertRegex(self.ok("merge", ".").out, r"\Ajob 17: summaries of 2 of 2 ranks\n")


if __name__ == "__main__":
    unittest.main()
