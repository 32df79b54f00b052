"""Why this exists: doctor is asked when nothing works. It must find what stands in the way, and nothing else."""

import os
import resource
import shutil
import unittest

import command


class Doctor(command.CommandTest):
    def problems(self, status=1, **options):
        result = self.json("doctor", status=status, **options)
        self.assertEqual(result["ready"], status == 0)
        self.assertEqual({tuple(check) for check in result["checks"]}, {("check", "verdict", "found", "advice")})
        return {check["check"]: check for check in result["checks"] if check["verdict"] == "problem"}

    def test_ready(self):
        self.assertEqual(self.problems(status=0), {})
        done = self.ok("doctor")
        self.assertRegex(done.out, r"(?m)^fine +core library +/.*libreprise_core.so$")
        self.assertIn("next: reprise run --host", done.err)

    def test_limited_address_space(self):
        limit = 4 << 30
        found = self.problems(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertIn("4.00 GiB", found["address space"]["found"])
        self.assertIn("ulimit -v", found["address space"]["advice"])

    def test_disabled(self):
        self.assertIn("REPRISE_DISABLE", self.problems(env={"REPRISE_DISABLE": "1"}))
        self.assertIn("REPRISE_MODE", self.problems(env={"REPRISE_MODE": "off"}))
        self.assertEqual(self.problems(status=0, env={"REPRISE_DISABLE": "0"}), {})

    def test_values_that_are_not_understood(self):
        for name, value in (("REPRISE_MODE", "fast"), ("REPRISE_CAPACITY", "lots"), ("REPRISE_OUT", "%q")):
            with self.subTest(name):
                self.assertIn(name, self.problems(env={name: value})["variables"]["found"])

    def test_a_variable_that_is_none(self):
        checks = self.json("doctor", env={"REPRISE_CAPACTIY": "1G"})["checks"]
        self.assertIn(("REPRISE_CAPACTIY", "note"), [(check["check"], check["verdict"]) for check in checks])

    def test_output_below_a_file(self):
        self.write("file", "")
        self.assertIn("file is not a folder", self.problems(env={"REPRISE_OUT": "file/out"})["output folder"]["found"])

    def test_output_pattern(self):
        self.problems(status=0, env={"REPRISE_OUT": "new/%h/%p"})

    def test_another_preload_is_a_note(self):
        other = shutil.copy(os.environ["REPRISE_HOST_LIBRARY"], self.path("other.so"))
        checks = self.json("doctor", env={"LD_PRELOAD": other})["checks"]
        self.assertIn(("LD_PRELOAD", "note"), [(check["check"], check["verdict"]) for check in checks])

    def test_closed_streams(self):
        self.problems(status=0, preexec_fn=lambda: (os.close(0), os.close(2)))

    def installed(self):
        program = shutil.copy(command.REPRISE, self.folder)
        library = shutil.copy(os.environ["REPRISE_HOST_LIBRARY"], self.folder)
        core = shutil.copy(os.environ["REPRISE_CORE_LIBRARY"], self.folder)
        return program, library, core

    def test_everything_in_one_folder(self):
        program, _, _ = self.installed()
        self.assertEqual(self.problems(status=0, program=program), {})

    def test_no_preload_library(self):
        program, library, _ = self.installed()
        os.remove(library)
        self.assertIn("is in none of", self.problems(program=program)["preload library"]["found"])

    def test_preload_library_that_is_none(self):
        program, library, _ = self.installed()
        self.write(library, "no library")
        self.assertIn("cannot be preloaded", self.problems(program=program)["preload library"]["found"])

    def test_no_core(self):
        program, _, core = self.installed()
        os.remove(core)
        self.assertIn("No such file", self.problems(program=program)["core library"]["found"])

    def test_core_with_a_dependency_that_is_missing(self):
        program, _, core = self.installed()
        with open(core, "rb") as library:
            content = library.read()
        broken = content.replace(b"libfmt.so", b"libnon.so")
        self.assertNotEqual(content, broken)
        self.write(core, broken)
        self.assertIn("libnon.so", self.problems(program=program)["core library"]["found"])


if __name__ == "__main__":
    unittest.main()
