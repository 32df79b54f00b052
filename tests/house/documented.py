"""Every command, flag and environment variable stands in --help and in README.md, and README.md promises no other.

usage: documented.py ROOT REPRISE
"""

import re
import subprocess
import sys

import tree

FLAG = re.compile(r"--[a-z][\w-]*")
OPTION_LINE = re.compile(r"^\s+(?:-\w,)?(--[a-z][\w-]*)", re.MULTILINE)
VARIABLE = re.compile(r'"(REPRISE_[A-Z0-9_]+)=?"')  # as a literal: how getenv, setenv and CLI11 name one
EVERYWHERE = {"--help", "--version"}


def subcommands(help_text):
    _, _, rest = help_text.partition("Subcommands:")
    return re.findall(r"^  ([a-z]+)\b", rest.split("\n\n")[0], re.MULTILINE)


def variables(root):
    for folder in tree.LIBRARIES:
        for path in tree.files(root, folder):
            if path.endswith(tree.C_FAMILY):
                yield from set(VARIABLE.findall(tree.text(root, path)))


def violations(root, ask):
    """`ask(words)` gives what `reprise *words --help` prints."""
    readme = tree.text(root, "README.md")
    top = ask(())
    helps = {name: ask((name,)) for name in subcommands(top)}
    if not helps:
        yield "reprise --help: no subcommands in it"
    for name, help_text in helps.items():
        # The lines that speak of this command: its row of the table, and examples. What follows ` -- ` is the job's.
        lines = [line.split(" -- ")[0] for line in readme.splitlines() if re.search(rf"(`|reprise ){name}\b", line)]
        flags = set(OPTION_LINE.findall(help_text)) - EVERYWHERE
        promised = {flag for line in lines for flag in FLAG.findall(line)} - EVERYWHERE
        if not lines:
            yield f"README.md: no word of the command {name}"
        yield from (f"README.md: no word of {name} {flag}" for flag in sorted(flags - promised))
        yield from (f"README.md: {name} knows no {flag}" for flag in sorted(promised - flags))
    help_texts = "\n".join((top, *helps.values()))
    for variable in sorted(set(variables(root))):
        for name, where in (("README.md", readme), ("reprise --help", help_texts)):
            if not re.search(rf"\b{variable}\b", where):
                yield f"{name}: no word of {variable}"


def main(root, reprise):
    def ask(words):
        return subprocess.run([reprise, *words, "--help"], capture_output=True, text=True, check=True).stdout

    return "\n".join(violations(root, ask)) or 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
