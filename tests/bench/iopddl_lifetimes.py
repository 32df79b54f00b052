#!/usr/bin/env python3
"""Lifetime CSVs from the graphs of the ASPLOS 2025 IOPDDL contest (google/iopddl, benchmarks/*.json.gz, Apache-2.0).

  iopddl_lifetimes.py OUT SEED,... FILE.json.gz...

A node of such a graph has an interval and, for each way to split it over devices, what it uses. One way is drawn for
each node, so a graph makes as many instances as there are seeds. Every node is taken, with a byte and a tick more, so
that none is empty, as in the instances made from these graphs by idealloc.
"""
import gzip
import json
import os
import random
import sys


def write_lifetimes(graph, seed, path):
    draw = random.Random(seed)
    nodes = graph["problem"]["nodes"]
    with open(path, "w", encoding="ascii") as out:
        out.write("id,lower,upper,size\n")
        for node, ((lower, upper), usages) in enumerate(zip(nodes["intervals"], nodes["usages"], strict=True)):
            out.write(f"{node},{lower},{upper + 1},{draw.choice(usages) + 1}\n")


def main(out, seeds, *files):
    os.makedirs(out, exist_ok=True)
    for file in files:
        with gzip.open(file) as compressed:
            graph = json.load(compressed)
        name = os.path.basename(file).removesuffix(".json.gz").replace("asplos-2025-", "").replace("-", "_")
        for seed in seeds.split(","):
            write_lifetimes(graph, int(seed), os.path.join(out, f"{name}_{seed}.csv"))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
