"""Small snapshots as torch.cuda.memory._snapshot() returns them, for the tests of the command."""

import pickle


def entry(action, addr, size):
    return {
        "action": action,
        "addr": addr,
        "size": size,
        "stream": 0,
        "time_us": 1_000_000,
        "compile_context": "N/A",
        "user_metadata": "",
        "frames": [{"name": "step", "filename": "train.py", "line": 7}],
    }


def segment(address, total_size, blocks, **more):
    return {
        "device": 0,
        "address": address,
        "total_size": total_size,
        "stream": 0,
        "segment_type": "small" if total_size == 2 << 20 else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "blocks": [
            {"address": at, "size": size, "requested_size": asked, "state": state} for at, size, asked, state in blocks
        ],
        **more,
    }


def snapshot(segments, *traces):
    return {
        "segments": segments,
        "device_traces": [list(trace) for trace in traces],
        "allocator_settings": {"max_split_size": -1, "garbage_collection_threshold": 0.0},
        "external_annotations": [],
    }


MIB = 1 << 20
BASE = 0x7F0000000000

# One weight from before the history, and two rounds of an activation of 16 MiB and a scratch block of 100 bytes.
SMALL = snapshot(
    [
        segment(BASE, 20 * MIB, [(BASE, 4 * MIB, 4 * MIB, "active_allocated"), (BASE + 4 * MIB, 16 * MIB, 0, "inactive")]),
        segment(BASE + 32 * MIB, 2 * MIB, [(BASE + 32 * MIB, 2 * MIB, 0, "inactive")]),
    ],
    [
        event
        for _ in range(2)
        for event in (
            entry("alloc", BASE + 4 * MIB, 16 * MIB),
            entry("alloc", BASE + 32 * MIB, 100),
            entry("free_requested", BASE + 32 * MIB, 100),
            entry("free_completed", BASE + 32 * MIB, 100),
            entry("free_requested", BASE + 4 * MIB, 16 * MIB),
            entry("free_completed", BASE + 4 * MIB, 16 * MIB),
        )
    ],
)


def pickled(value=None, protocol=4):
    return pickle.dumps(SMALL if value is None else value, protocol)
