"""A job must not be able to tell whether it runs under the preload library, but by its memory. Each scenario (see
scenarios/) prints the result of every call and all it can see; it is played without and with the library, and what it
prints must be the same to the last character.

Each is played cold, where stream-ordered memory is served from the first call, and warm, after a training loop, when
a plan has been found (by a core that plans in the caller, so that it has been for certain) and synchronous memory is
served too.
"""
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from cuda_programs import CudaTest, built

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpu"))
from scenarios import COLD_ONLY, REFUSED, refused_once  # noqa: E402  (as on a real device)

DEVICE = {"SIMCUDA_DEVICES": "2", "SIMCUDA_STREAMS": "deferred"}

# What the core asks of the driver, failing once, for ever, or only later.
FAILURES = ["cuMemCreate:1", "cuMemCreate:1+", "cuMemCreate:5+", "cuMemMap:1", "cuMemMap:3+", "cuMemSetAccess:1",
            "cuMemSetAccess:4+", "cuMemAddressReserve:1+", "cuMemUnmap:1", "cuEventRecord:2", "cuEventCreate:1+",
            "cuStreamWaitEvent:1", "cuStreamWaitEvent:2+", "cuEventRecord:2+", "cuMemCreate:1+:801"]
# Where memory comes in one piece, it ends with a context, and belongs on one device.
WHERE_THE_SLAB_IS = ["end_of_the_primary_context_between_trainings", "end_of_the_primary_context_beside_another",
                     "end_of_the_context_that_trained", "end_of_another_context_than_the_one_that_trained",
                     "device_that_is_not_current_in_training"]
# Where a pool is opened to another device.
WHERE_A_PEER_IS = ["device_that_is_a_peer", "device_that_is_a_peer_which_may_write_later",
                   "device_that_is_a_peer_before_it_is_used", "device_that_is_a_peer_of_a_pool_when_asked_again",
                   "device_that_is_a_peer_of_two_pools", "device_of_another_stream_frees"]
# Scenarios that call none of these themselves.
UNDER_FAILURES = ["training_stream_ordered", "training_synchronous", "training_with_assertions",
                  "training_on_one_stream_after_another"]


