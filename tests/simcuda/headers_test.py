"""Our headers say what the toolkit's say: every constant, every layout, every signature and every renaming, and the
versions of functions.def. Without an installed toolkit there is nothing to compare with, and the test is skipped.

usage: headers_test.py COMPILER...
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
VERSION = 13000  # of the headers

PROGRAM = """
#include <cstddef>
#include <cstdio>
#include "cuda.h"
#include "cuda_runtime_api.h"
#include "cupti.h"
template <typename T> const char* Type() {{ return __PRETTY_FUNCTION__; }}
#define TEXT(name) #name
#define NAME(name) TEXT(name)
int main() {{
{lines}
}}
"""


def ours(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as source:
        return re.sub(r"//[^\n]*", "", source.read())


def constants():
    for header in ("include/cuda_enums.h", "include/runtime_types.h", "include/cupti.h"):
        for body in re.findall(r"enum (?:\w+ )?\{(.*?)\}", ours(header), re.DOTALL):
            yield from re.findall(r"(\w+)(?: =|,)", body)
    for header in ("include/cuda.h", "include/cuda_structs.h", "include/cuda_runtime_api.h"):
        yield from re.findall(r"#define ((?:CU_|CUDA_|CUDART_V|cuda[A-Z])\w+) (?!cuda)\S", ours(header))


def fields(body):
    body = re.sub(r"struct \{.*?\} (\w+);", r"int \1;", body, flags=re.DOTALL)
    return re.findall(r"(\w+)(?:\[[^]]*\])?(?:;|,)", body)


def structures():
    for header in ("include/cuda_structs.h", "include/runtime_types.h"):
        for tag, body in re.findall(r"struct (\w+) \{\n(.*?)\n\}", ours(header), re.DOTALL):
            yield f"struct {tag}", fields(body)
    for body, name in re.findall(r"typedef struct SIM_RECORD \{\n(.*?)\n\} (\w+);", ours("include/cupti.h"), re.DOTALL):
        yield name, [field for field in fields(body) if field != "behind"]  # what is not filled in, as one


def functions():
    for header in ("include/cuda.h", "include/cuda_runtime_api.h", "include/cupti.h"):
        pattern = r"^(?:CUresult CUDAAPI|[\w ]+\*? CUDARTAPI|CUptiResult CUPTIAPI) (\w+)\("
        yield from re.findall(pattern, ours(header), re.MULTILINE)


def program():
    lines = [f'printf("{name} %lld\\n", (long long)({name}));' for name in constants()]
    for tag, names in structures():
        lines.append(f'printf("{tag} %zu\\n", sizeof({tag}));')
        lines += [f'printf("{tag}.{name} %zu\\n", offsetof({tag}, {name}));' for name in names]
    for name in functions():
        lines.append(f'printf("{name} is %s: %s\\n", NAME({name}), Type<decltype(&{name})>());')
    return PROGRAM.format(lines="\n".join(lines))


def table(compiler, folder, source, include, defines):
    """What the program prints when built against the headers in `include`."""
    built = os.path.join(folder, "table")
    subprocess.run([*compiler, "-w", "-std=c++20", *defines, "-I", include, source, "-o", built], check=True)
    return subprocess.run([built], check=True, capture_output=True, text=True).stdout.splitlines()


def differences(compiler, toolkit):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "table.cc")
        with open(source, "w", encoding="utf-8") as out:
            out.write(program())
        for defines in ([], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]):
            mine = table(compiler, folder, source, os.path.join(HERE, "include"), defines)
            theirs = table(compiler, folder, source, toolkit, defines)
            print(f"{len(mine)} lines compared {' '.join(defines)}")
            yield from (f"ours: {a}\n  toolkit: {b}" for a, b in zip(mine, theirs, strict=True) if a != b)


def unknown_versions(toolkit):
    """Rows of functions.def for which the toolkit has no function type."""
    with open(os.path.join(toolkit, "cudaTypedefs.h"), encoding="utf-8") as source:
        known = set(re.findall(r"PFN_(\w+)\)", source.read()))
    for kind, name, since in re.findall(r"^SIM_(\w+)\((\w+), (\d+),", ours("driver/functions.def"), re.MULTILINE):
        suffixes = ("_ptsz", "_ptds") if kind == "PER_THREAD" else ("",)
        if int(since) > VERSION:
            continue  # the headers of that time are to be compared with
        if not any(f"{name}_v{since}{suffix}" in known for suffix in suffixes):
            yield f"functions.def: {name} as of {since} ({kind})"


def main(compiler):
    toolkit = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
    if not all(os.path.exists(os.path.join(toolkit, header)) for header in ("cuda.h", "cupti.h")):
        return SKIPPED
    with open(os.path.join(toolkit, "cuda.h"), encoding="utf-8") as source:
        if f"#define CUDA_VERSION {VERSION}" not in source.read():
            return SKIPPED
    return "\n".join([*differences(compiler, toolkit), *unknown_versions(toolkit)]) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
