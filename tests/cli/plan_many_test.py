"""Why this exists: tasks of an array plan each its part of many inputs, and who gathers must get every plan, none of
them made twice, whatever became of a task."""

import json
import os
import unittest

import command


class PlanMany(command.CommandTest):
    def setUp(self):
        super().setUp()
        for name in ("a", "b/x", "b/y", "c/x", "d"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.write(f"{name}.csv", command.LIFETIMES)
        self.inputs = ["a.csv", "b/x.csv", "b/y.csv", "c/x.csv", "d.csv"]

    def task(self, number, first=0, last=1, step=1):
        return {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_MIN": str(first), "SLURM_ARRAY_TASK_MAX": str(last),
                "SLURM_ARRAY_TASK_COUNT": str((last - first) // step + 1), "SLURM_ARRAY_TASK_STEP": str(step)}

    def plans(self):
        return sorted(os.listdir(self.path("plans")))

    def test_a_plan_of_each(self):
        done = self.ok("plan", *self.inputs, "-o", "plans")
        self.assertEqual(self.plans(), ["a.plan.json", "b-x.plan.json", "b-y.plan.json", "c-x.plan.json", "d.plan.json"])
        self.assertEqual(len(done.out.splitlines()), 6)
        self.assertIn("next: reprise check a.csv plans/a.plan.json", done.err)
        for name, plan in zip(self.inputs, self.plans()):
            self.ok("check", name, f"plans/{plan}")

    def test_of_one_input_where_the_folder_is_there(self):
        # Who gathers in a script names as many as there are.
        os.mkdir(self.path("plans"))
        self.assertFalse(self.json("plan", "b/x.csv", "-o", "plans")["plans"][0]["was_there"])
        self.assertEqual(self.plans(), ["x.plan.json"])
        self.assertTrue(self.json("plan", "b/x.csv", "-o", "plans")["plans"][0]["was_there"])
        self.fails(2, "plan", "a.csv", "-o", "plans", "--keep", "plans/x.plan.json", says="its plan in a file")
        self.fails(2, "plan", "-", "-o", "plans", says="nor has it a name", input=b"")

    def test_the_rows_are_those_of_single_inputs(self):
        self.write("d.csv", "id,lower,upper,size,lane\na,0,4,7,0\nb,4,9,7,1\n")
        self.assertEqual(self.json("plan", "d.csv", "--streams", "1")["crossings"], 1)
        many = self.json("plan", *self.inputs, "--streams", "1")["plans"]
        for name, row in zip(self.inputs, many):
            alone = self.json("plan", name, "--streams", "1")
            same = ("buffers", "lower_bound", "slab", "gap", "proven_optimal", "crossings", "solver")
            self.assertEqual({key: alone[key] for key in same}, {key: row[key] for key in same})
            self.assertEqual((row["input"], row["plan"], row["was_there"]), (name, "", False))

    def test_a_plan_that_was_there_has_its_crossings_counted(self):
        self.write("d.csv", "id,lower,upper,size,lane\na,0,4,7,0\nb,4,9,7,1\n")
        words = ("plan", "a.csv", "d.csv", "-o", "plans", "--streams")
        self.ok(*words, "1")
        rows = self.json(*words, "1")["plans"]
        self.assertEqual([(row["was_there"], row["crossings"], row["proven_optimal"]) for row in rows],
                         [(True, 0, True), (True, 1, False)])
        self.assertIs(self.json(*words, "shared")["plans"][1]["proven_optimal"], True)

    def test_tasks_of_an_array_and_who_gathers(self):
        words = ("plan", *self.inputs, "-o", "plans")
        first = self.json(*words, "--array", env=self.task(3, 3, 7, 4))["plans"]
        self.assertEqual([row["input"] for row in first], ["a.csv", "b/y.csv", "d.csv"])
        self.assertEqual(self.plans(), ["a.plan.json", "b-y.plan.json", "d.plan.json"])
        # The other task died. Whoever gathers makes what is missing, and nothing else.
        before = {name: os.stat(self.path(f"plans/{name}")).st_mtime_ns for name in self.plans()}
        rows = self.json(*words)["plans"]
        self.assertEqual([row["was_there"] for row in rows], [True, False, True, False, True])
        self.assertEqual([row["slab"] for row in rows], [8] * 5)
        for name, time in before.items():
            self.assertEqual(os.stat(self.path(f"plans/{name}")).st_mtime_ns, time)
        self.assertEqual(self.json(*words, "--array", env=self.task(1))["plans"][0]["input"], "b/x.csv")

    def test_the_bound_of_a_plan_that_was_there_is_of_what_is_asked_now(self):
        for name in ("a.csv", "d.csv"):
            self.write(name, "id,lower,upper,size,lane\na,0,5,100,0\nb,5,9,100,1\n")
        words = ("plan", "a.csv", "d.csv", "-o", "plans")
        apart = self.json(*words, "--streams", "apart")["plans"]
        self.assertEqual([(row["lower_bound"], row["slab"]) for row in apart], [(200, 200)] * 2)
        again = self.json(*words, "--streams", "apart")["plans"]
        self.assertEqual([(row["was_there"], row["lower_bound"], row["proven_optimal"]) for row in again], [(True, 200, True)] * 2)
        for row in self.json(*words)["plans"]:
            self.assertTrue(row["was_there"])
            checked = self.json("check", row["input"], row["plan"])
            self.assertEqual((row["lower_bound"], row["slab"]), (100, 200))
            self.assertEqual((row["lower_bound"], row["gap"]), (checked["lower_bound"], checked["gap"]))

    def test_a_plan_of_pinned_buffers_alone_was_not_there_before(self):
        for name in ("a.csv", "d.csv"):
            self.write(name, "id,lower,upper,size,offset\na,0,5,10,0\n")
        rows = self.json("plan", "a.csv", "d.csv", "-o", "plans", "--streams", "apart")["plans"]
        self.assertEqual([row["was_there"] for row in rows], [False, False])

    def test_a_plan_that_is_not_good_is_made_again(self):
        self.ok("plan", *self.inputs, "-o", "plans")
        self.write("plans/a.plan.json", "no plan")
        self.write("d.csv", "id,lower,upper,size\na,0,9,5\n")
        plan = json.loads(self.read("plans/b-x.plan.json"))
        self.write("plans/b-x.plan.json", json.dumps({**plan, "offsets": [0, 0, 0]}))
        rows = self.json("plan", *self.inputs, "-o", "plans")["plans"]
        self.assertEqual([row["was_there"] for row in rows], [False, False, True, True, False])
        self.ok("check", "d.csv", "plans/d.plan.json")

    def test_more_tasks_than_inputs(self):
        self.assertEqual(self.json("plan", "a.csv", "-o", "plans", "--array", env=self.task(5, 0, 9))["plans"], [])

    def test_one_that_fails_does_not_stop_the_others(self):
        self.write("b/x.csv", "id,lower,upper,size\na,0,9,400\n")
        self.write("c/x.csv", "no input")
        done = self.fails(4, "plan", *self.inputs, "-o", "plans", "--capacity", "100", says="c/x.csv")
        self.assertIn("400 bytes are needed at least", done.err)
        self.assertEqual(self.plans(), ["a.plan.json", "b-y.plan.json", "d.plan.json"])

    def test_the_json_has_a_row_of_each_that_fails(self):
        self.write("a.csv", "no input")
        self.write("b/x.csv", "id,lower,upper,size\na,0,9,400\n")
        rows = self.json("plan", *self.inputs, "-o", "plans", "--capacity", "100", status=4)["plans"]
        self.assertEqual([row["input"] for row in rows], self.inputs)
        self.assertEqual([row["status"] for row in rows], [3, 4, 0, 0, 0])
        self.assertEqual(list(rows[0]), ["input", "status", "error"])
        self.assertRegex(rows[0]["error"], "^a.csv:1: ")
        self.assertRegex(rows[1]["error"], "^does not fit: 400 bytes are needed")
        self.assertEqual((rows[1]["slab"], rows[1]["plan"]), (400, ""))
        self.assertNotIn("error", rows[2])

    def test_usage(self):
        self.fails(2, "plan", "a.csv", "--array", says="no task of a Slurm array")
        self.fails(2, "plan", "a.csv", "--array", env={**self.task(1, 1, 9), "SLURM_ARRAY_TASK_COUNT": "3"}, says="evenly")
        self.fails(2, "plan", *self.inputs, "-o", "-", says="to a folder")
        self.fails(2, "plan", "a.csv", "-", says="standard input")
        self.fails(2, "plan", *self.inputs, "--keep", "a.csv", says="for one input")
        self.fails(2, "plan", *self.inputs, "-o", "a.csv/x", says="cannot make the folder")
        self.write("b-x.csv", command.LIFETIMES)
        self.fails(2, "plan", "b/x.csv", "b-x.csv", "-o", "plans", says="two of the inputs .* plans/b-x.plan.json")


if __name__ == "__main__":
    unittest.main()
