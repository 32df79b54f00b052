"""What was found as an entry for docs/results: when, where and by what command, and all rows."""

import os

import comparison
from rows import FAIL, LEFT_OUT, MEASURED, PASS, replace
from watch_memory import INTERVAL


def gibibytes(count):
    return f"{count / 2**30:.1f} GiB"


def where(run):
    """A run's date, commit, machine and command, on one paragraph."""
    machine, bundle = run["machine"], run["bundle"]
    devices = ", ".join(f"{device['name']} ({gibibytes(device['bytes'])})" for device in machine["devices"])
    parts = [
        run["started"],
        f"Reprise {bundle['version']}, commit {bundle['commit']}, built on {bundle['built_on']} by {bundle['compiler']}",
        devices,
        f"driver {machine.get('driver', 'of unknown version')}",
        f"{gibibytes(machine['in_use'])} of the device in use before" if "in_use" in machine else "",
        f"{machine['processor']}, {machine['cores']} cores, {gibibytes(machine['memory'])}, {machine['system']}",
        f"Python {machine['python']}",
        *(f"{name} {version}" for name, version in machine["packages"].items()),
        f"nvcc {machine['nvcc']}" if machine["nvcc"] else "no nvcc",
    ]
    return f"{'; '.join(part for part in parts if part)}.\n\n    {run['command']}\n"


def row(cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


def written(report):
    runs = [f"Run {number}: {where(run)}" for number, run in enumerate(report.runs, 1)]
    text = ["## What a GPU says\n\n", "\n".join(runs), "\n"]
    tables = {model: comparison.cells(report.results, model) for model in comparison.TRAINED}
    tables = {model: lines for model, lines in tables.items() if any(cells[-1] for cells in lines.values())}
    for model, lines in tables.items():
        text += [row((model, *comparison.HEADER)), row(["---"] * (1 + len(comparison.HEADER)))]
        text += [row((name, *cells)) for name, cells in lines.items()]
        text.append("\n")
    if tables:
        text.append(
            f"Device peaks are the whole device's as NVML shows it every {INTERVAL * 1000:.0f} ms, less what was in "
            "use before; `reserved` and `allocated` are PyTorch's word; without its cache it keeps none, and `reserved` is "
            "Reprise's. Iterations per second are the median (10th to 90th percentile) of one process each. The largest batch is "
            f"sought with {gibibytes(comparison.CAP)} free. Nothing else ran meanwhile.\n\n"
        )
    text.append(
        "Most checks ran side by side: their seconds, which hold compilers, the start of every process and the "
        "wait for one another, compare nothing. `requests` are all that a job asked for; "
        "`outside` are those left to the driver, `live peak` is with them; `by plan` counts from the first plan "
        "on. A cache like PyTorch's own asks seldom, and has nothing to plan.\n\n"
    )
    text += [row(("row", "verdict", "run", "seconds", "says")), row(["---"] * 5)]
    order = (FAIL, PASS, MEASURED, LEFT_OUT)
    for result in sorted(report.results, key=lambda result: order.index(result.verdict)):
        text.append(row((result.name, result.verdict, result.run + 1, result.seconds, result.says)))
    return "".join(text)


def write(report):
    replace(os.path.join(report.folder, "results.md"), written(report))
