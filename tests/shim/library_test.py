"""What the preload library is made of: it must be loadable by every process, so it needs libc alone, at versions
that old systems have, is small, and exports nothing but its hooks. The four lists of hooks must be one."""
import os
import re
import subprocess
import tempfile
import unittest

from preloading import built

NEWEST_GLIBC = {"x86_64": (2, 14), "aarch64": (2, 17)}
ALSO_EXPORTED = {"reprise_host_marker"}
SOURCE = os.environ["SOURCE_ROOT"]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def source(name):
    with open(os.path.join(SOURCE, "shim", name)) as file:
        return file.read()


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", library))


def glibc_versions(library):
    found = re.findall(r"GLIBC_(\d+(?:\.\d+)+)", output("readelf", "-VW", library))
    return [tuple(int(part) for part in version.split(".")) for version in found]


def exported(library):
    lines = output("nm", "-D", "--defined-only", library).splitlines()
    return {line.split()[-1] for line in lines}


def hooks_in_def():
    return set(re.findall(r"^HOOK\([^,]+, (\w+),", source("host_hooks.def"), re.M))


def names_in_map():
    body = re.search(r"global:(.*?)local:", source("host.map"), re.S).group(1)
    return set(re.findall(r"(\w+);", body))


def hooks_in_readme():
    table = source("README.md").split("| hook |")[1].split("\n\n")[0]
    return {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}


class Library(unittest.TestCase):
    shim = built("SHIM")

    def test_needs_libc_alone(self):
        allowed = re.compile(r"libc\.so\.6|ld-linux.*\.so\.\d+")
        self.assertTrue(needed(self.shim))
        for library in needed(self.shim):
            self.assertRegex(library, allowed)

    def test_runs_on_old_systems(self):
        versions = glibc_versions(self.shim)
        self.assertTrue(versions)
        self.assertLessEqual(max(versions), NEWEST_GLIBC[os.uname().machine])

    def test_is_small(self):
        with tempfile.TemporaryDirectory() as folder:
            stripped = os.path.join(folder, "stripped.so")
            subprocess.run(["strip", "-o", stripped, self.shim], check=True)
            self.assertLess(os.path.getsize(stripped), 100_000)

    def test_one_list_of_hooks(self):
        hooks = hooks_in_def()
        self.assertIn("posix_memalign", hooks)
        self.assertEqual(names_in_map(), hooks | ALSO_EXPORTED)
        self.assertEqual(exported(self.shim), hooks | ALSO_EXPORTED)
        self.assertEqual(hooks_in_readme(), hooks)

    def test_exports_are_unversioned(self):
        """A named version would keep calls bound to the C library's versions from finding the hooks."""
        self.assertNotIn("(VERDEF)", output("readelf", "-dW", self.shim))


class ThisTestCanFail(unittest.TestCase):
    """The same questions about a library that breaks every rule."""

    def test_it_sees_a_library_too_many_a_new_glibc_and_a_stray_name(self):
        core = built("FAKE_CORE_LIBRARY")
        self.assertGreater(max(glibc_versions(core)), (2, 14))
        self.assertIn("reprise_core_open_host", exported(core))
        self.assertIn("libplugin.so", needed(built("CORE_OVER_PLUGIN")))


if __name__ == "__main__":
    unittest.main()
