"""The preload library alone, over a fake core: it serves what it should, answers as the C library does, and
whatever is wrong with the core costs the job one line and nothing else."""
import fcntl
import os
import pty
import re
import resource
import shutil
import subprocess
import sys
import termios
import unittest

from preloading import TIMEOUT, Installed, built, clean_environment, full_pipe, run

OPENED = "fake core: opened, threshold 4096\n"


class ShimTest(unittest.TestCase):
    core = "FAKE_CORE_LIBRARY"

    def setUp(self):
        self.at = Installed(self.core)
        self.addCleanup(self.at.close)

    def job(self, *arguments, program="JOB", status=0, **variables):
        done = run([built(program), *arguments], preload=[self.at.shim], **variables)
        self.assertEqual(done.returncode, status, done.stderr)
        return done


class Serving(ShimTest):
    def test_serves_from_the_threshold_up(self):
        done = self.job("served")
        self.assertEqual(done.stdout, "4095: 0 0 0\n4096: 1 1 1\n65535: 1 1 1\n65536: 1 1 1\n1048576: 1 1 1\n")
        self.assertEqual(done.stderr, OPENED + "fake core: allocated 12, released 12, later 0, passed 0\n")

    def test_threshold_accepts_sizes(self):
        for text, bytes_ in [("64KiB", 65536), ("64K", 65536), ("64kB", 65536), ("65536", 65536),
                             ("65536B", 65536), ("1M", 1 << 20)]:
            with self.subTest(text=text):
                done = self.job("served", REPRISE_THRESHOLD=text)
                self.assertIn(f"opened, threshold {bytes_}\n", done.stderr)
                self.assertIn(f"65535: 0 0 0\n65536: {int(bytes_ == 65536)} ", done.stdout)

    def test_a_bad_threshold_is_the_default(self):
        for text in ["", "0", "-1", "K", "4 KiB", "4Ki", "12Q", "64KiBs", "99999999999999999999", "8388608T"]:
            with self.subTest(text=text):
                self.assertTrue(self.job("served", REPRISE_THRESHOLD=text).stderr.startswith(OPENED))

    def test_answers_are_those_of_the_c_library(self):
        without = run([built("JOB"), "answers"])
        done = self.job("answers")
        self.assertEqual(done.stdout, without.stdout)
        self.assertIn("fake core: allocated 38, released 38, later 0", done.stderr)

    def test_realloc_and_usable_size(self):
        self.assertIn("allocated 3, released 3,", self.job("reallocate").stderr)

    def test_an_allocator_behind_us_with_a_reallocarray_of_its_own(self):
        done = run([built("JOB"), "reallocate"], preload=[self.at.shim, built("OWN_REALLOCARRAY")])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("allocated 3, released 3,", done.stderr)

    def test_an_allocator_behind_us_with_the_c_librarys_inner_names(self):
        for name in ["ordinary", "reallocate"]:
            with self.subTest(name=name):
                done = run([built("JOB"), name], preload=[self.at.shim, built("OWN_ALLOCATOR")])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(OPENED, done.stderr)

    def test_sized_frees(self):
        self.assertIn("allocated 2, released 2,", self.job("sized_frees").stderr)

    def test_threads_that_exit_with_live_blocks(self):
        self.assertIn("allocated 16017, released 16009,", self.job("threads").stderr)

    def test_frees_after_our_destructors(self):
        self.assertIn("allocated 2, released 2, later 0", self.job("at_exit").stderr)
        # The plugin is needed by the core, so its destructor runs after: its free is served, and not counted.
        shutil.copy(built("CORE_OVER_PLUGIN"), self.at.core)
        self.assertIn("allocated 2, released 1,", self.job("ordinary", program="WITH_PLUGIN").stderr)

    def test_static_objects_that_allocate(self):
        done = self.job(program="STATIC_OBJECTS")
        self.assertEqual(done.stdout, "4097 1\n")
        self.assertRegex(done.stderr, "allocated [1-9]")

    def test_first_allocation_in_a_constructor_under_the_loader_lock(self):
        self.assertIn("allocated 1, released 1,", self.job("plugin", built("PLUGIN")).stderr)


class WhileOpening(ShimTest):
    def test_the_opening_thread_passes_through(self):
        done = self.job("served", FAKE_CORE="allocates").stderr
        self.assertIn("allocated 12,", done)
        self.assertIn("passed 0\n", done)

    def test_other_threads_pass_through(self):
        done = self.job("served", FAKE_CORE="thread").stderr
        self.assertIn("allocated 12,", done)
        self.assertIn("passed 1\nfake core: passed 1 while opening\n", done)
        self.assertIn("allocated 1,", self.job("plugin", built("PLUGIN"), FAKE_CORE="thread").stderr)


