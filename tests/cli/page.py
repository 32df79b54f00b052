"""What tests of a page have in common: one browser, and what is asked of it."""

import browser
import command


class PageTest(command.CommandTest):
    """Tests of a page that `report` writes, in one browser."""

    @classmethod
    def setUpClass(cls):
        cls.driver = browser.start()
        cls.addClassCleanup(cls.driver.quit)

    def open(self, *words, dark=False):
        self.ok("report", *words, "-o", "page.html")
        browser.open_page(self.driver, self.path("page.html"), dark)
        self.assert_quiet()

    def assert_quiet(self):
        self.assertEqual(self.driver.get_log("browser"), [])
        self.assertTrue(self.js("return document.getElementById('failure').hidden"))

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, name):
        return self.js("return document.getElementById(arguments[0]).innerText", name)

    def press(self, name, *keys):
        from selenium.webdriver.common.keys import Keys

        canvas = self.driver.find_element("id", name)
        self.js("arguments[0].focus()", canvas)
        for key in keys:
            canvas.send_keys(getattr(Keys, key, key))
        browser.settle(self.driver)
