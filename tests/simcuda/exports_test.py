"""The driver exports what functions.def lists and what simcuda.h declares; the runtime and CUPTI export what their headers
declare, at the version nodes of the real ones. None exports anything else.

usage: exports_test.py DRIVER RUNTIME CUPTI
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NODE = "libcudart.so.13"


def text(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as source:
        return source.read()


def exported(library):
    """Names with their version, as `name` or `name@@node`; without the node's own symbol."""
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", library], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return {fields[2] for fields in map(str.split, lines) if fields[1] != "A"}


def of_driver():
    listed = re.findall(r"^SIM_\w+\(\w+, \d+, (\w+)\)", text("driver/functions.def"), re.MULTILINE)
    own = re.findall(r"\b(sim[A-Z]\w*)\(", re.sub(r"//[^\n]*", "", text("include/simcuda.h")))
    return {*listed, *own}


def of_runtime():
    header = text("include/cuda_runtime_api.h")
    declared = re.findall(r"CUDARTAPI (\w+)\(", header)
    renamed = re.findall(r"#define cuda\w+ (cuda\w+_pt[ds][sz])$", header, re.MULTILINE)
    return {f"{name}@@{NODE}" for name in (*declared, *renamed)}


def of_cupti():
    return {f"{name}@@libcupti.so.13" for name in re.findall(r"CUPTIAPI (\w+)\(", text("include/cupti.h"))}


def differences(library, expected):
    found = exported(library)
    yield from (f"{os.path.basename(library)}: not exported: {name}" for name in sorted(expected - found))
    yield from (f"{os.path.basename(library)}: exported, not listed: {name}" for name in sorted(found - expected))


def main(driver, runtime, cupti):
    found = [*differences(driver, of_driver()), *differences(runtime, of_runtime()), *differences(cupti, of_cupti())]
    return "\n".join(found) or 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
