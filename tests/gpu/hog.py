"""The device's memory, held by another process but for some bytes."""

from jobs import Beside


class Hog(Beside):
    """`program`: programs/hog.c; `free`: the bytes that it leaves, a job's context included. `left`: what there is."""

    def __init__(self, program, free, jobs):
        super().__init__([program, str(free)], jobs.environment, "the device's memory could not be taken")

    def __enter__(self):
        super().__enter__()
        self.left = int(self.ready)
        return self
