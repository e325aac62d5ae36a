"""Generated programs whose tensors lie on the device, each recorded and compared with what torch itself says.

Their text names no device: it is the default one while they run. The stand-in is the device written in Python, whose
tensors lie on no CPU. On another device than the CPU the engine sees no change that raises no `_version`, as
`docs/gpu.md` says; such programs are left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Final

import torch

from tests.gpu.place import Place, Row, expect, rows
from tests.gpu.waits import hold_device
from tests.oracle.campaign import draw_programs, found_in, warmed
from tests.support import held_device

FIRST: Final = 4200
"""Seed of the programs, so that they are not those of `make oracle`."""

MOST_PROCESSES: Final = 12
"""Each reads every element of every tensor after every statement, and mostly waits for the device."""

UNSEEN: Final = (".data", "set_(", "swap_tensors", "inference_mode", "BatchNorm")
"""Words of programs with writes that no `_version` tells of: an inference tensor has none, running statistics keep it."""

LATE: Final = "death:"
"""What is no difference on the stand-in: an operation written in Python that raises keeps its tensors for a while."""


def prove(place: Place) -> Iterator[Row]:
    """One row: every program agrees."""
    return rows(place, _checks(place))


def _checks(place: Place) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "records say what torch says", partial(_agree, place, 10 if place.small else 500)


def _agree(place: Place, count: int) -> str:
    jobs = 1 if place.small else min(MOST_PROCESSES, os.cpu_count() or 1)
    programs = [text for text in draw_programs(FIRST, 2 * count + 30) if not any(word in text for word in UNSEEN)][
        :count
    ]
    expect(len(programs) == count, f"only {len(programs)} programs were drawn")
    differ: dict[str, list[str]] = {}
    if not place.is_cuda:
        hold_device()
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=warmed_on, initargs=(place,)) as pool:
        for text, told in zip(programs, pool.map(differences_of, programs, chunksize=5), strict=True):
            found = told if place.is_cuda else [row for row in told if not row.startswith(LATE)]
            differ |= {text: found} if found else {}
        pool.shutdown()
    everywhere = {text for text in differ if found_in(text, "full")}
    for text in list(differ.keys() - everywhere)[:3]:
        print(text, *differ[text], sep="\n", flush=True)
    expect(len(differ) == len(everywhere), f"{len(differ) - len(everywhere)} of {count} programs differ on the device")
    return f"{count} programs" + (f"; {len(everywhere)} differ without a device as well" if everywhere else "")


def warmed_on(place: Place) -> None:
    """Make a process ready to record programs whose default device is this one."""
    if not place.is_cuda:
        hold_device()
    torch.set_default_device(place.device if place.is_cuda else held_device.NAME)
    warmed()


def differences_of(text: str) -> list[str]:
    """What a record at tier full says otherwise than torch."""
    return found_in(text, "full")
