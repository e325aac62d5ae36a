"""A device in Python, for tests where no GPU is: tensors that are not on the CPU, and a count of what is asked of it.

Its memory is the CPU's, hidden behind torch's dispatch key for backends of others: every operation is carried out on
the hidden memory and counted by name, and so is every copy between the device and the CPU. A count of
`_local_scalar_dense` or of copies to the CPU is a count of the times that a program would wait for a real device.

Registered once per process, under the name `held`; call `register()` first.
"""

from __future__ import annotations

import collections
import ctypes
from typing import Any, Final

import torch
from torch.utils._pytree import tree_map

NAME: Final = "held"
TO_CPU: Final = "copy to the CPU"
READ: Final = "aten::_local_scalar_dense"

counts: Final[collections.Counter[str]] = collections.Counter()
"""Operations since the last `counts.clear()`."""

_C: Final[Any] = torch._C
_memory: Final[dict[int, Any]] = {}
_libraries: Final[list[Any]] = []
_failures: Final[list[type[Exception]]] = []


def waits() -> int:
    """Times that a program would have waited for the device since the counts were cleared."""
    return counts[TO_CPU] + counts[READ]


def fail_copies(kind: type[Exception] | None) -> None:
    """From now on a copy to the CPU raises; None: it works again."""
    _failures[:] = [] if kind is None else [kind]


def register() -> None:
    """Make the device known to torch; once in a process.

    Raises:
        ImportError: this torch has no way to write a device in Python.
    """
    if _libraries:
        return
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend as set_up

    set_up(NAME)
    every: Any = torch.library.Library("_", "IMPL")
    every.fallback(_carried_out, "PrivateUse1")
    own: Any = torch.library.Library("aten", "IMPL")
    own.impl("_copy_from", _copied, "PrivateUse1")
    own.impl("empty.memory_format", _empty, "PrivateUse1")
    own.impl("empty_strided", _empty_strided, "PrivateUse1")
    _libraries.extend((every, own))


def _is_held(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def _make_tensor(hidden: torch.Tensor) -> torch.Tensor:
    """A tensor of the device over memory of the CPU."""
    from backprobe.capture.torch_access.torch_internals import _BYTES_AT

    assert _BYTES_AT is not None
    storage = hidden.untyped_storage()
    whole = _C._acc.create_empty_tensor((storage.nbytes() // hidden.element_size(),), hidden.dtype)
    address = _C._storage_address(whole)
    ctypes.c_int64.from_address(address + _BYTES_AT).value = storage.nbytes()  # it is made with none
    _memory[address] = storage
    return _placed(whole, hidden)


def _placed(base: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A view of the device's memory, as `like` is one of the hidden memory."""
    cpu = _C.DispatchKeySet(_C.DispatchKey.CPU)
    place = (like.size(), like.stride(), like.storage_offset())
    return torch.ops.aten.as_strided.default.redispatch(cpu, base, *place)


def hidden(tensor: torch.Tensor) -> torch.Tensor:
    """The memory behind a tensor of the device."""
    found = torch.empty(0, dtype=tensor.dtype, device="cpu")
    storage = _memory[_C._storage_address(tensor)]
    return found.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())


def _carried_out(operation: Any, *args: Any, **kwargs: Any) -> Any:
    counts[operation.name().split(".")[0]] += 1
    known: dict[int, torch.Tensor] = {}
    kept: list[torch.Tensor] = []

    def uncover(value: Any) -> Any:
        if _is_held(value):
            found = hidden(value)
            kept.append(found)
            known[id(found)] = known[found.untyped_storage()._cdata] = value
            return found
        return torch.device("cpu") if isinstance(value, torch.device) else value

    def cover(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or id(value) in known:
            return known.get(id(value), value)
        base = known.get(value.untyped_storage()._cdata)
        if base is not None and base.dtype is value.dtype:
            return _placed(base, value)
        return _make_tensor(value.clone() if base is not None else value)

    done = operation(*tree_map(uncover, args), **tree_map(uncover, kwargs))
    for found in kept:
        _follow(known[id(found)], found)
    return tree_map(cover, done)


def _follow(tensor: torch.Tensor, its_memory: torch.Tensor) -> None:
    """Take over the shape that an operation gave the hidden memory, as `resize_` does."""
    if (tensor.size(), tensor.stride()) != (its_memory.size(), its_memory.stride()):
        cpu = _C.DispatchKeySet(_C.DispatchKey.CPU)
        place = (its_memory.size(), its_memory.stride(), its_memory.storage_offset())
        torch.ops.aten.as_strided_.default.redispatch(cpu, tensor, *place)


def _copied(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    counts[TO_CPU if _is_held(source) and not _is_held(target) else "copy to the device"] += 1
    if _failures and not _is_held(target):
        raise _failures[0]("the device does not answer")
    there = hidden(target) if _is_held(target) else target
    there.copy_(hidden(source) if _is_held(source) else source)
    return target


def _empty(size: Any, dtype: Any = None, memory_format: Any = None, **_: Any) -> torch.Tensor:
    made = torch.empty(size, dtype=dtype or torch.get_default_dtype(), device="cpu")
    return _make_tensor(made if memory_format is None else made.contiguous(memory_format=memory_format))


def _empty_strided(size: Any, stride: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
    return _make_tensor(torch.empty_strided(size, stride, dtype=dtype or torch.get_default_dtype(), device="cpu"))
