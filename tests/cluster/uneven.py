"""A job whose ranks need not hold alike: 8 MiB on all of them, and more on those that are told to.

usage: uneven.py EXTRA_MIB [ROUNDS]
"""

import ctypes
import sys

libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def weights():
    return [libc.aligned_alloc(64, 1 << 20) for _ in range(8)]


def padding(count):
    return [libc.aligned_alloc(64, 1 << 19) for _ in range(2 * count)]


libc.free(libc.aligned_alloc(64, 8192))  # the first of a process has no line
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    for block in weights() + padding(int(sys.argv[1])):
        libc.free(block)
