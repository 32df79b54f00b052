"""Why this exists: what gpu-check measures on a GPU is compared with another allocator's. That it is Reprise's, or is left
out, is shown here without one."""

import sys
import tempfile
import unittest
from unittest import mock

from gpu_check_test import FAKE_REPRISE, Compiled, Folder, HasAll  # where the modules are found, too

import comparison
import jobs
import rows
from rows import FAIL, LEFT_OUT, MEASURED, Deadline, Row

TRAIN = """import json
json.dump({"seconds": [1, 1, 1], "peak_allocated": 1, "peak_reserved": 2}, open("result.json", "w"))
"""
WATCH = """import sys
print("ready", flush=True)
sys.stdin.read()
print('{"baseline": 1, "peak": 3}')
"""
# Leaves plans, and follows those that it is given.
SECOND_RUN = """#!/bin/sh
resumed=0
while [ "$1" != -- ]; do
  case "$1" in --out) out=$2 ;; --plan) [ -s "$2" ] && resumed=RESUMED ;; esac
  shift
done
shift
mkdir -p "$out"
if LEAVES; then echo ours > "$out/plans.json"; fi
echo '{"requests": 9, "plans_resumed": '$resumed', "planned_bytes_after_plan": 1, "iterations": 9,
  "first_planned_iteration": 1}' > "$out/summary.json"
exec "$@"
"""


class Comparison(Folder):
    def test_a_figure_of_another_allocator_is_none(self):
        program = self.write("time_allocation", "#!/bin/sh\necho '{\"times_ns\": []}'\n", 0o755)
        for fake, verdict in (("", MEASURED), ("nothing", FAIL)):
            runner = jobs.Jobs(
                self.write("reprise", FAKE_REPRISE, 0o755), tempfile.mkdtemp(dir=self.folder), {"FAKE": fake}
            )
            find = comparison.Comparison(runner, Compiled(program)).single_allocation
            self.assertEqual((find(True)(Deadline(30)).verdict, find(False)(Deadline(30)).verdict), (verdict, MEASURED))

    def test_what_fails_without_reprise_is_no_fault_of_its(self):
        program = self.write("time_allocation", "#!/bin/sh\necho no memory >&2; exit 2\n", 0o755)
        runner = jobs.Jobs(self.write("reprise", FAKE_REPRISE, 0o755), self.folder, {})
        find = comparison.Comparison(runner, Compiled(program)).single_allocation
        plain, served = find(False)(Deadline(30)), find(True)(Deadline(30))
        self.assertEqual((plain.verdict, served.verdict), (LEFT_OUT, FAIL))
        self.assertTrue(plain.says.endswith(": no memory") and served.says.endswith(": no memory"))

    def largest_batch(self, program, limit):
        self.write("largest_batch.py", program)
        hog = self.write("hog", "#!/bin/sh\necho ready 7\nread end\n", 0o755)
        runner = jobs.Jobs(self.write("reprise", FAKE_REPRISE, 0o755), tempfile.mkdtemp(dir=self.folder), {})
        compare = comparison.Comparison(runner, Compiled(hog))
        row = Row("comparison", "largest batch", limit, (), compare.largest_batch("Reprise over uncached"))
        with mock.patch.object(comparison, "PROGRAMS", self.folder):
            return rows.found(row, HasAll(), Deadline(100))

    def test_the_largest_batch_until_then(self):
        found = 'import sys\nopen(sys.argv[-1], "w").write(\'{"largest": 16, "tried": {"16": true}}\')\n'
        wait = "import signal\nsignal.pause()\n"
        over, cut_short, none = (
            self.largest_batch(*how) for how in ((found, 30), (found + wait, 2), (wait, 2))
        )
        self.assertEqual((over.verdict, over.whole, over.figures["largest"]), (MEASURED, True, 16))
        self.assertEqual((cut_short.verdict, cut_short.whole, cut_short.says[:11]), (MEASURED, False, "at least 16"))
        self.assertEqual(none.verdict, FAIL)

    def second_run(self, *allocators, plans=True, resumed=1):
        self.write("train.py", TRAIN)
        self.write("watch_memory.py", WATCH)
        reprise = SECOND_RUN.replace("RESUMED", str(resumed)).replace("LEAVES", "true" if plans else "false")
        runner = jobs.Jobs(self.write("reprise", reprise, 0o755), tempfile.mkdtemp(dir=self.folder), {})
        compare = comparison.Comparison(runner, None)
        with mock.patch.object(comparison, "PROGRAMS", self.folder), mock.patch.object(comparison, "HERE", self.folder):
            return [compare.train("gpt", allocator)(Deadline(30)) for allocator in allocators]

    def test_a_second_run_begins_with_the_plans_of_the_first(self):
        first, second = self.second_run(comparison.FIRST_RUN, comparison.SECOND_RUN)
        self.assertEqual((first.verdict, second.verdict), (MEASURED, MEASURED))
        self.assertEqual(second.figures["reprise"]["plans_resumed"], 1)

    def test_a_second_run_without_plans_is_none(self):
        for findings in (
            self.second_run("Reprise over uncached", comparison.SECOND_RUN),
            self.second_run(comparison.FIRST_RUN, comparison.SECOND_RUN, plans=False),
        ):
            self.assertEqual((findings[1].verdict, findings[1].whole), (LEFT_OUT, False))
            self.assertEqual(findings[1].says, "needs the plans of 'gpt: Reprise over cudaMallocAsync', of the same call")

    def test_a_second_run_that_follows_none(self):
        _, second = self.second_run(comparison.FIRST_RUN, comparison.SECOND_RUN, resumed=0)
        self.assertEqual((second.verdict, second.says), (FAIL, "the plans were not followed"))

    def test_a_second_run_comes_directly_after_the_first(self):
        compare = comparison.Comparison(None, None)
        names = [row.name for row in compare.first_rows()]
        for model in ("gpt", "resnet"):
            first = names.index(f"{model}: {comparison.FIRST_RUN}")
            self.assertEqual(names[first + 1], f"{model}: {comparison.SECOND_RUN}")
        batches = [row.name for row in [*compare.first_batch_rows(), *compare.other_rows()] if "batch" in row.name]
        self.assertEqual(batches, [f"largest batch: {each}" for each in comparison.ALLOCATORS if each != comparison.SECOND_RUN])


if __name__ == "__main__":
    unittest.main()
