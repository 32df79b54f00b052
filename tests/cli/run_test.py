"""Why this exists: a job under `reprise run` must not be able to tell, and neither must whoever started it."""

import contextlib
import ctypes
import fcntl
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import termios
import unittest

import command

# Allocates through the functions that are caught, in rounds, then ends with the status it is told.
JOB = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
for _ in range(20):
    for block in [libc.aligned_alloc(64, 8192 * (i + 1)) for i in range(16)]:
        libc.free(block)
sys.exit(int(sys.argv[1]))
"""
# Leaves a process that ends as an orphan, and ends with 3 once that is no more, not even a zombie.
ORPHAN = """
import os, sys, time
wait, go_on = os.pipe()
told, tell = os.pipe()
parent = os.fork()
if parent == 0:
    os.close(go_on)
    orphan = os.fork()
    if orphan == 0:
        os.read(wait, 1)
    else:
        os.write(tell, str(orphan).encode())
    os._exit(0)
os.waitpid(parent, 0)
orphan = int(os.read(told, 20))
os.close(go_on)
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        os.kill(orphan, 0)
    except ProcessLookupError:
        sys.exit(3)
    os.sched_yield()
"""
PRINT = "import os, sys; print(*(f'{name}={os.environ.get(name)}' for name in sys.argv[1:]), sep='\\n')"


class Run(command.CommandTest):
    def run_job(self, *options, status=0):
        done = self.run_host(*options, "--", sys.executable, "-c", JOB, str(status))
        self.assert_status(done, status)
        return done

    def variables(self, *names, options=(), **keywords):
        done = self.run_host(*options, "--", sys.executable, "-c", PRINT, *names, **keywords)
        self.assert_status(done, 0)
        return dict(line.split("=", 1) for line in done.out.splitlines())

    def test_status_is_the_jobs(self):
        self.run_job(status=0)
        self.run_job(status=7)

    def test_output_is_the_jobs_byte_by_byte(self):
        done = self.run_host("--", "sh", "-c", r"printf 'a\000b\n'; printf 'e' >&2")
        self.assertEqual(done.stdout, b"a\0b\n")
        self.assertTrue(done.stderr.startswith(b"e"))

    def test_without_dashes(self):
        self.assert_status(self.run_host("sh", "-c", "exit 3"), 3)
        self.assertEqual(self.run_host("echo", "a", "--", "--mode").out, "a -- --mode\n")

    def test_words_of_the_job_are_its_own(self):
        self.assertEqual(self.run_host("--", "echo", "--out", "x", "--", "run").out, "--out x -- run\n")

    def test_files_and_next_command(self):
        done = self.run_job("--mode", "record")
        self.assertLessEqual({"summary.json", "trace.reprise"}, set(os.listdir(self.path("reprise-out"))))
        self.assertIn("in reprise-out: summary.json, trace.reprise", done.err)
        self.assertTrue(done.err.endswith("\nreprise: next: reprise stats reprise-out/trace.reprise\n"), done.err)
        self.assertEqual(done.err.count("next: "), 1, done.err)
        self.ok("stats", "reprise-out/trace.reprise")
        summary = json.loads(self.read("reprise-out/summary.json"))
        self.assertEqual(summary["requests"], 320)

    def test_what_another_run_leaves_in_the_folder_meanwhile_is_not_its_own(self):
        # The larger trace is the other's: by its size it would be the one to report on.
        self.write("job.py", JOB)
        self.write("larger.py", JOB.replace("range(20)", "range(2000)"))
        run = f'"{command.REPRISE}" run --host --mode record --out out -- "{sys.executable}"'
        script = f'{{unnamed}} {run} larger.py 0; "{sys.executable}" job.py 0'
        for unnamed, traces in [("env -u REPRISE_RUN", 1), ("", 2)]:
            with self.subTest(unnamed=unnamed):
                done = self.run_host("--mode", "record", "--out", "out", "--report", "--", "sh", "-c",
                                     script.format(unnamed=unnamed))
                self.assert_status(done, 0)
                listed = [line for line in done.err.splitlines() if line.startswith("reprise: in out: ")]
                self.assertEqual([len(re.findall(r"trace[.\w]*\.reprise", line)) for line in listed], [1, traces])
                page = re.search(r"wrote (out/report[.0-9]*html)", done.err).group(1)
                head = json.loads(self.read(page).decode().split('id="head">')[1].split("</script>")[0])
                self.assertEqual(head["stats"]["allocs"], 320 if traces == 1 else 32000)
                shutil.rmtree(self.path("out"))

    def test_whatever_the_run_is_called_its_files_are_found(self):
        for name in ["sweep 7", "caf\u00e9", 130 * "x", "\udcff"]:
            with self.subTest(name=name):
                done = self.run_host("--out", "out", "--", sys.executable, "-c", JOB, "0", env={"REPRISE_RUN": name})
                self.assertIn("in out: summary.json, trace.reprise", done.err)
                shutil.rmtree(self.path("out"))

    def test_a_percent_sign_is_no_pattern(self):
        done = self.run_job("--mode", "record", "--report", "--out", "100%%")
        self.assertIn("in 100%: summary.json, trace.reprise", done.err)
        self.assertIn("wrote 100%/report.html", done.err)

    def test_folders_that_processes_name(self):
        done = self.run_job("--out", "a/b/h%h-%p")
        self.assertRegex(done.err, r"files are below a/b, .* by /.*/a/b/h%h-%p\n.*next: reprise merge a/b\n\Z")
        self.assertIn("summaries of 1 of 1 ranks", self.ok("merge", "a/b").out)
        self.assertTrue(self.run_job("--out", "%p").err.endswith("reprise: next: reprise merge .\n"))

    def test_folder_holds_where_the_job_goes_elsewhere(self):
        self.write("job.py", JOB)
        self.run_host("--out", "out", "--", "sh", "-c", f'cd / && "{sys.executable}" "{self.path("job.py")}" 0')
        self.assertIn("summary.json", os.listdir(self.path("out")))

    def test_percent_in_the_present_folder(self):
        os.mkdir(self.path("100%p"))
        done = self.run_host("--out", "out", "--", sys.executable, "-c", JOB, "0", cwd=self.path("100%p"))
        self.assert_status(done, 0)
        self.assertIn("summary.json", os.listdir(self.path("100%p/out")))

    def test_record_leaves_a_trace_that_can_be_worked_on(self):
        self.run_job("--mode", "record", "--out", "out")
        self.assertEqual(self.json("stats", "out/trace.reprise")["allocs"], 320)
        self.ok("simulate", "out/trace.reprise")
        self.ok("plan", "out/trace.reprise", "-o", "plan.json")
        self.ok("check", "out/trace.reprise", "plan.json")

    def test_a_trace_says_that_blocks_have_left_it_by_growing(self):
        grow = JOB.replace("sys.exit", "libc.realloc.restype = ctypes.c_void_p\n"
                                       "libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]\n"
                                       "libc.free(libc.realloc(libc.aligned_alloc(64, 8192), 1 << 20))\nsys.exit")
        done = self.run_host("--mode", "record", "--out", "out", "--", sys.executable, "-c", grow, "0")
        self.assertIn("the most that was served at once", done.err)
        stats = self.json("stats", "out/trace.reprise")
        self.assertFalse(stats["whole"])
        self.assertIn("requests of 1048576 bytes in all were left to the real allocator", stats["notes"][0])

    def test_a_trace_says_what_was_left_to_the_real_allocator(self):
        aligned = JOB.replace("sys.exit", "libc.free(libc.aligned_alloc(4 << 20, 1 << 20))\nsys.exit")
        self.run_host("--mode", "record", "--out", "out", "--", sys.executable, "-c", aligned, "0")
        stats = self.json("stats", "out/trace.reprise")
        self.assertFalse(stats["whole"])
        self.assertIn("requests of 1048576 bytes in all were left to the real allocator", stats["notes"][0])

    def test_a_trace_says_what_found_no_room_in_the_capacity(self):
        self.run_job("--mode", "record", "--out", "out", "--capacity", "256KiB")
        stats = self.json("stats", "out/trace.reprise")
        self.assertFalse(stats["whole"])
        self.assertRegex(stats["notes"][0], r"requests of \d+ bytes in all were left to the real allocator")
        self.fails(3, "diff", "out/trace.reprise", "out/trace.reprise", "--fail-above", "1%", says="left to the real")

    def test_a_trace_says_whose_it_is(self):
        done = self.run_host("--out", "out", "--", sys.executable, "-c", JOB, "0",
                             env={"RANK": "3", "LOCAL_RANK": "0", "WORLD_SIZE": "8"})
        self.assert_status(done, 0)
        stats = self.json("stats", "out/trace.rank3.reprise")
        self.assertEqual((stats["rank"], stats["world_size"], stats["device"]), (3, 8, 0))
        self.assertTrue(self.ok("stats", "out/trace.rank3.reprise").out.startswith(
            "out/trace.rank3.reprise: trace of rank 3 of 8\n"))

    def test_report_when_the_job_has_ended(self):
        done = self.run_job("--mode", "record", "--report", status=3)
        self.assertIn("wrote reprise-out/report.html", done.err)
        self.assertIn("next: reprise stats reprise-out/trace.reprise", done.err.splitlines()[-1])
        head = json.loads(self.read("reprise-out/report.html").decode().split('id="head">')[1].split("</script>")[0])
        self.assertIn("The trace covers all of the job's", head["coverage"])
        self.assertEqual(head["counters"]["requests"], head["stats"]["allocs"])
        self.assertIn(sys.executable, head["provenance"]["command"])
        # A second run into the same folder overwrites nothing.
        self.run_job("--mode", "record", "--out", "reprise-out", "--report")
        self.assertTrue(os.path.exists(self.path("reprise-out/report.2.html")))

    def test_the_trace_that_is_named_is_the_jobs_and_not_a_helpers(self):
        self.write("job.py", JOB)
        self.write("aid.py", JOB.replace("range(20)", "range(1)"))
        script = f"{sys.executable} aid.py 0; exec {sys.executable} job.py 0"
        done = self.run_host("--mode", "record", "--out", "out", "--", "sh", "-c", script)
        self.assert_status(done, 0)
        named = re.search(r"next: reprise stats (\S+)", done.err.splitlines()[-1]).group(1)
        self.assertNotEqual(named, "out/trace.reprise")
        self.assertEqual(self.json("stats", named)["allocs"], 320)

    def test_a_helpers_larger_trace_is_not_named(self):
        """One with little at a time, but irregularly, fills a file that says more of it than the job's own does."""
        helper = JOB.replace("range(20)", "range(2000)").replace("8192 * (i + 1)", "4096 * (1 + hash((_, i)) % 9)")
        self.write("job.py", JOB)
        self.write("helper.py", helper)
        script = f"{sys.executable} helper.py 0; {sys.executable} job.py 0"
        done = self.run_host("--mode", "record", "--out", "out", "--report", "--", "sh", "-c", script)
        self.assert_status(done, 0)
        sizes = {name: os.path.getsize(self.path("out/" + name)) for name in os.listdir(self.path("out"))}
        traces = [name for name in sizes if name.startswith("trace")]
        named = re.search(r"next: reprise stats out/(\S+)", done.err.splitlines()[-1]).group(1)
        self.assertLess(sizes[named], max(sizes[name] for name in traces))
        self.assertEqual(self.json("stats", "out/" + named)["allocs"], 320)
        head = json.loads(self.read("out/report.html").decode().split('id="head">')[1].split("</script>")[0])
        self.assertEqual(head["stats"]["allocs"], 320)
        self.assertIn(f"such as out/{named}", self.fails(3, "stats", "out").err)
        # Where not each has left a summary its peak is not known, and their sizes are.
        for name in sizes:
            if name.startswith("summary"):
                os.remove(self.path("out/" + name))
                break
        self.assertNotIn(f"such as out/{named}", self.fails(3, "stats", "out").err)

    def test_a_signal_ends_the_report_and_not_the_status(self):
        """Who ends a job by a signal gives it seconds; a page of this many allocations takes longer than to send it."""
        many = JOB.replace("range(20)", "range(20000)")
        with subprocess.Popen(
            [command.REPRISE, "run", "--host", "--mode", "record", "--out", "out", "--report", "--", sys.executable,
             "-c", many, "7"],
            cwd=self.folder, env=command.clean_environment(), stderr=subprocess.PIPE, text=True,
        ) as run:
            said = []
            for line in run.stderr:
                said.append(line)
                if line.startswith("reprise: in out: "):
                    run.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(60), 7)
        self.assertIn("reprise: no report: a signal has ended it\n", said)
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["summary.json", "trace.reprise"])

    def test_a_trace_of_a_further_device_finds_the_summary_of_its_process(self):
        self.run_job("--mode", "record", "--out", "out")
        summary = json.loads(self.read("out/summary.json"))
        self.write("out/summary.rank3.json", json.dumps({**summary, "requests": summary["requests"] + 7, "passed": 7}))
        os.remove(self.path("out/summary.json"))
        os.rename(self.path("out/trace.reprise"), self.path("out/trace-device1.rank3.reprise"))
        for name in ("out", "out/trace-device1.rank3.reprise"):
            self.ok("report", name, "-o", "page.html")
            head = json.loads(self.read("page.html").decode().split('id="head">')[1].split("</script>")[0])
            self.assertRegex(head["coverage"], r"\d+ of the job's \d+ allocations .*: 7 were left to the real allocator\.")

    def test_report_of_a_job_without_a_trace(self):
        done = self.run_host("--out", "out", "--report", "--", "true")
        self.assert_status(done, 0)
        self.assertNotIn("wrote", done.err)

    def test_damaged_traces(self):
        self.run_job("--mode", "record", "--out", "out")
        whole = self.read("out/trace.reprise")
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :]
        self.ok("plan", "out/trace.reprise", "-o", "plan.json")
        for what, content in (("head only", whole[:20]), ("flipped byte", flipped)):
            self.write("bad.reprise", content)
            for words in (["plan"], ["simulate"], ["stats"]):
                with self.subTest(what, words=words):
                    self.fails(3, *words, "bad.reprise", says=r"bad.reprise: byte \d+")
            self.fails(3, "check", "bad.reprise", "plan.json", says=r"bad.reprise: byte \d+")

    def test_plan_for_another_trace(self):
        self.run_job("--mode", "record", "--out", "out")
        self.write("a.csv", command.LIFETIMES)
        self.ok("plan", "a.csv", "-o", "a.json")
        self.fails(3, "check", "out/trace.reprise", "a.json", says="another input")

    def test_nothing_caught(self):
        done = self.run_host("--", "true")
        self.assert_status(done, 0)
        self.assertIn("nothing was caught", done.err)
        self.assertEqual(os.listdir(self.folder), [])

    def test_nothing_served_under_a_limit(self):
        for kind, what in [(resource.RLIMIT_AS, "address space"), (resource.RLIMIT_DATA, "data segment")]:
            done = self.run_host("--", sys.executable, "-c", JOB, "0",
                                 preexec_fn=lambda: resource.setrlimit(kind, (8 << 30, 8 << 30)))
            self.assert_status(done, 0)
            self.assertIn(f"the {what} is limited, here to 8.00 GiB", done.err)

    def test_variables(self):
        names = ("REPRISE_MODE", "REPRISE_CAPACITY", "REPRISE_THRESHOLD", "REPRISE_OUT")
        options = ("--mode", "record", "--capacity", "1.5GiB", "--threshold", "64K", "--out", "out")
        told = self.variables(*names, options=options)
        self.assertEqual([told[name] for name in names[:3]], ["record", str(3 << 29), "65536"])
        self.assertTrue(told["REPRISE_OUT"].endswith("/out") and told["REPRISE_OUT"].startswith("/"))

    def test_variables_of_the_user_stay(self):
        told = self.variables("REPRISE_MODE", "REPRISE_LOG", env={"REPRISE_MODE": "record", "REPRISE_LOG": "quiet"})
        self.assertEqual(told, {"REPRISE_MODE": "record", "REPRISE_LOG": "quiet"})

    def test_preload_of_the_user_stays_behind_ours(self):
        other = shutil.copy(self.host_library(), self.path("other.so"))
        value = self.variables("LD_PRELOAD", env={"LD_PRELOAD": other})["LD_PRELOAD"]
        self.assertRegex(value, f"^/.*/libreprise-host.so:{other}$")

    def test_a_sanitizer_stays_in_front(self):
        library = self.host_library()
        given = f"/x/other.so:/x/libasan.so.8 {library}:/x/libclang_rt.tsan-x86_64.so"
        value = self.variables("LD_PRELOAD", env={"LD_PRELOAD": given})["LD_PRELOAD"]
        self.assertEqual(value, f"/x/libasan.so.8:/x/libclang_rt.tsan-x86_64.so:{library}:/x/other.so")

    def test_preload_of_ours_once_only(self):
        library = self.host_library()
        self.assertEqual(self.variables("LD_PRELOAD", env={"LD_PRELOAD": library})["LD_PRELOAD"], library)

    def host_library(self):
        return self.variables("LD_PRELOAD")["LD_PRELOAD"]

    def test_library_beside_the_command(self):
        os.mkdir(self.path("installed"))
        program = shutil.copy(command.REPRISE, self.path("installed"))
        self.fails(2, "run", "--host", "--", "true", program=program, says="libreprise-host.so is in none of")
        library = shutil.copy(self.host_library(), self.path("installed"))
        done = self.run_host("--", "printenv", "LD_PRELOAD", program=program)
        self.assertEqual(done.out, os.path.realpath(library) + "\n")

    def installed_in(self, name):
        os.mkdir(self.path(name))
        for file in (os.environ["REPRISE_HOST_LIBRARY"], os.environ["REPRISE_CORE_LIBRARY"]):
            shutil.copy(file, self.path(name))
        return shutil.copy(command.REPRISE, self.path(name))

    def test_library_where_preload_cannot_name_it(self):
        os.mkdir(self.path("tmp"))
        for name in ("a b", "a:b", "$ORIGIN"):
            with self.subTest(name):
                program = self.installed_in(name)
                done = self.reprise(
                    "run", "--host", "--out", "out", "--", sys.executable, "-c", JOB, "0",
                    program=program, env={"TMPDIR": self.path("tmp")},
                )
                self.assert_status(done, 0)
                self.assertRegex(done.err, r"in out: summary")

    def test_link_stays_for_what_outlives_the_job(self):
        os.mkdir(self.path("tmp"))
        program = self.installed_in("a b")
        words = ("run", "--host", "--out", "out", "--", "printenv", "LD_PRELOAD")
        for _ in range(2):
            done = self.reprise(*words, program=program, env={"TMPDIR": self.path("tmp")})
            self.assert_status(done, 0)
            self.assertTrue(os.path.samefile(done.out.strip(), self.path("a b/libreprise-host.so")), done.out)
        (folder,) = os.listdir(self.path("tmp"))
        self.assertEqual(len(os.listdir(self.path("tmp/" + folder))), 1)

    def test_link_is_in_a_folder_that_nobody_else_can_write(self):
        program = self.installed_in("a b")
        folder = self.path(f"tmp/reprise-{os.geteuid()}")
        words = ("run", "--host", "--", "true")
        os.makedirs(folder)
        self.assertEqual(os.stat(folder).st_mode & 0o777, 0o755)
        self.fails(2, *words, program=program, env={"TMPDIR": self.path("tmp")}, says="yours alone")
        os.rmdir(folder)
        os.symlink(self.folder, folder)
        self.fails(2, *words, program=program, env={"TMPDIR": self.path("tmp")}, says="yours alone")

    def test_library_and_temporary_folder_where_preload_cannot_name_them(self):
        program = self.installed_in("a b")
        words = ("run", "--host", "--", "true")
        self.fails(2, *words, program=program, env={"TMPDIR": self.path("a b")}, says="LD_PRELOAD cannot name")

    def test_no_such_command(self):
        self.fails(127, "run", "--host", "--", "no-such-command", says="no-such-command: command not found")
        self.assertEqual(os.listdir(self.folder), [])

    def test_command_that_cannot_be_started(self):
        self.fails(126, "run", "--host", "--", self.folder, says="Permission denied")

    def test_usage(self):
        self.fails(2, "run", "--host", says="run needs the job's command line behind --")
        self.fails(2, "run", "--hots", "--", "true", says="--hots")
        self.fails(2, "run", "--host", "--mode", "fast", "--", "true", says="fast")

    def test_death_by_signal_is_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            done = self.run_host("--", "sh", "-c", f"kill -{int(number)} $$")
            self.assert_status(done, -number)

    def test_orphans_of_the_job_are_taken_away_where_they_become_the_commands(self):
        # As in a container whose first process it is.
        pr_set_child_subreaper = 36
        job = subprocess.Popen(
            [command.REPRISE, "run", "--host", "--", sys.executable, "-c", ORPHAN],
            cwd=self.folder, env=command.clean_environment(), stderr=subprocess.DEVNULL,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0),
        )
        self.addCleanup(job.kill)
        self.assertEqual(job.wait(60), 3)

    def start(self, code, **options):
        """A job that has printed `ready`."""
        job = subprocess.Popen(
            [command.REPRISE, "run", "--host", "--", sys.executable, "-c", code],
            cwd=self.folder, env=command.clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            bufsize=0, **options,
        )
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        self.assertEqual(job.stdout.readline(), b"ready\n")
        return job

    def test_signals_are_passed_on(self):
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            job = self.start(
                f"import signal, sys\nawaited = [{int(number)}]\nsignal.pthread_sigmask(signal.SIG_BLOCK, awaited)\n"
                "print('ready', flush=True)\nsignal.sigwait(awaited)\nsys.exit(9)"
            )
            job.send_signal(number)
            self.assertEqual(job.wait(20), 9)

    def test_queued_signals_keep_what_they_carry(self):
        job = self.start(
            "import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\nprint('ready', flush=True)\n"
            "info = signal.sigwaitinfo([signal.SIGUSR1])\nprint(info.si_code, info.si_pid, info.si_status)"
        )
        ctypes.CDLL(None).sigqueue(job.pid, signal.SIGUSR1, ctypes.c_void_p(77))
        self.assertEqual(job.stdout.readline().decode(), f"-1 {os.getpid()} 77\n")

    def terminal(self):
        """The far end of a terminal, the near end, and what makes a process the leader of its session."""
        far, near = (os.fdopen(end, "r+b", buffering=0) for end in pty.openpty())
        self.addCleanup(far.close)
        self.addCleanup(near.close)

        def at_the_terminal():
            os.setsid()
            fcntl.ioctl(near, termios.TIOCSCTTY, 0)

        return far, near, at_the_terminal

    def test_a_terminal_that_hangs_up_ends_the_job(self):
        # A job that is stopped has to be continued too.
        for then in ("signal.pause()", "os.kill(os.getpid(), signal.SIGSTOP)"):
            with self.subTest(then):
                far, _, at_the_terminal = self.terminal()
                code = f"import os, signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\nprint('ready', flush=True)\n{then}"
                job = self.start(code, preexec_fn=at_the_terminal)
                far.close()
                self.assertEqual(job.wait(20), -signal.SIGHUP)

    def test_signals_of_the_kernel_are_passed_on(self):
        def with_an_alarm_on_its_way():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            signal.setitimer(signal.ITIMER_REAL, 1e-6)
            while signal.SIGALRM not in signal.sigpending():
                pass

        code = "import signal, sys\nsys.exit(int(signal.sigwait([signal.SIGALRM])))"
        done = self.run_host("--", sys.executable, "-c", code, preexec_fn=with_an_alarm_on_its_way, timeout=20)
        self.assert_status(done, signal.SIGALRM)

    def test_timers_are_the_jobs(self):
        timers = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)

        def with_timers():
            for timer in timers:
                signal.setitimer(timer, 3600, 1800)

        code = f"import signal\nprint(*(round(word, -2) for timer in {[int(timer) for timer in timers]} for word in signal.getitimer(timer)))"
        done = self.run_host("--", sys.executable, "-c", code, preexec_fn=with_timers)
        self.assert_status(done, 0)
        self.assertEqual(done.out, "3600.0 1800.0 " * 2 + "3600.0 1800.0\n")

    def test_stops_and_goes_on_with_the_job_at_a_terminal(self):
        code = "import os, signal\nos.kill(os.getpid(), signal.SIGTSTP)\nos._exit(5)"
        done, _ = self.in_the_background(command.REPRISE, "run", "--host", "--", sys.executable, "-c", code)
        self.assertEqual((done.returncode, done.out), (5, "stopped\n"), done.err)

    def test_what_is_said_does_not_stop_a_job_in_the_background(self):
        job = (sys.executable, "-c", JOB, "6")
        program = self.installed_in("alone")
        os.remove(self.path("alone/libreprise_core.so"))
        # Recorded: whether a short job that is served has a plan by its end, and so a summary to show, is chance.
        for words, says in (((command.REPRISE, "run", "--host", "--mode", "record", "--out", "out"), b"recorded"),
                            ((program, "run", "--host", "--out", "out"), b"cannot open the core library")):
            with self.subTest(says):
                done, far = self.in_the_background(*words, "--", *job)
                self.assertEqual((done.returncode, done.out), (6, ""))
                self.assertIn(says, os.read(far.fileno(), 4096))

    def in_the_background(self, *words, env=None):
        """Runs a job of a shell's at a terminal where only the foreground may write, and continues it when it
        stops. Its standard error is the terminal, the far end of which is the second value."""
        shell = """
import os, signal, subprocess, sys, termios
flags = termios.tcgetattr(2)
flags[3] |= termios.TOSTOP
termios.tcsetattr(2, termios.TCSANOW, flags)
job = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, preexec_fn=os.setpgrp)
while os.WIFSTOPPED(status := os.waitpid(job.pid, os.WUNTRACED)[1]):
    print("stopped", flush=True)
    os.tcsetpgrp(2, job.pid)
    os.killpg(job.pid, signal.SIGCONT)
os._exit(os.waitstatus_to_exitcode(status) & 255)
"""
        far, near, at_the_terminal = self.terminal()
        done = self.reprise("-c", shell, *words, program=sys.executable, env=env, capture_output=False,
                            stdout=subprocess.PIPE, stderr=near, preexec_fn=at_the_terminal, timeout=30)
        return done, far

    def test_a_job_starts_though_nobody_reads_what_is_said(self):
        read, write = os.pipe()
        os.close(read)
        self.addCleanup(os.close, write)
        done = self.run_host("--", "sh", "-c", "exit 4", capture_output=False, stderr=write,
                             env={"REPRISE_DISABLE": "1"})
        self.assertEqual(done.returncode, 4)

    def test_a_job_that_is_stopped_and_continued_alone(self):
        # How long it takes until the command has seen a stop cannot be known: often enough.
        code = (
            "import os, signal\nprint('ready', flush=True)\n"
            "for _ in range(50):\n    print(os.getpid(), flush=True)\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
            "os._exit(5)"
        )
        for options in ({}, {"preexec_fn": self.terminal()[2]}):
            with self.subTest(at_a_terminal=bool(options)):
                self.continue_alone(self.start(code, **options))

    def continue_alone(self, job):
        pid = int(job.stdout.readline())
        while True:
            if select.select([job.stdout], [], [], 0.01)[0]:
                if not job.stdout.readline():
                    break
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        self.assertEqual(job.wait(20), 5)

    def test_a_kill_of_the_command_is_meant_for_the_job(self):
        job = self.start("import signal\nprint('ready', flush=True)\nsignal.pause()")
        signal.alarm(60)
        self.addCleanup(signal.alarm, 0)
        job.kill()
        self.assertEqual(job.stdout.read(), b"")  # until nobody has it open

    def test_closed_streams_stay_closed(self):
        code = "import os, sys\ntry:\n    os.fstat(0)\nexcept OSError:\n    sys.exit(9)"
        done = self.run_host("--", sys.executable, "-c", code, preexec_fn=lambda: os.close(0))
        self.assert_status(done, 9)

    def test_folder_that_cannot_be_made_is_no_reason_not_to_run(self):
        gone = self.path("gone")
        os.mkdir(gone)
        done = self.run_host("--", "sh", "-c", "exit 4", cwd=gone, preexec_fn=lambda: os.rmdir(gone))
        self.assert_status(done, 4)
        self.assertIn("going on without files", done.err)

    def test_off_is_off_where_the_library_is_preloaded_already(self):
        there = {"LD_PRELOAD": self.host_library(), "REPRISE_OUT": self.path("out")}
        for words, variables in [((), {"REPRISE_DISABLE": "1"}), (("--mode", "off"), {}), (("--mode", "off"), {"REPRISE_MODE": "record"})]:
            done = self.run_host(*words, "--", sys.executable, "-c", JOB, "0", env={**there, **variables})
            self.assertRegex(done.err, "^reprise: .* (is set|is off): nothing will be caught\n$")
            self.assertFalse(os.path.exists(self.path("out")))

    def test_off_runs_the_job_whatever_is_missing(self):
        """No driver, no library: there is nothing that would be needed."""
        os.mkdir(self.path("alone"))
        program = shutil.copy(command.REPRISE, self.path("alone"))
        cases = [((), {"REPRISE_DISABLE": "1"}, "REPRISE_DISABLE is set"), ((), {"REPRISE_MODE": "off"}, "REPRISE_MODE is off"),
                 (("--mode", "off"), {}, "--mode is off")]
        for words, variables, why in cases:
            with self.subTest(why):
                code = "printenv LD_PRELOAD PYTORCH_CUDA_ALLOC_CONF REPRISE_OUT; echo ran; exit 7"
                done = self.reprise("run", *words, "--", "sh", "-c", code, program=program, env=variables)
                self.assert_status(done, 7)
                self.assertEqual((done.out, done.err), ("ran\n", f"reprise: {why}: nothing will be caught\n"))

    def test_recording_follows_no_plan(self):
        self.write("plans.json", "{}")
        self.fails(2, "run", "--host", "--mode", "record", "--plan", "plans.json", "--", "true", says="--plan is to be followed")

    def test_plans_named_by_the_environment_are_found_from_another_folder(self):
        os.mkdir(self.path("elsewhere"))
        done = self.run_host("--", "sh", "-c", "cd elsewhere && printenv REPRISE_CACHE", env={"REPRISE_CACHE": "cache"})
        self.assertEqual(done.out, os.path.realpath(self.path("cache")) + "\n")


if __name__ == "__main__":
    unittest.main()
