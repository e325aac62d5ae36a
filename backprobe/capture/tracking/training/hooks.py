"""The hooks that the program registers: on what, which callable, at which line, and when it took them off again.

1. A hook, its owner and its handle are looked at while they are handed over; none of them is kept, nor called.
"""

from __future__ import annotations

import dis
from functools import partial
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

import msgspec
import torch

from backprobe.capture.output.text import name
from backprobe.capture.torch_access.fence import OURS
from backprobe.capture.tracking.exceptions import short_path
from backprobe.record import Hook

if TYPE_CHECKING:
    from types import CodeType

    from backprobe.capture.recorder import CaptureSession

_MOST: Final = 20_000
_RETURNING: Final = ("tensor", "node", "module-backward", "module-backward-pre")
"""Kinds whose hooks change a gradient by what they return."""

_WRITING: Final = ("STORE_SUBSCR", "STORE_SLICE", "YIELD_VALUE")
_WRITTEN: Final = ("data", "grad", "real", "imag")
"""Attributes of a tensor whose assignment changes it."""

_READING: Final = frozenset({
    "abs", "add", "add_histogram", "add_scalar", "all", "allclose", "any", "append", "argmax", "bool", "cat", "clone",
    "count_nonzero", "cpu", "debug", "detach", "dict", "dim", "div", "dot", "double", "equal", "extend", "flatten",
    "float", "format", "get", "hasattr", "info", "insert", "int", "isfinite", "isinf", "isinstance", "isnan", "item",
    "items", "join", "keys", "len", "list", "log", "max", "mean", "median", "min", "mul", "nelement", "norm", "numel",
    "ones_like", "perf_counter", "pow", "print", "quantile", "range", "repr", "round", "setdefault", "sign", "size",
    "sqrt", "square", "squeeze", "stack", "std", "str", "sub", "sum", "time", "to", "tolist", "tuple", "type",
    "unsqueeze", "update", "values", "var", "vector_norm", "view", "warn", "warning", "zeros_like", "zip",
})  # fmt: skip
"""Functions and methods that leave a tensor that they are given as it is."""

_TAPS: Final = "__bp_"
"""How the names of the calls begin that stand in a program's code while it is watched."""

_UNWRAPPED: Final = 4
"""Partials and bound methods around a function that are looked through."""


class UserHooks:
    """Writes down hooks as they are registered and removed."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._rows: dict[int, Hook] = {}
        self._next = 0
        self._reading = set[int]()

    @property
    def any(self) -> bool:
        """A hook was registered."""
        return self._next > 0

    def standing(self) -> list[Hook]:
        """Those that were not taken off."""
        return list(self._rows.values())

    def changing(self) -> list[Hook]:
        """Those of them that may give another gradient than they get."""
        return [row for row in self._rows.values() if row.hook not in self._reading]

    def record_registration(self, kind: Any, owner: Any, hook: Any, handle: Any, caller: FrameType | None) -> None:
        """Record that a hook was passed to torch; `caller` called the function that registers it."""
        recorder = self._recorder
        code = _code_of(hook)
        by_user = caller is not None and recorder.sites.is_user_file(caller.f_code.co_filename)
        if code is not None and code.co_filename.startswith(OURS):
            return
        if not by_user and (code is None or not recorder.sites.is_user_file(code.co_filename)):
            return  # torch's own, of a parametrization or a checkpoint
        recorder.states.hooked = True
        if self._next >= _MOST:
            recorder.writer.cut("hooks", "more hooks than are kept", _MOST)
            return
        site = recorder.calling_site()
        recorder.moments.statement(site)
        known = recorder.see(owner, site) if isinstance(owner, torch.Tensor) else None
        row = Hook(
            hook=self._next, kind=kind, callable=_label(hook, code, owner if kind == "saved-tensors" else None),
            tensor=None if known is None else known.number,
            module=recorder.modules.number_of(owner) if isinstance(owner, torch.nn.Module) else None,
            optimizer=recorder.optimizers.number_of(owner) if kind == "optimizer" else None,
            path=None if code is None else short_path(code.co_filename, recorder.sites.folder),
            line=None if code is None else max(code.co_firstlineno, 1),
            callable_site=self._definition(code), site=site, moment=recorder.moments.now(),
            removable=None if kind == "saved-tensors" else handle is not None,
        )  # fmt: skip
        if kind in _RETURNING and code is not None and _reads_only(code):
            self._reading.add(self._next)
        self._next += 1
        recorder.writer.add("hooks", row)
        self._rows[_key(owner if kind == "saved-tensors" else handle)] = row

    def record_removal(self, handle: Any) -> None:
        """Record that a handle removed its hook, or a region with hooks for saved tensors ended."""
        row = self._rows.pop(_key(handle), None)
        if row is not None:
            recorder = self._recorder
            recorder.writer.add("hooks", msgspec.structs.replace(row, removed=recorder.moments.now()))

    def _definition(self, code: CodeType | None) -> int | None:
        """Return the site of a callable's definition: of its first line."""
        sites = self._recorder.sites
        if code is None or not sites.is_user_file(code.co_filename):
            return None
        return sites.at_line(code.co_filename, code.co_firstlineno)


