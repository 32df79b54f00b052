"""Why this exists: what lies where a command is to write is the user's. It may be the input itself, a log that others
write to, or a file that is protected; none of that is to be lost, whatever the command line says."""

import json
import os
import unittest

import command

INPUT_AND_OUTPUT = "the output and the input .* are the same file; name another output"


class OutputIsAnInput(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.write("a.csv", command.LIFETIMES)
        self.write("e.csv", command.EVENTS)

    def refused(self, name, *words, **options):
        before = self.read(name)
        self.fails(2, *words, says=INPUT_AND_OUTPUT, **options)
        self.assertEqual(self.read(name), before)

    def test_by_any_name(self):
        os.symlink("a.csv", self.path("link"))
        os.link(self.path("a.csv"), self.path("second"))
        for output in ("a.csv", "./a.csv", "link", "second", self.path("a.csv")):
            self.refused("a.csv", "plan", "a.csv", "-o", output)
        self.refused("a.csv", "plan", "link", "-o", "a.csv")
        with open(self.path("a.csv"), "rb") as content:
            self.refused("a.csv", "plan", "-", "-o", "a.csv", stdin=content)

    def test_convert(self):
        self.refused("e.csv", "convert", "e.csv", "e.csv", "--to", "lifetimes")

    def test_report(self):
        self.refused("e.csv", "report", "e.csv", "-o", "e.csv")
        self.write("e.html", command.EVENTS)
        self.refused("e.html", "report", "e.html")

    def test_report_on_a_folder(self):
        os.mkdir(self.path("out"))
        self.write("out/trace.reprise", command.EVENTS)
        self.write("out/summary.json", "{}")
        for name in ("out/trace.reprise", "out/summary.json"):
            self.refused(name, "report", "out", "-o", name)

    def test_report_on_ranks(self):
        os.mkdir(self.path("out"))
        for rank in range(2):
            self.write(f"out/trace.rank{rank}.reprise", command.EVENTS)
        self.refused("out/trace.rank1.reprise", "report", "out", "-o", "out/trace.rank1.reprise")

    def test_one_of_several_inputs_of_plan(self):
        os.mkdir(self.path("in"))
        self.write("in/a.csv", command.LIFETIMES)
        self.write("in/a.plan.json", command.LIFETIMES)
        self.refused("in/a.plan.json", "plan", "in/a.csv", "in/a.plan.json", "-o", "in")

    def test_a_plan_may_follow_itself(self):
        self.ok("plan", "a.csv", "-o", "p.json")
        self.ok("plan", "a.csv", "--keep", "p.json", "-o", "p.json")

    def test_what_holds_nothing_may_be_both(self):
        self.fails(3, "plan", "/dev/null", "-o", "/dev/null", says="empty")


if __name__ == "__main__":
    unittest.main()
