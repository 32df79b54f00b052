"""Why this exists: setup is the first thing that is run, often by somebody who may not install packages. What it asks for has
to be needed, and what it says to run has to work. Here nothing is installed: it runs as a user that is not root, beside a demo of its own."""

import os
import subprocess
import tempfile
import unittest

ROOT = os.environ["SOURCE_ROOT"]
SYSTEM_PYTHON = "/usr/bin/python3"


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(os.path.join(ROOT, "scripts/setup"), encoding="utf-8") as text:
            self.program("scripts/setup", text.read().replace("/openblas-pthread/", "/no-such-folder/"))
        self.program("bin/id", "#!/bin/sh\necho 1000\n")
        self.program("bin/apt-get", "#!/bin/sh\nexit 1\n")

    def program(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, 0o755)

    def setup(self, *groups, **more):
        environment = {"PATH": os.path.join(self.folder, "bin") + ":/usr/bin:/bin", **more}
        return subprocess.run([os.path.join(self.folder, "scripts/setup"), *groups], env=environment, capture_output=True,
                              text=True, timeout=120)

    def setup_demo(self, **more):
        return self.setup("demo", **more)

    def test_a_group_that_there_is_not_is_said_and_is_no_success(self):
        for groups in (["tset"], ["build", "tset"], ["--build"]):
            done = self.setup(*groups)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage: scripts/setup", done.stderr)

    @unittest.skipUnless(os.path.exists(SYSTEM_PYTHON), "the system has no Python of its own")
    def test_a_pytorch_by_pip_needs_no_blas_of_the_systems(self):
        self.program("scripts/demo.d/python", f"#!/bin/sh\necho {SYSTEM_PYTHON}\n")
        self.program("packages/torch/__init__.py", "")
        done = self.setup_demo(PYTHONPATH=os.path.join(self.folder, "packages"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "setup (demo): nothing to install\n", ""))

    def test_without_pytorch_what_to_run_is_what_finds_one_anywhere(self):
        self.program("scripts/demo.d/python", "#!/bin/sh\nexit 1\n")
        done = self.setup_demo()
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.endswith("\nsetup: installing needs root. Run: sudo scripts/setup demo\n"), done.stderr)
        self.assertTrue(os.path.isdir(os.path.join(self.folder, "build")))

    def test_with_one_it_is_the_package_that_is_missing(self):
        self.program("scripts/demo.d/python", "#!/bin/sh\necho false\n")
        done = self.setup_demo()
        self.assertRegex(done.stderr, r"Run: sudo apt-get .* libopenblas0-pthread\n$")


if __name__ == "__main__":
    unittest.main()
