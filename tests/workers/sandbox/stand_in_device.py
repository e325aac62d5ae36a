"""Where no GPU is: the process for one run as it is, but for the one question to the device, answered here.

What it opens stands for what a driver keeps open: it must be there for the run.
"""

import os

from workers.sandbox.gpu import oneshot

KEPT = 40


def ask(memory_fraction: float) -> tuple[str, ...]:
    """A device of no kind."""
    held = os.open(os.devnull, os.O_RDONLY)
    os.dup2(held, KEPT)
    return (f"stand-in with {memory_fraction:.0%} of its memory",)


oneshot.main(ask)
