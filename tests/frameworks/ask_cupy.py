"""CuPy runs on a GPU or not at all: its import, and what it answers when asked for an array."""

import sys

import cupy

try:
    array = cupy.arange(1000, dtype=cupy.float32)
    print(float((array * array).sum()).hex())
except cupy.cuda.runtime.CUDARuntimeError as error:
    print(type(error).__name__, error)
    sys.exit(3)
