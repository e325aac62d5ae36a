"""Functions that are loaded already carry taps for the length of one capture, then have their own code again.

    model.py, imported long ago:  class Net: def forward(self, x): ...
    while captured:               Net.forward.__code__ is that of model.py compiled with taps; the object is the same

A function is found again in its file by qualified name and first line. One that is not there as it was loaded (another
decorator made it, its file has changed) keeps its code, and is seen only where it calls torch.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from backprobe.capture.recorder import CaptureSession
from backprobe.capture.rewriting.rewriter import Rewriter

Rewriting = Callable[[ast.Module, bytes], None]
"""Rewrites the `assert` statements of a tree in place; the bytes are its source."""

Asserts = Callable[[Mapping[str, Any]], Rewriting | None]
"""What was done to the `assert` statements of a module when it was loaded, by its names; None: nothing."""


class TappedFunctions:
    """The functions of a project, tapped until `undo`.

    Args:
        recorder: Whose taps they carry.
        folder: Files below it are the project's; those in site-packages are not.
        asserts: Who rewrote the `assert` statements of the project's files; None: nobody.
    """

    def __init__(self, recorder: CaptureSession, folder: Path, asserts: Asserts | None = None) -> None:
        self._recorder, self._folder, self._asserts = recorder, folder, asserts
        self._old: list[tuple[FunctionType, CodeType]] = []
        self._done: set[str] = set()

    def put(self, roots: Iterable[Any]) -> None:
        """Tap the functions among `roots`, and those of the project that their modules name, and so on."""
        waiting = [function for root in roots if (function := _function_of(root)) is not None]
        while waiting:
            function = waiting.pop()
            filename = function.__code__.co_filename
            if filename in self._done or not self._is_projects(filename):
                continue
            self._done.add(filename)
            module = sys.modules.get(function.__module__)
            names = vars(module) if module is not None else function.__globals__
            rewriting = None if self._asserts is None else self._asserts(names)
            named = _functions(names.values(), names.get("__name__"))
            self._tap(filename, rewriting, [*named, *_same_file(waiting, function)])
            waiting += [other for value in list(names.values()) for other in _unwrap_functions(value)]

    def undo(self) -> None:
        """Give every function its own code back."""
        while self._old:
            function, code = self._old.pop()
            function.__code__ = code

    def _is_projects(self, filename: str) -> bool:
        path = Path(filename)
        if not path.is_absolute() or not path.is_file():
            return False
        path = path.resolve()
        inside = path.is_relative_to(self._folder) and not path.is_relative_to(Path(sys.prefix).resolve())
        return inside and not {"site-packages", "dist-packages"}.intersection(path.parts)

    def _tap(self, filename: str, rewriting: Rewriting | None, functions: Iterable[FunctionType]) -> None:
        data = Path(filename).read_bytes()
        recorder = self._recorder
        path = Path(filename).resolve().relative_to(self._folder).as_posix()
        try:
            tree = ast.parse(data, filename)
            recorder.sites.add_source(filename, path, data.decode("utf-8-sig"))
            tapped = ast.fix_missing_locations(Rewriter(recorder.sites, filename).module(tree))
            if rewriting is not None:
                _put_asserts_back(tapped, ast.parse(data, filename))
                rewriting(tapped, data)
            codes = {_key(code): code for code in _codes(compile(tapped, filename, "exec", dont_inherit=True))}
        except (SyntaxError, ValueError, RecursionError) as error:
            recorder.guard.note(error)
            return
        for function in functions:
            old = function.__code__
            new = codes.get(_key(old))
            if old.co_filename == filename and new is not None and new.co_freevars == old.co_freevars:
                self._old.append((function, old))
                function.__code__ = new


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _put_asserts_back(tapped: ast.Module, plain: ast.Module) -> None:
    """Restore the untapped conditions and messages of `assert`: a failure shows their expressions."""
    own = {(node.lineno, node.col_offset): node for node in ast.walk(plain) if isinstance(node, ast.Assert)}
    for node in ast.walk(tapped):
        if isinstance(node, ast.Assert) and (original := own.get((node.lineno, node.col_offset))) is not None:
            node.test, node.msg = original.test, original.msg


def _function_of(value: Any) -> FunctionType | None:
    value = value.__func__ if isinstance(value, (MethodType, staticmethod, classmethod)) else value
    while not isinstance(value, FunctionType) and hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    return value if isinstance(value, FunctionType) else None


def _functions(values: Iterable[Any], module: str | None) -> Iterator[FunctionType]:
    """Yield the functions among values, and the methods of the classes that this module defines, nested ones too."""
    waiting, seen = list(values), set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type):
            waiting += list(vars(value).values()) if value.__module__ == module else []
        elif isinstance(value, property):
            waiting += [value.fget, value.fset]
        elif isinstance(value, (FunctionType, MethodType, staticmethod, classmethod)):
            while value is not None:
                if (function := _function_of(value)) is not None:
                    yield function
                value = getattr(value, "__wrapped__", None)


def _same_file(waiting: Iterable[FunctionType], function: FunctionType) -> list[FunctionType]:
    """Return the function, and those beside it in its file: a module does not name its local functions."""
    filename = function.__code__.co_filename
    return [function, *(other for other in waiting if other.__code__.co_filename == filename)]


def _unwrap_functions(value: Any) -> Iterator[FunctionType]:
    """Yield the functions of the module that a global value is, or comes from."""
    module = value if isinstance(value, ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
    if isinstance(module, ModuleType):
        name = module.__name__
        for function in _functions(list(vars(module).values()), name):
            if function.__module__ == name:
                yield function
                return
