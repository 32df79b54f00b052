"""The scenarios of tests/cuda/ on this device: each prints all that a program can see, and must print the same with and
without Reprise. What they print without it is also compared with what they printed on the simulated device."""

import glob
import os
from concurrent.futures import ThreadPoolExecutor

from jobs import first_difference
from rows import FAIL, PASS, Finding

TOGETHER = 6
# What only the first export of a served block's memory can show: it is refused, where the driver would give it.
COLD_ONLY = {"ipc_of_a_synchronous_block"}


class Scenarios:
    def __init__(self, root, jobs, compiler):
        self.root = root
        self.jobs = jobs
        self.compiler = compiler

    def simulated(self, name):
        """What it printed on the simulated device, where the bundle was made; None where that is not known."""
        path = os.path.join(self.root, "tests/cuda/simulated", name + ".txt")
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as text:
            return text.read()

    def play(self, program, words, deadline):
        """What differs, a line each: between without and with, and between here and the simulated device."""
        name = " ".join(words)
        plain = self.jobs.run(f"scenario {name}", [program, *words], deadline)
        if plain.status != 0:
            return [], [f"{name}: fails here without Reprise: {plain.last_error()}"]
        served = self.jobs.run(f"scenario {name}", [program, *words], deadline, reprise=True)
        ours, simulators = [], []
        if served.status != 0:
            ours.append(f"{name}: status {served.status}: {served.last_error()}")
        elif served.out != plain.out:
            ours.append(f"{name}: {first_difference(plain.out, served.out)}")
        simulated = self.simulated(name) if len(words) == 1 else None
        if simulated is not None and simulated != plain.out:
            difference = first_difference(simulated, plain.out).replace("without", "simulated").replace("with", "here")
            simulators.append(f"{name}: {difference}")
        return ours, simulators

    def find(self, deadline):
        sources = sorted(glob.glob(os.path.join(self.root, "tests/cuda/scenarios/*.cc")))
        program = self.compiler.compile_cuda(
            "scenarios", [os.path.relpath(source, self.root) for source in sources], deadline
        )
        if isinstance(program, Finding):
            return program
        names = self.jobs.run("scenarios", [program], deadline).out.split()
        plays = [[name] for name in names] + [["warm", name] for name in names if name not in COLD_ONLY]
        with ThreadPoolExecutor(TOGETHER) as pool:
            found = list(pool.map(lambda words: self.play(program, words, deadline), plays))
        ours = [text for mine, _ in found for text in mine]
        figures = {
            "played": len(plays),
            "differs": ours,
            "simulator_differs": [text for _, other in found for text in other],
        }
        if ours or not plays:
            return Finding(
                FAIL, f"{len(ours)} of {len(plays)} differ: {ours[0] if ours else 'there are none'}", figures
            )
        return Finding(PASS, f"{len(plays)} plays the same", figures)
