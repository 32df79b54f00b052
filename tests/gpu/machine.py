"""What is here: the device, what can be compiled and imported, and by that what a row has to be left out for."""

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import shutil

FRAMEWORKS = {"PyTorch": "torch", "JAX": "jax", "CuPy": "cupy"}


def devices(driver="libcuda.so.1"):
    """The names of the devices that the driver shows; none where there is no driver."""
    try:
        cuda = ctypes.CDLL(driver)
    except OSError:
        return []
    count = ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    names = []
    for device in range(count.value):
        name = ctypes.create_string_buffer(128)
        cuda.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode(errors="replace"))
    return names


def tool(name):
    """The path of a program of the toolkit, or None."""
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which(name) or shutil.which(name, path=os.path.join(toolkit, "bin"))


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


class Machine:
    """`simulated`: the folders of a simulated device, or None for the real one."""

    def __init__(self, simulated=None):
        self.simulated = simulated
        self.devices = [] if simulated else devices()
        self.nvcc = tool("nvcc")
        self.sanitizer = tool("compute-sanitizer")
        self.compiler = shutil.which("cc") if simulated else self.nvcc

    def missing(self, needs):
        have = {
            "a GPU": bool(self.devices),
            "a compiler": bool(self.compiler),
            "compute-sanitizer": bool(self.sanitizer),
            "NVML": not self.simulated and has_library("libnvidia-ml.so.1"),
            **{name: importlib.util.find_spec(module) is not None for name, module in FRAMEWORKS.items()},
        }
        return [need for need in needs if not have[need]]

    def simulated_library(self, name):
        return next(path for folder in self.simulated if os.path.exists(path := os.path.join(folder, name)))

    def facts(self):
        packages = ("torch", "jax", "jaxlib", "cupy-cuda13x", "cupy-cuda12x", "cupy", "numpy")
        return {
            "devices": self.devices or ["simulated"],
            "processor": processor(),
            "cores": len(os.sched_getaffinity(0)),
            "system": platform.platform(),
            "python": platform.python_version(),
            "packages": {name: found for name in packages if (found := version(name))},
            "nvcc": self.nvcc,
            "compute_sanitizer": self.sanitizer,
        }


def has_library(name):
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def processor():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
        for text in info:
            if text.startswith("model name"):
                return text.partition(":")[2].strip()
    return platform.machine()
