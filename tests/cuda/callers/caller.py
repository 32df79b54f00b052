"""The calls of driver_calls.h from Python."""
import ctypes

BYTES = 1 << 20
driver = ctypes.CDLL("libcuda.so.1")


def expect(name, *arguments):
    result = getattr(driver, name)(*arguments)
    if result:
        raise SystemExit(f"{name} answered {result}")


device, context = ctypes.c_int(), ctypes.c_void_p()
expect("cuInit", 0)
expect("cuDeviceGet", ctypes.byref(device), 0)
expect("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
expect("cuCtxSetCurrent", context)
block, others = ctypes.c_uint64(), [ctypes.c_uint64(), ctypes.c_uint64()]
unused, total = ctypes.c_size_t(), ctypes.c_size_t()
expect("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(BYTES))
for other in others:
    expect("cuMemAllocAsync", ctypes.byref(other), ctypes.c_size_t(BYTES), None)
expect("cuMemGetInfo_v2", ctypes.byref(unused), ctypes.byref(total))
for other in others:
    expect("cuMemFreeAsync", other, None)
expect("cuMemFree_v2", block)
expect("cuCtxSynchronize")
print(f"free + used <= total: {int(unused.value + 3 * BYTES <= total.value)}")
