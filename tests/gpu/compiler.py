"""Programs made here, against the runtime that is here."""

import collections
import os
import threading

from jobs import PROGRAMS
from rows import FAIL, Finding


class Compiler:
    """`root`: what includes are written from; `out`: where programs go. Each is made once; compilers are jobs, too."""

    def __init__(self, machine, root, out, jobs):
        self.machine = machine
        self.jobs = jobs
        self.root = root
        self.out = out
        self.locks = collections.defaultdict(threading.Lock)  # by program: rows that want the same one run together

    def toolkit(self):
        return os.path.dirname(os.path.dirname(os.path.realpath(self.machine.nvcc)))

    def words(self, source, runtime, program):
        common = ["-O2", f"-I{self.root}", source, "-o", program]
        if not self.machine.simulated:
            found = ["-Xlinker", "-rpath", "-Xlinker", os.path.join(self.toolkit(), "lib64")]
            return [self.machine.nvcc, "-cudart", runtime, *common, *found]
        headers = f"-I{os.path.join(self.root, 'tests/simcuda/include')}"
        library = self.machine.simulated_library(
            {"shared": "libcudart.so.13", "static": "libsimcudart_static.a"}[runtime]
        )
        needed = ["-lstdc++", "-lpthread", "-ldl"]  # by the static one
        return [self.machine.compiler, "-std=gnu11", headers, *common, library, *needed]

    def make(self, words, program, deadline):
        with self.locks[program]:
            if os.path.exists(program):
                return program
            done = self.jobs.run(f"make {os.path.basename(program)}", words, deadline)
            if done.status != 0:
                return Finding(FAIL, f"does not compile: {(done.err or done.out).strip()[:300]}")
            return program

    def compile(self, name, deadline, runtime="shared"):
        """The path of a C program of programs/, or a Finding that says why there is none."""
        program = os.path.join(self.out, f"{name}-{runtime}")
        return self.make(self.words(os.path.join(PROGRAMS, name + ".c"), runtime, program), program, deadline)

    def one_unit(self, name, sources):
        """A file that includes `sources`, which lie below `root`: kernels in a header exist once then."""
        whole = os.path.join(self.out, name + ".cu")
        with open(whole, "w", encoding="utf-8") as out:
            out.writelines(f'#include "{source}"\n' for source in sources)
        return whole

    def compile_cuda(self, name, sources, deadline):
        """As compile, for C++ with kernels. It becomes one translation unit."""
        program = os.path.join(self.out, name)
        whole = self.one_unit(name, sources)
        words = [self.machine.nvcc, "-std=c++17", "-O2", "-arch=native", f"-I{self.root}", whole, "-o", program]
        return self.make([*words, "-L" + os.path.join(self.toolkit(), "lib64/stubs"), "-lcuda"], program, deadline)
