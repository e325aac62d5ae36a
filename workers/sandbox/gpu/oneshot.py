"""A process that is warm, with its devices ready, and becomes one run: `python -m workers.sandbox.gpu.oneshot`.

1. It is exec'ed, never forked: CUDA cannot be used in a fork of a process that has started it.
2. It runs one program and ends. What it warmed with is its own; no later run sees what this one left.
3. What its devices hold open stays open, above the six descriptors of a run; every descriptor of Backprobe is closed.
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import math
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Final, NoReturn

from msgspec import structs

from backprobe import stack
from backprobe.capture.program.devices import ready_devices
from backprobe.capture.program.warm_up import warm
from workers.sandbox.process import child, messages, orphans, uncaught_errors
from workers.sandbox.process.lockdown import PROGRAM, Surroundings
from workers.sandbox.process.messages import Fork, Ready, Unready
from workers.sandbox.remote.boot import THREAD_BYTES

_HIGH: Final = 64
"""Backprobe's descriptors are above this while the run's six places are kept free."""

WHY_CHARACTERS: Final = 500
"""Of what a device's library says, the most that is passed on."""

Ask = Callable[[float], tuple[str, ...]]
"""The one place where a device is asked: `ready_devices`, or what a test has instead where there is none."""


def main(ask: Ask = ready_devices) -> NoReturn:
    """Warm up, wait for the run, be it."""
    words = _words()
    orphans.die_with(words.keeper)
    stack.settle(THREAD_BYTES)
    hand = socket.socket(fileno=_six_places_kept(words.hand))
    warm()
    try:
        names = ask(words.memory_fraction)
    except RuntimeError as error:  # no device, or one that cannot be used: torch's own text says which
        messages.send(hand, Unready(why=str(error).partition("\n")[0][:WHY_CHARACTERS]))
        os._exit(1)
    gc.collect()
    gc.freeze()
    messages.send(hand, Ready(pid=os.getpid(), vm_bytes=0, rss_bytes=0, devices=names))
    order, descriptors = messages.receive_order(hand)
    if not isinstance(order, Fork):
        os._exit(0)  # nobody wants it any more
    program, stdin, stdout, stderr, record, sync = descriptors
    ours = (*descriptors, hand.detach())
    child.live(
        Surroundings(
            order=structs.replace(order, cpu_seconds=order.cpu_seconds + math.ceil(time.process_time())),
            zygote=words.keeper,
            vm_bytes=0,
            folder=words.folder,
            descriptors=(stdin, stdout, stderr, record, sync, program),
            environment={} if words.visible_devices is None else {"CUDA_VISIBLE_DEVICES": words.visible_devices},
            ours=ours,
        )
    )


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("hand", type=int)
    parser.add_argument("--keeper", type=int, required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--memory-fraction", type=float, required=True)
    parser.add_argument("--visible-devices")
    return parser.parse_args(sys.argv[1:])


def _six_places_kept(hand: int) -> int:
    """Descriptors 0 to 5 are taken by nothing that must live on: a device's driver then opens its own above them."""
    high = fcntl.fcntl(hand, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for place in range(3, PROGRAM + 1):
        if place != nothing:
            os.dup2(nothing, place, inheritable=False)
    for descriptor in {hand, nothing} - set(range(PROGRAM + 1)):
        os.close(descriptor)
    return high


if __name__ == "__main__":
    with uncaught_errors.in_one_line("workers.sandbox.gpu.oneshot"):
        main()
