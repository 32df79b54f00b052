"""Arithmetic in CuPy with its pool switched off, so that every array is a call to the driver, in rounds that are all
alike. Prints a number of every round, in which each element has a part. In integers: a running sum is taken in no fixed
order on a GPU, and one of floating-point numbers differs in its last bit from run to run."""

import cupy

ROUNDS, UNIT = 40, 1 << 16
ELEMENTS = [UNIT * count for count in (1, 6, 4, 9)]  # of different sizes, as the layers of a model are

cupy.cuda.set_allocator(None)
layers = [cupy.arange(count, dtype=cupy.uint64) for count in ELEMENTS]
for _ in range(ROUNDS):
    sums = [cupy.cumsum(layer * layer) for layer in layers]  # all alive at once, so that a round rises and falls
    layers = [layer ^ total for layer, total in zip(layers, sums)]
    print(*(hex(int(total[-1])) for total in sums))
    del sums
