"""Why this exists: the demo compares runs without and with Reprise, and one that has it where it should not compares nothing.
Here a program that says what it was started with stands for the models, and another one for the command."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TRAIN = """
import json, os, sys
json.dump({"losses": [], "seconds": [], "environment": dict(os.environ)}, open(sys.argv[3], "w"))
"""
REPRISE = """#!/bin/sh
while [ "$1" != -- ]; do
  [ "$1" != --out ] || { mkdir -p "$2"; echo '{"requests": 0, "plans": 0}' >"$2/summary.json"; }
  shift
done
shift
exec env LD_PRELOAD= "$@"
"""


class Demo(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        shutil.copy(os.path.join(os.environ["SOURCE_ROOT"], "scripts/demo.d/compare.py"), self.folder)
        for name, text in (("train.py", TRAIN), ("reprise", REPRISE)):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
                out.write(text)
        os.chmod(os.path.join(self.folder, "reprise"), 0o755)

    def test_what_is_set_for_reprise_reaches_neither_run(self):
        steering = {"LD_PRELOAD": os.environ["REPRISE_HOST_LIBRARY"], "REPRISE_MODE": "record", "REPRISE_DISABLE": "0"}
        out = os.path.join(self.folder, "out")
        subprocess.run([sys.executable, "-B", os.path.join(self.folder, "compare.py"), os.path.join(self.folder, "reprise"),
                        "1", out], env={**os.environ, **steering}, capture_output=True, timeout=120)
        for kind in ("plain", "served"):
            with open(os.path.join(out, "gpt-0", kind, "result.json"), encoding="utf-8") as text:
                seen = json.load(text)["environment"]
            self.assertEqual([name for name in steering if seen.get(name)], [], kind)


if __name__ == "__main__":
    unittest.main()
