"""Why this exists: a page that shows what is no longer printed is worse than none. The pages are compared with what the
commands print now, and that comparison is shown pages that have drifted."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.environ["SOURCE_ROOT"]
PAGES = os.path.join(ROOT, "docs", "commands")


class CommandPages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def pages(self, *words, folder):
        done = subprocess.run([os.path.join(ROOT, "scripts", "command-pages"), *words], capture_output=True, text=True,
                              env={**os.environ, "REPRISE_PAGES": folder}, timeout=250)
        return done.returncode, done.stdout + done.stderr

    def changed(self, name, old, new):
        """A copy of a page in which `old` is `new`."""
        path = shutil.copy(os.path.join(PAGES, name), self.folder)
        with open(path, encoding="utf-8") as text:
            page = text.read()
        self.assertIn(old, page)
        with open(path, "w", encoding="utf-8") as out:
            out.write(page.replace(old, new, 1))
        return path

    def test_no_page_has_drifted(self):
        status, out = self.pages("--check", folder=PAGES)
        self.assertEqual(status, 0, out)

    def test_every_command_has_a_page_and_its_flags_on_it(self):
        top = subprocess.run([os.environ["REPRISE_COMMAND"], "--help"], capture_output=True, text=True, check=True).stdout
        commands = re.findall(r"^  ([a-z]+) ", top.split("Subcommands:")[1].split("\n\n")[0], re.MULTILINE)
        self.assertIn("stats", commands)
        self.assertEqual({f"{name}.md" for name in commands} | {"README.md"}, set(os.listdir(PAGES)))
        with open(os.path.join(PAGES, "README.md"), encoding="utf-8") as text:
            readme = text.read()
        for name in commands:
            self.assertIn(f"[{name}]({name}.md)", readme)
            with open(os.path.join(PAGES, f"{name}.md"), encoding="utf-8") as text:
                page = text.read()
            self.assertIn(f"```console\n$ reprise {name} --help\n", page)
            self.assertGreaterEqual(page.count("\n$ reprise "), 2, f"{name}: nothing shown but its flags")

    def test_a_page_that_has_drifted(self):
        path = self.changed("check.md", "valid: 7 buffers", "valid: 8 buffers")
        status, out = self.pages("--check", "check.md", folder=self.folder)
        self.assertEqual(status, 1)
        self.assertRegex(out, r"(?m)^-valid: 8 buffers.*\n\+valid: 7 buffers")
        self.assertIn("check.md. To mend them: scripts/command-pages", out)
        self.assertEqual(self.pages("check.md", folder=self.folder), (0, "docs/commands/check.md: written\n"))
        with open(path, encoding="utf-8") as mended, open(os.path.join(PAGES, "check.md"), encoding="utf-8") as page:
            self.assertEqual(mended.read().split(), page.read().split())

    def test_a_flag_that_is_gone(self):
        self.changed("check.md", "Print one JSON object", "Print one JSON object\n  --colour   Print in colour")
        status, out = self.pages("--check", "check.md", folder=self.folder)
        self.assertEqual(status, 1)
        self.assertIn("-  --colour", out)

    def test_spacing_is_no_drift(self):
        self.changed("check.md", "  --json                      Print", "  --json     Print")
        self.assertEqual(self.pages("--check", "check.md", folder=self.folder), (0, ""))


if __name__ == "__main__":
    unittest.main()
