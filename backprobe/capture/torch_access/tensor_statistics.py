"""Statistics of a gradient or a value: a tensor reduced to numbers.

No torch operation runs on the CPU for it: the compiled core reads the memory, or numpy does.
What lies on another device is reduced there: `device_values.py`.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

import msgspec
import numpy as np
import torch

from backprobe.capture.options import Caps
from backprobe.capture.torch_access.device_transfer import Values
from backprobe.capture.torch_access.native import native
from backprobe.capture.torch_access.tensor_memory import array
from backprobe.record import Statistics

_BLOCK: Final = 1 << 16
"""Elements that are converted to float64 at once: 512 KiB, which stays in a second-level cache."""


def _single(number: float) -> float:
    """Round a number to float32 as a record keeps it; beyond its range it is infinite."""
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def statistics(tensor: torch.Tensor, caps: Caps) -> Statistics | None:
    """Reduce a tensor to numbers; None where that is not defined."""
    if tensor.device.type != "cpu":
        return None  # `device_values` brings them
    if native is not None:
        return _row(native.statistics(tensor, caps.statistic_elements, caps.block_elements))
    view = array(tensor)
    if view is None or view.size == 0:
        return None
    kind = "exact"
    if view.size > caps.statistic_elements:
        view, kind = view.reshape(-1)[: caps.block_elements] if view.flags.c_contiguous else view[:1], "sampled"
    reduced = _reduce(view, tensor.dtype)
    total, low, high = reduced.sum, reduced.min, reduced.max
    if tensor.is_neg() and total is not None and low is not None and high is not None:
        reduced = msgspec.structs.replace(reduced, sum=-total, min=-high, max=-low)
    return reduced if kind == "exact" else msgspec.structs.replace(reduced, kind=kind)


def _row(numbers: Any) -> Statistics | None:
    """Convert what the compiled core found to a row."""
    if numbers is None:
        return None
    norm, total, low, high, nans, infs, zeros, counted, sampled = numbers
    kind = "sampled" if sampled else "exact"
    return Statistics(
        norm=norm, sum=total, min=low, max=high, nan=nans, inf=infs, zeros=zeros, counted=counted, kind=kind
    )


def of_elements(raw: bytes, dtype: torch.dtype) -> Statistics | None:
    """Compute the statistics of a few dozen elements from their bytes, faster than numpy can start."""
    code = _PYTHON.get(dtype)
    if code is None or not raw:
        return None
    view: Any = memoryview(raw)
    numbers: list[Any] = view.cast(code).tolist()
    finite = [number for number in numbers if -math.inf < number < math.inf]
    nans = sum(1 for number in numbers if number != number)
    total = float(sum(numbers))
    ordered = [number for number in numbers if number == number] or [math.nan]
    inexact = dtype.is_floating_point
    norm = math.nan if nans else math.inf if len(finite) < len(numbers) else math.hypot(*finite)
    return Statistics(
        norm=_single(norm) if inexact else None,
        sum=_single(total),
        min=_single(float(min(ordered))),
        max=_single(float(max(ordered))),
        nan=nans,
        inf=len(numbers) - nans - len(finite),
        zeros=sum(1 for number in numbers if number == 0),
        counted=len(numbers),
    )


_PYTHON: Final[dict[torch.dtype, str]] = {
    torch.float64: "d",
    torch.float32: "f",
    torch.int64: "q",
    torch.int32: "i",
    torch.int16: "h",
    torch.int8: "b",
    torch.uint8: "B",
    torch.bool: "?",
}


def _reduce(view: Any, dtype: torch.dtype) -> Statistics:
    """All statistics in blocks of float64, so that no square overflows and no count is lost."""
    flat = view.reshape(-1)
    squares = total = 0.0
    low, high = math.inf, -math.inf
    nans = infs = zeros = 0
    complex_ = flat.dtype.kind == "c"
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            if dtype is torch.bfloat16:
                block = (block.astype(np.uint32) << 16).view(np.float32)
            wide = np.abs(block.astype(np.complex128)) if complex_ else block.astype(np.float64)
            squares += float((wide * wide).sum())  # not `wide @ wide`: BLAS would start threads
            zeros += int(wide.size - np.count_nonzero(wide))
            partial = float(wide.sum())
            total += partial
            if not math.isfinite(partial):
                nans += int(np.isnan(wide).sum())
                infs += int(np.isinf(wide).sum())
            low, high = min(low, float(np.fmin.reduce(wide))), max(high, float(np.fmax.reduce(wide)))
    inexact = dtype.is_floating_point or dtype.is_complex
    if nans == flat.size:
        low = high = math.nan
    return Statistics(
        norm=_single(math.sqrt(squares)) if inexact else None,
        sum=None if complex_ else _single(total),
        min=None if complex_ else _single(low),
        max=None if complex_ else _single(high),
        nan=nans,
        inf=infs,
        zeros=zeros,
        counted=int(flat.size),
    )


def of_values(values: Values, caps: Caps) -> Statistics | None:
    """Compute the statistics of what came over from another device."""
    if values.numbers is None:
        if values.raw is not None:
            found = of_elements(values.raw, values.dtype)
            return found if found is not None or not values.raw else _of_rest(values.raw, values.dtype, caps)
        return _of_rest(values.rest, values.dtype, caps)
    norm, total, low, high, some, nans, odd = values.numbers
    counted = values.counted
    if values.rest:
        rest = _of_rest(values.rest, values.dtype, caps)
        if rest is None or rest.norm is None or rest.sum is None or rest.min is None or rest.max is None:
            return None
        norm = math.nan if nans or rest.nan else math.hypot(norm, rest.norm)
        total, low, high = total + rest.sum, min(low, rest.min), max(high, rest.max)
        some, nans, odd = some + rest.counted - rest.zeros, nans + rest.nan, odd + rest.nan + rest.inf
    return Statistics(
        norm=_single(norm),
        sum=_single(total),
        min=None if nans else _single(low),  # the device's least and greatest of what holds a NaN are NaN
        max=None if nans else _single(high),
        nan=int(nans),
        inf=int(odd - nans),
        zeros=counted - int(some),
        counted=counted,
    )


def _of_rest(raw: bytes, dtype: torch.dtype, caps: Caps) -> Statistics | None:
    return statistics(torch.frombuffer(bytearray(raw), dtype=dtype), caps) if raw else None
