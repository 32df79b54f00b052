"""Photographs a report page in both themes.

usage: shoot.py PAGE.html FOLDER
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "cli"))
import browser

WIDTH, HEIGHT = 1280, 1010
# What each picture begins with, and what is done first.
PICTURES = {
    "overview": ("header", ""),
    "layout": ("#packed-title", "const s = document.getElementById('layout'); s.value = Math.min(1, s.options.length - 1);"
               "s.dispatchEvent(new Event('change'));"),
    "peak": ("#peak-title", ""),
    "allocators": ("#allocators-title", ""),
}


def main(page, folder):
    driver = browser.start(WIDTH, HEIGHT)
    try:
        for theme in ("light", "dark"):
            browser.open_page(driver, page, dark=theme == "dark")
            for name, (top, first) in PICTURES.items():
                driver.execute_script(first + "document.querySelector(arguments[0]).scrollIntoView();", top)
                browser.settle(driver)
                path = os.path.join(folder, f"report-{name}-{theme}.png")
                driver.save_screenshot(path)
                print(f"{path}: {os.path.getsize(path) // 1024} KiB")
        errors = driver.get_log("browser")
        if errors:
            sys.exit(f"the page's console: {errors}")
    finally:
        driver.quit()


main(*sys.argv[1:])
