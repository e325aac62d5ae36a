"""Functions that are pickled by value travel as they stand in the user's file: another process has no taps.

cloudpickle, and the copies of it that joblib, ray and pyspark carry, pickle a function's code. While a run is captured
their reducer for code objects is handed the code that plain compilation gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any, Final

from backprobe.capture.program.importer import after_import
from backprobe.capture.torch_access.fence import Guard

_PICKLERS: Final = (
    "cloudpickle.cloudpickle",
    "joblib.externals.cloudpickle.cloudpickle",
    "ray.cloudpickle.cloudpickle",
    "pyspark.cloudpickle.cloudpickle",
)
_TAP: Final = "__bp_"


class PlainCodes:
    """The plain code of every file that was tapped, compiled when it is asked for."""

    def __init__(self) -> None:
        self._sources: dict[str, bytes] = {}
        self._codes: dict[str, list[CodeType]] = {}

    def add(self, filename: str, data: bytes) -> None:
        """Remember what a file was compiled from."""
        self._sources[filename] = data
        self._codes.pop(filename, None)

    def plain_code(self, code: CodeType) -> CodeType:
        """Find the code object that plain compilation gives for the same definition; itself if it carries no tap."""
        if code.co_filename not in self._sources or not _has_taps(code):
            return code
        if code.co_filename not in self._codes:
            plain = compile(self._sources[code.co_filename], code.co_filename, "exec", dont_inherit=True)
            self._codes[code.co_filename] = list(_all(plain))
        wanted = _key(code)
        return next((found for found in self._codes[code.co_filename] if _key(found) == wanted), code)


def _key(code: CodeType) -> tuple[Any, ...]:
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return code.co_qualname, code.co_firstlineno, names, frozenset(code.co_freevars)


def _has_taps(code: CodeType) -> bool:
    return any(name.startswith(_TAP) for part in _all(code) for name in part.co_names)


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all(constant)


class Picklers(MetaPathFinder):
    """Gives the picklers the plain code, those that are imported already and those that will be."""

    def __init__(self, codes: PlainCodes, guard: Guard) -> None:
        self._codes, self._guard = codes, guard
        self._old: list[tuple[dict[Any, Any], Any]] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a pickler, whose table is changed as soon as it exists; None for every other module."""
        return after_import(fullname, path, target, self._put) if fullname in _PICKLERS else None

    def __enter__(self) -> None:
        for name in _PICKLERS:
            if name in sys.modules:
                self._put(sys.modules[name])
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for table, reducer in self._old:
            table[CodeType] = reducer
        self._old.clear()

    def _put(self, module: ModuleType) -> None:
        table = getattr(getattr(module, "Pickler", None), "_dispatch_table", {})
        reducer: Callable[[CodeType], Any] | None = table.get(CodeType)
        if reducer is None:
            return
        codes, guard = self._codes, self._guard

        def reduce_code(code: CodeType) -> Any:
            return reducer(guard.run(codes.plain_code, code) or code)

        self._old.append((table, reducer))
        table[CodeType] = reduce_code
