"""Why this exists: who reads --json in a script cannot guess what a field means, in what unit it is and when it is null. Each
field that a command prints stands in the table of the command's page, by its path: `allocators[].fits`."""

import json
import os
import re
import sys
import unittest

import command

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(ROOT, "scripts/command-pages.d"))
import inputs


def paths(value, path=""):
    """Of all fields: a list's elements are at `path[]`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            here = f"{path}.{key}" if path else key
            yield here
            yield from paths(inner, here)
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{path}[]")


def undocumented(printed, page):
    """Fields that the page's table does not name. There `….x` is the field x of any list above it."""
    table = page.split("\n## JSON\n")[1].split("\n## ")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)}
    # A field whose inner ones stand there need not stand there itself.
    named |= {name[:i] for name in named for i, sign in enumerate(name) if sign in ".["}
    anywhere = tuple(name[1:] for name in named if name.startswith("….")) or ("no field ends so",)
    return sorted(path for path in set(paths(printed)) if path not in named and not path.endswith(anywhere))


class JsonPages(command.CommandTest):
    def setUp(self):
        super().setUp()
        inputs.write(self.folder, os.path.realpath(command.REPRISE), os.path.realpath(sys.executable))

    def assert_on_page(self, name, *words, status=0):
        done = self.reprise(name, *words, "--json")
        self.assert_status(done, status)
        with open(os.path.join(ROOT, "docs/commands", f"{name}.md"), encoding="utf-8") as text:
            self.assertEqual(undocumented(json.loads(done.out), text.read()), [], f"not in the table of {name}.md")

    def test_stats(self):
        self.assert_on_page("stats", "batch8.pickle")
        self.assert_on_page("stats", "lifetimes.csv")

    def test_compare(self):
        self.assert_on_page("compare", "job.csv", "--capacity", "100MiB", status=4)

    def test_fit(self):
        self.assert_on_page("fit", "batch16.pickle@16", "batch32.pickle@32", "--capacity", "1GiB")

    def test_diff(self):
        self.assert_on_page("diff", "before.pickle", "after.pickle")
        self.assert_on_page("diff", "job.csv", "after.pickle")

    def test_plan_and_check(self):
        self.assert_on_page("plan", "lifetimes.csv", "-o", "a.plan.json")
        self.assert_on_page("check", "lifetimes.csv", "a.plan.json")
        plan = json.loads(self.read("a.plan.json"))
        plan["offsets"][1] = plan["offsets"][0]
        self.write("bad.plan.json", json.dumps(plan))
        self.assert_on_page("check", "lifetimes.csv", "bad.plan.json", status=1)
        self.assert_on_page("plan", "lifetimes.csv", "job.csv", "none.csv", "-o", "plans", status=3)

    def test_simulate(self):
        self.assert_on_page("simulate", "job.csv")

    def test_merge(self):
        summary = {"live_peak": 2, "reserved_peak": 2, "launcher": "torchrun", "world_size": 1, "in_host_peak": 1}
        self.write("summary.rank0.json", json.dumps(summary))
        self.write("summary.rank0.2.json", json.dumps({**summary, "live_peak": 1}))
        self.assert_on_page("merge", ".")

    def test_doctor(self):
        done = self.reprise("doctor", "--json")
        self.assert_on_page("doctor", status=done.returncode)

    def test_what_is_not_on_a_page(self):
        page = "# a\n\n## JSON\n\n| field |\n|---|\n| `a[].b`, `….c` | of `d` |\n\n## Flags\n\n| `e` |\n"
        self.assertEqual(undocumented({"a": [{"b": 1}], "x": [{"c": 2}], "d": 3, "e": 4}, page), ["d", "e", "x"])


if __name__ == "__main__":
    unittest.main()
