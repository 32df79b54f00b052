"""What the core reads of CUPTI's records lies where the toolkit's headers say, in every version of each record that they
still declare. Without an installed toolkit there is nothing to compare with, and the test is skipped.

usage: cupti_records_test.py SOURCE_ROOT COMPILER...
"""

import os
import subprocess
import sys
import tempfile

SKIPPED = 77
WORK = {"start": "start", "end": "end", "device": "deviceId", "context": "contextId", "stream": "streamId"}
# Ours, the versions of theirs, the fields.
RECORDS = [
    ("KernelRecord", [f"CUpti_ActivityKernel{n}" for n in range(4, 11)], {**WORK, "name": "name"}),
    ("CopyRecord", ["CUpti_ActivityMemcpy", *(f"CUpti_ActivityMemcpy{n}" for n in range(3, 7))],
     {**WORK, "bytes": "bytes", "copy_kind": "copyKind"}),
    ("CopyRecord", ["CUpti_ActivityMemcpyPtoP", *(f"CUpti_ActivityMemcpyPtoP{n}" for n in range(2, 5))],
     {**WORK, "bytes": "bytes", "copy_kind": "copyKind"}),
    ("SetRecord", ["CUpti_ActivityMemset", *(f"CUpti_ActivityMemset{n}" for n in range(2, 5))],
     {**WORK, "bytes": "bytes"}),
    ("MarkerRecord", ["CUpti_ActivityMarker2"],
     {"flags": "flags", "timestamp": "timestamp", "id": "id", "object_kind": "objectKind", "object": "objectId",
      "name": "name"}),
]
VALUES = {
    "kRecordCopy": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "kRecordSet": "CUPTI_ACTIVITY_KIND_MEMSET",
    "kRecordKernel": "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
    "kRecordMarker": "CUPTI_ACTIVITY_KIND_MARKER",
    "kRecordPeerCopy": "CUPTI_ACTIVITY_KIND_MEMCPY2",
    "kMarkerBegin": "CUPTI_ACTIVITY_FLAG_MARKER_START",
    "kMarkerEnd": "CUPTI_ACTIVITY_FLAG_MARKER_END",
    "kObjectThread": "CUPTI_ACTIVITY_OBJECT_THREAD",
    "Cupti::kSuccess": "CUPTI_SUCCESS",
    "Cupti::kMaxLimitReached": "CUPTI_ERROR_MAX_LIMIT_REACHED",
    "Cupti::kMultipleSubscribers": "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "Cupti::kFlushForced": "CUPTI_ACTIVITY_FLAG_FLUSH_FORCED",
}
# Where a copy goes, by the place of its name in the core's list.
COPIES = ["UNKNOWN", "HTOD", "DTOH", "HTOA", "ATOH", "ATOA", "ATOD", "DTOA", "DTOD", "HTOH", "PTOP"]


def program(wrong):
    """Assertions alone; `wrong` moves each expected offset, to show that they can fail."""
    lines = ["#include <cstddef>", '#include "replay/cuda/cupti.h"', '#include "replay/cuda/cupti_records.h"',
             "#include <cupti.h>", "using namespace reprise::replay::cuda;"]
    for ours, versions, fields in RECORDS:
        for theirs in versions:
            for our_field, their_field in fields.items():
                lines.append(f"static_assert(offsetof({ours}, {our_field}) == offsetof({theirs}, {their_field}) + {wrong});")
                lines.append(f"static_assert(sizeof({ours}::{our_field}) == sizeof({theirs}::{their_field}));")
    lines += [f"static_assert(int({ours}) == int({theirs}));" for ours, theirs in VALUES.items()]
    lines += [f"static_assert(CUPTI_ACTIVITY_MEMCPY_KIND_{name} == {n});" for n, name in enumerate(COPIES)]
    return "\n".join(lines) + "\n"


def compiled(compiler, root, toolkit, source):
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
        file.write(source)
        file.flush()
        return subprocess.run([*compiler, "-w", "-std=c++20", "-fsyntax-only", "-I", root, "-I", toolkit, file.name],
                              capture_output=True, text=True)


def main(root, *compiler):
    toolkit = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
    if not os.path.exists(os.path.join(toolkit, "cupti_activity_deprecated.h")):
        return SKIPPED
    done = compiled(compiler, root, toolkit, program(wrong=0))
    if done.returncode != 0:
        return done.stderr
    broken = compiled(compiler, root, toolkit, program(wrong=4)).stderr.count("error: static assertion failed")
    expected = sum(len(versions) * len(fields) for _, versions, fields in RECORDS)
    print(f"{expected} fields compared")
    return 0 if broken == expected else f"{broken} of {expected} wrong offsets were noticed"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
