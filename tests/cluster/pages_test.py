"""Why this exists: the pages for users and administrators are followed word by word. Each block marked `sh` is run
here as it stands, by a shell, on a cluster."""

import os
import re
import subprocess
import sys
import unittest

import command
from report_test import head_of
from virtual_cluster import VirtualCluster, why_not

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(HERE, "..", "..", "docs")


def blocks(page):
    with open(os.path.join(DOCS, page), encoding="utf-8") as text:
        return re.findall(r"^```sh\n(.*?)^```$", text.read(), re.DOTALL | re.MULTILINE)


class Pages(command.CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = VirtualCluster()
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def program(self, name, text):
        os.makedirs(self.path("bin"), exist_ok=True)
        self.write(f"bin/{name}", f"#!/bin/sh\n{text}\n")
        os.chmod(self.path(f"bin/{name}"), 0o755)

    def setUp(self):
        super().setUp()
        # As on a machine with a GPU, where these need no --host.
        self.program("reprise", f"""command=$1; shift
case $command in
  run | slurm) exec {command.REPRISE} $command --host "$@" ;;
  *) exec {command.REPRISE} $command "$@" ;;
esac""")
        self.program("python", f'exec {sys.executable} -B "$@"')
        with open(os.path.join(HERE, "rounds.py"), encoding="utf-8") as job:
            self.write("train.py", job.read().replace("int(sys.argv[1])", "50"))

    def follow(self, block):
        environment = {
            **command.clean_environment(), "SLURM_CONF": self.cluster.environment["SLURM_CONF"],
            "PATH": self.path("bin") + ":" + self.cluster.environment["PATH"],
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
        }
        done = subprocess.run(["sh", "-e", "-c", block], cwd=self.folder, env=environment, capture_output=True, timeout=200)
        done.out, done.err = done.stdout.decode(), done.stderr.decode()
        self.assert_status(done, 0)

    def test_the_users_page(self):
        found = blocks("cluster-users.md")
        self.assertGreaterEqual(len(found), 4)
        for block in found:
            with self.subTest(block):
                self.follow(block)
        folders = os.listdir(self.path("reprise-out"))
        for folder in folders:
            self.assertIn("summary.rank1.json", os.listdir(self.path(f"reprise-out/{folder}")))
        self.assertEqual(len(folders), 3)
        self.assertEqual(len(head_of(self.read("ranks.html").decode())["jobs"]), 3)
        plans = sorted(f"{folder}-trace.rank{rank}.plan.json" for folder in folders for rank in (0, 1))
        self.assertEqual(sorted(os.listdir(self.path("rank-plans"))), plans)

    def test_the_administrators_page(self):
        with open(os.environ["REPRISE_PROLOG"], encoding="utf-8") as prolog:
            text = prolog.read()
        host = os.environ["REPRISE_HOST_LIBRARY"]
        self.cluster.set_prolog(text.replace("/opt/reprise/lib/libreprise.so", host))
        (off,) = blocks("cluster-administrators.md")
        self.follow("sbatch --wait -N2 -n2 --wrap 'srun python train.py'")
        self.assertEqual(len(os.listdir(self.path("reprise-out"))), 1)
        self.follow(off)
        self.assertEqual(len(os.listdir(self.path("reprise-out"))), 1)
        elsewhere = text.replace("/opt/reprise/lib/libreprise.so", host).replace('partitions=""', 'partitions="x y"')
        self.cluster.set_prolog(elsewhere)
        self.follow("sbatch --wait -N2 -n2 --wrap 'srun python train.py'")
        self.assertEqual(len(os.listdir(self.path("reprise-out"))), 1, "another partition")


if __name__ == "__main__":
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