class BothWays(CudaTest):
    def play(self, scenario, *how, preload=(), **variables):
        done = self.run_job([built("SCENARIOS"), *how, scenario], preload, **{**DEVICE, **variables})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def under(self, scenario, *how, **variables):
        return self.play(scenario, *how, preload=[self.at.shim], **variables)

    def assert_same(self, without, under):
        if under.stdout != without.stdout:
            lines = difflib.unified_diff(without.stdout.splitlines(), under.stdout.splitlines(), "without", "under",
                                         lineterm="", n=1)
            self.fail("\n" + "\n".join(lines)[:3000])

    def check(self, scenario, *how):
        without = self.play(scenario, *how)
        self.assertNotRegex(without.stdout, r"WorkCorruptedBytes\(\) = [1-9]")
        self.assert_same(without, self.under(scenario, *how))

    def test_work_is_verified(self):
        """Without us nothing is corrupted, or the comparison would say nothing."""
        for scenario in UNDER_FAILURES:
            self.assertIn("WorkCorruptedBytes() = 0\n", self.play(scenario).stdout)

    def summary_of(self, scenario, **variables):
        out = tempfile.mkdtemp(dir=self.at.folder)
        self.under(scenario, REPRISE_OUT=out, **variables)
        with open(os.path.join(out, "summary.json")) as file:
            return json.load(file)

    def test_training_is_served(self):
        summary = self.summary_of("training_stream_ordered")
        self.assertGreater(summary["requests"], 2000)
        self.assertGreater(summary["planned"] + summary["arena"], 0.9 * summary["requests"])

    def test_new_streams_are_served_by_plan(self):
        summary = self.summary_of("training_on_a_new_stream_in_each_iteration")
        after = summary["requests"] - summary["first_planned_request"]
        self.assertGreater(after, 1000)
        self.assertGreater(summary["planned"], 0.95 * after)

    def test_synchronous_blocks_beside_plans_without_any_are_the_drivers(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        scenario = "ipc_of_a_synchronous_block_beside_a_training_in_stream_order"
        self.assert_same(self.play(scenario), self.under(scenario))
        self.assertEqual(self.summary_of(scenario)["outside"], 1)

    def test_pools_without_a_number_are_the_drivers_and_counted(self):
        device = self.summary_of("pools_in_great_number")["devices"][0]
        self.assertEqual((device["arena"], device["outside"]), (254, 46), "the default pool has the first of 255 numbers")

    def test_memory_of_pools_that_is_not_the_devices_is_not_recorded(self):
        """The host's, and what is managed."""
        device = self.summary_of("pools_of_all_kinds")["devices"][0]
        self.assertEqual((device["requests"], device["arena"], device["outside"]), (3, 1, 2))

    def test_a_pool_whose_handle_is_another_ones_at_once(self):
        scenario = "pool_with_a_limit_beside_a_thread_that_destroys_pools"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_SLOW="cuMemPoolDestroy:after"))

    def test_the_devices_pool_changes_while_another_thread_asks_for_it(self):
        scenario = "pool_set_for_the_device_beside_a_thread_that_allocates"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_SLOW="cuDeviceGetMemPool:after,cuStreamQuery"))

    def test_a_pool_that_cannot_be_destroyed_is_served_on(self):
        device = self.summary_of("pool_bad_arguments")["devices"][0]
        self.assertEqual((device["arena"], device["outside"]), (3, 0))

    def test_large_blocks_are_served_whichever_device_is_current(self):
        devices = self.summary_of("device_that_is_not_current_and_large_blocks")["devices"]
        self.assertEqual([(device["device"], device["arena"], device["outside"]) for device in devices], [(1, 2, 0)])

    def test_streams_that_have_ended_are_forgotten(self):
        device = self.summary_of("capture_while_other_streams_end")["devices"][0]
        self.assertLess(device["streams"], 10)
        self.assertEqual(device["passed"], 0, "their memory is used again")

    def test_what_a_plan_keeps_is_there_for_all_else(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        for scenario in ["limit_between_trainings", "pool_destroyed_after_a_training"]:
            with self.subTest(scenario):
                self.assert_same(self.play(scenario, SIMCUDA_MEMORY="64MiB"), self.under(scenario, SIMCUDA_MEMORY="64MiB"))

    def test_what_was_taken_of_a_request_that_cannot_be_met_comes_back(self):
        scenario = "limit_of_a_request_that_is_met_in_part"
        without = self.play(scenario, SIMCUDA_MEMORY="64MiB")
        self.assertIn("cuMemAllocAsync(&more, 40 * kMiB, stream): 2\n", without.stdout)
        self.assert_same(without, self.under(scenario, SIMCUDA_MEMORY="64MiB"))

    def test_threads_that_fill_a_device_find_what_others_give_back(self):
        scenario = "limit_that_threads_share"
        without = self.play(scenario, SIMCUDA_MEMORY="112MiB")
        self.assertEqual(without.stdout, "failed = 0\n")
        self.assert_same(without, self.under(scenario, SIMCUDA_MEMORY="112MiB"))

    def test_the_host_waits_before_more_is_held_than_was_live(self):
        device = self.summary_of("limit_of_what_is_held_while_the_device_is_behind")["devices"][0]
        self.assertGreater(device["host_waits"], 0)
        self.assertLess(device["reserved_peak"], (64 + 16 + 4) << 20)

    def test_one_export_is_refused(self):
        """Of a job that begins to export synchronous blocks when they are served already."""
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        for scenario, *how in [*((name, "warm") for name in COLD_ONLY | REFUSED), *((name,) for name in REFUSED)]:
            with self.subTest(scenario, how=how):
                out = os.path.join(self.at.folder, scenario, *how)
                without = self.play(scenario, *how).stdout
                under = self.under(scenario, *how, REPRISE_OUT=out).stdout
                self.assertTrue(refused_once(without, under), under)
                with open(os.path.join(out, "summary.json")) as file:
                    self.assertEqual(json.load(file)["devices"][0]["refused_exports"], 1)

    def test_what_the_driver_would_refuse_as_well_is_no_refused_export(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        for scenario in ["ipc_of_an_async_block", "handle_of_a_block_that_is_not_virtual_memory"]:
            with self.subTest(scenario):
                under = self.under(scenario, "warm")
                self.assertNotIn("cannot be exported", under.stderr)
                self.assertIn("exports refused 0", under.stderr)

    def test_failing_calls_of_the_driver(self):
        """Our own calls fail; the job must not notice."""
        for scenario in UNDER_FAILURES:
            without = self.play(scenario)
            for failure in FAILURES:
                with self.subTest(scenario, failure=failure):
                    self.assert_same(without, self.under(scenario, SIMCUDA_FAIL=failure))

    def test_memory_that_stays_mapped_is_used_where_it_is(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        scenario = "pool_trim_in_training"
        without = self.play(scenario)
        for failure in ["cuMemUnmap:1", "cuMemUnmap:1+", "cuMemRelease:1"]:
            with self.subTest(failure):
                self.assert_same(without, self.under(scenario, SIMCUDA_FAIL=failure + ":999"))
                device = self.summary_of(scenario, SIMCUDA_FAIL=failure + ":999")["devices"][0]
                self.assertEqual(device["refusal"], "")
                self.assertEqual(device["outside"], 0)
                self.assertEqual(device["passed"], 0)

    def test_the_host_has_no_memory_for_us(self):
        """Once, at each request in turn: what the driver has done is not asked of it again, nor is what has ended, nor
        for a handle of our memory."""
        first, last = 40, 110  # before it is the opening
        for scenario in ["end_of_a_context", "end_of_a_stream_with_blocks_in_flight", "capture_relaxed",
                         "pool_destroyed_with_a_live_block", "handle_of_a_block_that_is_not_virtual_memory"]:
            without = self.play(scenario)
            counted = os.path.join(self.at.folder, "count")
            preload = [self.at.shim, built("FAILING_NEW")]
            self.play(scenario, preload=preload, FAILING_NEW_COUNT=counted)
            with open(counted) as file:
                count = int(file.read())
            self.assertGreater(count, first)
            for number in range(first, min(count, last) + 1):
                with self.subTest(scenario, number=number):
                    self.assert_same(without, self.play(scenario, preload=preload, FAILING_NEW=str(number)))

    def test_the_host_has_no_memory_for_files(self):
        """Once, at each request in turn of a job that is recorded: what is lost is the recording, or the summary."""
        scenario = "end_of_a_context"
        without = self.play(scenario)
        out, counted = os.path.join(self.at.folder, "out"), os.path.join(self.at.folder, "count")
        preload = [self.at.shim, built("FAILING_NEW")]
        self.play(scenario, preload=preload, REPRISE_OUT=out, FAILING_NEW_COUNT=counted)
        with open(counted) as file:
            count = int(file.read())
        at_the_end = 120  # after the count has been written
        said = ""
        for number in range(1, count + at_the_end):
            with self.subTest(number=number):
                under = self.play(scenario, preload=preload, REPRISE_OUT=out, FAILING_NEW=str(number))
                self.assert_same(without, under)
                said += under.stderr
            shutil.rmtree(out, ignore_errors=True)
        for line in ["no memory for a trace", "the recorder ran out of memory", "an error while ending; no summary"]:
            self.assertIn(line, said)

    def test_an_end_that_the_driver_refuses(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        for call, scenario, *how in [
                ("cuDevicePrimaryCtxReset", "end_of_the_primary_context_that_is_refused"),
                ("cuCtxDestroy", "device_that_is_a_peer_whose_end_is_refused", "warm")]:
            with self.subTest(call):
                without = self.play(scenario, *how, SIMCUDA_FAIL=call + ":1")
                self.assertIn("WorkCorruptedBytes() = 0\n", without.stdout)
                self.assert_same(without, self.under(scenario, *how, SIMCUDA_FAIL=call + ":1"))

    def test_a_context_that_cannot_be_made_current(self):
        """Nothing is asked of another one in its place."""
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        for scenario, *how in [("contexts_whose_default_streams_take_turns",), ("device_of_another_stream_frees",),
                               ("contexts_that_end_beside_a_thread_that_frees", "warm")]:
            with self.subTest(scenario):
                without = self.play(scenario, *how)
                self.assertIn("WorkCorruptedBytes() = 0\n", without.stdout)
                self.assert_same(without, self.under(scenario, *how, SIMCUDA_FAIL="cuCtxPushCurrent:1+"))

    def test_a_context_that_does_not_go_when_it_has_been_made_current(self):
        scenario = "device_of_another_stream_frees"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_FAIL="cuCtxPopCurrent:1+:999"))

    def test_a_free_of_which_nobody_says_what_is_current(self):
        for scenario, untold in [("device_of_another_stream_frees", "cuCtxGetCurrent:5"),
                                 ("free_of_pool_memory_by_the_call_that_waits", "cuCtxGetCurrent:1+")]:
            with self.subTest(scenario):
                self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_FAIL=untold + ":999"))

    def test_a_peer_that_is_refused_what_we_hold_is_told_so(self):
        for scenario in ["device_that_is_a_peer_of_a_pool_when_asked_again",
                         "device_that_is_a_peer_of_contexts_when_asked_again"]:
            with self.subTest(scenario):
                self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_FAIL="cuMemSetAccess:2"))

    def test_a_peer_whose_device_is_not_told_is_refused(self):
        """Once; and where nothing is ever told, each time."""
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        scenario = "device_that_is_a_peer_of_synchronous_blocks_when_asked_again"
        untold = "cuCtxPushCurrent:1"
        self.assert_same(self.play(scenario, "warm"), self.under(scenario, "warm", SIMCUDA_FAIL=untold))
        self.assertIn("allowed = 999\n", self.under(scenario, "warm", SIMCUDA_FAIL=untold + "+").stdout)

    def test_a_peer_that_was_one_already_finds_the_arena_open(self):
        """Who opens another process's memory may become one unheard of (cuIpcOpenMemHandle), then asks, and goes on."""
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        under = self.under("device_that_is_a_peer_of_synchronous_blocks_when_asked_again", "warm",
                           SIMCUDA_FAIL="cuCtxEnablePeerAccess:1+:704")
        self.assertIn("allowed = 704\n", under.stdout)
        self.assertIn("WorkCorruptedBytes() = 0\n", under.stdout)

    def test_a_pool_of_which_nobody_says_whose_it_is_to_reach_is_the_drivers(self):
        scenario = "device_that_is_a_peer_before_it_is_used"
        without = self.play(scenario)
        for untold in ["cuMemPoolGetAccess:1", "cuDeviceGetCount:2"]:  # the first count is the job's
            with self.subTest(untold):
                self.assert_same(without, self.under(scenario, SIMCUDA_FAIL=untold))
                device = self.summary_of(scenario, SIMCUDA_FAIL=untold)["devices"][0]
                self.assertEqual((device["arena"], device["outside"]), (0, 1))

    def test_a_stream_of_a_device_that_is_not_served_frees(self):
        scenario = "device_of_another_stream_frees"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_FAIL="cuMemAddressReserve:2+"))

    def test_a_stream_that_nobody_says_is_not_a_green_ones(self):
        scenario = "end_of_a_green_context"
        without = self.play(scenario)
        for untold in ["cuStreamGetGreenCtx:8", "cuStreamGetGreenCtx:12", "cuStreamGetGreenCtx:1+"]:
            with self.subTest(untold):
                self.assert_same(without, self.under(scenario, SIMCUDA_FAIL=untold + ":999"))
        summary = self.summary_of("training_stream_ordered", SIMCUDA_FAIL="cuStreamGetGreenCtx:1+:CUDA_ERROR_NOT_SUPPORTED")
        self.assertEqual(summary["planned"] + summary["arena"], summary["requests"])

    def test_a_stream_that_nobody_says_does_not_block(self):
        scenario = "default_stream_whose_block_another_frees"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_FAIL="cuStreamGetFlags:1:999"))

    def test_no_thread_of_ours_is_bound_with_the_jobs(self):
        """One that writes the trace is there as long as the job."""
        scenario = "training_on_a_bound_thread"
        without = self.play(scenario)
        self.assertIn("bound == (CPU_COUNT(&all) > 1) = 1\n", without.stdout)
        self.assert_same(without, self.under(scenario, REPRISE_OUT=os.path.join(self.at.folder, "out")))

    def test_the_drivers_own_allocations_are_asked_for_again(self):
        scenario = "limit_from_async_to_the_drivers_own"
        without = self.play(scenario)
        for failure in ["cuStreamCreate:2", "cuGraphInstantiate:1", "cuGraphUpload:1", "cuStreamCreate:3",
                        "cuDevicePrimaryCtxRetain:2"]:
            with self.subTest(failure):
                self.assertNotEqual(self.play(scenario, SIMCUDA_FAIL=failure).stdout, without.stdout)
                self.assert_same(without, self.under(scenario, SIMCUDA_FAIL=failure))

    def test_a_wait_that_fails(self):
        """What was not waited for is still in use."""
        scenario = "limit_from_a_stream_whose_work_goes_on"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_FAIL="cuCtxSynchronize:1"))
        under = self.under("device_of_another_stream_frees", SIMCUDA_FAIL="cuCtxSynchronize:1+")
        self.assertIn("cuMemFreeAsync(block, other): 2\n", under.stdout)
        self.assertIn("WorkCorruptedBytes() = 0\n", under.stdout)

    def test_the_primary_context_begins_while_it_ends(self):
        scenario = "end_of_the_primary_context_that_begins_at_once"
        without = self.play(scenario)
        self.assertIn("failed = 0\nwrong = 0\n", without.stdout)
        for slow in ["cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain"]:
            with self.subTest(slow):
                self.assert_same(without, self.under(scenario, SIMCUDA_SLOW=slow))

    def test_a_primary_context_that_nothing_is_told_of_any_more(self):
        scenario = "end_of_the_primary_context_after_an_error"
        for unknown in ["cuDevicePrimaryCtxGetState:1+", "cuDevicePrimaryCtxRetain:2"]:
            with self.subTest(unknown):
                self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_FAIL=unknown + ":700"))

    def test_a_primary_context_of_which_nobody_says_whether_it_has_ended(self):
        scenario = "end_of_the_primary_context_with_frees_under_way"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_FAIL="cuDevicePrimaryCtxGetState:2:999"))

    def test_streams_come_while_the_primary_context_ends(self):
        scenario = "end_of_the_primary_context_beside_new_streams"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_SLOW="cuDevicePrimaryCtxGetState"))

    def test_what_is_asked_for_while_a_context_may_end_is_counted(self):
        scenario = "release_of_the_primary_context_beside_a_thread_that_allocates"
        slow = {"SIMCUDA_SLOW": "cuDevicePrimaryCtxRelease"}
        self.assert_same(self.play(scenario), self.under(scenario, **slow))
        device = self.summary_of(scenario, **slow)["devices"][0]
        self.assertGreater(device["unrecorded"], 0)
        self.assertEqual(self.summary_of("end_of_a_context")["devices"][0]["unrecorded"], 0)

    def test_a_capture_begins_in_the_middle_of_our_calls(self):
        without = self.play("capture_beside_a_thread_that_trims")
        for ours in ["cuEventRecord", "cuEventRecord,cuEventQuery"]:
            with self.subTest(ours):
                self.assert_same(without, self.under("capture_beside_a_thread_that_trims",
                                                     SIMCUDA_SLOW=ours + ",cuStreamQuery,cuStreamEndCapture"))

    def test_small_frees_that_do_not_wait(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        for scenario in ("capture_beside_a_synchronous_free_and_work", "device_of_another_stream_frees"):
            for how in ([], ["warm"]):
                with self.subTest(scenario, how=how):
                    without = self.play(scenario, *how, SIMCUDA_FREE_WAITS="4KiB")
                    self.assertNotRegex(without.stdout, r"WorkCorruptedBytes\(\) = [1-9]")
                    self.assert_same(without, self.under(scenario, *how, SIMCUDA_FREE_WAITS="4KiB"))

    def test_without_virtual_memory(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        for scenario in [*UNDER_FAILURES, *WHERE_THE_SLAB_IS, "training_that_changes_beside_a_block"]:
            self.assert_same(self.play(scenario, SIMCUDA_VMM="0"), self.under(scenario, SIMCUDA_VMM="0"))
        for scenario in ["pointer_of_an_async_block", "pointer_of_a_synchronous_block", *WHERE_A_PEER_IS]:
            with self.subTest(scenario):
                without = self.play(scenario, "warm", SIMCUDA_VMM="0")
                self.assertIn(without.stdout.count("WorkCorruptedBytes() = "), [0, without.stdout.count("() = 0\n")])
                self.assert_same(without, self.under(scenario, "warm", SIMCUDA_VMM="0"))

    def test_without_virtual_memory_and_with_a_peer_what_is_in_stream_order_is_the_drivers(self):
        """A pool may be opened to a peer at any time; a slab cannot be opened as a pool is. None is asked for then."""
        for devices, ours in [("1", True), ("2", False)]:
            self.at = self.install("CORE_PLANNING_IN_CALLER")
            summary = self.summary_of("training_stream_ordered", SIMCUDA_VMM="0", SIMCUDA_DEVICES=devices,
                                      SIMCUDA_FAIL="" if ours else "cuMemAlloc:1+")
            self.assertEqual(summary["planned"] > 0.9 * summary["requests"], ours)
            self.assertEqual(summary["outside"] == summary["requests"], not ours)
            self.assertEqual(summary["devices"][0]["refusal"], "")

    def test_without_virtual_memory_and_with_the_plans_of_the_run_before(self):
        """They are there before anything has been asked for: a slab that is taken by then would end a capture."""
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        scenario = "capture_before_a_training"
        alone = {"SIMCUDA_VMM": "0", "SIMCUDA_DEVICES": "1", "REPRISE_CACHE": os.path.join(self.at.folder, "cache")}
        without = self.play(scenario, **alone)
        for run in ("first", "second"):
            with self.subTest(run):
                self.assert_same(without, self.under(scenario, **alone))
        summary = self.summary_of(scenario, **alone)
        self.assertGreater(summary["planned"], 0.9 * summary["requests"])

    def test_without_virtual_memory_and_pools(self):
        """As virtual GPUs are."""
        without = {"SIMCUDA_VMM": "0", "SIMCUDA_POOLS": "0"}
        for scenario in ["training_synchronous", "size_zero_and_null", "pools_of_all_kinds"]:
            self.assert_same(self.play(scenario, **without), self.under(scenario, **without))
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        summary = self.summary_of("training_synchronous", **without)
        self.assertGreater(summary["planned"], 0.9 * summary["requests"])

    def served_where_a_network_reaches(self, reach):
        for scenario in ["pointer_of_an_async_block", "training_stream_ordered"]:
            without = self.play(scenario, SIMCUDA_RDMA=reach)
            self.assert_same(without, self.under(scenario, SIMCUDA_RDMA=reach))
        summary = self.summary_of("training_stream_ordered", SIMCUDA_RDMA=reach)
        self.assertEqual(summary["planned"] + summary["arena"], summary["requests"])
        self.assertGreater(summary["requests"], 2000)
        self.assertEqual(summary["devices"][0]["refusal"], "")

    def test_a_device_that_no_network_reaches(self):
        self.served_where_a_network_reaches("0")

    def test_a_device_that_says_a_network_reaches_it_and_refuses(self):
        self.served_where_a_network_reaches("2")

    def test_a_device_that_does_not_decompress(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        for scenario in ["pointer_of_an_async_block", "pointer_of_a_synchronous_block"]:
            without = self.play(scenario, "warm", SIMCUDA_DECOMPRESSION="0")
            self.assert_same(without, self.under(scenario, "warm", SIMCUDA_DECOMPRESSION="0"))
        summary = self.summary_of("training_stream_ordered", SIMCUDA_DECOMPRESSION="0")
        self.assertEqual(summary["planned"] + summary["arena"], summary["requests"])

    def test_a_pool_with_a_property_of_a_later_cuda(self):
        without = self.play("pools_of_all_kinds", SIMCUDA_VERSION="13040")
        self.assertIn("within_reach = 1\n", without.stdout)
        self.assert_same(without, self.under("pools_of_all_kinds", SIMCUDA_VERSION="13040"))

    def test_memory_of_a_part_of_a_device_of_a_later_cuda(self):
        scenario = "limit_from_async_to_virtual_memory_of_a_part"
        without = self.play(scenario, SIMCUDA_VERSION="13050")
        self.assertIn("cuMemCreate(&handle, most, &prop, 0): 0\n", without.stdout)
        self.assert_same(without, self.under(scenario, SIMCUDA_VERSION="13050"))

    def test_what_is_not_ours_never_lies_in_the_host(self):
        for scenario in ["pool_with_a_limit", "limit_of_a_process_that_exports", "limit_of_a_pool_that_is_exported"]:
            with self.subTest(scenario):
                self.assert_same(self.play(scenario), self.under(scenario, REPRISE_OVERSUBSCRIBE="1"))

    def test_a_stream_that_ends_without_an_event(self):
        """Nobody can say any more what is over on it: what it freed is left alone."""
        scenario = "capture_beside_the_end_of_a_stream"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_FAIL="cuStreamIsCapturing:1+"))

    def test_a_context_ends_in_the_middle_of_our_calls(self):
        scenario = "end_of_a_context_beside_a_thread_that_trims"
        slow = "cuMemPoolTrimTo,cuCtxDestroy,cuEventQuery,cuEventRecord"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_SLOW=slow))

    def test_contexts_end_that_others_wait_for(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        for scenario in ["contexts_that_end_beside_a_thread_that_frees",
                         "contexts_that_end_beside_a_thread_without_memory",
                         "end_of_a_context_beside_a_thread_that_frees",
                         "end_of_the_primary_context_beside_a_thread_that_frees",
                         "end_of_the_primary_context_for_one_of_two_beside_a_thread_that_frees"]:
            with self.subTest(scenario):
                self.assert_same(self.play(scenario, "warm"),
                                 self.under(scenario, "warm", SIMCUDA_SLOW="cuCtxPushCurrent,cuCtxSynchronize"))

    def test_a_context_whose_handle_comes_again_while_it_ends(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        for scenario, end in [("end_of_a_context_whose_handle_comes_again", "cuCtxDestroy:after"),
                              ("end_of_the_primary_context_whose_handle_comes_again", "cuDevicePrimaryCtxRelease:after")]:
            with self.subTest(scenario):
                at_once = {"SIMCUDA_REUSE_CONTEXTS": "1", "SIMCUDA_SLOW": end}
                without = self.play(scenario, "warm", **at_once)
                self.assertIn("WorkCorruptedBytes() = 0\n", without.stdout)
                self.assert_same(without, self.under(scenario, "warm", **at_once))

    def test_a_stream_whose_handle_is_captured_while_it_ends(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        scenario = "end_of_a_stream_whose_handle_is_captured_at_once"
        at_once = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1",  # for all threads
                   "SIMCUDA_SLOW": "cuStreamDestroy:after"}
        self.assert_same(self.play(scenario, "warm"), self.under(scenario, "warm", **at_once))

    def test_a_stream_comes_while_a_thread_ends(self):
        scenario = "threads_that_free_at_their_end"
        self.assert_same(self.play(scenario), self.under(scenario, SIMCUDA_SLOW="cuEventRecord,cuEventQuery,cuStreamGetFlags"))

    def test_a_capture_begins_while_a_free_waits(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        scenario = "capture_beside_a_thread_that_frees"
        slow = {"SIMCUDA_SLOW": "cuCtxSynchronize,cuStreamEndCapture,cuStreamQuery"}
        self.assert_same(self.play(scenario, "warm"), self.under(scenario, "warm", **slow))

    def test_captures_that_come_to_nothing_are_over(self):
        for scenario in ["capture_that_comes_to_nothing", "end_of_the_primary_context_that_is_capturing"]:
            with self.subTest(scenario):
                device = self.summary_of(scenario)["devices"][0]
                self.assertGreater(device["planned"] + device["arena"], 0.9 * 60 * 24)

    def test_what_ends_with_a_context_is_not_live(self):
        """Blocks of the driver's too: these and no others."""
        mebibyte = 2**20
        cases = {"end_of_a_context": [(0, 3 * mebibyte)],
                 "end_of_a_context_beside_blocks_of_others": [(0, 3 * mebibyte), (0, mebibyte)]}
        for scenario, expected in cases.items():
            with self.subTest(scenario):
                devices = self.summary_of(scenario)["devices"]
                self.assertEqual([(device["live"], device["live_peak"]) for device in devices], expected)

    def test_modes(self):
        without = self.play("training_stream_ordered")
        for variables in [{"REPRISE_MODE": "record"}, {"REPRISE_CAPACITY": "8MiB"}, {"REPRISE_DISABLE": "1"}]:
            self.assert_same(without, self.under("training_stream_ordered", **variables))


def add_scenario(name):
    def cold(self):
        self.check(name)

    def warm(self):
        self.at = self.install("CORE_PLANNING_IN_CALLER")
        self.check(name, "warm")

    if name not in REFUSED:
        setattr(BothWays, f"test_cold_{name}", cold)
    if name not in COLD_ONLY | REFUSED:
        setattr(BothWays, f"test_warm_{name}", warm)


def scenarios():
    listed = subprocess.run([built("SCENARIOS")], env={**os.environ, "LD_LIBRARY_PATH": built("SIMCUDA")},
                            capture_output=True, text=True, check=True)
    return listed.stdout.split()


for scenario_name in scenarios():
    add_scenario(scenario_name)

if __name__ == "__main__":
    unittest.main()