def _key(handle: Any) -> int:
    """Return what distinguishes registrations: torch numbers its handles; of a region it is the object."""
    number = getattr(handle, "id", None) if type(handle).__name__ == "RemovableHandle" else None
    return number if isinstance(number, int) else -id(handle)


def _code_of(hook: Any) -> CodeType | None:
    """Return the code that runs when a hook is called, through partials and bound methods; None if not Python's."""
    for _ in range(_UNWRAPPED):
        kind = type(hook)
        if kind is FunctionType:
            return hook.__code__
        if kind is partial:
            hook = hook.func
        elif kind is MethodType:
            hook = hook.__func__
        else:
            hook = next((cls.__dict__["__call__"] for cls in kind.__mro__ if "__call__" in cls.__dict__), None)
    return None


def _reads_only(code: CodeType) -> bool:
    """Return whether code returns only None, writes nothing in place, and calls only what is known to read."""
    before: Any = None
    for instruction in dis.get_instructions(code):
        returns = instruction.opname == "RETURN_VALUE" and not (before.opname == "LOAD_CONST" and before.argval is None)
        if returns or (instruction.opname == "RETURN_CONST" and instruction.argval is not None) or _writes(instruction):
            return False
        before = instruction
    given = {name for names in code.co_consts if isinstance(names, tuple) for name in names if isinstance(name, str)}
    return "out" not in given and not any(
        co_name.endswith("_") and not co_name.endswith("__") for co_name in code.co_names
    )


def _writes(instruction: dis.Instruction) -> bool:
    """Return whether an instruction may write in place: `*=`, an element or data of a tensor, an unknown function."""
    if instruction.opname == "BINARY_OP":
        return instruction.argrepr.endswith("=")
    if instruction.opname == "STORE_ATTR":
        return instruction.argval in _WRITTEN
    if instruction.opname == "LOAD_METHOD" or (
        instruction.opname.startswith("LOAD_") and "NULL" in instruction.argrepr
    ):
        return instruction.argval not in _READING and not instruction.argval.startswith(
            _TAPS
        )  # what stands by a NULL is called
    return (
        instruction.opname in _WRITING or instruction.opname == "PUSH_NULL"
    )  # the latter: a name of a scope around it is called


def _label(hook: Any, code: CodeType | None, region: Any) -> str:
    """Return what a person would call the callable."""
    if code is not None:
        return name(code.co_qualname)
    if region is not None:
        return name(type(region).__qualname__)
    if type(hook) is BuiltinFunctionType:
        return name(hook.__qualname__)
    return name(type(hook).__qualname__)
