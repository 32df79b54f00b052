"""The house rules are only worth something if they fail where they should: each is shown a small tree that breaks it,
and one that keeps it."""

import os
import tempfile
import unittest

import documented
import includes
import rules


class TreeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, path, text=""):
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as out:
            out.write(text)

    def assert_found(self, rule, *expected):
        self.assertEqual([line.split(": ")[0] for line in rule(self.root)], list(expected))


class IncludeDirection(TreeTest):
    def check(self, path, line, *expected):
        self.write(path, f"#include <vector>\n\n{line}\n")
        self.assert_found(includes.violations, *expected)

    def test_downwards_is_fine(self):
        self.check("replay/engine.cc", '#include "planner/types.h"\n#include "base/units.h"')

    def test_planner_and_profiler_do_not_know_each_other(self):
        self.check("planner/solve.cc", '#include "profiler/types.h"', "planner/solve.cc:3")

    def test_profiler_does_not_know_the_planner(self):
        self.check("profiler/recorder.h", '#  include "planner/types.h"', "profiler/recorder.h:3")

    def test_base_knows_nobody(self):
        self.check("base/units.h", '#include "planner/types.h"', "base/units.h:3")

    def test_replay_does_not_know_the_command(self):
        self.check("replay/core/open.cc", '#include "cli/run.h"', "replay/core/open.cc:3")

    def test_the_engine_does_not_know_the_process(self):
        self.check("replay/engine.cc", '#include "replay/core/config.h"', "replay/engine.cc:3")

    def test_the_process_knows_the_engine_and_itself(self):
        self.check("replay/core/open.cc", '#include "replay/engine.h"\n#include "replay/stacks/source.h"')

    def test_shim_knows_the_seam(self):
        self.check("shim/host.c", '#include "replay/abi.h"')

    def test_shim_knows_only_the_seam(self):
        self.check("shim/host.c", '#include "replay/engine.h"', "shim/host.c:3")

    def test_shim_takes_nothing_of_base(self):
        self.check("shim/hooks.def", '#include "base/units.h"', "shim/hooks.def:3")

    def test_brackets_hide_nothing(self):
        self.check("planner/solve.cc", "#include <replay/abi.h>", "planner/solve.cc:3")

    def test_an_include_without_its_folder(self):
        self.check("planner/solve.cc", '#include "types.h"', "planner/solve.cc:3")

    def test_libraries_are_no_matter_of_direction(self):
        self.check("planner/solve.cc", '#include "absl/status/status.h"')

    def test_tests_are_included_by_nobody(self):
        self.check("planner/solve.cc", '#include "tests/planner/cases.h"', "planner/solve.cc:3")


class Rules(TreeTest):
    def test_folder_without_readme(self):
        self.write("README.md")
        self.write("good/README.md")
        self.write("good/deep/code.cc")
        self.assert_found(rules.folders_without_readme, "good/deep")

    def test_source_that_its_readme_does_not_name(self):
        self.write("replay/README.md", "| `arena`, `bit_tree.h` | places blocks |\n| `core_*` | the core |\n")
        for name in ("arena.cc", "arena.h", "bit_tree.h", "core_log.cc", "meson.build"):
            self.write(f"replay/{name}")
        self.write("replay/blocks.h")
        self.write("replay/bit_trees.h")
        self.assert_found(rules.unnamed_files, "replay/bit_trees.h", "replay/blocks.h")

    def test_what_a_build_left_is_not_looked_at(self):
        self.write("build/release/generated.cc", "x\n" * 700)
        self.write(".git/config", "url = https://example.org\n")
        for rule in rules.RULES:
            self.assert_found(rule)

    def test_long_file(self):
        self.write("replay/short.cc", "\n" * 600)
        self.write("replay/long.cc", "\n" * 601)
        self.assert_found(rules.long_files, "replay/long.cc")

    def test_address_in_a_script(self):
        self.write("README.md", "https://example.org\n")
        self.write("scripts/setup", "\ncurl http://example.org\n")
        self.write("planner/meson.build", "# https://example.org\n")
        self.assert_found(rules.addresses, "planner/meson.build:1", "scripts/setup:2")

    def test_path_of_one_machine(self):
        self.write("README.md", "/home/someone/reprise\n")
        self.write("cli/run.cc", '// homework/root/x, $HOME/work/x and a/work/b are fine\nopen("/work/x");\n')
        self.assert_found(rules.machine_paths, "README.md:1", "cli/run.cc:2")

    def test_what_a_build_needs_and_setup_does_not_install(self):
        build = "    build) cat\nlibabsl-dev  pkg-config --exists absl_status\n;;\n"
        self.write("scripts/setup", build + "    test) cat\nlibx-dev  pkg-config --exists absl_x\n;;\n")
        self.write("meson.build", "a = dependency('threads')\nb = dependency('absl_status')\nc = dependency('absl')\n")
        self.write("tests/meson.build", "d = dependency('absl_x', main: true)\ne = dependency('y', required: false)\n")
        self.assert_found(rules.not_set_up, "meson.build", "tests/meson.build")

    def test_format(self):
        if not rules.formatter():
            self.skipTest("no clang-format of the version that counts")
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("base/good.h", "int x;\n")
        self.write("base/bad.h", "int   x;\n")
        self.assertIn("base/bad.h", " ".join(rules.misformatted(self.root)))
        self.assertNotIn("base/good.h", " ".join(rules.misformatted(self.root)))


HELP = {
    (): "Subcommands:\n  plan    solves\n\nEnvironment:\n  REPRISE_OUT  folder\n",
    ("plan",): "Options:\n  -h,--help\n  --capacity SIZE   bytes\n",
}


class Documented(TreeTest):
    def found(self, readme, source='getenv("REPRISE_OUT")'):
        self.write("README.md", readme)
        self.write("cli/run.cc", source)
        return list(documented.violations(self.root, lambda words: HELP[words]))

    def test_all_stands_everywhere(self):
        self.assertEqual(self.found("`reprise plan --capacity SIZE`, REPRISE_OUT"), [])

    def test_flag_missing_in_readme(self):
        self.assertEqual(self.found("`reprise plan`, REPRISE_OUT"), ["README.md: no word of plan --capacity"])

    def test_flag_of_the_readme_that_the_command_does_not_know(self):
        found = self.found("`reprise plan --capacity 1 --colour`, REPRISE_OUT")
        self.assertEqual(found, ["README.md: plan knows no --colour"])

    def test_subcommand_missing_in_readme(self):
        self.assertIn("README.md: no word of the command plan", self.found("--capacity, REPRISE_OUT"))

    def test_flags_of_the_job_are_its_own(self):
        self.assertEqual(self.found("`reprise plan --capacity 1 -- train --epochs 3`, REPRISE_OUT"), [])

    def test_help_that_cannot_be_read(self):
        self.write("README.md")
        found = list(documented.violations(self.root, lambda words: "nothing"))
        self.assertEqual(found, ["reprise --help: no subcommands in it"])

    def test_variable_missing_in_readme(self):
        self.assertEqual(self.found("`reprise plan --capacity 1`"), ["README.md: no word of REPRISE_OUT"])

    def test_variable_missing_in_help_and_readme(self):
        found = self.found("`reprise plan --capacity 1`, REPRISE_OUT", 'getenv("REPRISE_NEW")')
        self.assertEqual(
            found, ["README.md: no word of REPRISE_NEW", "reprise --help: no word of REPRISE_NEW"]
        )


if __name__ == "__main__":
    unittest.main()
