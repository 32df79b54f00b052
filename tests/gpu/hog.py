"""The device's memory, held by another process but for some bytes."""

import subprocess


class Hog:
    """`program`: programs/hog.c; `free`: the bytes that it leaves, a job's context included."""

    def __init__(self, program, free):
        self.program = program
        self.free = free

    def __enter__(self):
        self.process = subprocess.Popen(
            [self.program, str(self.free)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        words = self.process.stdout.readline().split()
        if not words or words[0] != "ready":
            raise RuntimeError("the device's memory could not be taken")
        self.left = int(words[1])
        return self

    def __exit__(self, *_):
        self.process.communicate()
