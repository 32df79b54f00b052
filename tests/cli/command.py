"""The harness of the tests of the command: a temporary folder, files in it, and `reprise` run there.

The environment variable REPRISE_COMMAND names the binary.
"""

import ctypes
import json
import os
import shutil
import subprocess
import tempfile
import unittest

REPRISE = os.environ["REPRISE_COMMAND"]

# Three buffers of 4 bytes; b and c never live together, so that 8 bytes are enough.
LIFETIMES = "id,lower,upper,size\na,0,9,4\nb,0,4,4\nc,4,9,4\n"
EVENTS = "event,id,bytes,stream\nalloc,0,100,0\nalloc,1,50,0\nfree,0,,0\nalloc,2,80,0\nfree,1,,0\n"


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


without_driver = unittest.skipIf(has_driver(), "this machine has a CUDA driver")


def clean_environment():
    return {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("REPRISE_")
    }


def bound_by_modes():
    """To call in a child: root, too, may no longer read and write what the modes of files do not let it."""
    drop, override, read_search = 24, 1, 2  # PR_CAPBSET_DROP; CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH: from its next program on
    if os.geteuid() == 0:
        for capability in (override, read_search):
            ctypes.CDLL(None).prctl(drop, capability, 0, 0, 0)


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as out:
            out.write(content if isinstance(content, bytes) else content.encode())
        return name

    def with_driver(self, **more):
        """The environment of a machine whose loader finds a CUDA driver."""
        os.makedirs(self.path("driver"), exist_ok=True)
        shutil.copy(os.environ["REPRISE_FAKE_DRIVER"], self.path("driver/libcuda.so.1"))
        return {"LD_LIBRARY_PATH": self.path("driver"), **more}

    def read(self, name):
        with open(self.path(name), "rb") as content:
            return content.read()

    def reprise(self, *words, env=None, **options):
        options = {"cwd": self.folder, "capture_output": True, "timeout": 120, **options}
        options["env"] = {**clean_environment(), **(env or {})}
        done = subprocess.run([options.pop("program", REPRISE), *words], **options)
        done.out, done.err = ((stream or b"").decode(errors="replace") for stream in (done.stdout, done.stderr))
        return done

    def run_host(self, *words, **options):
        return self.reprise("run", "--host", *words, **options)

    def assert_status(self, done, status):
        self.assertEqual(done.returncode, status, f"{done.args}\nstdout: {done.out}\nstderr: {done.err}")

    def ok(self, *words, **options):
        done = self.reprise(*words, **options)
        self.assert_status(done, 0)
        return done

    def json(self, *words, status=0, **options):
        done = self.reprise(*words, "--json", **options)
        self.assert_status(done, status)
        return json.loads(done.out)

    def fails(self, status, *words, says=".", **options):
        done = self.reprise(*words, **options)
        self.assert_status(done, status)
        self.assertTrue(done.err.startswith("reprise: "), done.err)
        self.assertRegex(done.err, says)
        return done
