"""Measures the report: statistics and page of a job of many events, and how the page opens and pans in a browser.

usage: report_bench.py REPRISE [EVENTS]      1000000 by default; needs Chromium (scripts/setup test)

The job is made up: rounds of 600 layers forth and back on two streams. Panning: a key press a frame, 60 of them, in the
engine's layout, at the whole job, an eighth and a hundredth of it; the figure is frames a second.
"""

import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
import browser

browser.require()
os.environ.setdefault("REPRISE_COMMAND", sys.argv[1])
from report_page_test import big_job

PAN = """
const done = arguments[arguments.length - 1], zooms = arguments[0];
const canvas = document.getElementById("packed");
const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
press("Escape");
for (let i = 0; i < zooms; ++i) press("+");
let frames = 0, from = 0;
function frame() {
  if (frames === 0) from = performance.now();
  if (frames++ === 60) return done(60000 / (performance.now() - from));
  press(frames < 30 ? "ArrowRight" : "ArrowLeft");
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
"""


def timed(*words):
    """Seconds, and the most memory in MiB."""
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{words} ended with {status}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main(reprise, events=1_000_000):
    reprise = os.path.abspath(reprise)
    with tempfile.TemporaryDirectory() as folder:
        job, page = os.path.join(folder, "job.csv"), os.path.join(folder, "job.html")
        with open(job, "w") as out:
            out.write(big_job(int(events)))
        print("load average: {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()))
        for name, words in (("stats", ("stats", job)), ("report", ("report", job, "-o", page))):
            seconds, memory = timed(reprise, *words)
            print(f"{name}: {seconds:.2f} s, {memory:.0f} MiB")
        print(f"page: {os.path.getsize(page) / 2**20:.2f} MiB")
        driver = browser.start()
        try:
            driver.set_script_timeout(120)
            for _ in range(3):
                browser.open_page(driver, page)
                paint = driver.execute_script("return performance.getEntriesByType('paint')[0].startTime")
                ready = driver.execute_script("return document.documentElement.dataset.ready")
                print(f"opened: first paint {paint:.0f} ms, all drawn {ready} ms")
            driver.execute_script(
                "const s = document.getElementById('layout'); s.value = Math.min(1, s.options.length - 1);"
                "s.dispatchEvent(new Event('change'))")
            for share, zooms in (("the whole", 1), ("an eighth", 6), ("a hundredth", 13)):
                print(f"panned, {share}: {driver.execute_async_script(PAN, zooms):.0f} frames a second")
            print(driver.execute_script("return document.getElementById('packed-text').textContent"))
        finally:
            driver.quit()


main(*sys.argv[1:])
