"""Why this exists: in a container a job sees other files than outside. Doctor, run inside, has to name what is not
visible, too old or not writable, before a job runs without Reprise and nobody knows.

A stand-in for Apptainer, Docker and Enroot: a mount namespace with a root of its own, into which the folders of this
system, and the bundle, are bound. Ends with 77 (skipped) where that may not be done."""

import json
import os
import shutil
import subprocess
import sys
import unittest

import command

SYSTEM = [folder for folder in ("/usr", "/bin", "/lib", "/lib64", "/lib32", "/etc", "/dev", "/sys") if os.path.exists(folder)]
PYTHON = "/usr/bin/python3"
# Binds what is named, enters the new root, and runs the words behind --.
ENTER = """
set -e
root=$1; shift
while [ "$1" != -- ]; do
  how=${1%%:*}; rest=${1#*:}; shift
  mkdir -p "$root/${rest#*:}"
  mount --rbind "${rest%%:*}" "$root/${rest#*:}"
  [ $how != ro ] || mount -o remount,bind,ro "$root/${rest#*:}"
done
shift
mkdir -p "$root/proc" "$root/tmp"
mount -t proc proc "$root/proc"
exec chroot "$root" "$@"
"""


def why_not():
    enter = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", "mount -t tmpfs none /mnt"]
    try:
        done = subprocess.run(enter, capture_output=True, text=True)
    except FileNotFoundError:
        return "no unshare"
    return done.stderr.strip() if done.returncode != 0 else None


class Container(command.CommandTest):
    def setUp(self):
        super().setUp()
        for folder in ("root", "opt", "out"):
            os.mkdir(self.path(folder))
        for name in ("REPRISE_COMMAND", "REPRISE_HOST_LIBRARY", "REPRISE_CUDA_LIBRARY", "REPRISE_CORE_LIBRARY"):
            shutil.copy(os.environ[name], self.path("opt"))

    def inside(self, *words, opt="/opt/reprise", out="rw", **environment):
        """Runs `words` inside: the bundle at `opt`, the output folder at /out."""
        binds = [f"rw:{folder}:{folder}" for folder in SYSTEM] + [f"ro:{self.path('opt')}:{opt}", f"{out}:{self.path('out')}:/out"]
        variables = [f"{name}={value}" for name, value in environment.items()]
        return self.reprise("--mount", "--pid", "--fork", "sh", "-c", ENTER, "sh", self.path("root"), *binds, "--",
                            "env", "--chdir=/out", "PATH=/usr/bin:/bin", *variables, *words, program="unshare")

    def problems(self, *words, status=1, **options):
        done = self.inside("/opt/reprise/reprise", "doctor", "--json", *words, **options)
        self.assert_status(done, status)
        return {check["check"]: check["found"] for check in json.loads(done.out)["checks"] if check["verdict"] == "problem"}

    def test_ready(self):
        self.assertEqual(self.problems(status=0, LD_PRELOAD="/opt/reprise/libreprise-host.so"), {})

    @unittest.skipUnless(os.path.exists(PYTHON), f"no {PYTHON}")
    def test_a_job_inside_leaves_its_files_outside(self):
        shutil.copy(os.path.join(os.environ["SOURCE_ROOT"], "tests", "cluster", "rounds.py"), self.path("out"))
        done = self.inside("/opt/reprise/reprise", "run", "--host", "--", PYTHON, "-B", "rounds.py", "200", "7")
        self.assert_status(done, 7)
        self.assertEqual(sorted(os.listdir(self.path("out/reprise-out"))), ["plans.json", "summary.json", "trace.reprise"])
        self.assertGreater(self.json("stats", "out/reprise-out/trace.reprise")["allocs"], 40)
        self.assertGreaterEqual(json.loads(self.read("out/reprise-out/summary.json"))["requests"], 200 * 40)

    @unittest.skipUnless(os.path.exists(PYTHON), f"no {PYTHON}")
    def test_what_is_not_visible_costs_a_line(self):
        # The variable comes from outside, the bundle is bound elsewhere: the loader complains, and the job runs.
        library = "/opt/reprise/libreprise-host.so"
        done = self.inside(PYTHON, "-c", "print(6 * 7)", opt="/elsewhere", LD_PRELOAD=library)
        self.assert_status(done, 0)
        self.assertEqual(done.out, "42\n")
        self.assertIn(library, done.err)

    def test_the_preloaded_library_is_not_visible(self):
        found = self.problems(LD_PRELOAD="/nfs/reprise/libreprise-host.so")
        self.assertEqual(list(found), ["LD_PRELOAD"])
        self.assertIn("/nfs/reprise/libreprise-host.so: No such file", found["LD_PRELOAD"])

    def test_a_file_of_the_bundle_is_missing(self):
        os.remove(self.path("opt/libreprise_core.so"))
        self.assertIn("No such file", self.problems()["core library"])

    def test_glibc_is_too_old(self):
        # As a bundle made on a newer system: it asks for a version that is not there.
        core = self.read("opt/libreprise_core.so")
        newest = max({word for word in core.split(b"\0") if word.startswith(b"GLIBC_2.")}, key=lambda v: int(v.split(b".")[1]))
        self.write("opt/libreprise_core.so", core.replace(newest + b"\0", b"GLIBC_2.99"[: len(newest)] + b"\0"))
        self.assertIn("GLIBC_2.99", self.problems()["core library"])

    def test_the_output_cannot_be_written(self):
        self.assertIn("Read-only file system", self.problems(out="ro")["output folder"])
        self.assertEqual(self.problems(status=0, out="ro", REPRISE_OUT="/tmp/x"), {})


if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: no mount namespace here: {reason}", file=sys.stderr)
        sys.exit(77)
    unittest.main()
