"""The list of hooked driver calls (replay/cuda_calls.def) is the only place where names, versions and types of a
library that is not ours are written down. It is held against what is exported, against the documentation, and, where
the CUDA toolkit is installed, against the toolkit's own headers: a name that means another function there, or a
struct of another size, would hand the driver a wrong call."""
import os
import re
import subprocess
import tempfile
import unittest
from typing import NamedTuple

from preloading import built
from shim_files import SOURCE, Rules, exported, names_in_map, names_in_table, source

ALSO_EXPORTED = {"__asan_default_options", "dlsym", "reprise_cuda_marker"}
OLD_FORMS = {"cuStreamBeginCapture", "cuStreamBeginCapture_ptsz"}  # of other arguments; the headers keep no type
CUDA_HEADERS = "/usr/local/cuda/include"
ROW = re.compile(r'^(CALL|AGAIN|LOOKUP)\((\w+), "(\w+)", (\d+), (ANY|PER_THREAD),', re.M)


class Row(NamedTuple):
    kind: str
    symbol: str
    query: str
    since: int
    per_thread: bool


def rows(text):
    return [Row(kind, symbol, query, int(since), streams == "PER_THREAD")
            for kind, symbol, query, since, streams in ROW.findall(text)]


def disagreements(table, map_text, readme, names_exported):
    """Names that one of the lists has and another has not, or has twice."""
    hooks = [row.symbol for row in rows(table)]
    documented = names_in_table(readme, "| CUDA hook |")
    expected = set(hooks) | ALSO_EXPORTED
    return {
        "twice in cuda_calls.def": {name for name in hooks if hooks.count(name) > 1},
        "cuda.map": names_in_map(map_text) ^ expected,
        "exported": names_exported ^ expected,
        "shim/README.md": set(documented) ^ (set(hooks) | {"dlsym"}),
        "twice in shim/README.md": {name for name in documented if documented.count(name) > 1},
    }


class Library(Rules, unittest.TestCase):
    shim = built("CUDA_SHIM")

    def test_one_list_of_hooks(self):
        table = source("replay/cuda_calls.def")
        self.assertIn("cuMemAllocAsync", {row.symbol for row in rows(table)})
        self.assertEqual(len(rows(table)), len(re.findall(r"^(?:CALL|AGAIN|LOOKUP)\(", table, re.M)))
        found = disagreements(table, source("shim/cuda.map"), source("shim/README.md"), exported(self.shim))
        self.assertEqual({where: names for where, names in found.items() if names}, {})


class ListsThatDisagree(unittest.TestCase):
    """The same question about lists that are wrong."""

    table = 'CALL(cuOne, "cuOne", 1, ANY,\nLOOKUP(cuTwo_v2, "cuTwo", 2, PER_THREAD,\n'
    map_text = "global: cuOne; cuTwo_v2; __asan_default_options; dlsym; reprise_cuda_marker; local: *;"
    readme = "| CUDA hook |\n|---|\n| `cuOne`, `cuTwo_v2` |\n| `dlsym` |\n\n"
    names = {"cuOne", "cuTwo_v2"} | ALSO_EXPORTED

    def wrong(self, **change):
        lists = dict(table=self.table, map_text=self.map_text, readme=self.readme, names_exported=self.names)
        found = disagreements(**{**lists, **change})
        return {where for where, names in found.items() if names}

    def test_agreement(self):
        self.assertEqual(self.wrong(), set())

    def test_each_list_is_looked_at(self):
        self.assertEqual(self.wrong(map_text=self.map_text.replace("cuOne;", "")), {"cuda.map"})
        self.assertEqual(self.wrong(names_exported=self.names | {"cuStray"}), {"exported"})
        self.assertEqual(self.wrong(readme=self.readme.replace("cuOne", "cuOther")), {"shim/README.md"})
        self.assertEqual(self.wrong(readme=self.readme.replace("`dlsym`", "`dlsym`, `cuOne`")),
                         {"twice in shim/README.md"})
        self.assertEqual(self.wrong(table=self.table + 'CALL(cuOne, "cuOne", 3, ANY,\n'),
                         {"twice in cuda_calls.def"})


