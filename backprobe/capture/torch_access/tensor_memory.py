"""Reads the elements of a tensor without running a torch operation.

On the CPU the memory is read in place: no dispatcher, no grad mode, no sequence number, nothing a profiler or a mode of
the user could see. What lies on another device is not read here.
"""

from __future__ import annotations

import ctypes
import math
from contextlib import suppress
from typing import Any, Final

import numpy as np
import torch

from backprobe.capture.torch_access.native import native
from backprobe.capture.torch_access.torch_internals import (
    EXACT,
    Untold,
    data_address,
    dispatch_modes,
    is_answered_by_user,
    is_functorch_wrapped,
    profiler_is_on,
    tracing_state,
    user_not_asked,
)

_SIGN_BITS: Final = {torch.bfloat16: 0x8000}
"""Of dtypes that numpy has not got."""

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


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype without "torch."."""
    return str(dtype)[6:]


def ordinary_dtypes() -> list[tuple[torch.dtype, str, int]]:
    """List the dtypes whose elements can be read in place, with names and bytes per element, for the compiled core."""
    return [(dtype, dtype_name(dtype), dtype.itemsize) for dtype in _NUMPY]


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


def is_ordinary(tensor: torch.Tensor) -> bool:
    """Return whether `special` has nothing to say of the tensor."""
    return (native is not None and native.is_told(tensor)) or special(tensor) is None


def array(tensor: torch.Tensor) -> Any:
    """View the memory of a CPU tensor as a numpy array in its shape; None if that is impossible.

    bfloat16 comes as uint16. The array must not outlive the tensor, nor be written.
    """
    if not is_answered_by_user(tensor):
        return _array(tensor)
    with user_not_asked(), suppress(Untold):
        return _array(tensor)
    return None


def _array(tensor: torch.Tensor) -> Any:
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


_DLPACK: Final = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


def memory(tensor: torch.Tensor) -> tuple[int, int, int, tuple[int, ...], tuple[int, ...]] | None:
    """Address, DLPack type code, bits, sizes and strides of a CPU tensor; None if it cannot be read in place.

    For the compiled core, where it may not ask torch itself: of a copy-on-write tensor, or a torch without the table.
    """
    view = array(tensor)
    if view is None:
        return None
    code = 4 if tensor.dtype is torch.bfloat16 else _DLPACK[view.dtype.kind]
    return data_address(tensor), code, 8 * tensor.element_size(), tuple(tensor.shape), tuple(tensor.stride())


if native is not None:
    native.use_facts(memory)


def elements(tensor: torch.Tensor, most: int) -> bytes | None:
    """Return at most `most` elements, contiguous and little-endian; None if the tensor is larger or unreadable."""
    if native is not None:
        found = native.elements(tensor, most)
        if found is not NotImplemented:
            return found
    if not is_answered_by_user(tensor):
        return _elements(tensor, most)
    with user_not_asked(), suppress(Untold):
        return _elements(tensor, most)
    return None


def _elements(tensor: torch.Tensor, most: int) -> bytes | None:
    if tensor.layout is not torch.strided or tensor.is_nested or is_functorch_wrapped(tensor):
        return None  # asked first: a sparse tensor raises where its strides or elements are asked for
    if tensor.numel() > most or (tensor.numel() == 0 and math.prod(max(size, 1) for size in tensor.shape) > most):
        return None
    if tensor.device.type != "cpu":
        return None  # reading them would wait for the device: `device_values` brings them with the next transfer
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg() and tensor.dtype in _NUMPY:
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
        if tensor.is_neg():
            bit = _SIGN_BITS.get(tensor.dtype)
            view = -view if bit is None else view ^ bit
    return view.tobytes()


def first_elements(tensor: torch.Tensor, most: int) -> bytes | None:
    """Return the first `most` elements of a contiguous tensor in the CPU's memory; None if it is not read that way."""
    if type(tensor) not in EXACT or is_answered_by_user(tensor) or is_functorch_wrapped(tensor):
        return None
    is_plain = tensor.layout is torch.strided and not tensor.is_nested and tensor.dtype in _NUMPY
    if not is_plain or tensor.device.type != "cpu" or not tensor.is_contiguous():
        return None
    size, address = min(tensor.numel(), most) * tensor.element_size(), data_address(tensor)
    return ctypes.string_at(address, size) if address and size else None


def is_watched() -> bool:
    """Return whether something would see an operation that Backprobe runs."""
    return bool(dispatch_modes() or profiler_is_on() or tracing_state() is not None)
