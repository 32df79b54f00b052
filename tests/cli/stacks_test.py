"""`run --stacks python` names the lines of a script that asked for memory: while its thread holds the interpreter's
lock, and while it has given it up; and the script's results, errors, collections and end are what they were.
`--stacks native` names functions, but only from the very file that was loaded."""

import json
import os
import platform
import sys
import textwrap
import unittest

from command import CommandTest

PYTHON = os.environ.get("REPRISE_TEST_PYTHON", sys.executable)
KIB = 1024

PRELUDE = """\
import ctypes, gc, os, sys, threading
HELD = ctypes.PyDLL(os.environ["PYTHON_CALLS"])
RELEASED = ctypes.CDLL(os.environ["PYTHON_CALLS"])
for library in (HELD, RELEASED):
    for name in ("allocate", "allocate_on_thread"):
        getattr(library, name).restype = ctypes.c_void_p
    library.allocate.argtypes = [ctypes.c_size_t]
    library.allocate_on_thread.argtypes = [ctypes.c_size_t, ctypes.c_char_p]
HELD.allocate_with_error.argtypes = [ctypes.c_size_t, ctypes.py_object]
HELD.allocate(4 * 1024)  # the first opens the core, which until then knows of no lock that is given up
"""


class StacksTest(CommandTest):
    calls = os.environ["PYTHON_CALLS"]

    def run_script(self, script, *options, stacks="python"):
        """The script's stdout, and its sites by their bytes in KiB."""
        self.write("script.py", PRELUDE + textwrap.dedent(script))
        environment = {"PYTHON_CALLS": self.calls, "REPRISE_LOG": "info", "PYTHONMALLOC": "malloc"}
        done = self.run_host("--mode", "record", "--out", "out", "--stacks", stacks, *options, "--", PYTHON, "script.py",
                             env=environment)
        self.assert_status(done, 0)
        self.stats = self.json("stats", "out/trace.reprise")
        return done.out, {site["bytes"] // KIB: site for site in self.stats["sites"]}

    def line_of(self, text):
        lines = self.read("script.py").decode().splitlines()
        return next(number for number, line in enumerate(lines, 1) if text in line)

    def assert_site(self, site, text, function):
        self.assertEqual(site["file"].split("/")[-1], "script.py")
        self.assertEqual((site["line"], site["function"].split(".")[-1]), (self.line_of(text), function))


class Python(StacksTest):
    def test_lines_with_and_without_the_lock(self):
        _, sites = self.run_script("""
            def held():
                return HELD.allocate(16 * 1024)  # held

            def released():
                RELEASED.allocate(32 * 1024)  # released
                return 1 + 1

            held()
            released()
            RELEASED.allocate(64 * 1024)  # at the top
            """)
        self.assert_site(sites[16], "# held", "held")
        self.assert_site(sites[32], "# released", "released")
        self.assert_site(sites[64], "# at the top", "<module>")
        self.assertEqual(sites[16]["library"], "")
        self.assertEqual(self.stats["attributed"], 1.0)

    def test_the_line_of_a_loop_is_the_present_one(self):
        _, sites = self.run_script("""
            for size in (16, 32):
                if size == 16:
                    RELEASED.allocate(size * 1024)  # first
                else:
                    RELEASED.allocate(size * 1024)  # second
            """)
        self.assertEqual(sites[16]["line"], self.line_of("# first"))
        self.assertEqual(sites[32]["line"], self.line_of("# second"))

    def test_threads(self):
        _, sites = self.run_script("""
            def work(library, size):
                library.allocate(size)  # in a thread

            threads = [threading.Thread(target=work, args=(RELEASED, 16 * 1024)) for _ in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            RELEASED.allocate_on_thread(16 * 1024, b"worker 7")
            RELEASED.allocate_on_thread(32 * 1024, b"pt_autograd_0")
            """)
        self.assert_site(sites[8 * 16], "# in a thread", "work")
        self.assertEqual((sites[16]["label"], sites[32]["label"]), ("thread worker 7", "backward pass"))
        # A thread's name names no code.
        self.assertAlmostEqual(self.stats["attributed"], (4 + 8 * 16 + 32) / (4 + 8 * 16 + 16 + 32), places=9)

    def test_generators_callbacks_and_deep_recursion(self):
        _, sites = self.run_script("""
            def generator():
                yield RELEASED.allocate(16 * 1024)  # generated

            def recurse(depth):
                if depth == 0:
                    return HELD.allocate(32 * 1024)  # deep
                return recurse(depth - 1)

            @ctypes.CFUNCTYPE(None)
            def callback():
                RELEASED.allocate(64 * 1024)  # called back

            list(generator())
            recurse(700)
            ctypes.CFUNCTYPE(None)(ctypes.cast(callback, ctypes.c_void_p).value)()
            """)
        self.assert_site(sites[16], "# generated", "generator")
        self.assert_site(sites[32], "# deep", "recurse")
        self.assert_site(sites[64], "# called back", "callback")

    def test_after_a_callback_it_is_the_outer_line_again(self):
        """Python takes the lock for a callback and gives it back, within a call that has given it up."""
        _, sites = self.run_script("""
            def release_inside():
                RELEASED.allocate(16 * 1024)  # inner
                return 0

            callback = ctypes.CFUNCTYPE(ctypes.c_int)(release_inside)
            callback()
            HELD.allocate(32 * 1024)  # outer
            """)
        self.assert_site(sites[16], "# inner", "release_inside")
        self.assert_site(sites[32], "# outer", "<module>")

    def test_code_that_is_gone_is_not_mistaken(self):
        """A code object's address is used again; what was known of the old one is not said of the new."""
        _, sites = self.run_script("""
            for i in range(1, 40):
                source = chr(10) * i + f"def f{i}(): HELD.allocate(16 * 1024)"
                space = {"HELD": HELD}
                exec(compile(source, f"made_{i}.py", "exec"), space)
                space.pop(f"f{i}")()
                gc.collect()
            """)
        found = {(site["file"], site["line"], site["function"].split(".")[-1])
                 for site in self.stats["sites"] if site["bytes"] > 4 * KIB}
        self.assertEqual(found, {(f"made_{i}.py", i + 1, f"f{i}") for i in range(1, 40)})

    def test_code_that_is_made_again_and_again_is_not_kept_for_ever(self):
        """And it is named all the same, the last like the first."""
        out, sites = self.run_script("""
            import weakref
            made = []
            for i in range(200):
                code = compile("HELD.allocate(16 * 1024)", "again.py", "exec")
                made.append(weakref.ref(code))
                exec(code, {"HELD": HELD})
                del code
            print(sum(code() is not None for code in made))
            """)
        self.assertLess(int(out), 50)
        again = [site for site in self.stats["sites"] if site["file"] == "again.py"]
        self.assertEqual([(site["line"], site["blocks"]) for site in again], [(1, 200)])

    def test_an_error_that_is_set_stays(self):
        out, sites = self.run_script("""
            def fails():
                return HELD.allocate_with_error(16 * 1024, KeyError)  # with an error
            print(fails(), fails())
            try:
                raise ValueError("mine")
            except ValueError as error:
                HELD.allocate(64 * 1024)
                print(sys.exc_info()[1] is error)
            """)
        self.assertEqual(out, "1 1\nTrue\n")
        self.assert_site(sites[32], "# with an error", "fails")

    def test_the_collector_is_as_it_was_and_does_not_run_meanwhile(self):
        out, _ = self.run_script("""
            busy = ctypes.c_int.in_dll(HELD, "busy")
            during, ran = [], []
            def collected(phase, _):
                ran.append(phase)
                if busy.value: during.append(phase)

            def recurse(depth):
                return recurse(depth - 1) if depth else HELD.allocate(16 * 1024)

            gc.callbacks.append(collected)
            gc.set_threshold(1, 1, 1)
            for _ in range(20): recurse(50)
            print(len(during), len(ran) > 0, gc.isenabled())
            gc.disable()
            recurse(50)
            print(gc.isenabled())
            """)
        self.assertEqual(out, "0 True True\nFalse\n")

    def test_the_end_of_the_interpreter(self):
        out, sites = self.run_script("""
            import atexit
            class Last:
                def __init__(self):
                    self.calls, self.write = (HELD.allocate, RELEASED.allocate), os.write

                def __del__(self):  # modules are gone
                    for call in self.calls: call(32 * 1024)
                    self.write(1, b"deleted")

            def stay():
                event.wait()
            event = threading.Event()
            threading.Thread(target=stay, daemon=True).start()
            sys.last = Last()
            atexit.register(lambda: RELEASED.allocate(16 * 1024))  # at exit
            """)
        self.assertEqual(out, "deleted")
        self.assertEqual(sites[16]["line"], self.line_of("# at exit"))
        # Those while the interpreter ends are counted.
        self.assertEqual(json.loads(self.read("out/summary.json"))["trace_without_stack"], 2)

    def test_a_fork(self):
        out, sites = self.run_script("""
            RELEASED.allocate(16 * 1024)  # before
            child = os.fork()
            if child == 0:
                for _ in range(100):
                    RELEASED.allocate(16 * 1024)
                    HELD.allocate(16 * 1024)
                os._exit(3)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            RELEASED.allocate(32 * 1024)  # after
            """)
        self.assertEqual(out, "3\n")
        self.assert_site(sites[16], "# before", "<module>")
        self.assert_site(sites[32], "# after", "<module>")

    def test_serving_keeps_the_stacks_of_what_is_recorded(self):
        self.write("script.py", PRELUDE + "RELEASED.allocate(16 * 1024)\n")
        self.ok("run", "--host", "--out", "out", "--stacks", "python", "--", PYTHON, "script.py",
                env={"PYTHON_CALLS": os.environ["PYTHON_CALLS"]})
        self.assertEqual(len(self.json("stats", "out/trace.reprise")["sites"]), 2)

    def test_off_keeps_none(self):
        self.run_script("HELD.allocate(16 * 1024)", stacks="off")
        self.assertEqual((self.stats["sites"], self.stats["libraries"], self.stats["attributed"]), ([], [], 0))
        self.assertEqual(self.stats["live_peak"], 20 * KIB)

    def test_text_for_people(self):
        self.run_script("HELD.allocate(16 * 1024)  # here")
        text = self.ok("stats", "out/trace.reprise").out
        self.assertIn(f"16.00 KiB  80.00 %  in 1 blocks  script.py:{self.line_of('# here')} <module>", text)


class Native(StacksTest):
    SCRIPT = """
        RELEASED.allocate(16 * 1024)
        RELEASED.allocate_on_thread(32 * 1024, b"worker")
        """

    def test_functions_are_named_from_the_file(self):
        self.run_script(self.SCRIPT, stacks="native")
        (site,) = self.stats["sites"]  # one function, whoever calls it
        self.assertEqual((site["function"], site["library"]), ("allocate", "libpython_calls.so"))
        self.assertEqual((site["bytes"], site["blocks"]), (52 * KIB, 3))
        self.assertEqual(self.stats["attributed"], 1.0)
        self.assertEqual(self.stats["libraries"], [{"library": "libpython_calls.so", "blocks": 3, "bytes": 52 * KIB}])
        self.assertRegex(self.ok("stats", "out/trace.reprise").out,
                         r"by the library that asked\n +52.00 KiB  100.00 %  in 3 blocks  libpython_calls.so")

    @unittest.skipUnless(platform.machine() == "x86_64", "machine code of another machine")
    def test_code_that_is_made_anew_each_time_takes_no_more_memory_each_time(self):
        out, sites = self.run_script("""
            import mmap, struct
            ROUNDS, BYTES = 120_000, 64
            allocate = ctypes.cast(RELEASED.allocate, ctypes.c_void_p).value
            # push rbp; mov rbp, rsp; mov rdi, 8192; mov rax, allocate; call rax; pop rbp; ret
            code = b"\\x55\\x48\\x89\\xe5\\x48\\xbf" + struct.pack("<Q", 8192) + b"\\x48\\xb8" + struct.pack("<Q", allocate)
            made = mmap.mmap(-1, ROUNDS * BYTES, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
            made.write((code + b"\\xff\\xd0\\x5d\\xc3").ljust(BYTES, b"\\x90") * ROUNDS)
            begin = ctypes.addressof(ctypes.c_char.from_buffer(made))
            function = ctypes.CFUNCTYPE(ctypes.c_void_p)
            free = ctypes.CDLL(None).free
            free.argtypes = [ctypes.c_void_p]

            def resident():
                with open("/proc/self/statm") as text:
                    return int(text.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

            for i in range(ROUNDS):
                free(function(begin + i * BYTES)())
                if i == ROUNDS // 3:
                    before = resident()
            print(resident() - before)
            """, stacks="native")
        self.assertLess(int(out), 16 << 20)
        self.assertEqual(self.stats["allocs"], 120_001)

    def test_another_build_names_nothing(self):
        with open(os.environ["PYTHON_CALLS"], "rb") as library:
            content = library.read()
        self.write("calls.so", content)
        self.calls = self.path("calls.so")
        self.run_script(self.SCRIPT, stacks="native")
        self.assertEqual(self.stats["sites"][0]["function"], "allocate")
        note = content.index(b"GNU\0", content.index(b"\x03\0\0\0GNU\0")) + 4  # the build id follows its owner's name
        other = bytes(byte ^ 0xFF for byte in content[note:note + 20])
        self.write("calls.so", content[:note] + other + content[note + 20:])
        done = self.ok("stats", "out/trace.reprise")
        self.assertRegex(done.out, r"calls\.so\+0x[0-9a-f]+ \(calls\.so\)")
        self.assertRegex(done.out, r"native frames have no name; of \d+ modules, 1 are gone or another build")
        os.remove(self.calls)
        self.assertRegex(self.ok("stats", "out/trace.reprise").out, r"calls\.so\+0x")


if __name__ == "__main__":
    unittest.main()
