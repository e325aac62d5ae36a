"""Generated programs whose tensors lie on the device, each recorded and compared with what torch itself says.

Their text names no device: it is the default one while they run. On another device than the CPU the engine sees no
change that raises no `_version` (a write through `.data`), and says so in `docs/gpu.md`; such programs are left out.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import torch

from tests.gpu.place import Place, Row, expect, rows
from tests.oracle.campaign import drawn, found_in, warmed

FIRST: Final = 4200
"""Seed of the programs, so that they are not those of `make oracle`."""

UNSEEN: Final = (".data", "set_(")
"""Writes that no `_version` tells of."""


def prove(place: Place) -> Iterator[Row]:
    """One row: every program agrees."""
    return rows(place, _checks(place))


def _checks(place: Place) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "records say what torch says", partial(_agree, place, 10 if place.small else 500)


def _agree(place: Place, count: int) -> str:
    programs = [text for text in drawn(FIRST, 2 * count + 30) if not any(word in text for word in UNSEEN)][:count]
    torch.set_default_device(place.device)
    try:
        warmed()
        differ = {text: found for text in programs if (found := found_in(text, "full"))}
    finally:
        torch.set_default_device(None)
        gc.unfreeze()
        gc.collect()
    expect(len(programs) == count, f"only {len(programs)} programs were drawn")
    everywhere = {text for text in differ if found_in(text, "full")}
    for text in list(differ.keys() - everywhere)[:3]:
        print(text, *differ[text], sep="\n", flush=True)
    expect(len(differ) == len(everywhere), f"{len(differ) - len(everywhere)} of {count} programs differ on the device")
    return f"{count} programs" + (f"; {len(everywhere)} differ without a device as well" if everywhere else "")
