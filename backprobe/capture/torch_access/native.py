"""Which core serves: the compiled one, or its Python twin; decided once, when this module is imported.

The variable BACKPROBE_CORE decides it: "c" (an error if that cannot be), "python", or unset for the compiled one if
there is one that loads and passes its self-test.
"""

from __future__ import annotations

import importlib
import os
import struct
import sysconfig
from typing import Any, Final, Literal, TypeVar

import msgspec
import torch

from backprobe.capture.torch_access import native_layout
from backprobe.record import TABLES

_VARIABLE: Final = "BACKPROBE_CORE"
_API: Final = 4
"""Raised with every change of what the compiled core and the Python files ask of each other."""

_T = TypeVar("_T")


def _load() -> tuple[Any, str]:
    """Load the compiled core; otherwise return None and why the twin is used."""
    asked = os.environ.get(_VARIABLE, "")
    if asked not in ("", "c", "python"):
        raise ImportError(f'{_VARIABLE} is {asked!r}; it may be "c" or "python"')
    if asked == "python":
        return None, f"{_VARIABLE}=python"
    module, why = _load_core()
    if module is None and asked == "c":
        raise ImportError(f"{_VARIABLE}=c, but {why}; `make core` builds it")
    return module, why


def _load_core() -> tuple[Any, str]:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None, "the compiled core needs an interpreter with a global lock, and this one is free-threaded"
    try:
        module: Any = importlib.import_module("backprobe.capture._core")
    except ImportError as error:
        return None, f"no compiled core: {error}"
    if module.API != _API:
        return None, f"the compiled core is of another version ({module.API}, not {_API})"
    unlike = _unlike(module)
    if unlike:
        return None, f"the compiled core writes rows of other fields than the record has: {unlike}"
    try:
        wrong = _self_test(module)
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    if wrong:
        return None, f"the compiled core failed its test of itself: {wrong}"
    return module, ""


def _self_test(module: Any) -> str:
    """Return what the module reads wrong of a known tensor, "" if nothing; no operation makes the tensor."""
    numbers = [0.5] * 598 + [0.0, -3.0]
    raw = struct.pack("<600f", *numbers)
    tensor = torch.frombuffer(bytearray(raw), dtype=torch.float32)
    if module.elements(tensor, 600) != raw:
        return "elements"
    norm, *rest = module.statistics(tensor, 1 << 20, 1 << 20)
    if abs(norm - 158.5**0.5) > 1e-4 or rest != [296.0, -3.0, 0.5, 0, 0, 1, 600, False]:
        return "statistics"
    return ""


def _unlike(module: Any) -> str:
    """List the tables whose rows the core would write with other fields than the record has; "" if there are none.

    The record may have more fields behind them, if they can be left out.
    """
    found: list[str] = []
    for table, names in module.ROW_FIELDS.items():
        fields = msgspec.structs.fields(TABLES[table])
        known, more = fields[: len(names)], fields[len(names) :]
        if [field.name for field in known] != names or any(field.required for field in more):
            found.append(table)
    return ", ".join(found)


native, reason = _load()
"""The extension module, None where the twin serves; and why it does, "" where it does not."""

unknown_layout: Final = "no compiled core" if native is None else native_layout.learn(native)
"""What the compiled core could not find in torch's memory, and so asks torch for; "" if it found all."""

kind: Final[Literal["c", "python"]] = "python" if native is None else "c"


def choose_class(twin: type[_T]) -> type[_T]:
    """Return the compiled class of the same name, if the core is used and has one; else the twin itself."""
    return twin if native is None else getattr(native, twin.__name__, twin)


def chosen_beside(peer: str, twin: type[_T]) -> type[_T]:
    """Return the compiled class of the same name if `peer`, which it reads in C, is compiled too."""
    return choose_class(twin) if hasattr(native, peer) else twin
