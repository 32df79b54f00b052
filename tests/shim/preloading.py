"""What the tests of the preload library share: a folder with the library and a core beside it, and a way to
run a program under it. The paths of what was built come from the environment (see meson.build)."""
import contextlib
import os
import shutil
import subprocess
import tempfile

TIMEOUT = 120  # seconds; only ever reached by a deadlock


def built(name):
    return os.environ[name]


class Installed:
    """A folder laid out as an installation: the preload library, and a core beside it (or none)."""

    def __init__(self, core="FAKE_CORE_LIBRARY", shim="SHIM"):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        self.shim = os.path.join(self.folder, os.path.basename(built(shim)))
        self.core = os.path.join(self.folder, "libreprise_core.so")
        shutil.copy(built(shim), self.shim)
        if core:
            shutil.copy(built(core), self.core)

    def close(self):
        self._folder.cleanup()


def clean_environment(preload=(), **variables):
    """The environment with nothing of ours in it but `preload` and `variables`."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("REPRISE_", "FAKE_"))}
    environment.pop("LD_PRELOAD", None)
    if preload:
        environment["LD_PRELOAD"] = " ".join(preload)
    environment.update(variables)
    return environment


@contextlib.contextmanager
def full_pipe():
    """The writing end of a pipe that is full, and that nobody reads."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb"), os.fdopen(writer, "wb", buffering=0) as pipe:
        os.set_blocking(writer, False)
        while pipe.write(bytes(4096)):
            pass
        os.set_blocking(writer, True)
        yield pipe


def run(command, preload=(), cwd=None, **variables):
    return subprocess.run(command, env=clean_environment(preload, **variables), cwd=cwd, capture_output=True,
                          text=True, timeout=TIMEOUT)


def option(arguments, name, default):
    """The number behind `name`, taken out of what unittest.main() sees."""
    if name not in arguments:
        return default
    at = arguments.index(name)
    value = int(arguments[at + 1])
    del arguments[at:at + 2]
    return value
