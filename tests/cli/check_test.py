"""Why this exists: check is the judge that people trust before they trust a plan. It must be seen to refuse."""

import json
import unittest

import command


class Check(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.write("a.csv", command.LIFETIMES)
        self.ok("plan", "a.csv", "-o", "a.plan.json")

    def change(self, **fields):
        plan = json.loads(self.read("a.plan.json"))
        plan.update(fields)
        return self.write("changed.json", json.dumps(plan))

    def test_valid(self):
        self.assertRegex(self.ok("check", "a.csv", "a.plan.json").out, "^valid: 3 buffers")
        result = self.json("check", "a.csv", "a.plan.json")
        self.assertEqual(list(result), ["valid", "fault", "first_overlap", "buffers", "slab", "lower_bound", "gap",
                                        "stated_lower_bound", "stated_gap"])
        self.assertIs(result["valid"], True)
        self.assertIsNone(result["first_overlap"])

    def test_a_bound_that_only_plan_knew_is_told_beside_its_own(self):
        self.write("streams.csv", "id,lower,upper,size,lane\na,0,4,4,0\nb,4,9,4,1\n")
        planned = self.json("plan", "streams.csv", "--streams", "apart", "-o", "apart.plan.json")
        self.assertEqual((planned["lower_bound"], planned["gap"]), (8, 0))
        done = self.ok("check", "streams.csv", "apart.plan.json")
        self.assertEqual(done.out, "valid: 2 buffers, slab 8 B, lower bound 4 B, gap 100.00 %\n"
                                   "not checked: the plan's own lower bound, 8 B, by which the gap is 0.00 %\n")
        result = self.json("check", "streams.csv", "apart.plan.json")
        self.assertEqual((result["lower_bound"], result["gap"]), (4, 1))
        self.assertEqual((result["stated_lower_bound"], result["stated_gap"]), (8, 0))
        self.assertNotIn("not checked", self.ok("check", "a.csv", "a.plan.json").out)

    def test_events(self):
        self.write("e.csv", command.EVENTS)
        self.ok("plan", "e.csv", "-o", "e.plan.json")
        self.ok("check", "e.csv", "e.plan.json")

    def test_first_overlap_is_named(self):
        changed = self.change(offsets=[0, 0, 4])
        done = self.reprise("check", "a.csv", changed)
        self.assert_status(done, 1)
        self.assertRegex(done.out, "invalid: .*buffer 0 .*buffer 1 ")
        self.assertIn("has the id a", done.out)
        self.assertIn("the id b", done.out)
        result = self.json("check", "a.csv", changed, status=1)
        self.assertIs(result["valid"], False)
        overlap = result["first_overlap"]
        self.assertEqual(sorted((overlap["first"], overlap["second"])), [0, 1])
        self.assertEqual(overlap["tick"], 0)
        self.assertEqual([overlap["first_id"], overlap["second_id"]], ["abc"[overlap[which]] for which in ("first", "second")])

    def test_an_overlap_is_told_only_where_it_is_the_fault(self):
        self.write("aligned.csv", "id,lower,upper,size,alignment\na,0,9,4,1\nb,0,9,4,1\nc,0,9,8,8\n")
        self.ok("plan", "aligned.csv", "-o", "a.plan.json")
        changed = self.change(offsets=[0, 0, 9], slab=17)
        done = self.reprise("check", "aligned.csv", changed)
        self.assert_status(done, 1)
        self.assertRegex(done.out, "^invalid: buffer 2 at offset 9: .*alignment 8\n$")
        self.assertIsNone(self.json("check", "aligned.csv", changed, status=1)["first_overlap"])

    def test_slab_that_is_not_the_height(self):
        self.fails(3, "check", "a.csv", self.change(slab=100, gap=11.5), says="slab.* is 100, but the buffers end at 8")

    def test_plan_for_another_input(self):
        self.write("b.csv", command.LIFETIMES + "d,0,9,4\n")
        self.fails(3, "check", "b.csv", "a.plan.json", says="another input .*it has 3 buffers, this one has 4")
        self.write("b.csv", command.LIFETIMES.replace("c,4,9,4", "c,4,9,5"))
        self.fails(3, "check", "b.csv", "a.plan.json", says="another input .*buffer 2 has 4 bytes")
        self.write("b.csv", command.LIFETIMES.replace("c,4,9,4", "c,3,9,4"))
        self.fails(3, "check", "b.csv", "a.plan.json", says="another input")

    def test_plans_that_are_none(self):
        whole = self.read("a.plan.json")
        for name, content, says in (
            ("empty", b"", "empty"),
            ("truncated", whole[:-30], r"byte \d+"),
            ("corrupted", whole.replace(b":", b"\xff", 1), r"byte \d+"),
            ("other json", b"{}", "field"),
            ("no json", b"id,lower,upper,size\n", r"byte \d+"),
        ):
            with self.subTest(name):
                self.fails(3, "check", "a.csv", self.write("p.json", content), says=f"p.json.*{says}")
        self.fails(3, "check", "a.csv", "nowhere.json", says="nowhere.json.*No such file")

    def test_negative_and_overflowing_offsets(self):
        self.fails(3, "check", "a.csv", self.change(offsets=[-4, 0, 4]), says="offsets")
        self.fails(3, "check", "a.csv", self.change(offsets=[2**64, 0, 4]), says="offsets")
        self.fails(3, "check", "a.csv", self.change(offsets=[2**63 - 1, 0, 4]), says="offsets.*overflows")


if __name__ == "__main__":
    unittest.main()
