"""Why this exists: the bundle is for machines without our libraries. Every one of ours it needs must come from inside,
wherever it is unpacked, and what it puts into a job must bring nothing along."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUILD = os.environ["REPRISE_BUILD"]
PACK = os.environ["REPRISE_PACK"]
GLIBC = re.compile(r"^(linux-vdso|/lib.*/ld-linux.*|ld-linux.*|libc|libm|libpthread|libdl|librt)\.so")
CXX_RUNTIME = re.compile(r"^(libstdc\+\+|libgcc_s)\.so")
EMPTY = {"PATH": "/usr/bin:/bin"}
JOB = """
import ctypes
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
for _ in range(20):
    for block in [libc.aligned_alloc(64, 8192 * (i + 1)) for i in range(16)]:
        libc.free(block)
"""


def pack(folder):
    done = subprocess.run([sys.executable, "-B", PACK, BUILD, folder], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@unittest.skipUnless(shutil.which("patchelf"), "no patchelf here")
class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.archive = pack(os.path.join(folder.name, "packed"))
        cls.elsewhere = os.path.join(folder.name, "some where")
        with tarfile.open(cls.archive) as archive:
            archive.extractall(cls.elsewhere)
        shutil.rmtree(cls.archive[: -len(".tar.gz")])  # nothing may be found where it was made
        (top,) = os.listdir(cls.elsewhere)
        cls.top = os.path.realpath(os.path.join(cls.elsewhere, top))

    def path(self, *names):
        return os.path.join(self.top, *names)

    def libraries(self, *names):
        """What the loader takes for a file in an empty environment: {name: path}."""
        done = subprocess.run(["ldd", self.path(*names)], env=EMPTY, capture_output=True, text=True, check=True)
        pairs = (line.strip().partition(" => ") for line in done.stdout.splitlines())
        found = {name.split(" ")[0]: path.split(" (")[0] for name, _, path in pairs}
        return {name: path for name, path in found.items() if not GLIBC.match(name)}

    def test_the_command_takes_all_from_inside(self):
        found = self.libraries("bin", "reprise")
        self.assertRegex(" ".join(found), "libfmt")
        for name, path in found.items():
            self.assertTrue(os.path.realpath(path).startswith(self.top), f"{name}: {path}")

    def test_the_core_takes_all_from_inside_but_the_jobs_cxx_runtime(self):
        for name, path in self.libraries("lib", "libreprise_core.so").items():
            inside = os.path.realpath(path).startswith(self.top)
            self.assertEqual(inside, not CXX_RUNTIME.match(name), f"{name}: {path}")

    def test_what_is_preloaded_brings_nothing_along(self):
        for name in ("libreprise.so", "libreprise-host.so"):
            dynamic = subprocess.run(["readelf", "-d", self.path("lib", name)], capture_output=True, text=True).stdout
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
            self.assertEqual([library for library in needed if not GLIBC.match(library)], [])
            self.assertNotRegex(dynamic, r"\((RPATH|RUNPATH)\)")

    def reprise(self, *words, command=None):
        cwd = tempfile.TemporaryDirectory()
        self.addCleanup(cwd.cleanup)
        done = subprocess.run(
            [command or self.path("bin", "reprise"), *words], env=EMPTY, cwd=cwd.name, capture_output=True, text=True, timeout=120
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def test_doctor_finds_everything(self):
        checks = json.loads(self.reprise("doctor", "--json").stdout)["checks"]
        found = {check["check"]: check["found"] for check in checks}
        for name in ("CUDA library", "preload library", "core library"):
            self.assertTrue(found[name].startswith(self.top), found[name])

    def test_a_job_is_served(self):
        done = self.reprise("run", "--host", "--", sys.executable, "-c", JOB)
        self.assertRegex(done.stderr, r"in reprise-out: summary.*json")
        self.assertNotIn("memory is left as it is", done.stderr)

    def own_of(self, command, library):
        """What a job's plugin gets of a library of its own, if that bears this name, once the core is there: the loader
        would take one of that name from wherever."""
        with tempfile.TemporaryDirectory() as folder:
            own, plugin = os.path.join(folder, library), os.path.join(folder, "plugin.so")
            for words, text in (
                ([f"-Wl,-soname,{library}", "-o", own], "int ZSTD_versionNumber(void) { return 99; }"),
                ([f"-Wl,-rpath,{folder}", "-o", plugin, "-x", "none", own],
                 "int ZSTD_versionNumber(void); int version(void) { return ZSTD_versionNumber(); }"),
            ):
                subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", *words], input=text, text=True, check=True)
            job = JOB + f"print(ctypes.CDLL({plugin!r}).version())"
            return self.reprise("run", "--host", "--", sys.executable, "-c", job, command=command).stdout

    def test_a_job_has_its_own_of_the_libraries_that_the_core_has_too(self):
        dynamic = subprocess.run(["readelf", "-d", os.path.join(BUILD, "shim/libreprise_core.so")], capture_output=True, text=True)
        fmt = re.search(r"libfmt\.so\.\d+", dynamic.stdout)[0]
        self.assertEqual(self.own_of(self.path("bin", "reprise"), fmt), "99\n")
        for command in (self.path("bin", "reprise"), os.path.join(BUILD, "cli/reprise")):
            self.assertEqual(self.own_of(command, "libzstd.so.1"), "99\n")

    def test_call_stacks_take_all_from_inside(self):
        job = JOB + "print(*(line[line.index('/'):].strip() for line in open('/proc/self/maps') if 'libunwind' in line), sep='\\n')"
        paths = set(self.reprise("run", "--host", "--mode", "record", "--stacks", "native", "--", sys.executable, "-c",
                                 job).stdout.split("\n")) - {""}
        self.assertEqual([os.path.dirname(path) for path in paths], [self.path("lib", "reprise")])

    def test_manifest(self):
        with open(self.path("MANIFEST.json"), encoding="utf-8") as text:
            manifest = json.load(text)
        present = {
            os.path.relpath(os.path.join(folder, name), self.top)
            for folder, _, names in os.walk(self.top)
            for name in names
        }
        self.assertEqual(present - set(manifest["files"]), {"MANIFEST.json"})
        for path, expected in manifest["files"].items():
            with open(self.path(path), "rb") as content:
                self.assertEqual(hashlib.sha256(content.read()).hexdigest(), expected, path)
        self.assertRegex(manifest["glibc_needed"], r"^2\.\d+$")
        if shutil.which("dpkg"):
            for library in ("libfmt", "libzstd", "libcli11"):  # the last two are built in
                self.assertTrue(any(path.startswith("licenses/" + library) for path in present), library)
        for text in ("LICENSE", "README.md", "scripts/demo.d/compare.py"):  # the last one is gpu-check's, too
            self.assertIn(text, present)

    def test_the_same_sources_give_the_same_bytes(self):
        with open(self.archive, "rb") as first:
            before = first.read()
        with tempfile.TemporaryDirectory() as folder, open(pack(folder), "rb") as second:
            self.assertEqual(before, second.read())


if __name__ == "__main__":
    unittest.main()
