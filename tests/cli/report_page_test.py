"""Why this exists: a page that throws, shows another number than the command, or cannot be used without a mouse is no
report. Opens real pages in a headless Chromium; skipped where there is none."""

import copy
import json
import re
import unittest

import browser

browser.require()

import command
import snapshots
from page import PageTest
from report_test import job_with_state, secret_snapshot
from stats_test import job


def big_job(events):
    """Rounds of 600 layers forth and back on two streams, as CSV rows, at least so many."""
    rows, number = ["event,id,bytes,stream"], 0
    sizes = [65536 * (1 << (7 * k % 5)) + 512 * (k % 61) for k in range(600)]
    while len(rows) < events:
        live = []
        for k, size in enumerate(sizes):
            rows.append(f"alloc,{number},{size},{int(k % 50 == 0)}")
            live.append(number)
            rows += [f"alloc,{number + 1},{size // 4 + 512},0", f"free,{number + 1},,0"]
            number += 2
        rows += [f"free,{block},,0" for block in reversed(live)]
    return "\n".join(rows) + "\n"


class Page(PageTest):
    def test_numbers_are_those_of_stats(self):
        self.write("s.pickle", snapshots.pickled(secret_snapshot()))
        stats = self.json("stats", "s.pickle")
        self.open("s.pickle")
        head = json.loads(self.js("return document.getElementById('head').textContent"))
        self.assertEqual(head["stats"], stats)
        self.assertIn("6.00 MiB", self.text("figures"))
        rows = self.js(
            "return [...document.querySelectorAll('#sites tbody tr')].map(r => [...r.cells].map(c => c.innerText))"
        )
        shown = [(row[0], row[1], row[3]) for row in rows]
        size = {s["bytes"]: f"{s['bytes'] / (1 << 20):.2f} MiB" for s in stats["sites"]}
        self.assertEqual(shown, [(s["label"], size[s["bytes"]], str(s["blocks"])) for s in stats["sites"]])

    def test_sizes_and_shares_between_two_numbers_are_rounded_as_the_command_does(self):
        for size in (4224, 3712, 1152 << 10, 9 << 27, 9 << 57):  # 4.125 KiB, 3.625 KiB, ..., more than a PiB
            self.write("e.csv", f"event,id,bytes,stream\nalloc,0,{size},0\n")
            said = re.search(r"live peak +(\S+ \S+) ", self.ok("stats", "e.csv").out)[1]
            self.open("e.csv")
            self.assertEqual(self.text("figures").split("\n")[0], said)
        self.write("e.csv", "event,id,bytes,stream\n" + "".join(f"alloc,{i},{size},0\n" for i, size in enumerate((97, 703))))
        self.open("e.csv")  # 12.125 % and 87.875 %
        shares = re.findall(r"\d+\.\d\d %$", self.ok("stats", "e.csv").out, re.M)
        self.assertEqual(self.js("return [...document.querySelectorAll('#sizes tbody tr')].map(r => r.cells[3].innerText)"), shares)

    def test_whose_the_bytes_are(self):
        self.write("e.csv", "event,id,bytes,stream\nalloc,0,4096,7\nalloc,1,1024,0\nfree,0,,7\nalloc,2,100,7\n")
        self.open("e.csv")
        self.assertEqual(self.text("streams").split(), (
            "Stream Bytes Share Its own peak Allocated 0x7 4.00 KiB 80.00 % 4.00 KiB 4.10 KiB 0x0 1.00 KiB 20.00 % 1.00 KiB 1.00 KiB"
        ).split())
        self.assertIn("no native stacks", self.text("libraries"))
        self.write("l.csv", "id,lower,upper,size,lane\na,0,9,400,7\nb,2,4,100,0\n")
        self.open("l.csv")
        self.assertIn("0x7 400 B 80.00 % 400 B 400 B", " ".join(self.text("streams").split()))
        self.assertEqual(self.text("merged"), "No allocator was tried with that.")

    def test_every_kind_of_input_opens_without_an_error(self):
        self.write("a.csv", command.LIFETIMES)
        self.write("e.csv", command.EVENTS)
        self.write("job.csv", job(40))
        self.write("s.pickle", snapshots.pickled())
        for name in ("a.csv", "e.csv", "job.csv", "s.pickle"):
            for dark in (False, True):
                with self.subTest(name=name, dark=dark):
                    self.open(name, dark=dark)
                    self.assertEqual(
                        self.js("return document.documentElement.dataset.theme"), "dark" if dark else "light"
                    )
                    options = self.js("return document.getElementById('layout').options.length")
                    for i in range(options):
                        self.js(
                            "const s = document.getElementById('layout'); s.value = arguments[0];"
                            "s.dispatchEvent(new Event('change'))", i)
                        browser.settle(self.driver)
                        self.assertRegex(self.text("packed-text"), r"\d+ blocks? drawn")
                    for by in ("site", "stream", "size", "lifetime"):
                        self.js(
                            "const s = document.getElementById('colour'); s.value = arguments[0];"
                            "s.dispatchEvent(new Event('change'))", by)
                        browser.settle(self.driver)
                        self.assertNotEqual(self.text("legend"), "")
                    self.assert_quiet()

    def test_a_site_that_cannot_be_broken_does_not_widen_the_page(self):
        value = copy.deepcopy(snapshots.SMALL)
        for event in value["device_traces"][0]:
            event["frames"][0]["name"] = "f" * 600
        self.write("s.pickle", snapshots.pickled(value))
        self.open("s.pickle")
        self.assertIn("f" * 600, self.text("legend"))
        wide, window = self.js("return [document.documentElement.scrollWidth, window.innerWidth]")
        self.assertLessEqual(wide, window)

    def test_an_axis_ends_where_the_job_does(self):
        self.write("e.csv", "event,id,bytes,stream\nalloc,0,4096,0\nfree,0,,0\n")
        self.open("e.csv")
        written = self.written("timeline")
        self.assertIn("2", written)
        self.assertNotIn("3", written)

    def test_of_how_many_iterations_a_plan_is(self):
        for name, content, rounds in (("once.csv", job(40), "one iteration"), ("twice.csv", job_with_state(40), "2 iterations")):
            self.write(name, content)
            self.open(name)
            self.assertIn(f"slab of the plan of {rounds};", self.text("figures"))
            self.assertEqual(self.js("return document.getElementById('layout').options[0].text"), f"plan of {rounds}")
            self.assertIn(f"allocations of {rounds}", " ".join(self.written("packed")))

    def test_without_a_layout_there_is_nothing_to_choose(self):
        # No iteration, too many blocks to plan as a whole, and no time for anything else.
        allocs = (f"alloc,{i},{4096 + i * i},0" for i in range(20_001))
        self.write("e.csv", "\n".join(("event,id,bytes,stream", *allocs)) + "\n")
        self.open("e.csv", "--time-limit", "1ms")
        self.assertIn("No layout was worked out", self.js("return document.body.innerText"))
        self.assertIn("plain-arena: not finished within", self.text("missing"))
        for name, value, event in (("theme", "dark", "change"), ("search", "x", "input"), ("colour", "size", "change")):
            self.js("const [name, value, event] = arguments, control = document.getElementById(name); if (!control) return;"
                    "control.value = value; control.dispatchEvent(new Event(event))", name, value, event)
        browser.settle(self.driver)
        self.assert_quiet()

    def test_the_theme_switch(self):
        self.write("job.csv", job(40))
        self.open("job.csv")
        for theme in ("dark", "light"):
            self.js("const s = document.getElementById('theme'); s.value = arguments[0];"
                    "s.dispatchEvent(new Event('change'))", theme)
            browser.settle(self.driver)
            self.assertEqual(self.js("return document.documentElement.dataset.theme"), theme)
        self.assert_quiet()

    def test_keyboard(self):
        self.write("job.csv", job(40))
        self.open("job.csv")
        whole = self.text("packed-text")
        self.press("packed", "+", "+", "+", "ARROW_RIGHT")
        self.assertIn("outside this span", self.text("packed-text"))
        self.press("packed", "ENTER")
        self.assertRegex(self.text("picked"), r"Picked: .* at offset ")
        first = self.text("picked")
        self.press("packed", "ARROW_UP")
        self.assertNotEqual(self.text("picked"), first)
        self.press("packed", "-", "HOME", "END", "ESCAPE")
        self.assertEqual(self.text("packed-text"), whole)
        self.press("timeline", "+", "ARROW_LEFT", "ESCAPE")
        outline = self.js("return getComputedStyle(document.getElementById('timeline')).outlineStyle")
        self.assertEqual(outline, "solid", "focus can be seen")
        self.assert_quiet()

    def test_a_stack_deeper_than_the_browsers_own_is_drawn(self):
        value = copy.deepcopy(snapshots.SMALL)
        for event in value["device_traces"][0]:
            event["frames"] = [{"name": f"f{depth}", "filename": "train.py", "line": depth} for depth in range(1, 20001)]
        self.write("s.pickle", snapshots.pickled(value))
        self.open("s.pickle")
        self.press("flame", "ESCAPE")
        self.assertRegex(self.text("flame-text"), r"deeper rows? not drawn")
        self.assert_quiet()

    def test_flame_graph_by_keyboard(self):
        self.write("s.pickle", snapshots.pickled(secret_snapshot()))
        self.open("s.pickle")
        self.press("flame", "ARROW_UP")
        self.assertIn("50.00 % of the peak", self.text("flame-text"))
        self.press("flame", "ENTER", "ESCAPE")
        self.assertIn("100.00 % of the peak", self.text("flame-text"))
        self.assert_quiet()

    def test_brush_click_and_search(self):
        from selenium.webdriver.common.action_chains import ActionChains

        self.write("s.pickle", snapshots.pickled(secret_snapshot()))
        self.open("s.pickle")
        canvas = self.driver.find_element("id", "packed")
        ActionChains(self.driver).move_to_element(canvas).click().perform()
        browser.settle(self.driver)
        self.assertIn("train.py", self.text("picked"))
        ActionChains(self.driver).move_to_element_with_offset(canvas, 60, 0).click_and_hold().move_by_offset(
            200, 0).release().perform()
        browser.settle(self.driver)
        self.driver.find_element("id", "search").send_keys("optimize")
        browser.settle(self.driver)
        self.assertEqual(self.js("return document.querySelectorAll('#sites tr.found').length"), 1)
        self.assert_quiet()

    def test_a_capacity_is_judged(self):
        self.write("e.csv", command.EVENTS)
        self.open("e.csv")
        self.driver.find_element("id", "capacity").send_keys("1")
        self.assertIn("yes", self.text("allocators"))
        self.assertNotIn("no,", self.text("allocators"))

    def test_charts_have_names_and_text(self):
        self.write("job.csv", job(40))
        self.open("job.csv")
        for name in ("timeline", "packed"):
            label = self.js("return document.getElementById(arguments[0]).getAttribute('aria-label')", name)
            self.assertRegex(label, r"(KiB|MiB|bytes)")
            self.assertEqual(self.js("return document.getElementById(arguments[0]).tabIndex", name), 0)

    def test_a_redacted_page_shows_no_name(self):
        self.write("s.pickle", snapshots.pickled(secret_snapshot()))
        self.open("s.pickle", "--redact")
        self.press("packed", "ENTER")
        body = self.js("return document.title + document.body.innerText")
        for secret in ("secret", "train", "optimize", "alert", "s.pickle"):
            self.assertNotIn(secret, body)
        self.assertIn("file-", self.text("sites"))

    def test_a_million_events(self):
        self.write("big.csv", big_job(1_000_000))
        self.open("big.csv")
        self.assertIn("not on the page", self.text("packed-text") + self.change_layout(1))
        paint = self.js("return performance.getEntriesByType('paint').map(p => `${p.name} ${Math.round(p.startTime)} ms`)")
        print("a million events:", ", ".join(paint), "drawn after",
              self.js("return document.documentElement.dataset.ready"), "ms")
        self.assert_quiet()

    def written(self, chart):
        """The words and numbers on a chart, as it is drawn again."""
        self.js("window.written = []; const canvas = CanvasRenderingContext2D.prototype, fill = canvas.fillText;"
                "canvas.fillText = function (text, ...where) { written.push(text); fill.call(this, text, ...where); }")
        self.press(chart, "ESCAPE")
        return self.js("return written")

    def change_layout(self, number):
        self.js("const s = document.getElementById('layout'); s.value = arguments[0];"
                "s.dispatchEvent(new Event('change'))", number)
        browser.settle(self.driver)
        return self.text("packed-text")


if __name__ == "__main__":
    unittest.main()
