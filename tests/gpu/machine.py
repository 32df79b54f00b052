"""What is here: the device, what can be compiled and imported, and by that what a row has to be left out for."""

import ctypes
import glob
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import threading

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
FRAMEWORKS = {"PyTorch": "torch", "JAX": "jax", "CuPy": "cupy"}
LIBRARIES = {"PyTorch": ("torch", "nvidia"), "JAX": ("jaxlib", "jax_plugins", "nvidia"), "CuPy": ("cupy", "nvidia")}


def devices():
    """What the driver says of each device; none where there is no driver. SystemExit where it refuses."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count = ctypes.c_int()
    error = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if error not in (0, NO_DEVICE):
        sys.exit(f"gpu-check: the driver is here, but answers with error {error}")
    found = []
    for device in range(count.value):
        name, total = ctypes.create_string_buffer(128), ctypes.c_size_t()
        cuda.cuDeviceGetName(name, len(name), device)
        cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device)
        found.append({"name": name.value.decode(errors="replace"), "bytes": total.value})
    return found


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def asked_of_nvml():
    """The driver's version and the bytes of the first device that are in use and free; nothing where there is no NVML."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return {}
    device, memory, text = ctypes.c_void_p(), Memory(), ctypes.create_string_buffer(96)
    if nvml.nvmlInit_v2() != 0:
        return {}
    found = {}
    if nvml.nvmlSystemGetDriverVersion(text, len(text)) == 0:
        found["driver"] = text.value.decode(errors="replace")
    if (
        nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
        and nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
    ):
        found.update(in_use=memory.used, free=memory.free)
    return found


def output(*words):
    """What a program says; nothing where it cannot be asked."""
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def tool(name):
    """The path of a program of the toolkit, or None."""
    toolkit = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which(name) or shutil.which(name, path=os.path.join(toolkit, "bin"))


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def bytecode(folder):
    """What tells Python to leave no bytecode behind; or to write it to `folder`, where whoever installed the frameworks has
    had none made: each import of one compiles it anew then, for seconds."""
    specs = [importlib.util.find_spec(module) for module in FRAMEWORKS.values()]
    made = all(os.path.exists(spec.cached or "") for spec in specs if spec)
    return {"PYTHONDONTWRITEBYTECODE": "1" if made else "", "PYTHONPYCACHEPREFIX": "" if made else folder}


def libraries(needs):
    """The files of the libraries that jobs load which need these frameworks."""
    modules = {module: None for need in needs for module in LIBRARIES.get(need, ())}  # in this order
    specs = [importlib.util.find_spec(module) for module in modules]
    folders = [folder for spec in specs if spec for folder in spec.submodule_search_locations or ()]
    return [path for folder in folders for path in glob.glob(folder + "/**/*.so*", recursive=True)]


def read_in(paths):
    """Begins to read them, for the page cache: several GiB that the first jobs would wait for, as they touch them here and
    there, on a machine that has just been started."""

    def read():
        block = bytearray(8 << 20)
        for path in paths:
            try:
                with open(path, "rb", buffering=0) as file:
                    while file.readinto(block):
                        pass
            except OSError:
                pass  # whoever needs it will say so

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


class Machine:
    """`simulated`: the folders of a simulated device, or None for the real one."""

    def __init__(self, simulated=None):
        self.simulated = simulated
        self.devices = [] if simulated else devices()
        self.nvml = {} if simulated else asked_of_nvml()
        self.nvcc = tool("nvcc")
        self.sanitizer = tool("compute-sanitizer")
        self.compiler = shutil.which("cc") if simulated else self.nvcc

    def missing(self, needs):
        have = {
            "a GPU": bool(self.devices),
            "a compiler": bool(self.compiler),
            "compute-sanitizer": bool(self.sanitizer),
            "NVML": "in_use" in self.nvml,
            **{name: importlib.util.find_spec(module) is not None for name, module in FRAMEWORKS.items()},
        }
        return [need for need in needs if not have[need]]

    def simulated_library(self, name):
        return next(path for folder in self.simulated if os.path.exists(path := os.path.join(folder, name)))

    def facts(self):
        packages = ("torch", "jax", "jaxlib", "cupy-cuda13x", "cupy-cuda12x", "cupy", "numpy")
        release = re.search(r"release ([0-9.]+)", output(self.nvcc, "--version")) if self.nvcc else None
        return {
            "devices": self.devices or [{"name": "simulated", "bytes": 0}],
            **self.nvml,
            "processor": processor(),
            "cores": len(os.sched_getaffinity(0)),
            "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": platform.platform(),
            "python": platform.python_version(),
            "packages": {name: found for name in packages if (found := version(name))},
            "nvcc": release[1] if release else None,
            "compute_sanitizer": self.sanitizer,
        }


def processor():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
        for text in info:
            if text.startswith("model name"):
                return text.partition(":")[2].strip()
    return platform.machine()
