"""Why this exists: under a limit of the shell's a command cannot do its work, and only what it says tells that the limit
is at fault and not the input."""

import os
import resource
import shutil
import signal
import struct
import unittest

import command


def limited(which, bytes):
    return lambda: resource.setrlimit(which, (bytes, bytes))


class Limits(command.CommandTest):
    def setUp(self):
        super().setUp()
        if self.reprise("--version", preexec_fn=limited(resource.RLIMIT_AS, 100 << 20)).returncode != 0:
            self.skipTest("a sanitizer needs more addresses than that")
        self.write("e.csv", command.EVENTS)

    def test_out_of_memory(self):
        with open(self.path("big file.csv"), "wb") as big:
            big.truncate(200 << 20)
        done = self.fails(2, "stats", "big file.csv", preexec_fn=limited(resource.RLIMIT_AS, 100 << 20),
                          says="stats 'big file.csv': out of memory; .*ulimit -v")
        self.assertNotIn("bad_alloc", done.err)

    def test_a_trace_that_claims_more_than_it_has(self):
        def block(head, zeros):
            frame = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(head) + zeros)
            frame += (len(head) << 3 | (zeros == 0)).to_bytes(3, "little") + head
            if zeros:
                frame += (zeros << 3 | 0b011).to_bytes(3, "little") + b"\0"
            return b"RBLK" + struct.pack("<II", len(frame), ~len(frame) & 0xffffffff) + frame

        events = block(b"\x02\0\0\x80\x80\x02", 32768)  # so many, in a few bytes
        self.write("t.reprise", b"\x89REPRISE\r\n\x1a\n\1\0\0\0" + block(b"\x01{}", 0) + 4000 * events)
        self.fails(3, "stats", "t.reprise", preexec_fn=limited(resource.RLIMIT_AS, 1 << 30), says="malformed events")

    def test_too_few_addresses_for_the_engine(self):
        self.write("f.csv", command.EVENTS)
        for words in (["simulate", "e.csv"], ["compare", "e.csv"], ["fit", "e.csv@1", "f.csv@2"]):
            with self.subTest(words=words):
                self.fails(2, *words, preexec_fn=limited(resource.RLIMIT_AS, 2 << 30),
                           says=r"e.csv: the system gives no addresses for .*: a limit \(ulimit -v or -d\)")

    def test_a_plan_needs_no_further_thread(self):
        def no_room_for_a_stack():
            resource.setrlimit(resource.RLIMIT_STACK, (200 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
            resource.setrlimit(resource.RLIMIT_AS, (100 << 20, 100 << 20))

        self.write("a.csv", command.LIFETIMES)
        self.ok("plan", "a.csv", "-o", "p.json", preexec_fn=no_room_for_a_stack)
        self.ok("check", "a.csv", "p.json")

    def test_a_limit_on_the_size_of_files_leaves_no_draft(self):
        self.write("old.json", "precious")
        self.fails(2, "convert", "e.csv", "old.json", preexec_fn=limited(resource.RLIMIT_FSIZE, 64),
                   says="cannot write old.json: File too large")
        self.assertEqual(self.read("old.json"), b"precious")
        self.assertEqual(sorted(os.listdir(self.folder)), ["e.csv", "old.json"])

    def test_a_job_starts_with_as_few_descriptors_as_without(self):
        job = ["run", "--mode", "off", "--", "sh", "-c", "exit 7"]
        self.assert_status(self.reprise(*job, preexec_fn=limited(resource.RLIMIT_NOFILE, 4)), 7)
        none = self.reprise(*job[:4], "no-such-command", preexec_fn=limited(resource.RLIMIT_NOFILE, 4))
        self.assert_status(none, 127)

    def test_a_job_starts_where_there_is_no_process_for_it(self):
        def no_process():
            if os.geteuid() == 0:  # whom the limit does not hold
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

        # A copy: what is built may lie in root's home.
        program = shutil.copy(command.REPRISE, self.folder)
        os.chmod(self.folder, 0o755)
        for job, status in (["sh", "-c", "exit 7"], 7), (["no-such-command"], 127):
            done = self.reprise("run", "--mode", "off", "--", *job, program=program, preexec_fn=no_process,
                                env={"PATH": os.defpath})
            self.assert_status(done, status)
            self.assertIn("no process for the job", done.err)

    def test_a_job_may_die_of_that_limit(self):
        die = ["run", "--mode", "off", "--", "sh", "-c", "kill -XFSZ $$"]
        self.assert_status(self.reprise(*die), -signal.SIGXFSZ)
        ignored = self.reprise(*die, restore_signals=False, preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        self.assert_status(ignored, 0)


class Endless(command.CommandTest):
    def test_devices_are_no_inputs(self):
        for name in ("/dev/zero", "/dev/urandom"):
            self.fails(3, "stats", name, says=f"{name}: is a device without an end, not a file")
            with open(name, "rb") as endless:
                self.fails(3, "stats", "-", stdin=endless, says="is a device without an end, not a file")
        self.fails(3, "stats", "/dev/null", says="empty")


if __name__ == "__main__":
    unittest.main()