class Signals(ShimTest):
    def test_a_handler_inside_the_core_passes_through(self):
        done = self.job("interrupted", FAKE_CORE="signal")
        self.assertIn("allocated 2, released 1, later 1", done.stderr)

    def test_fork_from_a_handler_inside_the_core(self):
        self.assertIn("allocated 2, released 2, later 0", self.job("forks_in_handler", FAKE_CORE="signal").stderr)

    def test_exit_from_a_handler_inside_the_core(self):
        self.assertIn("allocated 0,", self.job("exit_from_handler", FAKE_CORE="signal").stderr)


class Processes(ShimTest):
    def test_a_fork_waits_until_the_core_is_open(self):
        self.assertIn("forked while opening 0, told of 1", self.job("served", FAKE_CORE="fork").stderr)

    def test_a_fork_that_the_opening_waits_for_does_not_wait_for_ever(self):
        self.assertIn("allocated 12,", self.job("served", FAKE_CORE="waits_fork").stderr)

    def test_a_fork_beside_threads_before_the_core_is_open(self):
        self.job("forks_before_opening")

    def test_fork_and_exec(self):
        done = self.job("forks")
        self.assertEqual(done.stderr.count("opened"), 2)
        self.assertIn("65536: 1 1 1", done.stdout)


class OutOfOrder(ShimTest):
    """Whatever is wrong, the job runs; one line says what."""

    core = None

    def check(self, said, name="ordinary", **variables):
        done = self.job(name, **variables)
        self.assertEqual(done.stdout, "not served\n")
        self.assertEqual(done.stderr.count("\n"), 1 if said else 0, done.stderr)
        self.assertIn(said, done.stderr)
        self.assertEqual(self.job(name, REPRISE_LOG="quiet", **variables).stderr, "")

    def test_no_core(self):
        self.check("reprise: cannot open the core library: ")

    def test_stderr_is_a_file_at_its_limit(self):
        with open(os.path.join(self.at.folder, "stderr"), "w") as stderr:
            done = subprocess.run([built("JOB"), "ordinary"], stdout=subprocess.PIPE, stderr=stderr, timeout=TIMEOUT,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
                                  env=clean_environment([self.at.shim]))
        self.assertEqual((done.returncode, done.stdout), (0, b"not served\n"))

    def test_nobody_reads_stderr(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as stderr:
            done = subprocess.run([built("JOB"), "refused_lines"], stderr=stderr, timeout=TIMEOUT,
                                  env=clean_environment([self.at.shim]))
        self.assertEqual(done.returncode, 0)

    def test_stderr_is_a_terminal_that_stops_who_writes_in_the_background(self):
        ends = pty.openpty()
        for end in ends:
            self.addCleanup(os.close, end)
        user, terminal = ends
        settings = termios.tcgetattr(terminal)
        settings[3] |= termios.TOSTOP
        termios.tcsetattr(terminal, termios.TCSANOW, settings)
        foreground = ("import os, sys; job = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, setpgroup=0); "
                      "sys.exit(os.waitpid(job, os.WUNTRACED)[1] != 0)")
        done = subprocess.run([sys.executable, "-c", foreground, built("JOB"), "ordinary"], stdout=subprocess.PIPE,
                              stderr=terminal, timeout=TIMEOUT, env=clean_environment([self.at.shim]),
                              start_new_session=True,
                              preexec_fn=lambda: fcntl.ioctl(terminal, termios.TIOCSCTTY, 0))
        self.assertEqual((done.returncode, done.stdout), (0, b"not served\n"))
        self.assertIn(b"reprise: cannot open the core library: ", os.read(user, 4096))

    def test_stderr_is_full_and_nobody_reads_it(self):
        with full_pipe() as stderr:
            done = subprocess.run([built("JOB"), "ordinary"], stdout=subprocess.PIPE, stderr=stderr, timeout=TIMEOUT,
                                  env=clean_environment([self.at.shim]))
        self.assertEqual((done.returncode, done.stdout), (0, b"not served\n"))

    def test_core_is_not_a_library(self):
        with open(self.at.core, "w") as file:
            file.write("not an ELF file\n" * 100)
        self.check("reprise: cannot open the core library: ")

    def test_core_is_truncated(self):
        with open(built("FAKE_CORE_LIBRARY"), "rb") as whole:
            image = whole.read()
        for length in [0, 10, 100, 2000, len(image) // 2]:
            with self.subTest(length=length):
                with open(self.at.core, "wb") as part:
                    part.write(image[:length])
                self.check("reprise: cannot open the core library: " if length < 100 else
                           "reprise: the core library is cut short: ")

    def test_core_cannot_be_looked_at(self):
        """Whether it is whole is then for the loader to say."""
        shutil.copy(built("FAKE_CORE_LIBRARY"), self.at.core)
        done = run([built("JOB"), "ordinary"], preload=[self.at.shim, built("NO_READING")])
        self.assertEqual((done.returncode, done.stdout), (0, "served\n"), done.stderr)

    def test_a_path_breaks_no_line_and_moves_no_cursor(self):
        """What is said of the core's file holds its path, as of a folder that anybody may have named."""
        folder = os.path.join(self.at.folder, "a\nb\x1b[31m\x9bc\xa0\u00e9")
        os.mkdir(folder)
        shim = shutil.copy(self.at.shim, folder)
        with open(os.path.join(folder, "libreprise_core.so"), "w") as file:
            file.write("not an ELF file\n" * 100)
        done = run([built("JOB"), "ordinary"], preload=[shim])
        self.assertEqual((done.returncode, done.stdout), (0, "not served\n"))
        self.assertIn(r"/a\x0ab\x1b[31m\xc2\x9bc" + "\xa0\u00e9/libreprise_core.so: ", done.stderr)
        self.assertRegex(done.stderr, r"^reprise: [^\n\x1b\x9b]*; memory is left as it is\n$")

    def test_core_needs_what_is_not_there(self):
        shutil.copy(built("UNLOADABLE_CORE"), self.at.core)
        self.check("undefined symbol: reprise_test_nobody_defines_this")

    def test_core_is_another_library(self):
        shutil.copy(built("PLUGIN"), self.at.core)
        self.check("reprise: cannot use the core library: ")

    def test_core_of_another_version(self):
        shutil.copy(built("FAKE_CORE_LIBRARY"), self.at.core)
        for misbehaves in ["newer", "smaller"]:
            done = self.job("ordinary", FAKE_CORE=misbehaves)
            self.assertEqual(done.stdout, "not served\n")
            self.assertIn("reprise: the core library is of another version", done.stderr)

    def test_core_refuses(self):
        shutil.copy(built("FAKE_CORE_LIBRARY"), self.at.core)
        self.check("", FAKE_CORE="refuse")


    def test_limited_memory_is_left_to_the_job(self):
        """What a core takes would count against the limit, so none is opened."""
        shutil.copy(built("FAKE_CORE_LIBRARY"), self.at.core)
        for limit, what in [(resource.RLIMIT_AS, "the address space is limited (ulimit -v)"),
                            (resource.RLIMIT_DATA, "its data is limited (ulimit -d)")]:
            for level, said in [("warn", ""), ("info", f"reprise: {what}; memory is left as it is\n")]:
                with self.subTest(what=what, level=level):
                    done = subprocess.run([built("JOB"), "ordinary"], capture_output=True, text=True, timeout=TIMEOUT,
                                          preexec_fn=lambda: resource.setrlimit(limit, (1 << 32, 1 << 32)),
                                          env=clean_environment([self.at.shim], REPRISE_LOG=level))
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "not served\n", said))