def meanings(table, newest, per_thread):
    """What each query means in the newest version, as cuGetProcAddress would be answered."""
    known = [row for row in table if row.since <= newest and (per_thread or not row.per_thread)]
    return {row.query: row.symbol for row in sorted(known, key=lambda row: (row.since, row.per_thread))}


def header_check(table, newest, per_thread):
    """A program that compiles if the toolkit's headers agree with the table."""
    lines = ['#include "replay/abi.h"', '#include "tests/shim/cuda_headers.h"']  # in this order: cuda.h renames
    for query, symbol in meanings(table, newest, per_thread).items():
        if not (per_thread and query == "cuGetProcAddress"):  # an inline function of the header there
            lines.append(f'static_assert(Same(NAME({query}), "{symbol}"), "{query} is not {symbol}");')
    typed = {(row.query, row.per_thread): f"PFN_{row.query}_v{row.since}" + ("_ptsz" if row.per_thread else "")
             for row in table if row.since <= newest}
    for row in table:
        # A call of an older version, for which the headers keep no type, is caught where its arguments are the same.
        if row.kind != "LOOKUP" and row.since <= newest and row.symbol not in OLD_FORMS:
            theirs = typed[row.query, row.per_thread]
            lines.append(f'static_assert(kAlike<{theirs}, decltype(reprise_cuda_calls::{row.symbol})>, '
                         f'"the type of {row.symbol}");')
    return "\n".join(lines) + "\n"


def toolkit_version():
    with open(os.path.join(CUDA_HEADERS, "cuda.h")) as header:
        return int(re.search(r"#define CUDA_VERSION (\d+)", header.read()).group(1))


@unittest.skipUnless(os.path.exists(os.path.join(CUDA_HEADERS, "cudaTypedefs.h")), "no CUDA toolkit here")
class Headers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def errors(self, table, abi=None):
        """What the compiler says to a table and to a seam that differ from ours where they are given."""
        os.makedirs(os.path.join(self.folder, "replay"), exist_ok=True)
        for name, text in (("cuda_calls.def", table), ("abi.h", abi or source("replay/abi.h"))):
            with open(os.path.join(self.folder, "replay", name), "w") as file:
                file.write(text)
        said = ""
        for per_thread in (False, True):
            program = os.path.join(self.folder, "check.cc")
            with open(program, "w") as file:
                file.write(header_check(rows(table), toolkit_version(), per_thread))
            macro = ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"] if per_thread else []
            done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", *macro, "-I", self.folder, "-I", SOURCE,
                                   "-isystem", CUDA_HEADERS, program], capture_output=True, text=True)
            said += done.stderr
        return said

    def test_names_versions_and_types_are_the_headers(self):
        self.assertEqual(self.errors(source("replay/cuda_calls.def")), "")

    def test_it_sees_a_wrong_table(self):
        table = source("replay/cuda_calls.def")
        for was, becomes, said in [
            ("CALL(cuMemFree_v2, ", "CALL(cuMemFree, ", "cuMemFree is not cuMemFree"),
            ('"cuMemAllocAsync", 11020, ANY', '"cuMemAllocAsync", 11030, ANY', "PFN_cuMemAllocAsync_v11030"),
            ("CALL(cuMemFreeAsync_ptsz, ", "CALL(cuMemFreeAsync_ptds, ", "cuMemFreeAsync is not"),
            ("(int device, cu_pool pool)", "(cu_pool device, int pool)", "the type of cuDeviceSetMemPool"),
            ("(cu_pool pool, size_t keep)", "(cu_pool pool, int keep)", "the type of cuMemPoolTrimTo"),
        ]:
            with self.subTest(becomes):
                self.assertIn(was, table)
                self.assertIn(said, self.errors(table.replace(was, becomes)))

    def test_it_sees_wrong_types(self):
        table, abi = source("replay/cuda_calls.def"), source("replay/abi.h")
        for was, becomes in [("unsigned char reserved[54]", "unsigned char reserved[46]"),
                             ("  int handle_types;", "  size_t handle_types;"),
                             ("typedef uint64_t cu_address", "typedef uint32_t cu_address")]:
            with self.subTest(becomes):
                self.assertIn(was, abi)
                self.assertNotEqual(self.errors(table, abi.replace(was, becomes)), "")


if __name__ == "__main__":
    unittest.main()
