"""What a preload library is made of, read from the file itself and from the sources."""
import os
import re
import subprocess

NEWEST_GLIBC = {"x86_64": (2, 14), "aarch64": (2, 17)}
SOURCE = os.environ["SOURCE_ROOT"]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def source(name):
    with open(os.path.join(SOURCE, name)) as file:
        return file.read()


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", library))


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
        self.assertTrue(needed(self.shim))
        for library in needed(self.shim):
            self.assertRegex(library, r"^(libc\.so\.6|ld-linux.*\.so\.\d+)$")

    def test_runs_on_old_systems(self):
        versions = glibc_versions(self.shim)
        self.assertTrue(versions)
        self.assertLessEqual(max(versions), NEWEST_GLIBC[os.uname().machine])

    def test_exports_are_unversioned(self):
        """A named version would keep calls bound to another library's versions from finding the hooks."""
        self.assertNotIn("(VERDEF)", output("readelf", "-dW", self.shim))