class Off(ShimTest):
    def test_off_is_off(self):
        for variables in [{"REPRISE_DISABLE": "1"}, {"REPRISE_DISABLE": "yes"}, {"REPRISE_MODE": "off"}]:
            with self.subTest(**variables):
                done = self.job("ordinary", **variables)
                self.assertEqual((done.stdout, done.stderr), ("not served\n", ""))

    def test_not_disabled(self):
        for text in ["0", ""]:
            self.assertEqual(self.job("ordinary", REPRISE_DISABLE=text).stdout, "served\n")


class Company(ShimTest):
    """Other allocators, other copies, other programs."""

    def test_two_copies(self):
        second = Installed()
        self.addCleanup(second.close)
        done = run([built("JOB"), "served"], preload=[self.at.shim, second.shim])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, OPENED + "fake core: allocated 12, released 12, later 0, passed 0\n")

    def test_second_copy_stays_out_when_the_first_cannot_serve(self):
        first = Installed(core=None)
        self.addCleanup(first.close)
        done = run([built("JOB"), "ordinary"], preload=[first.shim, self.at.shim])
        self.assertEqual(done.stdout, "not served\n")
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_program_with_a_free_of_its_own(self):
        done = self.job(program="OWN_FREE")
        self.assertEqual(done.stdout, "not served\n")
        self.assertIn("functions of its own", done.stderr)

    def test_program_whose_malloc_comes_to_us(self):
        """Its first malloc comes from setlocale, under whose lock nothing that failed could be worded."""
        alone = Installed(core=None)
        self.addCleanup(alone.close)
        for at in [self.at, alone]:
            done = run([built("OWN_MALLOC")], preload=[at.shim], REPRISE_THRESHOLD="16")
            self.assertEqual((done.returncode, done.stdout), (0, "not served\n"), done.stderr)
            self.assertEqual(done.stderr.count("this program's malloc takes aligned memory"), 1, done.stderr)

    def test_program_under_a_sanitizer(self):
        for sanitizer in ["FAKE_SANITIZER", "FAKE_THREAD_SANITIZER"]:
            done = run([built("JOB"), "ordinary"], preload=[built(sanitizer), self.at.shim])
            self.assertEqual((done.returncode, done.stdout), (0, "not served\n"))
            self.assertIn("a sanitizer watches", done.stderr)

    def test_program_with_jemalloc_inside(self):
        done = self.job("ordinary", program="JOB_JEMALLOC_STATIC")
        self.assertEqual((done.stdout, done.stderr), ("not served\n", ""))

    def test_program_linked_with_jemalloc(self):
        for name in ["ordinary", "reallocate", "threads"]:
            with self.subTest(name=name):
                self.assertIn(OPENED, self.job(name, program="JOB_JEMALLOC").stderr)

    def test_jemalloc_preloaded(self):
        jemalloc = built("JEMALLOC")
        done = run([built("JOB"), "reallocate"], preload=[self.at.shim, jemalloc])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(OPENED, done.stderr)
        done = run([built("JOB"), "ordinary"], preload=[jemalloc, self.at.shim])
        self.assertEqual((done.stdout, done.stderr), ("not served\n", ""))

    def test_the_c_librarys_own_checks_behind_us(self):
        """What it checks it allocates itself, and it has old versions of the names alone."""
        checked = {"preload": [self.at.shim, "libc_malloc_debug.so.0"], "MALLOC_CHECK_": "3"}
        if run(["true"], **checked).stderr:
            self.skipTest("this C library has no libc_malloc_debug")
        for name in ["ordinary", "reallocate", "answers"]:
            with self.subTest(name=name):
                done = run([built("JOB"), name], **checked)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(OPENED, done.stderr)

    def test_jemalloc_with_an_operator_new_of_its_own(self):
        """What that takes by the name of aligned_alloc its operator delete takes for its own."""
        done = run([built("STATIC_OBJECTS")], preload=[self.at.shim, built("JEMALLOC")])
        self.assertEqual((done.returncode, done.stdout), (0, "4097 1\n"), done.stderr)

    def test_static_binary(self):
        done = self.job("ordinary", program="JOB_STATIC")
        self.assertEqual((done.stdout, done.stderr), ("not served\n", ""))

    def test_everyday_programs(self):
        repository = self.at.folder
        for command in [["bash", "-c", "x=$(echo a b | wc -w); test $x = 2 && (exit 3); echo $?"],
                        ["git", "init", "-q", repository], ["git", "-C", repository, "add", "libreprise-host.so"],
                        ["git", "-C", repository, "status", "--short"],
                        ["python3", "-c", "import ctypes, json, subprocess, threading; print(json.dumps([1]))"]]:
            with self.subTest(command=command[0]):
                without = run(command)
                done = run(command, preload=[self.at.shim])
                self.assertEqual((done.returncode, done.stdout), (without.returncode, without.stdout))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("reprise", done.stderr)

    def test_python_takes_aligned_memory(self):
        code = ("import ctypes; c = ctypes.CDLL(None); c.memalign.restype = ctypes.c_void_p; "
                "c.free.argtypes = [ctypes.c_void_p]; p = c.memalign(64, 65536); print(hex(p)); c.free(p)")
        done = run(["python3", "-c", code], preload=[self.at.shim])
        self.assertRegex(done.stdout, "^0x2000000")
        self.assertIn("allocated 1, released 1,", done.stderr)

    def test_loader_functions_that_are_not_there(self):
        """Before glibc 2.34 a process without libdl has no dlsym: then the C library's own functions serve."""
        with open(self.at.shim, "rb") as file:
            image = file.read()
        for name in [b"dlsym", b"dlvsym", b"dlopen", b"dlerror", b"dladdr"]:
            self.assertEqual(image.count(b"\0" + name + b"\0"), 1)
            image = image.replace(b"\0" + name + b"\0", b"\0" + name[:-1] + b"_\0")
        with open(self.at.shim, "wb") as file:
            file.write(image)
        done = self.job("ordinary")
        self.assertEqual((done.stdout, done.stderr), ("not served\n", ""))
        self.assertEqual(as_before_2_38(self.job("answers").stdout), as_before_2_38(run([built("JOB"), "answers"]).stdout))


def as_before_2_38(answers):
    """Without what glibc's aligned_alloc refuses since 2.38: alignments that are no powers of two."""
    return [line for line in answers.splitlines() if not re.match("aligned_alloc (0|3|12|24|100) ", line)]


if __name__ == "__main__":
    unittest.main()
