"""Why this exists: what gpu-check measures on a GPU is compared with another allocator's. That it is Reprise's, or is left
out, is shown here without one."""

import os
import sys
import tempfile
import unittest
from unittest import mock

from gpu_check_test import FAKE_REPRISE, Compiled, Folder, HasAll  # where the modules are found, too

import comparison
import jobs
import rows
from rows import FAIL, LEFT_OUT, MEASURED, Deadline, Row


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
        row = Row("9", "largest batch", limit, (), compare.largest_batch("Reprise over uncached"))
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


if __name__ == "__main__":
    unittest.main()
