"""Lets `torch.compile` look through the taps: a compiled function has as many frames and graphs as without them.

Registering imports `torch._dynamo`, which takes most of a second; so it waits until the program imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from backprobe.capture.instrument import taps, torch_taps
from backprobe.capture.program.importer import after_import
from backprobe.capture.torch_access.fence import Guard

_DYNAMO: Final = "torch._dynamo"
_registered: list[bool] = []


class Watcher(MetaPathFinder):
    """Registers the taps as soon as `torch._dynamo` was imported."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find `torch._dynamo` with a loader that registers the taps at its end; None for every other module."""
        if fullname != _DYNAMO:
            return None
        return after_import(fullname, path, target, lambda _: register(self._guard))

    def __enter__(self) -> None:
        if _DYNAMO in sys.modules:
            register(self._guard)
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def register(guard: Guard) -> None:
    """Tell dynamo what each tap means inside a compiled function: nothing, or the value it was given."""
    if _registered:
        return
    _registered.append(True)
    try:
        from torch._dynamo import substitute_in_graph, trace_rules

        # under `torch.compile(module)` dynamo looks at each frame below torch's own, ours among them: it would compile
        # the taps that torch's `_wrapped_call_impl` calls, warn about them, and refuse `fullgraph=True`
        trace_rules.add("backprobe.capture")
        for original, substitute in _SUBSTITUTES:
            # these it must look into: a file name with "<" is never skipped
            substitute.__code__ = substitute.__code__.replace(co_filename="<backprobe>")
            substitute_in_graph(original, skip_signature_check=True)(substitute)
    except Exception as error:
        guard.note(error)


def _ignore(_site: int, *_values: Any) -> None:
    return None


def _loop_left(_site: int) -> None:
    return None


def _value(_site: int, given: Any, *_containers: Any) -> Any:
    return given


def _passing(_site: int, given: Any) -> Any:
    return given


def _nothing() -> None:
    return None


def _module(_module: Any) -> None:
    return None


def _return_given(_module: Any, given: Any) -> Any:
    return given


def _ignore_call(*_: Any) -> None:
    return None


def _pass_through(given: Any) -> Any:
    return given


def _second(_: Any, given: Any) -> Any:
    return given


def _handle(_kind: str, _owner: Any, _hook: Any, handle: Any = None) -> Any:
    return handle


_SUBSTITUTES: Final[tuple[tuple[Any, Any], ...]] = (
    (taps.NAMES["__bp_after__"], _ignore),
    (taps.NAMES["__bp_top__"], _ignore),
    (taps.NAMES["__bp_loop_left__"], _loop_left),
    (taps.NAMES["__bp_enter__"], _ignore),
    (taps.NAMES["__bp_value__"], _value),
    (taps.NAMES["__bp_pass__"], _passing),
    (taps.NAMES["__bp_op__"], _passing),
    (taps.NAMES["__bp_base__"], _passing),
    (taps.NAMES["__bp_grad__"], _passing),
    (taps.NAMES["__bp_loop__"], _nothing),
    (taps.NAMES["__bp_caught__"], _nothing),
    (taps.NAMES["__bp_module__"], _module),
    (taps.NAMES["__bp_module_left__"], _nothing),
    (taps.NAMES["__bp_module_returned__"], _return_given),
    (taps.NAMES["__bp_nothing__"], _nothing),
    (torch_taps.record_suppression, _second),
    (torch_taps.mode_entered, _ignore_call),
    (torch_taps.mode_left, _ignore_call),
    (torch_taps.record_hook, _handle),
    (torch_taps.record_hook_removal, _ignore_call),
    (torch_taps.event_begins, _ignore_call),
    (torch_taps.event_ended, _ignore_call),
    (torch_taps.event_gave, _second),
    (torch_taps.call_begins, _ignore_call),
    (torch_taps.call_gave, _pass_through),
    (torch_taps.call_left, _nothing),
)
