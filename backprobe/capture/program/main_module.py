"""The `__main__` of a program, and its code: of a script, of a module, of a folder or an archive that holds one."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

from backprobe.capture.program.importer import Compiler


def absolute(path: str) -> str:
    """Make a path absolute as Python does for a script's `__file__`: `..` stays, for the sake of links."""
    return path if os.path.isabs(path) else f"{os.getcwd()}/{path}"


def main_module(filename: str, *, in_memory: bool) -> ModuleType:
    """Make a fresh `__main__`, with the names that a script's has."""
    main = ModuleType("__main__")
    loader: Any = None if in_memory else SourceFileLoader("__main__", filename)
    main.__dict__.update(
        __annotations__={}, __builtins__=builtins, __cached__=None, __file__=filename, __loader__=loader,
        __package__=None, __spec__=None,
    )  # fmt: skip
    return main


def module_code(module: str, main: ModuleType) -> CodeType:
    """Compile a module that is run as the program; `__main__` learns where it comes from.

    Raises:
        ImportError: as `python -m` says that there is no such module.
    """
    import runpy

    _, spec, code = runpy._get_module_details(module)  # type: ignore[attr-defined]  # what `python -m` calls
    _come_from(main, spec)
    sys.argv[0] = spec.origin
    return code


def main_code(main: ModuleType, compiler: Compiler) -> CodeType:
    """Compile the `__main__` in the folder or archive at the head of `sys.path`.

    Raises:
        ImportError: there is none.
    """
    import runpy

    _, spec, code = runpy._get_main_module_details()  # type: ignore[attr-defined]  # what `python folder` calls
    _come_from(main, spec)
    if isinstance(spec.loader, SourceFileLoader):
        return code  # from our finder, tapped
    text = spec.loader.get_source("__main__")
    return code if text is None else compiler(text.encode(), spec.origin, "__main__.py")


def _come_from(main: ModuleType, spec: ModuleSpec) -> None:
    main.__dict__.update(
        __cached__=spec.cached, __file__=spec.origin, __loader__=spec.loader, __package__=spec.parent, __spec__=spec
    )


@contextmanager
def as_program(main: ModuleType, argv: Sequence[str], path0: str | None) -> Iterator[None]:
    """`sys` as the program expects it; the interpreter's own state afterwards.

    Args:
        path0: The head of `sys.path`; None: it has none of the program's.
    """
    before, path, old = sys.argv, list(sys.path), sys.modules.get("__main__")
    limit = sys.getrecursionlimit()
    sys.argv = list(argv)
    ours = 0 if sys.flags.safe_path else 1
    sys.path[0:ours] = [] if path0 is None else [path0]
    sys.modules["__main__"] = main
    # the program's own frames get the depth that they have under `python path`
    sys.setrecursionlimit(limit + _depth() + TAP_FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        sys.argv, sys.path[:] = before, path
        if old is not None:
            sys.modules["__main__"] = old


TAP_FRAMES: Final = 3
"""Frames of a tap until it sees that there is no room: without them a program at its limit would stop in a tap."""


def _depth() -> int:
    frame, depth = sys._getframe(1), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment] the loop ends at None
    return depth
