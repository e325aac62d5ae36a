"""Reads the elements and the statistics of a tensor without running a torch operation.

On the CPU the memory is read in place: no dispatcher, no grad mode, no sequence number, nothing a profiler or a mode of
the user could see. On another device the reduction runs there, and is skipped while anybody watches operations.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, Final

import numpy as np
import torch

from backprobe.capture.options import Caps
from backprobe.capture.private import (
    below_autograd,
    data_address,
    dispatch_modes,
    is_functorch_wrapped,
    profiler_is_on,
    tracing_state,
)
from backprobe.record import Statistics

_NUMPY: Final[dict[torch.dtype, str]] = {
    torch.float64: "<f8",
    torch.float32: "<f4",
    torch.float16: "<f2",
    torch.bfloat16: "<u2",
    torch.int64: "<i8",
    torch.int32: "<i4",
    torch.int16: "<i2",
    torch.int8: "<i1",
    torch.uint8: "<u1",
    torch.uint16: "<u2",
    torch.uint32: "<u4",
    torch.uint64: "<u8",
    torch.bool: "?",
    torch.complex64: "<c8",
    torch.complex128: "<c16",
}
_BLOCK: Final = 1 << 16
"""Elements that are converted to float64 at once: 512 KiB, which stays in a second-level cache."""



def dtype_name(dtype: torch.dtype) -> str:
    """torch's name without "torch."."""
    return str(dtype)[6:]


def special(tensor: torch.Tensor) -> str | None:
    """Why a tensor's elements cannot be read in place; None for an ordinary one."""
    if is_functorch_wrapped(tensor):
        return "functorch"
    if tensor.is_nested:
        return "nested"
    if tensor.layout is not torch.strided:
        return str(tensor.layout)[6:].replace("_", "-")
    if tensor.is_quantized:
        return "quantised"
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter and kind.__module__.startswith("torch._subclasses"):
        return "fake"
    if tensor.device.type == "meta":
        return "meta"
    if tensor.dtype not in _NUMPY:
        return dtype_name(tensor.dtype)
    if tensor.is_inference():
        return "inference"
    return None


def array(tensor: torch.Tensor) -> Any:
    """A view of the memory of a CPU tensor as a numpy array in its shape; None if it cannot be had.

    bfloat16 comes as uint16. The array must not outlive the tensor, nor be written.
    """
    code = _NUMPY.get(tensor.dtype)
    if code is None or tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_nested:
        return None
    if is_functorch_wrapped(tensor):
        return None
    shape, item = tuple(tensor.shape), tensor.element_size()
    if 0 in shape:
        return np.empty(shape, code)
    address = data_address(tensor)
    if not address:
        return None
    strides = tensor.stride()
    extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    memory: Any = (ctypes.c_char * (extent * item)).from_address(address)
    return np.ndarray(shape, code, memory, 0, tuple(stride * item for stride in strides))


def elements(tensor: torch.Tensor, most: int) -> bytes | None:
    """The elements of a tensor of at most `most`, contiguous and little-endian; None if larger or not readable."""
    if tensor.numel() > most or (tensor.numel() == 0 and math.prod(max(size, 1) for size in tensor.shape) > most):
        return None
    if tensor.device.type != "cpu":
        copy = _brought_over(tensor)
        return None if copy is None else elements(copy, most)
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg() and tensor.dtype in _NUMPY:
        if tensor.layout is not torch.strided or is_functorch_wrapped(tensor) or tensor.is_nested:
            return None
        size = tensor.numel() * tensor.element_size()
        if not size:
            return b""
        address = data_address(tensor)
        return ctypes.string_at(address, size) if address else None
    view = array(tensor)
    if view is None:
        return None
    if tensor.is_neg() or tensor.is_conj():
        view = np.conj(view) if tensor.is_conj() else view
        view = -view if tensor.is_neg() else view
    return view.tobytes()


def statistics(tensor: torch.Tensor, caps: Caps) -> Statistics | None:
    """A tensor reduced to numbers; None where that is not defined."""
    if tensor.device.type != "cpu":
        return _on_device(tensor)
    view = array(tensor)
    if view is None or view.size == 0:
        return None
    kind = "exact"
    if view.size > caps.statistic_elements:
        view, kind = view.reshape(-1)[: caps.block_elements] if view.flags.c_contiguous else view[:1], "sampled"
    reduced = _reduce(view, tensor.dtype)
    if tensor.is_neg() and reduced.sum is not None:
        low, high = reduced.min or 0.0, reduced.max or 0.0
        return Statistics(
            norm=reduced.norm, sum=-reduced.sum, min=-high, max=-low, nan=reduced.nan, inf=reduced.inf,
            zeros=reduced.zeros, counted=reduced.counted, kind=kind,
        )  # fmt: skip
    return reduced if kind == "exact" else Statistics(**{f: getattr(reduced, f) for f in _FIELDS}, kind=kind)


_FIELDS: Final = ("norm", "sum", "min", "max", "nan", "inf", "zeros", "counted")


def of_elements(raw: bytes, dtype: torch.dtype) -> Statistics | None:
    """The statistics of at most a few dozen elements from their bytes: a tenth of what numpy needs to start."""
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
        norm=norm if inexact else None,
        sum=total,
        min=float(min(ordered)),
        max=float(max(ordered)),
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
        norm=math.sqrt(squares) if inexact and not math.isnan(squares) else (math.nan if inexact else None),
        sum=None if complex_ else total,
        min=None if complex_ else low,
        max=None if complex_ else high,
        nan=nans,
        inf=infs,
        zeros=zeros,
        counted=int(flat.size),
    )


def _watched() -> bool:
    """Somebody would see an operation of ours."""
    return bool(dispatch_modes() or profiler_is_on() or tracing_state() is not None)


def _brought_over(tensor: torch.Tensor) -> torch.Tensor | None:
    """A small tensor of another device on the CPU; None while operations are watched."""
    if _watched() or special(tensor) is not None:
        return None
    with below_autograd():
        return tensor.cpu()


def _on_device(tensor: torch.Tensor) -> Statistics | None:
    """Statistics of a tensor of another device: reduced there, one transfer."""
    if _watched() or special(tensor) is not None or not tensor.is_floating_point() or tensor.numel() == 0:
        return None
    with below_autograd():
        wide = tensor if tensor.dtype is torch.float64 else tensor.float()
        low, high = torch.aminmax(wide)
        parts = (torch.linalg.vector_norm(wide), wide.sum(), low, high, wide.isnan().sum(), wide.isinf().sum(), (wide == 0).sum())
        norm, total, least, most, nans, infs, zeros = torch.stack([part.double() for part in parts]).tolist()
    return Statistics(
        norm=norm, sum=total, min=least, max=most, nan=int(nans), inf=int(infs), zeros=int(zeros), counted=tensor.numel()
    )
