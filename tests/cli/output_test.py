"""Why this exists: what lies where a command is to write is the user's. It may be the input itself, a log that others
write to, or a file that is protected; none of that is to be lost, whatever the command line says."""

import ctypes
import json
import os
import signal
import subprocess
import unittest

import command

INPUT_AND_OUTPUT = "the output and the input .* are the same file; name another output"


def without_override():
    """Modes bind root, too, from the next program on: CAP_DAC_OVERRIDE leaves the bounding set."""
    PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


class OutputIsAnInput(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.write("a.csv", command.LIFETIMES)
        self.write("e.csv", command.EVENTS)

    def refused(self, name, *words, **options):
        before = self.read(name)
        self.fails(2, *words, says=INPUT_AND_OUTPUT, **options)
        self.assertEqual(self.read(name), before)

    def test_by_any_name(self):
        os.symlink("a.csv", self.path("link"))
        os.link(self.path("a.csv"), self.path("second"))
        for output in ("a.csv", "./a.csv", "link", "second", self.path("a.csv")):
            self.refused("a.csv", "plan", "a.csv", "-o", output)
        self.refused("a.csv", "plan", "link", "-o", "a.csv")
        with open(self.path("a.csv"), "rb") as content:
            self.refused("a.csv", "plan", "-", "-o", "a.csv", stdin=content)

    def test_convert(self):
        self.refused("e.csv", "convert", "e.csv", "e.csv", "--to", "lifetimes")

    def test_report(self):
        self.refused("e.csv", "report", "e.csv", "-o", "e.csv")
        self.write("e.html", command.EVENTS)
        self.refused("e.html", "report", "e.html")

    def test_report_on_a_folder(self):
        os.mkdir(self.path("out"))
        self.write("out/trace.reprise", command.EVENTS)
        self.write("out/summary.json", "{}")
        for name in ("out/trace.reprise", "out/summary.json"):
            self.refused(name, "report", "out", "-o", name)

    def test_report_on_ranks(self):
        os.mkdir(self.path("out"))
        for rank in range(2):
            self.write(f"out/trace.rank{rank}.reprise", command.EVENTS)
        self.refused("out/trace.rank1.reprise", "report", "out", "-o", "out/trace.rank1.reprise")

    def test_one_of_several_inputs_of_plan(self):
        os.mkdir(self.path("in"))
        self.write("in/a.csv", command.LIFETIMES)
        self.write("in/a.plan.json", command.LIFETIMES)
        self.refused("in/a.plan.json", "plan", "in/a.csv", "in/a.plan.json", "-o", "in")

    def test_a_plan_may_follow_itself(self):
        self.ok("plan", "a.csv", "-o", "p.json")
        self.ok("plan", "a.csv", "--keep", "p.json", "-o", "p.json")

    def test_what_holds_nothing_may_be_both(self):
        self.fails(3, "plan", "/dev/null", "-o", "/dev/null", says="empty")


class OutputIsADescriptor(command.CommandTest):
    """A log that standard output goes to is written on, and not replaced."""

    def setUp(self):
        super().setUp()
        self.write("a.csv", command.LIFETIMES)

    def printed(self, mode, *words):
        self.write("log", "before\n")
        inode = os.stat(self.path("log")).st_ino
        with open(self.path("log"), mode, buffering=0) as log:
            log.write(b"began\n")
            done = self.reprise(*words, capture_output=False, stdout=log, stderr=subprocess.PIPE)
            self.assert_status(done, 0)
            log.write(b"done\n")
        self.assertEqual(os.stat(self.path("log")).st_ino, inode)
        return self.read("log").decode()

    def test_standard_output_by_name(self):
        os.symlink("/dev/stdout", self.path("link"))
        for output in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"):
            for mode, begin in (("ab", "before\nbegan\n"), ("wb", "began\n")):
                with self.subTest(output=output, mode=mode):
                    text = self.printed(mode, "convert", "a.csv", output, "--to", "events")
                    self.assertRegex(text, f"^{begin}event,id,.*(?s:.*)\ndone\n$")

    def test_all_that_goes_there_is_there(self):
        text = self.printed("wb", "plan", "a.csv", "-o", "/dev/stdout")
        self.assertRegex(text, r'^began\n\{(?s:.*)\}\nbuffers (?s:.*)\ndone\n$')

    def test_of_another_process_it_is_left_alone(self):
        self.write("log", "before\n")
        with open(self.path("log"), "ab") as log:
            name = f"/proc/{os.getpid()}/fd/{log.fileno()}"
            self.fails(2, "plan", "a.csv", "-o", name, says=name)
        self.assertEqual(self.read("log"), b"before\n")

    def test_one_that_is_not_open(self):
        self.fails(2, "plan", "a.csv", "-o", "/dev/fd/77", says="/dev/fd/77: Bad file descriptor")


class OutputIsProtected(command.CommandTest):
    def setUp(self):
        super().setUp()
        self.write("a.csv", command.LIFETIMES)
        self.write("p.json", "old")

    def test_its_mode_stays(self):
        os.symlink("p.json", self.path("link"))
        for mode in (0o600, 0o640, 0o664):
            os.chmod(self.path("p.json"), mode)
            self.ok("plan", "a.csv", "-o", "link")
            self.assertEqual(os.stat(self.path("p.json")).st_mode & 0o7777, mode)

    def test_a_new_one_has_the_usual_mode(self):
        self.ok("plan", "a.csv", "-o", "new.json", preexec_fn=lambda: os.umask(0o027))
        self.assertEqual(os.stat(self.path("new.json")).st_mode & 0o7777, 0o640)

    def test_read_only_it_is_not_replaced(self):
        os.chmod(self.path("p.json"), 0o400)
        self.fails(2, "plan", "a.csv", "-o", "p.json", says="cannot replace p.json: Permission denied",
                   preexec_fn=without_override)
        self.assertEqual(self.read("p.json"), b"old")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.csv", "p.json"])


class OutputIsInterrupted(command.CommandTest):
    def drafts(self):
        return [name for name in os.listdir(self.folder) if name.endswith(".part")]

    def test_no_draft_stays(self):
        rows = (f"alloc,{k},4096,0\nfree,{k},,0\n" for k in range(100_000))  # writing it takes a while
        self.write("big.csv", "event,id,bytes,stream\n" + "".join(rows))
        for end in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with subprocess.Popen([command.REPRISE, "convert", "big.csv", "out.json"], cwd=self.folder,
                                  stderr=subprocess.DEVNULL) as done:
                while done.poll() is None and not self.drafts():
                    pass
                done.send_signal(end)
            self.assertIn(done.returncode, (-end, 0), "0: it was quicker")
            self.assertEqual(self.drafts(), [])
            self.assertIn("stacks", json.loads(self.read("out.json")))


if __name__ == "__main__":
    unittest.main()
