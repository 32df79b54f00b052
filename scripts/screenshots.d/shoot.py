"""Photographs the report page of a job and that of a job's ranks, in both themes.

usage: shoot.py PAGE.html RANKS.html FOLDER
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "cli"))
import browser

WIDTH, HEIGHT = 1280, 1010
# What each picture of a page begins with, and what is done first.
OF_A_JOB = {
    "overview": ("header", ""),
    "layout": ("#packed-title", "const s = document.getElementById('layout'); s.value = Math.min(1, s.options.length - 1);"
               "s.dispatchEvent(new Event('change'));"),
    "peak": ("#peak-title", ""),
    "allocators": ("#allocators-title", ""),
}
OF_RANKS = {"ranks": ("header", "")}


def main(page, ranks, folder):
    driver = browser.start(WIDTH, HEIGHT)
    try:
        for theme in ("light", "dark"):
            for at, pictures in ((page, OF_A_JOB), (ranks, OF_RANKS)):
                browser.open_page(driver, at, dark=theme == "dark")
                for name, (top, first) in pictures.items():
                    driver.execute_script(first + "document.querySelector(arguments[0]).scrollIntoView();", top)
                    browser.settle(driver)
                    path = os.path.join(folder, f"report-{name}-{theme}.png")
                    driver.save_screenshot(path)
                    print(f"{path}: {os.path.getsize(path) // 1024} KiB")
                errors = driver.get_log("browser")
                if errors:
                    sys.exit(f"the console of {at}: {errors}")
    finally:
        driver.quit()


main(*sys.argv[1:])
