"""What the preload library is made of: it must be loadable by every process, so it needs libc alone, at versions
that old systems have, is small, and exports nothing but its hooks. The four lists of hooks must be one."""
import re
import unittest

from preloading import built
from shim_files import Rules, exported, glibc_versions, names_in_map, names_in_table, needed, output, source

ALSO_EXPORTED = {"__asan_default_options", "reprise_host_marker"}


def hooks_in_def():
    return set(re.findall(r"^(?:HOOK\([^,]+, |ALSO_FREES\()(\w+),", source("shim/host_hooks.def"), re.M))


class Library(Rules, unittest.TestCase):
    shim = built("SHIM")

    def test_one_list_of_hooks(self):
        hooks = hooks_in_def()
        self.assertIn("posix_memalign", hooks)
        self.assertEqual(names_in_map(source("shim/host.map")), hooks | ALSO_EXPORTED)
        self.assertEqual(exported(self.shim), hooks | ALSO_EXPORTED)
        self.assertEqual(set(names_in_table(source("shim/README.md"), "| host hook |")), hooks)


class Core(unittest.TestCase):
    def test_a_threads_variables_are_there_before_it_runs(self):
        """Others the C library takes at their first use, and ends the job where it has no memory for them. There
        is room for little: libraries that are opened late share some 1.6 KB."""
        core = built("CORE")
        self.assertNotRegex(output("readelf", "-rW", core), "DTPMOD|TLSDESC")
        size = re.search(r"^ +TLS( +0x\w+){4} +(0x\w+)", output("readelf", "-lW", core), re.M).group(2)
        self.assertLess(int(size, 16), 256)


class ThisTestCanFail(unittest.TestCase):
    """The same questions about a library that breaks every rule."""

    def test_it_sees_a_library_too_many_a_new_glibc_and_a_stray_name(self):
        core = built("FAKE_CORE_LIBRARY")
        self.assertGreater(max(glibc_versions(core)), (2, 14))
        self.assertIn("reprise_core_open_host", exported(core))
        self.assertIn("libplugin.so", needed(built("CORE_OVER_PLUGIN")))


if __name__ == "__main__":
    unittest.main()
