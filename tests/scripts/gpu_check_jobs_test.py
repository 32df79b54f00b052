"""Why this exists: jobs of PyTorch are not held against the same job on the same allocator, which takes minutes, but against
one that is run once for all. That a difference is still Reprise's own, and that a pass was not one of a job for which
nothing was done, is shown here."""

import tempfile
import unittest
from unittest import mock

from gpu_check_test import FAKE_REPRISE, ROOT, Folder  # where the modules are found, too

import comparison
import correctness
import jobs
from rows import FAIL, LEFT_OUT, PASS, Deadline, Finding


class Described(unittest.TestCase):
    FIGURES = {"requests": 2000, "outside": 3, "plans": 1, "planned_bytes_after_plan": 0.75, "first_planned_iteration": 3}

    def test_what_a_plan_gave(self):
        said = jobs.described({**self.FIGURES, "iterations": 40, "live_peak": 3 << 29})
        self.assertEqual(
            said, "requests 2,000, outside 3, plans 1; 75.0% of the bytes by plan from iteration 3 of 40 found; live peak 1.500 GiB"
        )

    def test_without_a_plan_it_is_said(self):
        self.assertEqual(jobs.described({"requests": 9, "plans": 0}), "requests 9, plans 0; nothing by plan")

    def test_a_training_must_have_one(self):
        def verdict(before, **figures):
            found = Finding(before, "the same", {"with": figures} if before == PASS else {})
            finding = correctness.by_plan_for_the_most_part(lambda _: found)(None)
            return finding.verdict, finding.says

        self.assertEqual(verdict(PASS, planned_bytes_after_plan=0.75), (PASS, "the same"))
        self.assertEqual(verdict(PASS, planned_bytes_after_plan=0.25), (FAIL, "too little by plan: the same"))
        self.assertEqual(verdict(PASS), (FAIL, "too little by plan: the same"))
        self.assertEqual(verdict(LEFT_OUT), (LEFT_OUT, "the same"))

    def test_of_which_trainings_it_is_asked(self):
        checks = correctness.Correctness(mock.Mock(), ROOT, None, None, mock.Mock())
        found = Finding(PASS, "the same", {"with": {}})
        with mock.patch.object(correctness, "compared", lambda *_, **__: found):
            failing = {row.name for row in checks.together() if "PyTorch" in row.needs
                       and not row.name.endswith((", recorded", ", second run"))
                       and row.find(Deadline(9)).verdict == FAIL}
        modes, names = ("cudaMallocAsync", "uncached"), ("gpt", "gpt with AMP", "resnet", "resnet with AMP")
        alike = {f"PyTorch {mode}: {name}" for mode in modes for name in names}
        others = ("resnet, gradients of 4 batches", "weights that come on a stream of their own",
                  "two models at once, each on a stream of its own")
        self.assertEqual(failing, alike | {f"PyTorch cudaMallocAsync: {name}" for name in others})


class OnAnotherAllocator(Folder):
    """Without Reprise a job is run once for all of PyTorch's modes. HOW: what it does on which of them."""

    JOB = """
echo "$PYTORCH_CUDA_ALLOC_CONF$SERVED" >> $RUNS
case "$HOW,$PYTORCH_CUDA_ALLOC_CONF,$SERVED" in
  always*Async*1|own*Async*|native,*native*) echo another ;;
  hangs*Async*1) echo another ;;
  hangs*Async*) exec tail -f /dev/null ;;
  random*) wc -l < $RUNS ;;
  *) echo one ;;
esac
"""

    def found(self, how, modes=("cudaMallocAsync",), limit=30):
        reprise = self.write("reprise", FAKE_REPRISE.replace("exec", "SERVED=1 exec"), 0o755)
        self.runs = self.write("runs", "")
        runner = jobs.Jobs(reprise, tempfile.mkdtemp(dir=self.folder), {"HOW": how, "RUNS": self.runs})
        checks = correctness.Correctness(None, ROOT, runner, None, None)
        words = ["sh", "-c", self.JOB]
        return [checks.pytorch("a job", words, mode)(Deadline(limit)) for mode in modes]

    def test_the_same_is_asked_once(self):
        findings = self.found("", ("cudaMallocAsync", "native", "cudaMallocAsync"))
        self.assertEqual([finding.verdict for finding in findings], [PASS] * 3)
        with open(self.runs, encoding="utf-8") as text:
            asked = text.read().split()
        self.assertEqual([each for each in asked if not each.endswith("1")], ["backend:native"])
        self.assertEqual(len(asked), 3)

    def test_another_output_under_reprise_alone(self):
        (finding,) = self.found("always")
        self.assertEqual((finding.verdict, finding.says[:16]), (FAIL, "DIFFERS: line 1:"))

    def test_another_output_on_that_allocator(self):
        self.assertEqual([finding.verdict for finding in self.found("own")], [PASS])
        self.assertEqual([finding.verdict for finding in self.found("native")], [PASS])

    def test_too_slow_to_be_asked_on_that_allocator(self):
        (finding,) = self.found("hangs", limit=3)
        self.assertEqual((finding.verdict, finding.says[:16]), (FAIL, "DIFFERS: line 1:"))
        self.assertIn("no time left", finding.says)

    def test_a_job_that_does_not_repeat_itself(self):
        self.assertEqual([finding.verdict for finding in self.found("random")], [LEFT_OUT])


