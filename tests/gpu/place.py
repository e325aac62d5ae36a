"""Where the GPU's checks run: on CUDA, or on the stand-in for it; and what one of them found."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import torch

VARIABLE: Final = "BACKPROBE_GPU_STANDIN"

SECONDS_LEFT: Final = "BACKPROBE_GPU_SECONDS"
"""How long a part may take, for one that can do less: set by the runner for its process."""

Outcome = Literal["seen", "stand-in", "not seen", "failed"]
"""`seen` on CUDA alone; `stand-in`: the same lines held on the stand-in; `not seen`: what it needs is not here."""


class NoDevice(Exception):
    """There is no CUDA device, and nothing was named to stand in for one."""


class NotHere(Exception):
    """A check cannot be made here; the text says what it lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A device and how much is asked of it.

    Attributes:
        device: What programs under test name: "cuda", or "cpu" in its stead.
        small: Few repetitions, for `make test`.
    """

    device: str
    small: bool = False

    @property
    def is_cuda(self) -> bool:
        """It is the real thing."""
        return self.device == "cuda"

    @property
    def name(self) -> str:
        """What the tables call it."""
        return torch.cuda.get_device_name(0) if self.is_cuda else f"stand-in ({self.device})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one check found.

    Attributes:
        note: A figure, the reason of a failure, or what ran on the stand-in where CUDA has something else.
    """

    what: str
    outcome: Outcome
    note: str = ""


def find_place(*, small: bool = False) -> Place:
    """The place that the environment and the machine give.

    Raises:
        NoDevice: there is neither a CUDA device nor a stand-in.
    """
    standin = os.environ.get(VARIABLE, "")
    if standin not in ("", "cpu"):
        raise NoDevice(
            f'{VARIABLE} is {standin!r}; it may be "cpu", which runs every check on the CPU in place of CUDA'
        )
    if standin:
        return Place(device="cpu", small=small)
    if not torch.cuda.is_available():
        raise NoDevice(
            f"torch {torch.__version__} finds no CUDA device here; {VARIABLE}=cpu runs every check on the CPU in its place"
        )
    return Place(device="cuda", small=small)


def rows(place: Place, checks: Iterator[tuple[str, Callable[[], str]]]) -> Iterator[Row]:
    """Make checks one after the other: each returns a note, or raises."""
    for what, check in checks:
        try:
            note = check()
        except NotHere as lacking:
            yield Row(what=what, outcome="not seen", note=str(lacking))
        except BaseException as error:  # what a test's helper raises when it gives up is no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
                raise
            traceback.print_exc(file=sys.stderr)
            text = f"{type(error).__name__}: {error}".strip().splitlines()
            yield Row(what=what, outcome="failed", note=" ".join(text)[:300])
        else:
            yield Row(what=what, outcome="seen" if place.is_cuda else "stand-in", note=note)


def expect(holds: object, what: str) -> None:
    """What a check demands; unlike an assertion it stays when Python runs with -O.

    Raises:
        AssertionError: it does not hold.
    """
    if not holds:
        raise AssertionError(what)
