"""What the device did, in the trace: the simulated device's kernels, copies, sets and ranges, as the simulated CUPTI
tells of them. And that a job is as it would be without wherever there can be no time line: another profiler is there or
comes, CUPTI is missing or of an unknown version, the limit is reached, the job forks."""
import json
import os
import signal
import subprocess
import sys
import unittest

from cuda_programs import CudaTest, built
from wire import fields

# What every job begins with. A step of kernels, a set and copies on a stream, in memory allocated for it.
BEGIN = """\
import ctypes
import os
import sys
runtime, driver = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcuda.so.1")
stream = ctypes.c_void_p()
host = ctypes.create_string_buffer(1 << 16)

def done(result):
    assert result == 0, result

def begin(device=0):
    done(runtime.cudaSetDevice(device))
    size = ctypes.c_size_t()
    done(runtime.cudaMemGetInfo(ctypes.byref(size), ctypes.byref(size)))  # opens the core
    done(runtime.cudaStreamCreate(ctypes.byref(stream)))

def take(kib):
    block = ctypes.c_void_p()
    done(runtime.cudaMallocAsync(ctypes.byref(block), ctypes.c_size_t(kib << 10), stream))
    return block

def step(kib=64, work=1):
    block = take(kib)
    bytes = ctypes.c_size_t(kib << 10)
    for _ in range(work):
        done(driver.simFill(block, bytes, ctypes.c_ulonglong(7), stream))
        done(driver.simVerify(block, bytes, ctypes.c_ulonglong(7), stream))
    done(runtime.cudaMemsetAsync(block, 0, ctypes.c_size_t(4096), stream))
    done(runtime.cudaMemcpyAsync(host, block, ctypes.c_size_t(2048), 2, stream))
    done(runtime.cudaMemcpyAsync(block, host, ctypes.c_size_t(1024), 1, stream))
    done(runtime.cudaFreeAsync(block, stream))

def end():
    done(runtime.cudaStreamSynchronize(stream))
    print("the job has ended")
"""
STEPS = 20
JOB = f"""\
begin()
driver.simRangeBegin.argtypes = [ctypes.c_char_p]
for i in range({STEPS}):
    at = driver.simRangeBegin(b"step")
    step()
    driver.simRangeEnd(at)
end()
"""
PROFILER = """\
cupti = ctypes.CDLL("libcupti.so.13")
handle, Callback = ctypes.c_void_p(), ctypes.CFUNCTYPE(None)
def subscribe():
    return cupti.cuptiSubscribe(ctypes.byref(handle), Callback(), None)
"""

# A client of CUPTI's: `got` has how many bytes of records it was handed.
CLIENT = """\
cupti, libc = ctypes.CDLL("libcupti.so.13"), ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
got = []

@ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                  ctypes.POINTER(ctypes.c_size_t))
def requested(buffer, size, most):
    buffer[0], size[0], most[0] = libc.malloc(1 << 16), 1 << 16, 0

@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
def completed(context, number, buffer, size, valid):
    got.append(valid)
    libc.free(buffer)
"""


