"""What a preload library is made of, read from the file itself and from the sources."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from preloading import run

NEWEST_GLIBC = {"x86_64": (2, 14), "aarch64": (2, 17)}
SOURCE = os.environ["SOURCE_ROOT"]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def source(name):
    with open(os.path.join(SOURCE, name)) as file:
        return file.read()


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", library))


def asked_for(library):
    """The names without which the library cannot be loaded."""
    lines = output("nm", "-D", "--undefined-only", library).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if " U " in line}


def glibc_versions(library):
    found = re.findall(r"GLIBC_(\d+(?:\.\d+)+)", output("readelf", "-VW", library))
    return [tuple(int(part) for part in version.split(".")) for version in found]


def exported(library):
    lines = output("nm", "-D", "--defined-only", library).splitlines()
    return {line.split()[-1] for line in lines}


def stripped_size(library, folder):
    stripped = os.path.join(folder, "stripped.so")
    subprocess.run(["strip", "-o", stripped, library], check=True)
    return os.path.getsize(stripped)


def names_in_map(text):
    body = re.search(r"global:(.*?)local:", text, re.S).group(1)
    return set(re.findall(r"(\w+);", body))


def names_in_table(text, head):
    """The names in backticks in the first column of the table that begins with `head`."""
    table = text.split(head)[1].split("\n\n")[0]
    return [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]


class Rules:
    """What holds for every preload library; for a TestCase with the library's path in `shim`."""

    def test_needs_libc_alone(self):
        self.assertEqual(needed(self.shim), ["libc.so.6"])

    def test_is_small(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertLess(stripped_size(self.shim, folder), 100_000)

    def test_asks_for_nothing_that_glibc_alone_has(self):
        """The loader of another C library would end its programs before they begin."""
        internal = {name for name in asked_for(self.shim) if name.startswith("_")}
        self.assertLessEqual(internal, {"__environ", "__errno_location", "__stack_chk_fail"})

    @unittest.skipUnless(shutil.which("musl-gcc"), "no other C library here")
    def test_programs_of_another_c_library_run_as_without_it(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "other_libc")
            output("musl-gcc", "-o", program, os.path.join(SOURCE, "tests/shim/other_libc.c"))
            done = run([program], preload=[self.shim])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "0 1 1 1 1\n", ""))

    def test_runs_on_old_systems(self):
        versions = glibc_versions(self.shim)
        self.assertTrue(versions)
        self.assertLessEqual(max(versions), NEWEST_GLIBC[os.uname().machine])

    def test_exports_are_unversioned(self):
        """A named version would keep calls bound to another library's versions from finding the hooks."""
        self.assertNotIn("(VERDEF)", output("readelf", "-dW", self.shim))
