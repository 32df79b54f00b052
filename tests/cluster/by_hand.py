"""Ranks that are started by hand: what a launcher would say is said in the environment."""

import os
import subprocess
import sys

import command

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = [sys.executable, "-B", os.path.join(HERE, "rounds.py")]
UNEVEN = [sys.executable, "-B", os.path.join(HERE, "uneven.py")]


class RanksByHand(command.CommandTest):
    def merge(self, *words, status=0):
        return self.json("merge", *words, status=status)

    def job(self, *words, **options):
        (job,) = self.merge(*words, **options)["jobs"]
        return job

    def start(self, rank, world, *words, **variables):
        environment = {**command.clean_environment(), "RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": "0",
                       **variables}
        return subprocess.Popen(words, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True)

    def end(self, processes):
        said = []
        for process in processes:
            said.append(process.communicate(timeout=240)[1])
            self.assertEqual(process.returncode, 0, said[-1])
        return said

    def record(self, folder, extra, world=None, stacks="python", rounds=1):
        """Ranks that hold `extra[rank]` MiB more than the others, recorded; their traces' sites are lines of uneven.py."""
        run = (command.REPRISE, "run", "--host", "--mode", "record", "--stacks", stacks, "--out", folder, "--")
        self.end([self.start(rank, world or len(extra), *run, *UNEVEN, str(more), str(rounds))
                  for rank, more in enumerate(extra)])
