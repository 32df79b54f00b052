"""Why this exists: the page on a job's ranks is read by people: what it shows must be what the command found, by mouse and
by keyboard. Opens real pages in a headless Chromium; skipped where there is none."""

import json
import os
import subprocess
import sys
import unittest

import browser

browser.require()

from by_hand import RanksByHand
from page import PageTest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SHOOT = os.path.join(ROOT, "scripts/screenshots.d/shoot.py")
IMAGES = os.path.join(ROOT, "docs/images")


class RanksPage(PageTest, RanksByHand):
    def rows(self, name):
        return self.js("return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)].map("
                       "r => [...r.cells].map(c => c.innerText))", name)

    def choose(self, name, value):
        self.js("const s = document.getElementById(arguments[0]); s.value = arguments[1];"
                "s.dispatchEvent(new Event('change'))", name, value)
        browser.settle(self.driver)

    def mib(self, count):
        return f"{count / (1 << 20):.2f} MiB"

    def test_numbers_are_those_of_merge(self):
        self.record("out", [0, 0, 4, 0], world=5)
        for dark in (False, True):
            self.open("out", "--capacity", "9MiB", dark=dark)
            self.assertEqual(self.js("return document.documentElement.dataset.theme"), "dark" if dark else "light")
        (job,) = self.merge("out", status=1)["jobs"]
        shown = self.rows("ranks")
        self.assertEqual([row[0] for row in shown], ["0", "1", "2", "3"])
        for row, rank in zip(shown, job["ranks"]):
            self.assertEqual((row[1], row[2], row[4], row[10]),
                             (rank["host"], self.mib(rank["live_peak"]), self.mib(rank["reserved_peak"]), str(rank["faults"])))
        self.assertIn("Rank 2 on", self.text("verdict"))
        self.assertIn("4 of 5", self.text("figures"))
        self.assertIn(self.mib(job["median_live_peak"]), self.text("figures"))
        self.assertIn("of 1 nothing is known", self.text("peaks-text"))
        self.assertIn("No summary of rank 4.", self.text("missing"))
        first = self.rows("compared")[0]
        self.assertRegex(first[0], r"^uneven.py:\d+")
        self.assertEqual(first[1:6], ["0 B", "0 B", "4.00 MiB", "2", "4.00 MiB"])
        self.assertEqual(first[7], "4.00 MiB", "of the rank that is picked: the largest")

    def test_keyboard_and_mouse_pick_a_rank(self):
        from selenium.webdriver.common.action_chains import ActionChains

        self.record("out", [0, 0, 4, 0, 0])
        self.open("out")
        self.assertRegex(self.text("picked"), r"^Rank 2 .* 1.5\d times the median")
        self.assertIn("reprise report out/trace.rank2.reprise", self.text("picked"))
        self.press("peaks", "ARROW_DOWN")
        self.assertRegex(self.text("picked"), "^Rank 1 ")
        self.assertEqual(self.rows("compared")[0][7], "0 B")
        self.press("peaks", "ARROW_UP", "ARROW_UP")
        self.assertRegex(self.text("picked"), "^Rank 3 ")
        self.press("peaks", "+", "ARROW_LEFT", "-", "ESCAPE", "ENTER")
        self.assertRegex(self.text("picked"), "^Rank 2 ")  # in the middle
        canvas = self.driver.find_element("id", "peaks")
        ActionChains(self.driver).move_to_element(canvas).move_by_offset(canvas.size["width"] // 2 - 40, 0).click().perform()
        browser.settle(self.driver)
        self.assertRegex(self.text("picked"), "^Rank 4 ")
        number = self.driver.find_element("id", "rank")
        number.clear()
        number.send_keys("0")
        self.assertRegex(self.text("picked"), "^Rank 0 ")
        self.assertEqual(self.js("return getComputedStyle(document.activeElement).outlineStyle"), "solid")
        label = self.js("return document.getElementById('peaks').getAttribute('aria-label')")
        self.assertRegex(label, r"5 ranks, live peaks at most 12.\d+ MiB")
        self.assert_quiet()

    def test_order_search_and_theme(self):
        self.record("out", [1, 3, 2])
        self.open("out")
        self.choose("order", "live_peak")
        self.assertEqual([row[0] for row in self.rows("ranks")], ["1", "2", "0"])
        self.driver.find_element("id", "search").send_keys("rank 2")
        self.assertEqual(self.js("return [...document.querySelectorAll('#ranks tr.found')].map(r => r.cells[0].innerText)"), ["2"])
        for theme in ("dark", "light"):
            self.choose("theme", theme)
            self.assertEqual(self.js("return document.documentElement.dataset.theme"), theme)
        self.assert_quiet()

    def test_several_jobs(self):
        self.record("out", [0, 1])
        self.record("further", [0, 0, 0])
        for rank in range(3):
            summary = json.loads(self.read(f"further/summary.rank{rank}.json"))
            self.write(f"further/summary.rank{rank}.json", json.dumps({**summary, "job": "77"}))
        self.open("out", "further")
        self.assertEqual(self.js("return document.getElementById('job').options.length"), 2)
        self.assertEqual(len(self.rows("ranks")), 2)
        self.choose("job", 1)
        self.assertEqual(len(self.rows("ranks")), 3)
        self.assertIn("job 77", self.text("verdict"))
        self.assert_quiet()

    def test_nothing_but_traces(self):
        self.record("out", [0, 1])
        for rank in (0, 1):
            os.remove(self.path(f"out/summary.rank{rank}.json"))
        self.open("out")
        self.assertIn("summaries of 0 of 2 ranks", self.text("verdict"))
        self.assertIn("no summary", self.rows("ranks")[0][-1])
        self.assert_quiet()

    def test_a_rank_that_was_killed(self):
        self.record("out", [0, 1])
        summary = json.loads(self.read("out/summary.rank1.json"))
        self.write("out/summary.rank1.json", json.dumps({**summary, "running": True, "ended": 1900000000}))
        self.open("out")
        self.assertEqual([row[-1] for row in self.rows("ranks")],
                         ["", "as of 2030-03-17T17:46:40Z; killed since, ended by _exit, or still running"])
        self.assert_quiet()

    def test_a_redacted_page_shows_no_name(self):
        self.record("out", [0, 4])
        self.open("out", "--redact")
        body = self.js("return document.title + document.body.innerText")
        for secret in ("uneven", "padding", "out/", os.uname().nodename + "\n"):
            self.assertNotIn(secret, body)
        self.assertIn("host-1", self.text("ranks"))

    def test_the_pictures_in_docs_can_be_made(self):
        self.record("out", [0, 4], rounds=20)
        self.ok("report", "out", "-o", "ranks.html")
        self.ok("report", "out/trace.rank0.reprise", "-o", "job.html")
        os.mkdir(self.path("pictures"))
        done = subprocess.run([sys.executable, "-B", SHOOT, "job.html", "ranks.html", "pictures"], cwd=self.folder,
                              capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = [name for name in os.listdir(IMAGES) if name.endswith(".png")]
        self.assertEqual(sorted(os.listdir(self.path("pictures"))), sorted(names))


if __name__ == "__main__":
    unittest.main()
