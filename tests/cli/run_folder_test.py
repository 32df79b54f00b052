"""Where a run's files go: into a folder that the job does not meet before there is something in it, and where they
cannot, that is said, with the reason."""

import ctypes
import os
import resource
import sys
import unittest

import command
from run_test import JOB


class RunFolder(command.CommandTest):
    def run_job(self, *options):
        self.assert_status(self.run_host(*options, "--", sys.executable, "-c", JOB, "0"), 0)

    def test_every_run_has_a_folder_of_its_own(self):
        for folder in ("reprise-out", "reprise-out.2", "reprise-out.3"):
            self.run_job()
            self.assertIn("summary.json", os.listdir(self.path(folder)))

    def test_the_folder_is_not_there_before_something_is_left_in_it(self):
        done = self.run_host("--", sys.executable, "-c", "import os\nprint(os.listdir())\n" + JOB, "0")
        self.assertIn("[]\n", done.out)
        self.assertIn("summary.json", os.listdir(self.path("reprise-out")))

    def test_named_folder(self):
        self.run_job("--out", "deep/er")
        self.assertIn("summary.json", os.listdir(self.path("deep/er")))
        self.assertFalse(os.path.exists(self.path("reprise-out")))

    def test_folder_that_cannot_be_written_is_named(self):
        self.write("file", "")
        done = self.run_host("--out", "file", "--", sys.executable, "-c", JOB, "0")
        self.assert_status(done, 0)
        self.assertIn("no files came: file cannot be written to (Not a directory)", done.err)

    def test_folder_that_cannot_be_made_is_named(self):
        done = self.run_host("--out", "/proc/x", "--", sys.executable, "-c", JOB, "0")
        self.assert_status(done, 0)
        self.assertIn("cannot make the folder /proc/x", done.err)
        self.assertRegex(done.err, r"no files came: /proc/x cannot be made \(.*\)\n")
        self.assertNotIn("nothing was caught", done.err)

    def test_a_summary_of_the_jobs_own_stays(self):
        """Written where ours has its name, and is not there yet or is of some time before."""
        job = JOB.replace("sys.exit", "print") + "\nopen('out/summary.json', 'w').write('mine')\n"
        done = self.run_host("--out", "out", "--", sys.executable, "-c", job, "0")
        self.assert_status(done, 0)
        self.assertEqual(self.read("out/summary.json"), b"mine")
        self.assertIn("out/summary.json is there already, and not as it was left\n", done.err)

    def test_link_to_a_folder_that_is_gone_is_named(self):
        os.symlink("gone", self.path("out"))
        for out in ("out", "out/deeper"):
            done = self.run_host("--out", out, "--", sys.executable, "-c", JOB, "0")
            self.assert_status(done, 0)
            self.assertRegex(done.err, rf"no files came: {out} cannot be made \(.*\)\n")
            self.assertNotIn("nothing was caught", done.err)

    def test_on_a_host_whose_name_no_file_can_have(self):
        def odd_host():
            libc = ctypes.CDLL(None)
            if libc.unshare(0x04000000) != 0 or libc.sethostname(b"a/b", 3) != 0:  # CLONE_NEWUTS
                os._exit(77)

        done = self.run_host("--out", "out", "--cache", "cache", "--", sys.executable, "-c", JOB, "0", preexec_fn=odd_host)
        if done.returncode == 77:
            self.skipTest("the name of the host cannot be changed here")
        self.assert_status(done, 0)
        self.assertIn("summary.json", os.listdir(self.path("out")))
        self.assertNotIn("cannot", done.err)

    def test_folder_that_nobody_was_there_to_make(self):
        done = self.run_host("--out", "deep/er", "--", "env", "-i", "true")
        self.assert_status(done, 0)
        self.assertRegex(done.err, r"nothing was caught \(.*\(musl\).*\(env -i, srun --export=NONE\).*\)\n")
        self.assertNotIn("deep", done.err)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_process_that_goes_on_alone_and_has_asked_for_nothing_yet(self):
        os.mkfifo(self.path("end"))
        done = self.run_host("--", "sh", "-c", "cat end >/dev/null 2>&1 &")
        os.close(os.open(self.path("end"), os.O_WRONLY))
        self.assert_status(done, 0)
        self.assertRegex(done.err, r"nothing was caught \(.*or none yet of a process that still runs\)\n")

    def test_folder_that_may_not_be_made_is_named(self):
        os.mkdir(self.path("read only"), 0o555)
        for out in ("read only/x", self.path("read only/deep/er")):
            done = self.run_host("--out", out, "--", sys.executable, "-c", JOB, "0", preexec_fn=command.bound_by_modes)
            self.assert_status(done, 0)
            self.assertIn(f"reprise: no files came: {out} cannot be made (Permission denied)\n", done.err)
            self.assertNotIn("nothing was caught", done.err)

    def test_folder_that_has_no_room_for_a_file_is_named(self):
        os.mkdir(self.path("full"))
        run = [command.REPRISE, "run", "--host", "--out", "full", "--", sys.executable, "-c", JOB, "0"]
        for size, fill in (("nr_inodes=1", "true"), ("size=64k", "! cat /dev/zero >full/others 2>&-")):
            with self.subTest(size):
                enter = ["--mount", "sh", "-c", f'mount -t tmpfs -o {size} none full && {fill} && exec "$@"', "sh"]
                if self.reprise(*enter, "true", program="unshare").returncode != 0:
                    self.skipTest("nothing can be mounted here")
                done = self.reprise(*enter, *run, program="unshare")
                self.assert_status(done, 0)
                self.assertIn("reprise: no files came: full cannot be written to (No space left on device)\n", done.err)
                self.assertNotIn("nothing was caught", done.err)

    def test_where_files_may_have_no_byte_the_jobs_status_is_its_own(self):
        """What is tried there then would end this process, by a signal that the job did not get."""
        no_file = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        done = self.run_host("--out", ".", "--", sys.executable, "-c", JOB, "7", preexec_fn=no_file)
        self.assert_status(done, 7)
        self.assertIn("reprise: no files came: . cannot be written to (File too large)\n", done.err)
        self.assertEqual(os.listdir(self.folder), [])

    def test_folder_whose_name_is_not_understood(self):
        for name in ("x%q", "x%"):
            self.fails(2, "run", "--host", "--out", name, "--", "true", says=f'"{name}" has a % that is none of %h, ')
        self.assert_status(self.run_host("--out", "100%%", "--", "true"), 0)
        done = self.run_host("--", sys.executable, "-c", JOB, "0", env={"REPRISE_OUT": "x%q"})
        self.assert_status(done, 0)
        self.assertIn("REPRISE_OUT='x%q' has a % that is none of %h, ", done.err)
        self.assertNotIn("files are below", done.err)


if __name__ == "__main__":
    unittest.main()
