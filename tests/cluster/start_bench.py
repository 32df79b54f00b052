"""What Reprise adds to the start and the end of a rank: 64 ranks at once, without and with it, in pairs.

usage: start_bench.py LIBREPRISE_HOST [PAIRS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

RANKS = 64
JOB = [sys.executable, "-I", "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "rounds.py"), "2"]


def seconds(variables):
    began = time.monotonic()
    ranks = [
        subprocess.Popen(JOB, env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS), **variables})
        for rank in range(RANKS)
    ]
    assert not any([rank.wait() for rank in ranks])
    return time.monotonic() - began


with tempfile.TemporaryDirectory() as folder:
    added = []
    for pair in range(int(sys.argv[2]) if len(sys.argv) > 2 else 5):
        without = seconds({})
        out = os.path.join(folder, str(pair))
        served = {"LD_PRELOAD": os.path.abspath(sys.argv[1]), "REPRISE_OUT": out, "REPRISE_CACHE": out + ".cache",
                  "REPRISE_RUN": "bench"}
        with_it = seconds(served)
        assert sum(name.startswith("summary.rank") for name in os.listdir(out)) == RANKS
        added.append((with_it - without) / RANKS)
        print(f"without {without:.2f} s, with {with_it:.2f} s: {1000 * added[-1]:.1f} ms a rank", file=sys.stderr)
    # Of the machine's time: on a machine with a core for each rank, as many of these run at once.
    print(f"{1000 * statistics.median(added):.1f} ms a rank, {1000 * min(added):.1f} to {1000 * max(added):.1f}, "
          f"on {os.cpu_count()} cores: {1000 * statistics.median(added) * os.cpu_count():.1f} ms of a core")
