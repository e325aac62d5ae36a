"""The programs of a chaos run, each with the one answer that is right whatever happens around it."""

from dataclasses import dataclass
from typing import Any

GOOD = """\
import torch
x = torch.tensor([{n}.0, 1.0], requires_grad=True)
y = x * x
y.sum().backward()
print(x.grad.tolist())
"""
SLOW = "mark = open('mark-{n}', 'w')\nimport time\ntime.sleep({seconds})\n" + GOOD
RAISES = "import torch\nx = torch.ones(2, requires_grad=True)\nx.sum().backward()\nraise ValueError({n})\n"
ENDLESS = "import time\nwhile True: time.sleep(1)  # {n}\n"
POISON = "import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(60)  # {n}\n"

TENSORS, SNAPSHOTS_LEAST = 4, 4
"""What the record of GOOD holds: x, y, the sum and x's gradient; each is seen at least once."""


@dataclass(frozen=True)
class Program:
    """One program and its right end.

    Attributes:
        kind: Which of the sources. status: how it ends if nothing but our own machinery is disturbed.
        printed: All of its stdout. most_attempts: of the submission.
        may_cancel: The test asks for its end at some time; then `canceled` is right too.
    """

    number: int
    kind: str
    source: str
    status: str
    printed: str = ""
    limits: Any = None
    most_attempts: int = 100
    may_cancel: bool = False


def program(number: int, *, poison: bool) -> Program:
    """The number-th program: of 20, thirteen simple, two that raise, one endless, two slow, two canceled.

    With `poison` each 400th kills the warm process that runs it, every time: our failure, so it is lost after two.
    """
    printed = f"[{2.0 * number}, 2.0]\n"
    place = number % 20
    if poison and number % 400 == 19:
        return Program(number, "poison", POISON.format(n=number), "lost", most_attempts=2)
    if place in (3, 13):
        return Program(number, "raises", RAISES.format(n=number), "failed")
    if place == 7:
        return Program(number, "endless", ENDLESS.format(n=number), "exceeded", limits={"wall_seconds": 1})
    if place in (5, 15):
        return Program(number, "slow", SLOW.format(n=number, seconds=0.5), "succeeded", printed)
    if place in (9, 19):
        return Program(number, "canceled", SLOW.format(n=number, seconds=1), "succeeded", printed, may_cancel=True)
    return Program(number, "good", GOOD.format(n=number), "succeeded", printed)
