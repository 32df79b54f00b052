"""A headless Chromium for the tests of the report page. Ends with 77, which Meson calls skipped, where there is none."""

import os
import shutil
import sys

SKIPPED = 77
SYSTEM_PYTHON = "/usr/bin/python3"


def require():
    """The selenium module. Debian's belongs to the system's Python, which may not be the one that runs the tests."""
    try:
        import selenium.webdriver
    except ImportError:
        if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) and os.path.exists(SYSTEM_PYTHON):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", *sys.argv])
        print("SKIP: no python3-selenium here")
        sys.exit(SKIPPED)
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        print("SKIP: no chromium and chromedriver here")
        sys.exit(SKIPPED)
    return selenium.webdriver


def start(width=1400, height=1000):
    webdriver = require()
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},{height}"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium has none for root; the pages are our own
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.chrome.service.Service(shutil.which("chromedriver"))
    return webdriver.Chrome(service=service, options=options)


def open_page(driver, path, dark=False):
    """Opens a report and returns once it is drawn, or has failed."""
    from selenium.webdriver.support.ui import WebDriverWait

    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get("file://" + os.path.abspath(path))
    ready = "return document.documentElement.dataset.ready || !document.getElementById('failure').hidden"
    WebDriverWait(driver, 60, poll_frequency=0.05).until(lambda d: d.execute_script(ready))


def settle(driver):
    """Until what was asked for has been painted."""
    driver.set_script_timeout(60)
    driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")
