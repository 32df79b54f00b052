"""Our dlsym stands in front of everybody's. What is not a hooked name must be found exactly as without it, wherever
it is asked for and whoever asks: a dlsym that changes its caller breaks every other library's RTLD_NEXT, and hangs
programs that have never heard of CUDA."""
import unittest

from preloading import Installed, built, run


class Lookups(unittest.TestCase):
    def setUp(self):
        self.at = Installed("FAKE_CUDA_CORE", shim="CUDA_SHIM")
        self.addCleanup(self.at.close)

    def lookups(self, group, preload=(), **variables):
        done = run([built("LOOKUPS"), group, built("CU_NAMES")], preload=preload, **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def check_same(self, group, before=(), after=()):
        without = self.lookups(group, [*before, *after])
        self.assertEqual(self.lookups(group, [*before, self.at.shim, *after]), without)
        return without

    def test_what_is_not_hooked(self):
        said = self.check_same("unhooked")
        self.assertIn("local cudnnCreate: libcu_names.so+0x", said)
        self.assertIn("local cuMemAlloc: libcu_names.so+0x", said)

    def test_hooked_names_without_a_driver(self):
        self.assertNotIn("+0x", self.check_same("no_driver"))

    def test_errors(self):
        self.assertIn("cuMemFree_v2 after a failure: 1\n  error: none\n", self.check_same("errors"))

    def test_the_caller_of_a_next_lookup(self):
        self.assertIn("layered: 17\n", self.check_same("next"))

    def test_the_caller_of_a_next_lookup_beside_other_preloads(self):
        for another in [built("LAYERED_PRELOAD"), built("LAYERED_PRELOAD_OF_OLD_HASH")]:
            self.assertIn("layered: 37\n", self.check_same("next", before=[another]))
            self.assertIn("layered: 37\n", self.check_same("next", after=[another]))

    def test_hooked_names_are_swapped_where_they_exist(self):
        without, under = self.lookups("found"), self.lookups("found", [self.at.shim])
        self.assertEqual(without.count("libcu_names.so+0x"), 3)
        self.assertEqual(without.count(": none"), 1)
        self.assertEqual(under.count("libreprise.so+0x"), 3, under)
        self.assertEqual(under.count(": none"), 1)

    def test_hooked_names_of_a_driver_that_is_preloaded_before_us(self):
        self.assertEqual(self.lookups("found", [built("CU_NAMES"), self.at.shim]).count("libreprise.so+0x"), 4)

    def test_off_swaps_and_keeps_nothing(self):
        for group in ["found", "closed"]:
            without = self.lookups(group)
            for variables in [{"REPRISE_DISABLE": "1"}, {"REPRISE_MODE": "off"}]:
                self.assertEqual(self.lookups(group, [self.at.shim], **variables), without)
        self.assertIn("still there: 0\n", self.lookups("closed"))

    def test_calls_that_the_driver_does_not_have(self):
        self.assertEqual(self.lookups("missing"), "-1\n-1\n")
        self.assertEqual(self.lookups("missing", [self.at.shim], FAKE_CORE="refuse"), "500\n500\n")

    def test_children_of_a_process_that_had_not_asked(self):
        self.assertEqual(self.check_same("children"), "found 100\n")

    def test_threads(self):
        self.assertEqual(self.check_same("threads"), "found 16000\n")


class ThisTestCanFail(unittest.TestCase):
    """The same lookups under a dlsym that calls the real one instead of jumping there."""

    def test_a_changed_caller_is_seen(self):
        done = run([built("LOOKUPS"), "next", built("CU_NAMES")], preload=[built("CALLING_DLSYM")])
        self.assertNotIn("layered: 17\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