class Timeline(CudaTest):
    def run_timeline(self, script, expected=0, out="out", **variables):
        with open(os.path.join(self.at.folder, "job.py"), "w") as file:
            file.write(BEGIN + script)
        settings = {"REPRISE_MODE": "record", "REPRISE_TIMELINE": "1", "REPRISE_OUT": out, **variables}
        ran = self.run_job([sys.executable, "job.py"], [self.at.shim], **settings)
        self.assertEqual(ran.returncode, expected, ran.stderr)
        if expected == 0:
            self.assertIn("the job has ended", ran.stdout)
        self.assertNotIn("did not hand over its last records", ran.stderr)
        if "REPRISE_TRACE_LIMIT" not in variables:
            self.assertNotIn("reached its limit", ran.stderr)
        return ran

    def summary(self):
        with open(os.path.join(self.at.folder, "out", "summary.json")) as file:
            return json.load(file)

    def reprise(self, *words):
        return subprocess.run([built("REPRISE_COMMAND"), *words], capture_output=True, text=True, cwd=self.at.folder,
                              check=True)

    def trace(self, name="trace.reprise", out="out"):
        return os.path.join(out, name)

    def stats(self, **which):
        return json.loads(self.reprise("stats", "--json", self.trace(**which)).stdout)

    def converted(self, to, **which):
        self.reprise("convert", self.trace(**which), "converted", "--to", to)
        with open(os.path.join(self.at.folder, "converted"), "rb") as file:
            return file.read()

    def counts(self, **which):
        """{kind: (count, bytes)} of what the trace says of the device; nothing if it says nothing."""
        device = self.stats(**which).get("device_activity", {"totals": []})
        return {total["kind"]: (total["count"], total["bytes"]) for total in device["totals"]}

    ALL = {"kernel": (2 * STEPS, 0), "copy": (2 * STEPS, 3072 * STEPS), "set": (STEPS, 4096 * STEPS),
           "marker": (STEPS, 0)}

    def test_all_that_the_device_did(self):
        self.run_timeline(JOB)
        self.assertEqual(self.counts(), self.ALL)
        stats = self.stats()
        self.assertEqual(stats["lifetimes"]["unit"], "us")
        names = {entry["name"]: entry["count"] for entry in stats["device_activity"]["by_name"]}
        self.assertEqual(names, {"simFill": STEPS, "simVerify": STEPS, "set": STEPS, "copy device to host": STEPS,
                                 "copy host to device": STEPS})
        summary = self.summary()
        self.assertEqual((summary["trace_activities"], summary["trace_activities_dropped"]), (6 * STEPS, 0))
        text = self.reprise("stats", self.trace()).stdout
        for words in ("kernel time", "simVerify", "under way when the peak was asked for", "thread"):
            self.assertIn(words, text)

    def test_through_the_command(self):
        with open(os.path.join(self.at.folder, "job.py"), "w") as file:
            file.write(BEGIN + JOB)
        ran = self.run_job([built("REPRISE_COMMAND"), "run", "--cuda", "--timeline", "--mode", "record", "--out", "out",
                            "--", sys.executable, "job.py"])
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stderr, rf"time line +{6 * STEPS}  kernels, copies, sets and markers\n")
        self.assertEqual(self.counts(), self.ALL)

    def test_times_are_those_of_the_events(self):
        """The device is eager: what a step asks for happens while it asks, between its allocation and its free."""
        self.run_timeline(JOB)
        trace = json.loads(self.converted("json"))
        events = [dict(zip(trace["columns"], event)) for event in trace["events"]]
        activities = [dict(zip(trace["activity_columns"], a)) for a in trace["activities"]]
        slack = 20_000  # the events' times are whole microseconds, and two clocks are read one after the other
        for kind, expected in (("kernel", 2), ("copy", 2), ("set", 1), ("marker", 1)):
            of_kind = sorted((a["begin_ns"], a["begin_ns"] + a["duration_ns"]) for a in activities if a["kind"] == kind)
            allocs = [e["time_ns"] for e in events if e["kind"] == "alloc"]
            frees = [e["time_ns"] for e in events if e["kind"] == "free"]
            for i, (begin, end) in enumerate(of_kind):
                alloc, free = allocs[i // expected], frees[i // expected]
                if kind == "marker":  # around the step
                    self.assertLess(begin, alloc + slack)
                    self.assertGreater(end, free - slack)
                else:
                    self.assertGreater(begin, alloc - slack)
                    self.assertLess(end, free + slack)
        frames = trace["frames"]
        self.assertEqual({frames[a["frame"] - 1]["kind"] for a in activities}, {"device"})

    def test_perfetto(self):
        self.run_timeline(JOB)
        packets = [fields(packet) for packet in fields(self.converted("perfetto"))[1]]
        tracks = {}
        names = {}
        slices = {}
        for packet in packets:
            if 60 in packet:
                descriptor = fields(packet[60][0])
                tracks[descriptor[1][0]] = descriptor[2][0].decode()
            elif 12 in packet:
                self.assertEqual(packet[13], [1], "names are told where the state begins")
                for name in fields(packet[12][0])[2]:
                    name = fields(name)
                    names[name[1][0]] = name[2][0].decode()
            elif fields(packet[11][0])[9] != [4]:
                event = fields(packet[11][0])
                self.assertEqual(packet[13], [2], "a slice names by number")
                slices.setdefault(tracks[event[11][0]], []).append(
                    (packet[8][0], event[9][0], names[event[10][0]] if 10 in event else None))
        stream = next(name for name in slices if name.startswith("stream "))
        thread = next(name for name in slices if name.startswith("thread "))
        self.assertEqual(set(slices), {stream, thread})
        self.assertEqual(tracks[1], "live bytes")
        for track in (stream, thread):
            self.assertEqual([kind for _, kind, _ in slices[track]], [1, 2] * (len(slices[track]) // 2))
            times = [time for time, _, _ in slices[track]]
            self.assertEqual(times, sorted(times))
        self.assertEqual([name for _, kind, name in slices[thread] if kind == 1], ["step"] * STEPS)
        self.assertEqual([name for _, kind, name in slices[stream] if kind == 1],
                         ["simFill", "simVerify", "set", "copy device to host", "copy host to device"] * STEPS)

    def test_with_call_stacks(self):
        self.run_timeline("begin()\nstep()\nstep(kib=256)\nend()\n", REPRISE_STACKS="python")
        self.assertEqual(self.counts()["kernel"], (4, 0))
        self.assertTrue(any(site["function"] == "take" for site in self.stats()["sites"]))

    def test_each_device_by_itself(self):
        self.run_timeline("begin()\nstep()\nbegin(1)\nstep(work=3)\nend()\n", SIMCUDA_DEVICES="2")
        self.assertEqual(self.counts()["kernel"], (2, 0))
        self.assertEqual(self.counts(name="trace-device1.reprise")["kernel"], (6, 0))

    def test_a_device_without_a_trace(self):
        os.makedirs(os.path.join(self.at.folder, "out", "trace-device1.reprise"))
        ran = self.run_timeline("begin(1)\nstep()\nbegin()\nstep()\nend()\n", SIMCUDA_DEVICES="2")
        self.assertIn("trace-device1.reprise", ran.stderr)
        self.assertEqual(self.counts()["kernel"], (2, 0))

    def test_copies_between_devices(self):
        """They are of the device whose stream they are on."""
        self.run_timeline("""\
begin(1)
there = take(64)
end()
begin()
here = take(64)
for kib in (1, 2, 3):
    done(driver.cuMemcpyAsync(there, here, ctypes.c_size_t(kib << 10), stream))
end()
""", SIMCUDA_DEVICES="2")
        self.assertEqual(self.counts()["copy"], (3, 6 << 10))
        self.assertEqual(self.counts(name="trace-device1.reprise"), {})
        self.assertEqual([name["name"] for name in self.stats()["device_activity"]["by_name"]],
                         ["copy device to another device"])

    def test_what_is_said_of_the_job_is_said_of_its_devices(self):
        self.run_timeline("begin()\nstep()\nstep(kib=256)\nbegin(1)\nstep(kib=128)\nend()\n", SIMCUDA_DEVICES="2")
        names = ("trace.reprise", "trace-device1.reprise")
        for device, name in enumerate(names):
            self.reprise("report", self.trace(name=name), "-o", "page.html")
            with open(os.path.join(self.at.folder, "page.html")) as page:
                self.assertIn(f"all of the job's {2 - device} allocations on device {device}.", page.read())
        (job,) = json.loads(self.reprise("merge", "--json", "out").stdout)["jobs"]
        self.assertEqual(job["live_peak"], sum(self.stats(name=name)["live_peak"] for name in names))

    def test_many_at_once(self):
        """More than one of CUPTI's buffers, with work that runs late and on several threads."""
        self.run_timeline("begin()\nfor i in range(40):\n    step(kib=4, work=200)\nend()\n", SIMCUDA_STREAMS="deferred")
        self.assertEqual(self.counts()["kernel"], (40 * 400, 0))

    def test_times_that_are_none(self):
        """Of work whose times CUPTI could not take it says 0. A reader must take the trace, whatever else it says."""
        self.run_timeline(JOB, SIMCUDA_CUPTI_STRANGE="1")
        self.assertEqual(self.counts(), self.ALL)

    def test_buffers_come_back(self):
        """More of them, over time, than CUPTI may have at once."""
        ran = self.run_timeline("""\
cupti = ctypes.CDLL("libcupti.so.13")
def mebibytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmData"))

begin()
step()
before = mebibytes()
for i in range(400):
    step()
    done(cupti.cuptiActivityFlushAll(0))
print("grown by", mebibytes() - before)
end()
""")
        self.assertEqual(self.counts()["kernel"], (802, 0))
        self.assertLess(int(ran.stdout.split("grown by ")[1].split()[0]), 300, "a buffer is a mebibyte")

    def test_more_than_there_is_room_for(self):
        """Of the records that CUPTI drops, because it has had all the buffers that it may have, we tell how many they
        are. When it has given them back it may have them again."""
        self.run_timeline("""\
cupti = ctypes.CDLL("libcupti.so.13")
begin()
step(kib=4, work=40_000)
done(cupti.cuptiActivityFlushAll(1))
step()
end()
""", SIMCUDA_CUPTI_LATE="1", SIMCUDA_CUPTI_STRANGE="1")
        size = 216  # of a kernel's record; of each piece of work come five
        kept = 64 * (2**20 // size)
        dropped = self.summary()["trace_activities_dropped"]
        self.assertEqual(dropped, 5 * (80_000 + 3) - kept)
        self.assertEqual(self.counts()["kernel"][0], (kept + 4) // 5 + 2)
        self.assertIn(f"{dropped} kernels, copies and markers were dropped", self.reprise("stats", self.trace()).stderr)

    def test_ranges_that_have_ended_are_forgotten(self):
        """More of them than may be open at once."""
        self.run_timeline("""\
driver.simRangeBegin.argtypes = [ctypes.c_char_p]
begin()
step()
for i in range(10_000):
    driver.simRangeEnd(driver.simRangeBegin(b"step"))
end()
""")
        self.assertEqual(self.counts()["marker"], (10_000, 0))

    def test_no_signal_of_the_job_comes_to_our_thread(self):
        ran = self.run_timeline("""\
import contextlib, signal
begin()
step()
masks = []
while not masks:  # until the thread has its name
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/status") as file:
            status = dict(line.split(":", 1) for line in file)
            if status["Name"].strip() == "reprise-time":
                masks.append(int(status["SigBlk"], 16))
print([masks[0] >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD)])
end()
""")
        self.assertIn("[1, 1, 1, 1]\n", ran.stdout)

    def test_off(self):
        ran = self.run_timeline(JOB + "print('libcupti' in open('/proc/self/maps').read())\n", REPRISE_TIMELINE="0")
        self.assertIn("False", ran.stdout)
        self.assertEqual(self.counts(), {})
        self.assertNotIn("device_activity", self.stats())
        self.assertNotIn("time line", ran.stderr)
        self.assertNotIn("activities", json.loads(self.converted("json")))

    def assert_none(self, ran, why, out="out"):
        self.assertEqual([why in line for line in ran.stderr.splitlines() if "no time line" in line], [True], ran.stderr)
        self.assertEqual(self.counts(out=out), {})
        self.assertEqual(self.stats(out=out)["allocs"], STEPS)

    def test_another_profiler_is_there(self):
        for error in (39, 12):
            with self.subTest(error):
                ran = self.run_timeline(JOB, out=str(error), SIMCUDA_CUPTI_FAIL=f"cuptiSubscribe:{error}")
                self.assert_none(ran, "another profiler has subscribed", out=str(error))

    def test_the_job_has_subscribed(self):
        """What it asked for it gets, and it stays subscribed."""
        ran = self.run_timeline(PROFILER + CLIENT + """\
done(subscribe())
done(cupti.cuptiActivityRegisterCallbacks(requested, completed))
done(cupti.cuptiActivityEnable(10))
""" + JOB + """\
assert subscribe() == 39
done(cupti.cuptiActivityFlushAll(1))
print("got", sum(got) > 0)
sys.stdout.flush()
""")
        self.assert_none(ran, "another profiler has subscribed")
        self.assertIn("got True", ran.stdout)

    def test_calls_that_cupti_refuses(self):
        """It says what, and lets go of CUPTI."""
        for call, why in (("cuptiSubscribe:15", "be subscribed to"), ("cuptiActivityRegisterCallbacks:7", "take buffers"),
                          ("cuptiActivityEnable/10:35", "record kernels")):
            with self.subTest(call):
                out = call.replace("/", "_")
                ran = self.run_timeline(PROFILER + "import os\n" + JOB + """\
del os.environ["SIMCUDA_CUPTI_FAIL"]
done(subscribe())
""", out=out, SIMCUDA_CUPTI_FAIL=call)
                self.assert_none(ran, f"CUPTI refused to {why}: a simulated error", out=out)

    def test_a_kind_that_cupti_does_not_record(self):
        ran = self.run_timeline(JOB, SIMCUDA_CUPTI_FAIL="cuptiActivityEnable/12:21", REPRISE_LOG="info")
        self.assertIn("CUPTI records no activities of kind 12: a simulated error", ran.stderr)
        self.assertEqual(self.counts(), {**self.ALL, "marker": (0, 0)})

    def test_unknown_versions(self):
        for version in ("17", "129999", "140000"):
            with self.subTest(version):
                ran = self.run_timeline(JOB, out=version, SIMCUDA_CUPTI_VERSION=version)
                self.assertIn(f"no time line: CUPTI's version {version} is not one whose records are known", ran.stderr)
        self.run_timeline(JOB, SIMCUDA_CUPTI_VERSION="18")
        self.assertEqual(self.counts(), self.ALL)

    def test_there_is_none(self):
        for content, why in ((b"no library", "there is no CUPTI"), (None, "has no cupti")):
            with self.subTest(why):
                folder = os.path.join(self.at.folder, why.replace(" ", "_"))
                os.mkdir(folder)
                for name in ("libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"):
                    if content is None:
                        os.symlink(os.path.join(built("SIMCUDA"), "libcudart.so.13"), os.path.join(folder, name))
                    else:
                        with open(os.path.join(folder, name), "wb") as file:
                            file.write(content)
                self.libraries = [folder]
                out = os.path.basename(folder) + ".out"
                ran = self.run_timeline(JOB, out=out)
                self.assertIn(why, next(line for line in ran.stderr.splitlines() if "no time line" in line))
                self.assertEqual(self.stats(out=out)["allocs"], STEPS)

    def test_a_profiler_that_comes_later_is_told(self):
        """While we record it finds CUPTI taken; from when the trace has ended it does not."""
        ran = self.run_timeline(PROFILER + """\
begin()
step()
assert subscribe() == 39  # CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
for tries in range(100_000):
    blocks = [take(kib) for kib in range(8, 88, 4)]  # an iteration, so that a plan is adopted: the trace ends with it
    for block in blocks:
        done(runtime.cudaFreeAsync(block, stream))
    if subscribe() == 0:
        break
else:
    raise AssertionError("CUPTI was never let go of")
asked = []
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
def requested(buffer, size, most):
    asked.append(buffer)

@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
def completed(context, number, buffer, size, valid):
    pass

done(cupti.cuptiActivityRegisterCallbacks(requested, completed))
step()
end()
print("records for what nobody wants any more:", len(asked))
""", REPRISE_MODE="serve")
        self.assertGreater(self.counts()["kernel"][0], 0)
        self.assertIn("any more: 0\n", ran.stdout)

    def test_one_that_does_not_ask(self):
        """It takes our place, and the buffers that it is given of ours are for free()."""
        ran = self.run_timeline(CLIENT + """\
begin()
for i in range(10):
    step()
done(cupti.cuptiActivityRegisterCallbacks(requested, completed))
for i in range(10):
    step(work=200)
done(cupti.cuptiActivityFlushAll(1))
print("got", sum(got) > 0)
end()
sys.stdout.flush()
os._exit(0)  # its callbacks are the interpreter's, which would be gone
""")
        self.assertIn("got True", ran.stdout)

    def test_the_limit(self):
        """Our thread says so when it finds the limit reached, and ends: a job that is over sooner has the summary."""
        ran = self.run_timeline("""\
import contextlib
def names_of_threads():
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/comm") as file:
            yield file.read().strip()

begin()
for i in range(500):
    step(kib=4, work=100)
end()
while "reprise-time" in names_of_threads():
    os.sched_yield()
""", REPRISE_TRACE_LIMIT="100KiB")
        kernels = self.counts()["kernel"][0]
        self.assertGreater(kernels, 0)
        self.assertLess(kernels, 100_000)
        self.assertEqual(self.stats()["allocs"], 500, "its own limit, not that of the events")
        self.assertIn("the time line has reached its limit", ran.stderr)
        self.assertIn("ended at its limit", ran.stderr)
        noted = self.reprise("stats", self.trace()).stderr
        self.assertIn("the time line stopped at its size limit", noted)
        self.assertIn("were dropped", noted)

    def test_fork(self):
        self.run_timeline("""\
begin()
step()
child = os.fork()
if child == 0:
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
step()
end()
""")
        self.assertEqual(self.counts()["kernel"], (4, 0))
        self.assertEqual(os.listdir(os.path.join(self.at.folder, "out")).count("trace.reprise"), 1)

    def test_killed_while_it_does_little(self):
        """What there is is asked for now and then, however little."""
        self.run_timeline("""\
import signal
begin()
block = take(4)
for i in range(3):
    before = os.path.getsize("out/trace.reprise")
    done(driver.simFill(block, ctypes.c_size_t(4096), ctypes.c_ulonglong(7), stream))
    while os.path.getsize("out/trace.reprise") == before:
        os.sched_yield()
os.kill(os.getpid(), signal.SIGKILL)
""", expected=-signal.SIGKILL)
        self.assertGreaterEqual(self.counts()["kernel"][0], 2)

    def test_killed(self):
        """What was flushed is there. The job ends itself once its trace has some of it."""
        self.run_timeline("""\
import signal
begin()
before = 0
while before == 0 or os.path.getsize("out/trace.reprise") < before + 4096:
    step(kib=4, work=20)
    before = before or os.path.getsize("out/trace.reprise")
os.kill(os.getpid(), signal.SIGKILL)
""", expected=-signal.SIGKILL)
        self.assertGreater(self.counts()["kernel"][0], 0)


if __name__ == "__main__":
    unittest.main()
