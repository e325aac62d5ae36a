"""The process for one run where no GPU is: as it is, but for what the driver would be asked, answered here.

A worker's probe asks torch for the names of devices; so torch says here that there is one.
"""

from __future__ import annotations

import os

import torch

from workers.sandbox.gpu import oneshot

NAME = "stand-in for a GPU"
KEPT = 40
"""A descriptor that stands for those which a driver keeps open: it must be there for the run."""


def ask(memory_fraction: float) -> tuple[str, ...]:
    """One device, of no kind; its memory is not bounded."""
    held = os.open(os.devnull, os.O_RDONLY)
    os.dup2(held, KEPT)
    torch.cuda.device_count = lambda: 1
    torch.cuda.get_device_name = lambda _=None: NAME
    return (f"{NAME}, {memory_fraction:.0%} of its memory",)


if __name__ == "__main__":
    oneshot.main(ask)
