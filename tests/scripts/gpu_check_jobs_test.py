"""Why this exists: jobs of PyTorch are not held against the same job on the same allocator, which takes minutes, but against
one that is run once for all. That a difference is still Reprise's own, and that a pass was not one of a job for which
nothing was done, is shown here."""

import tempfile
import unittest
from unittest import mock

from gpu_check_test import FAKE_REPRISE, ROOT, Folder  # where the modules are found, too

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
            failing = {row.name for row in checks.together() if "PyTorch" in row.needs and row.name[-8:] != "recorded"
                       and row.find(Deadline(9)).verdict == FAIL}
        modes, names = ("cudaMallocAsync", "uncached"), ("gpt", "gpt with AMP", "resnet", "resnet with AMP")
        self.assertEqual(failing, {f"PyTorch {mode}: {name}" for mode in modes for name in names})


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
        self.assertEqual(len(asked), 4)

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


if __name__ == "__main__":
    unittest.main()
