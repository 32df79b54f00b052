"""Why this exists: other tools read these plans and this JSON, and scripts branch on these statuses."""

import json
import os
import subprocess
import unittest

import command


class Plan(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.write("a.csv", command.LIFETIMES)

    def test_file(self):
        self.ok("plan", "a.csv", "-o", "a.plan.json")
        plan = json.loads(self.read("a.plan.json"))
        self.assertEqual(plan["slab"], 8)
        self.assertEqual(plan["lower_bound"], 8)
        a, b, c = plan["offsets"]
        self.assertEqual({a, b}, {0, 4})
        self.assertEqual(b, c)
        self.assertEqual(plan["provenance"]["input"], "a.csv")
        self.assertRegex(plan["provenance"]["input_hash"], "^fnv1a-64:[0-9a-f]{16}$")

    def test_json(self):
        result = self.json("plan", "a.csv")
        self.assertEqual(
            list(result), ["buffers", "lower_bound", "slab", "gap", "seconds", "proven_optimal", "kept", "crossings", "solver"]
        )
        self.assertEqual((result["buffers"], result["lower_bound"], result["slab"]), (3, 8, 8))
        self.assertEqual(result["gap"], 0)
        self.assertIs(result["proven_optimal"], True)
        self.assertIsInstance(result["seconds"], float)

    def test_people_are_told_the_next_command(self):
        self.assertIn("next: reprise plan a.csv -o", self.ok("plan", "a.csv").err)
        self.assertIn("next: reprise check a.csv a.plan.json", self.ok("plan", "a.csv", "-o", "a.plan.json").err)
        self.assertNotIn("next:", self.ok("plan", "a.csv", "--json").err)

    def test_events_over_the_whole_stream(self):
        self.write("e.csv", command.EVENTS)
        result = self.json("plan", "e.csv")
        self.assertEqual((result["buffers"], result["lower_bound"]), (3, 150))

    def test_standard_input(self):
        self.assertEqual(self.json("plan", "-", input=command.LIFETIMES.encode())["buffers"], 3)

    def test_plan_to_standard_output_and_nothing_else(self):
        out = self.ok("plan", "a.csv", "-o", "-").out
        self.assertEqual(json.loads(out)["slab"], 8)

    def test_standard_output_is_for_one_thing(self):
        done = self.fails(2, "plan", "a.csv", "--json", "-o", "-", says="--json and -o - are both for standard output; .*file")
        self.assertEqual(done.out, "")

    def test_capacity(self):
        self.assertEqual(self.json("plan", "a.csv", "--capacity", "8")["slab"], 8)
        self.fails(4, "plan", "a.csv", "--capacity", "7", says="8 bytes are needed at least, the capacity is 7")

    def test_what_does_not_fit_leaves_the_old_file(self):
        self.write("old", "precious")
        self.fails(4, "plan", "a.csv", "--capacity", "7", "-o", "old")
        self.assertEqual(self.read("old"), b"precious")

    def test_out_of_time(self):
        # Many buffers that all live at once take longer than no time at all.
        rows = "".join(f"{i},{i},{i + 9000},{1 + i % 977}\n" for i in range(30000))
        self.write("many.csv", "id,lower,upper,size\n" + rows)
        self.fails(5, "plan", "many.csv", "--time-limit", "0.0001ms", says="no placement within 0.0001 ms;")

    def test_solver_by_name(self):
        self.assertEqual(self.json("plan", "a.csv", "--solver", "best-fit")["solver"], "best-fit")
        self.fails(2, "plan", "a.csv", "--solver", "magic", says='no solver "magic"; there are auto, ')

    def test_a_solver_that_is_not_for_so_many_buffers(self):
        rows = "".join(f"{i},{i},{i + 9},{1 + i % 977}\n" for i in range(2001))
        self.write("many.csv", "id,lower,upper,size\n" + rows)
        for limit in ("10s", "1ms"):
            self.fails(2, "plan", "many.csv", "--solver", "exact", "--time-limit", limit,
                       says="many.csv: exact takes 2000 buffers at most, .*; there are 2001; take --solver auto\n")

    def test_streams_shared_apart_or_priced(self):
        self.write("lanes.csv", "id,lower,upper,size,stream\na,0,2,4,0\nb,2,4,4,1\nc,4,6,4,0\n")
        slabs = [self.json("plan", "lanes.csv", "--streams", which)["slab"] for which in ("shared", "apart", "1", "1K")]
        self.assertEqual(slabs, [4, 8, 4, 8])
        for price, row in (("1", r"crossings +2  .*, priced at 1 B each"), ("1K", r"crossings +0  .*, priced at 1.00 KiB each")):
            self.assertRegex(self.ok("plan", "lanes.csv", "--streams", price).out, row)
        self.assertNotIn("crossings", self.ok("plan", "lanes.csv").out)
        self.fails(2, "plan", "lanes.csv", "--streams", "magic", says="magic is neither shared nor apart nor a size")

    def test_more_time_is_not_advised_where_it_is_not_what_ended_the_search(self):
        self.write("ap.csv", "id,lower,upper,size,alignment,lane,offset\na,0,1,3,2,0,\nb,0,1,1,9,1,\np,0,1,3,5,0,7\n")
        done = self.fails(4, "plan", "ap.csv", "--streams", "apart", "--capacity", "11", says="the best takes .*one order only")
        self.assertNotIn("--time-limit", done.err)
        self.write("one.csv", "id,lower,upper,size\na,2,3,1\nb,4,7,4\nc,3,6,2\nd,1,4,4\ne,0,2,5\n")
        alone = ("plan", "one.csv", "--capacity", "9", "--solver", "first-fit-crowd-size", "--time-limit", "1h")
        done = self.fails(4, *alone, says="the best takes 11; this solver has nothing more to try, --solver auto")
        self.assertNotIn("--time-limit", done.err)

    def test_gaps_and_pinned_buffers(self):
        self.write("gaps.csv", "id,lower,upper,size,offset,gaps\na,0,9,4,,2-7\nb,3,6,4,,\nc,0,9,4,4,\n")
        self.assertEqual(self.json("plan", "gaps.csv", "-o", "p.json")["slab"], 4)
        self.assertEqual(json.loads(self.read("p.json"))["offsets"], [0, 0, 4])

    def test_keep_leaves_blocks_where_they_were(self):
        self.write("before.csv", "id,lower,upper,size\nsmall,0,4,10\nlarge,0,4,100\n")
        self.write("old.json", json.dumps({**json.loads(self.plan_of("before.csv")), "offsets": [0, 10]}))
        self.write("after.csv", "id,lower,upper,size\nnew,0,4,7\nsmall,0,4,10\nlarge,0,4,100\n")
        self.assertEqual(self.json("plan", "after.csv", "--keep", "old.json", "-o", "new.json")["kept"], 1)
        self.assertEqual(json.loads(self.read("new.json"))["offsets"], [110, 0, 10])
        self.assertRegex(self.ok("plan", "after.csv", "--keep", "old.json").out, r"kept +100.00 %")
        self.fails(3, "plan", "after.csv", "--keep", "after.csv", says="after.csv")

    def test_a_plan_of_something_else_keeps_nothing(self):
        self.assertIsNone(self.json("plan", "a.csv")["kept"])
        self.write("other.csv", "id,lower,upper,size\na,0,4,77\n")
        self.write("other.json", self.plan_of("other.csv"))
        done = self.ok("plan", "a.csv", "--keep", "other.json", "--json")
        self.assertIsNone(json.loads(done.out)["kept"])
        self.assertIn("other.json: none of its buffers is found again in a.csv", done.err)

    def plan_of(self, name):
        self.json("plan", name, "-o", "plan_of.json")
        return self.read("plan_of.json")

    def test_output_that_cannot_be_written(self):
        self.fails(2, "plan", "a.csv", "-o", "no/such/folder", says="no/such/folder.*No such file")
        self.fails(2, "plan", "a.csv", "-o", "/dev/full", says="/dev/full.*No space left")

    def test_a_failed_write_leaves_the_old_file_and_no_other(self):
        self.write("old", "precious")
        limit = ["sh", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "sh", command.REPRISE]
        done = subprocess.run([*limit, "plan", "a.csv", "-o", "old"], cwd=self.folder, capture_output=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(self.read("old"), b"precious")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.csv", "old"])

    def test_a_link_keeps_pointing_where_it_did(self):
        self.write("target", "old")
        os.symlink("target", self.path("link"))
        self.ok("plan", "a.csv", "-o", "link")
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(json.loads(self.read("target"))["slab"], 8)

    def test_a_link_to_a_file_that_is_not_there_yet(self):
        os.mkdir(self.path("plans"))
        os.symlink("new", self.path("plans/current"))
        os.symlink("plans/current", self.path("link"))
        self.ok("plan", "a.csv", "-o", "link")
        self.assertTrue(os.path.islink(self.path("link")) and os.path.islink(self.path("plans/current")))
        self.assertEqual(json.loads(self.read("plans/new"))["slab"], 8)
        os.symlink("circle", self.path("circle"))
        self.fails(2, "plan", "a.csv", "-o", "circle", says="circle: Too many levels")
        self.assertTrue(os.path.islink(self.path("circle")))


if __name__ == "__main__":
    unittest.main()