class Demo(Folder):
    """It compares by itself; what it says of that decides."""

    def found(self, script):
        runner = jobs.Jobs("reprise", tempfile.mkdtemp(dir=self.folder), {})
        with mock.patch.object(correctness, "DEMO", self.write("compare.py", script)):
            finding = correctness.Correctness(None, ROOT, runner, None, None).demo(Deadline(30))
        return finding.verdict, finding.says

    def test_what_it_says(self):
        same = 'print("  losses identical           40 of 40 in each of 2 runs")\n'
        self.assertEqual(self.found(same), (PASS, "losses identical: 40 of 40 in each of 2 runs"))
        self.assertEqual(self.found(""), (FAIL, "losses identical: not said"))

    def test_losses_that_differ(self):
        differ = 'import sys\nprint("gpt: LOSSES DIFFER")\nsys.exit(1)\n'
        self.assertEqual(self.found(differ), (FAIL, "status 1: gpt: LOSSES DIFFER"))

    def test_on_the_host(self):
        host = 'import sys\nprint("demo: in host mode, as", file=sys.stderr)\nprint("  losses identical 1")\n'
        self.assertEqual(self.found(host), (FAIL, "it took the host for the GPU"))


class SecondRun(Folder):
    """The fake command: leaves plans, and follows those that it is given; HOW: what else."""

    REPRISE = """#!/bin/sh
echo "$*" >> $CALLS
while [ "$1" != -- ]; do
  case "$1" in --out) out=$2 ;; --plan) plan=$2 ;; esac
  shift
done
shift
mkdir -p "$out"
[ "$HOW" = leaves-none ] || echo ours > "$out/plans.json"
[ "$HOW" = follows-none ] || [ -z "$plan" ] || resumed=$(grep -c ours "$plan")
printf '{"requests": 9, "plans_resumed": %s, "planned_bytes_after_plan": 1, "iterations": 9, "first_planned_iteration": 1}' \\
  "${resumed:-0}" > "$out/summary.json"
[ "$HOW" = another ] && [ -n "$plan" ] && echo another
[ "$HOW" = fails ] && exit 5
exec "$@"
"""

    def setUp(self):
        super().setUp()
        self.calls = self.write("calls", "")

    def found(self, how="", first=False, script="echo 0x1p-1"):
        runner = jobs.Jobs(
            self.write("reprise", self.REPRISE, 0o755), tempfile.mkdtemp(dir=self.folder), {"HOW": how, "CALLS": self.calls}
        )
        checks = correctness.Correctness(None, ROOT, runner, None, None)
        words = ["sh", "-c", script]
        if first:
            self.assertEqual(checks.pytorch("a job", words, "cudaMallocAsync")(Deadline(30)).verdict, PASS)
        return checks.second_run("a job", words, "cudaMallocAsync")(Deadline(30))

    def count(self):
        with open(self.calls, encoding="utf-8") as text:
            return len(text.readlines())

    def test_it_begins_with_the_plans_of_the_first(self):
        for first in (True, False):
            finding = self.found(first=first)
            self.assertEqual((finding.verdict, finding.says[-17:]), (PASS, "; plans resumed 1"))
            figures = finding.figures
            self.assertEqual((figures["first"]["plans_resumed"], figures["with"]["plans_resumed"]), (0, 1))
        self.assertEqual(self.count(), 4)  # of which the first is not run again for it

    def test_another_output(self):
        finding = self.found("another")
        self.assertEqual((finding.verdict, finding.says[:16]), (FAIL, "DIFFERS: line 1:"))

    def test_plans_that_are_not_followed(self):
        finding = self.found("follows-none")
        self.assertEqual((finding.verdict, finding.says), (FAIL, "the plans were not followed"))

    def test_no_plans(self):
        finding = self.found("leaves-none")
        self.assertEqual((finding.verdict, finding.says), (FAIL, "the first run has left no plans"))

    def test_a_first_run_that_fails(self):
        finding = self.found("fails")
        self.assertEqual((finding.verdict, finding.says[:33]), (FAIL, "status 5 in the first run: status"))
        self.assertEqual(self.count(), 1)
        finding = self.found("fails", script="exit 3")
        self.assertEqual((finding.verdict, finding.says[:31]), (LEFT_OUT, "the job fails without Reprise: "))


class Recordings(unittest.TestCase):
    def test_they_are_of_what_is_measured(self):
        """The same training, so that models of allocators on it can be held against the allocators themselves."""
        calls = []
        runner = mock.Mock(run=lambda name, words, *_, **__: calls.append(words) or jobs.Done(1, "", "", 0, "", {}))
        runner.environment = {}
        for row in correctness.Correctness(None, ROOT, runner, None, None).recording_rows():
            row.find(Deadline(9))
        with mock.patch.object(comparison, "Watch", mock.MagicMock()):
            for model in ("gpt", "resnet"):
                comparison.Comparison(runner, None).train(model, "native")(Deadline(9))

        def training(words):
            pairs = zip(words, words[1:])
            length = {word for pair in pairs if pair[0] in ("--iterations", "--seconds", "--result") for word in pair}
            return [word for word in words if word not in length]

        self.assertEqual([training(words) for words in calls[:2]], [training(words) for words in calls[2:]])
        self.assertEqual(training(calls[0])[2:4], ["gpt", "--batch"])


if __name__ == "__main__":
    unittest.main()
