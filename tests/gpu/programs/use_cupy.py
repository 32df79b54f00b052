"""Arithmetic in CuPy with its pool switched off, so that every array is a call to the driver. Prints the results to the
last bit."""

import cupy

cupy.cuda.set_allocator(None)
values = cupy.arange(1 << 18, dtype=cupy.float64) / (1 << 18)
for _ in range(24):
    squares = values * values
    sums = cupy.cumsum(squares)
    values = (values + sums / sums[-1]) / 2
    print(float(sums[-1]).hex(), float(values[12345]).hex())
