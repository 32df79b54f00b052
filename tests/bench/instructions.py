"""Counts the instructions that a benchmark executes inside one of its functions, by callgrind."""
import os
import re
import subprocess


def count(command, function, folder, preload=None):
    """Instructions inside `function` of a program, whose outputs go to `folder`/out."""
    # MALLOC_PERTURB_, which meson sets, has the C library write to every block.
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("REPRISE_") and name not in ("LD_PRELOAD", "MALLOC_PERTURB_")}
    environment["REPRISE_OUT"] = os.path.join(folder, "out")
    if preload:
        environment["LD_PRELOAD"] = preload
    counts = os.path.join(folder, "counts")
    # Fair: the planner's thread gets its turn at once, or what is counted would depend on when it does.
    subprocess.run(["valgrind", "--fair-sched=yes", "--tool=callgrind", f"--callgrind-out-file={counts}",
                    f"--toggle-collect={function}", *command], env=environment, check=True, capture_output=True, text=True)
    with open(counts) as file:
        return int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M).group(1))
