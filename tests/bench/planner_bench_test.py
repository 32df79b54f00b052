"""Why this exists: the bench's figures are quoted. It must run on a folder of its own formats, judge every placement, and
say so when a rule's name is wrong. No time is asserted."""

import os
import subprocess
import tempfile
import unittest

BENCH = os.environ["BENCH"]
TINY = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"


def stream():
    """A job of forty equal iterations, each a chain of blocks."""
    rows = ["event,id,bytes,stream"]
    block = 0
    for _ in range(40):
        for k in range(6):
            rows.append(f"alloc,{block},{8192 * (k + 1)},0")
            if k > 0:
                rows.append(f"free,{block - 1},,0")
            block += 1
        rows.append(f"free,{block - 1},,0")
    return "\n".join(rows) + "\n"


class PlannerBench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        hard = TINY.replace(",4\n", ",4000\n")
        for name, text in {
            "minimalloc/A.12000.csv": hard,
            "lifetimes/tiny.csv": TINY,
            "lifetimes/somas_resnet50.csv": TINY,
            "events/tiny.csv": stream(),
        }.items():
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as out:
                out.write(text)

    def run_bench(self, *arguments):
        return subprocess.run([BENCH, self.folder, *arguments], capture_output=True, text=True)

    def test_one_row_an_instance_and_every_placement_judged(self):
        done = self.run_bench("--only", "decide,variants,minimise,training", "--seeds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line for line in done.stdout.splitlines() if " optimal " in line]
        self.assertEqual(len(rows), 1 + 1 + 1 + 4 + 2, done.stdout)
        self.assertNotIn("INVALID", done.stdout)
        self.assertIn("A at 12000", done.stdout)

    def test_a_rule_switched_off(self):
        done = self.run_bench("--only", "minimise", "--without", "hybrid")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(self.run_bench("--without", "magic").returncode, 0)

    def test_ablation_has_a_line_a_rule(self):
        done = self.run_bench("--only", "decide", "--ablation")
        self.assertEqual(done.returncode, 0, done.stderr)
        for rule in ("(all rules on)", "exact-trouble", "hybrid-noise", "turn-cycles"):
            self.assertIn(rule, done.stdout)

    def test_a_folder_that_is_not_there(self):
        done = subprocess.run([BENCH, "/no/such/folder"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/no/such/folder", done.stderr)


if __name__ == "__main__":
    unittest.main()
