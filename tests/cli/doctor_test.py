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

    def test_limited_memory(self):
        limit = 4 << 30
        for kind, check, remedy in [(resource.RLIMIT_AS, "address space", "ulimit -v"),
                                    (resource.RLIMIT_DATA, "data segment", "ulimit -d")]:
            found = self.problems(preexec_fn=lambda: resource.setrlimit(kind, (limit, limit)))
            self.assertIn("4.00 GiB", found[check]["found"])
            self.assertIn(remedy, found[check]["advice"])

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

    def test_plans_that_cannot_be_read_and_a_cache_that_cannot_be_made(self):
        self.write("file", "")
        os.mkdir(self.path("folder"))
        os.mkfifo(self.path("pipe"))  # that nobody writes to
        for name, value, found in (
            ("REPRISE_PLAN", "none.json", "none.json"),
            ("REPRISE_PLAN", "pipe", "pipe"),
            ("REPRISE_PLAN", "folder", "folder"),
            ("REPRISE_PLAN", "file", "file"),
            ("REPRISE_CACHE", "file", "file is not a folder"),
            ("REPRISE_CACHE", "file/cache", "file is not a folder"),
            ("REPRISE_CACHE", "/proc/cache", "/proc cannot be written to"),
        ):
            with self.subTest(name, value=value):
                self.assertIn(found, self.problems(env={name: value})[name]["found"])
        self.problems(status=0, env={"REPRISE_CACHE": "new/cache"})
        self.assertEqual(sorted(os.listdir(self.folder)), ["file", "folder", "pipe"])

    def test_output_pattern(self):
        self.problems(status=0, env={"REPRISE_OUT": "new/%h/%p"})

    def test_another_preload_is_a_note(self):
        other = shutil.copy(os.environ["REPRISE_HOST_LIBRARY"], self.path("other.so"))
        checks = self.json("doctor", env={"LD_PRELOAD": other})["checks"]
        self.assertIn(("LD_PRELOAD", "note"), [(check["check"], check["verdict"]) for check in checks])

    def found(self, name, **options):
        checks = self.json("doctor", **options)["checks"]
        return [check["found"] for check in checks if check["check"] == name]

    def test_launcher(self):
        self.assertRegex(self.found("launcher", env={"SLURM_PROCID": "", "RANK": ""})[0], "^none")
        step = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "2", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "16"}
        self.assertEqual(self.found("launcher", env=step), ["Slurm: rank 5 of 16, local rank 0, job 77.2"])
        self.assertRegex(self.found("container", env={"APPTAINER_CONTAINER": "a.sif"})[0], "^Apptainer, a.sif: ")

    def test_whose_preload_hooks_the_same(self):
        other = shutil.copy(os.environ["REPRISE_HOST_LIBRARY"], self.path("other.so"))
        self.assertEqual(
            self.found("LD_PRELOAD", env={"LD_PRELOAD": f"{other} libm.so.6"}),
            [f"{other} hooks posix_memalign, free too; ours is called first",
             "libm.so.6 hooks nothing that we do; ours is put before it"],
        )

    @command.without_driver
    def test_no_driver(self):
        self.assertRegex(self.found("CUDA driver")[0], "none here")

    def test_driver_and_devices(self):
        environment = self.with_driver()
        self.assertEqual(self.found("CUDA driver", env=environment), ["for CUDA 13.0"])
        self.assertEqual(self.found("device 1", env=environment), ["Fake device 1, 2.00 GiB"])
        self.assertIn("next: reprise run -- COMMAND", self.ok("doctor", env=environment).err)

    def test_device_without_memory_pools(self):
        checks = self.json("doctor", env=self.with_driver(CUDA_WITHOUT_POOLS="1"))["checks"]
        devices = {check["check"]: check for check in checks if check["check"].startswith("device ")}
        self.assertEqual([devices[name]["verdict"] for name in sorted(devices)], ["fine", "note"])
        self.assertIn("Fake device 1, 2.00 GiB; it has no memory pools", devices["device 1"]["found"])
        self.assertIn("set PYTORCH_NO_CUDA_MEMORY_CACHING=1, ", devices["device 1"]["advice"])

    def test_cupti(self):
        environment = self.with_driver()
        for name in ("libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"):  # before any that is installed
            self.write("driver/" + name, "no library")
        self.assertRegex(self.found("CUPTI", env=environment)[0], "^none in the loader's folders; --timeline needs one")
        shutil.copy(os.environ["REPRISE_FAKE_DRIVER"], self.path("driver/libcupti.so.12"))
        self.assertEqual(self.found("CUPTI", env=environment), ["libcupti.so.12: for --timeline"])

    def test_driver_that_has_no_device(self):
        found = self.found("CUDA driver", env=self.with_driver(CUDA_ERROR="100"))
        self.assertEqual(found, ["for CUDA 13.0; cuInit gives CUDA error 100"])

    def test_driver_that_is_none(self):
        environment = self.with_driver()
        shutil.copy(os.environ["REPRISE_HOST_LIBRARY"], self.path("driver/libcuda.so.1"))
        self.assertRegex(self.found("CUDA driver", env=environment)[0], "not those of a CUDA driver")

    def test_driver_and_no_library_for_it(self):
        program, _, _ = self.installed()
        found = self.problems(program=program, env=self.with_driver())
        self.assertIn("libreprise.so is in none of", found["CUDA library"]["found"])

    def test_what_the_user_told_a_framework(self):
        for variable, meaning in (
            ("PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync", "every tensor"),
            ("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64", "only whole segments"),
            ("PYTORCH_ALLOC_CONF=expandable_segments:True", "maps memory itself"),
        ):
            with self.subTest(variable):
                name, value = variable.split("=")
                self.assertRegex(self.found("PyTorch", env={name: value})[0], f"^{variable}: .*{meaning}")

    def test_frameworks_beside_one_that_is_damaged(self):
        for package, name in (("torch", b"torch"), ("tensorflow_cpu", b"tensorflow_cpu"), ("x", b"\xff\xfe")):
            os.makedirs(self.path(f"packages/{package}-9.dist-info"))
            self.write(f"packages/{package}-9.dist-info/METADATA", b"Metadata-Version: 2.1\nName: " + name + b"\nVersion: 9\n")
        (found,) = self.found("frameworks", env={"PYTHONPATH": self.path("packages")})
        self.assertRegex(found, r"\btensorflow-cpu 9\b.*\btorch 9\b")

    def test_stacks(self):
        checks = {check["check"]: check for check in self.json("doctor")["checks"]}
        self.assertEqual((checks["--stacks native"]["verdict"], checks["--stacks python"]["verdict"]), ("fine", "fine"))
        self.assertIn("the line of an allocation", checks["--stacks python"]["found"])

    def test_stacks_that_cannot_be_had(self):
        os.mkdir(self.path("bin"))
        self.write("libunwind.so.8", "no library")
        os.symlink(shutil.which("cat"), self.path("bin/cat"))  # which doctor starts
        # No python3 at all, and a program of that name that is no Python.
        (found,) = self.found("--stacks python", env={"PATH": self.path("bin")})
        self.assertEqual(found, "no python3 to try it with")
        os.symlink(shutil.which("true"), self.path("bin/python3"))
        checks = self.json("doctor", env={"PATH": self.path("bin"), "LD_LIBRARY_PATH": self.folder})["checks"]
        notes = {check["check"]: check for check in checks if check["verdict"] == "note"}
        self.assertIn("libunwind.so.8", notes["--stacks native"]["found"])
        self.assertIn("install libunwind", notes["--stacks native"]["advice"])
        self.assertEqual(notes["--stacks python"]["found"], "no line was read in this python3")

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
