"""The scenarios of tests/cuda/ on this device: each prints all that a program can see, and must print the same with and
without Reprise. What they print without it is also compared with what they printed on the simulated device."""

import glob
import itertools
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from jobs import NOTHING_CAUGHT, first_difference
from rows import FAIL, LEFT_OUT, PASS, Deadline, Finding

TOGETHER = 8  # at most: contexts begin and end one after the other in the driver. An H200 plays a hundred in a minute
EACH = 1 << 30  # bytes of the device for one of them
LONGEST = 20  # seconds for one of them, which takes milliseconds beside the context's beginning
# What only the first export of a served block's memory can show: it is refused, where the driver would give it.
COLD_ONLY = {
    "ipc_of_a_synchronous_block",
    "ipc_of_a_synchronous_block_beside_a_training_in_stream_order",
    "descriptor_of_a_synchronous_block",
    "synchronous_copies_of_a_synchronous_block",
    "limit_of_a_process_that_exports",
}
# What shows another memory in stream order: it is refused, where the driver would give it.
REFUSED = {"handle_for_an_address_range", "exports_of_an_async_block"}
# Where a primary context ends when the program releases it. After a training it does not: the runtime holds it, too,
# once it has launched a kernel.
ENDS_WITH_ITS_RELEASE = {
    "end_of_the_primary_context_that_begins_at_once",
    "end_of_the_primary_context_beside_new_streams",
}
# What a driver of CUDA 13.3 or later shows alone, as the simulated one does.
NEWER = {"capture_once_more_into_a_graph"}
# What did not always end on an H200 (driver 580.159.04) without Reprise: the first never did; the other stood still where a
# thread ended that had freed in a thread-local destructor, in two runs, and in a third went through all its rounds. They
# are begun first, so that nobody waits for them alone.
MAY_NOT_END = {"capture_beside_a_thread_that_frees", "threads_that_free_at_their_end"}
THE_DEVICES_OWN = re.compile(r"total \d+ MiB")


@dataclass
class Play:
    """What one scenario came to, a line for each difference; neither: it was not played."""

    played: bool = True
    endless: str = ""  # how far it came without Reprise, if there it did not end: then it was not played either
    fails: bool = False  # here, without Reprise
    ours: list = field(default_factory=list)  # without and with Reprise
    simulators: list = field(default_factory=list)  # here and on the simulated device
    compared: bool = False  # with the simulated device


def refused_once(before, after):
    """Whether one line differs."""
    lines = list(itertools.zip_longest(before.splitlines(), after.splitlines()))
    return sum(a != b for a, b in lines) == 1


class Scenarios:
    """`root`: of the sources; `simulated`: the folder of what they printed on the simulated device, if that is known;
    `together`: how many have room beside one another."""

    def __init__(self, root, simulated, jobs, compiler, together=TOGETHER):
        self.root = root
        self.simulated = simulated
        self.jobs = jobs
        self.compiler = compiler
        self.together = together

    def sources(self):
        found = sorted(glob.glob(os.path.join(self.root, "tests/cuda/scenarios/*.cc")))
        return [os.path.relpath(source, self.root) for source in found]

    def run(self, program, words, deadline, reprise):
        """What it came to, or in words how far, where it did not end."""
        try:
            return self.jobs.run(f"scenario {' '.join(words)}", [program, *words], deadline, reprise=reprise)
        except subprocess.TimeoutExpired as error:
            return "it does not end" + "".join(f", after {line!r}" for line in error.output.splitlines()[-1:])

    def play(self, program, words, row):
        if row.left() < 1:
            return Play(played=False)
        name = " ".join(words)
        plain = self.run(program, words, Deadline(min(LONGEST, row.left())), reprise=False)
        if isinstance(plain, str):
            return Play(played=False, endless=f"{name}: {plain}" if row.left() >= 1 else "")
        if plain.status != 0:
            return Play(fails=True, simulators=[f"{name}: fails here without Reprise: {plain.last_error()}"])
        play = Play()
        served = self.run(program, words, Deadline(min(LONGEST, row.left())), reprise=True)
        if isinstance(served, str):
            return Play(ours=[f"{name}: {served}"]) if row.left() >= 1 else Play(played=False)
        if served.status != 0:
            play.ours.append(f"{name}: status {served.status}: {served.last_error()}")
        elif words[-1] in REFUSED and not refused_once(plain.out, served.out):
            play.ours.append(f"{name}: it is not refused, or not alone")
        elif words[-1] not in REFUSED and served.out != plain.out:
            play.ours.append(f"{name}: {first_difference(plain.out, served.out)}")
        elif words[0] == "warm" and not served.figures.get("requests"):  # the others may have asked for nothing
            play.ours.append(f"{name}: {NOTHING_CAUGHT}")
        path = os.path.join(self.simulated, name + ".txt")
        if len(words) == 1 and name not in NEWER and os.path.exists(path):
            play.compared = True
            with open(path, encoding="utf-8") as text:
                there, here = (THE_DEVICES_OWN.sub("total", out) for out in (text.read(), plain.out))
            if there != here:
                difference = first_difference(there, here, "simulated", "here")
                play.simulators.append(f"{name}: {difference}")
        return play

    def names(self, program, alone, deadline):
        want_most = set(self.jobs.run("scenarios", [program, "--alone"], deadline).out.split())
        if alone:
            return want_most
        return set(self.jobs.run("scenarios", [program], deadline).out.split()) - want_most

    def find(self, alone, warm):
        """The check that plays those that want most of the device, one after the other, or all others; after a training
        loop or without one."""

        def check(deadline):
            program = self.compiler.compile_cuda("scenarios", self.sources(), deadline)
            if isinstance(program, Finding):
                return program
            names = self.names(program, alone, deadline)
            if warm:
                names = names - COLD_ONLY - ENDS_WITH_ITS_RELEASE
            listed = sorted(names, key=lambda name: (name not in MAY_NOT_END, name))
            words = [["warm", name] if warm else [name] for name in listed]
            with ThreadPoolExecutor(1 if alone else self.together) as pool:
                plays = list(pool.map(lambda word: self.play(program, word, deadline), words))
            return self.told(plays)

        return check

    @staticmethod
    def told(plays):
        played = [play for play in plays if play.played]
        fails = sum(play.fails for play in played)
        ours = [text for play in played for text in play.ours]
        endless = [play.endless for play in plays if play.endless]
        figures = {
            "played": len(played),
            "fails_without": fails,
            "not_played": len(plays) - len(played),
            "endless_without": endless,
            "differs": ours,
            "compared_with_simulator": sum(play.compared for play in played),
            "simulator_differs": [text for play in played for text in play.simulators],
        }
        rest = f"; {fails} fail here without Reprise" if fails else ""
        rest += f"; {len(endless)} not played, no end in {LONGEST} s without Reprise" if endless else ""
        late = figures["not_played"] - len(endless)
        rest += f"; {late} not played, no time left" if late else ""
        whole = len(played) == len(plays)
        if ours:
            return Finding(FAIL, f"{len(ours)} of {len(played)} differ: {ours[0]}{rest}", figures, whole)
        same = len(played) - fails
        verdict = PASS if same > 0 else FAIL if played else LEFT_OUT
        return Finding(verdict, f"{same} plays the same{rest}", figures, whole)
