"""A job that costs little: rounds of aligned allocations, the same in each, in any number of processes.

usage: rounds.py ROUNDS [STATUS]
"""

import ctypes
import sys

libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
for _ in range(int(sys.argv[1])):
    for block in [libc.aligned_alloc(64, 4096 * (i * 7 % 30 + 2)) for i in range(40)]:
        libc.free(block)
sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
