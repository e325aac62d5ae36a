"""Numbers that are reduced on the device: those that a CPU's own reduction gives, and in how few bytes they come."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import torch

from backprobe.capture.options import Caps
from backprobe.capture.torch_access.device_reductions import PIECE
from backprobe.capture.torch_access.device_transfer import Values
from backprobe.capture.torch_access.device_values import DeviceValues
from backprobe.capture.torch_access.tensor_statistics import of_values, statistics
from backprobe.record import Statistics
from tests.gpu.place import Place, Row, expect, rows

DTYPES: Final = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
SIZES: Final = ((), (7,), (65,), (33, 129), (0, 3))


def prove(place: Place) -> Iterator[Row]:
    """One row for each dtype, for what is not finite, and for views of odd layouts."""
    return rows(place, _checks(place))


def _checks(place: Place) -> Iterator[tuple[str, Callable[[], str]]]:
    for dtype in DTYPES:
        yield f"numbers of {str(dtype)[6:]}", partial(_dtype, place, dtype)
    yield "NaN and infinities", partial(_odd, place)
    yield "views, turned and broadcast", partial(_views, place)
    yield "a tensor larger than one piece", partial(_large, place)


def brought(tensor: torch.Tensor) -> Statistics | None:
    """What the queue of the engine brings of a tensor."""
    found: list[Values] = []
    values = DeviceValues(Caps().elements, lambda *_: None)
    values.read(tensor, None, found.append)
    values.settle()
    expect(len(found) == 1, "nothing came")
    return of_values(found[0], Caps())


def compare(tensor: torch.Tensor) -> None:
    """The numbers of a tensor are what a CPU says of the same elements."""
    ours, theirs = brought(tensor), statistics(tensor.cpu(), Caps())
    if ours is None or theirs is None:
        expect(ours is None and (theirs is None or not tensor.numel()), f"{ours} beside {theirs}")
        return
    exact = ("nan", "inf", "zeros", "counted")
    for name in exact:
        expect(getattr(ours, name) == getattr(theirs, name), f"{name}: {ours} beside {theirs}")
    for name in ("norm", "sum", "min", "max"):
        first, other = getattr(ours, name), getattr(theirs, name)
        if first is None:
            expect(ours.nan > 0 and name in ("min", "max"), f"{name} is missing: {ours}")
            continue
        same = math.isnan(first) and math.isnan(other)
        expect(
            same or first == other or math.isclose(first, other, rel_tol=1e-5, abs_tol=1e-4), f"{ours} beside {theirs}"
        )


def _dtype(place: Place, dtype: torch.dtype) -> str:
    for size in SIZES:
        compare(torch.randn(size).to(dtype).to(place.device))
        compare(torch.zeros(size, dtype=dtype, device=place.device))
    compare((torch.randn(5000) * 1e4).to(dtype).to(place.device))
    return ""


def _odd(place: Place) -> str:
    for dtype, value, at in itertools.product(DTYPES, (math.nan, math.inf, -math.inf), (0, 4099)):
        tensor = torch.randn(5000).to(dtype)
        tensor[at] = value
        compare(tensor.to(place.device))
    compare(torch.full((300,), math.nan, device=place.device))
    return "exact counts; with a NaN no least and greatest"


def _views(place: Place) -> str:
    base = torch.randn(64, 96, device=place.device)
    for view in (base.t(), base[:, ::3], base[5], base.expand(3, 64, 96), base.view(8, 8, 96).permute(2, 0, 1)):
        compare(view)
    return ""


def _large(place: Place) -> str:
    many = PIECE + 12_345
    tensor = torch.ones(many, device=place.device)
    tensor[many - 1] = math.inf
    found = brought(tensor)
    expect(found is not None and (found.inf, found.nan, found.zeros, found.counted) == (1, 0, 0, many), f"{found}")
    return f"{many} elements"
