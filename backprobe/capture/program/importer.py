"""Imports of the project's own files, tapped: from its folder, or from files in memory.

Never site-packages, the standard library or torch. No `.pyc` of tapped code is written; `__file__`, `linecache` and
`inspect` stay those of the original text.
"""

from __future__ import annotations

import importlib.machinery
import linecache
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import decode_source
from pathlib import Path, PurePosixPath
from types import CodeType, ModuleType
from typing import Any

import backprobe

Compiler = Callable[[bytes, str, str], CodeType]
"""Source bytes, file name, path in the project -> tapped code."""


class FolderFinder(MetaPathFinder):
    """Finds what Python's own path finder finds, and taps it if it lies in the project's folder.

    Args:
        at_root: What it does not find is looked for in the folder itself, as `MemoryFinder` does.
    """

    def __init__(self, folder: Path, compiler: Compiler, *, at_root: bool = False) -> None:
        self._folder, self._at_root = folder.resolve(), at_root
        self._compiler = compiler
        self._foreign = _foreign(self._folder)
        self.found: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the project; None leaves it to the other finders."""
        spec = PathFinder.find_spec(fullname, path, target)
        untapped = None
        if spec is None and path is None and self._at_root:
            untapped = spec = PathFinder.find_spec(fullname, [str(self._folder)], target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return untapped
        origin = Path(spec.origin)
        if not self._is_projects(origin):
            return untapped
        relative = origin.resolve().relative_to(self._folder).as_posix()
        spec.loader = _FileLoader(fullname, spec.origin, relative, self._compiler)
        self.found.append(fullname)
        return spec

    def _is_projects(self, origin: Path) -> bool:
        place = origin.resolve()
        if not place.is_relative_to(self._folder) or any(place.is_relative_to(other) for other in self._foreign):
            return False
        return not {"site-packages", "dist-packages"}.intersection(place.parts)


def _foreign(folder: Path) -> tuple[Path, ...]:
    """Folders of libraries that lie inside the project's folder, or around it."""
    paths = sysconfig.get_paths()
    named = {Path(paths[key]).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    named.add(Path(backprobe.__file__).resolve().parent)  # a checkout of it may be the project
    return tuple(path for path in named if path != folder)


class _FileLoader(SourceFileLoader):
    """Loads a file of the project with taps."""

    def __init__(self, fullname: str, path: str, relative: str, compiler: Compiler) -> None:
        super().__init__(fullname, path)
        self._relative, self._compiler = relative, compiler

    def get_code(self, fullname: str) -> CodeType:
        """Tapped code; neither read from nor written to a `.pyc`."""
        filename = self.get_filename(fullname)
        return self._compiler(self.get_data(filename), filename, self._relative)


class MemoryFinder(MetaPathFinder):
    """Finds modules among files in memory, as a path finder would with the entry's folder as `sys.path[0]`.

    What neither that folder nor the interpreter has is looked for from the root of the files: a package beside the
    scripts of its repository, which is installed where these run otherwise.

        jobs/train.py   import words      jobs/words.py
                        import model      model/__init__.py, unless a `model` is installed
    """

    def __init__(self, files: Mapping[str, str], root: PurePosixPath, compiler: Compiler) -> None:
        self._files = {str(PurePosixPath(path)): text for path, text in files.items()}
        self._root = root
        self._compiler = compiler
        self._at_root: set[str] = set()
        self.found: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module, package or namespace package among the files."""
        top = fullname.partition(".")[0]
        if top not in self._at_root:
            spec = self._find_in_folder(self._root, fullname)
            if spec is not None or path is not None or PathFinder.find_spec(fullname) is not None:
                return spec
        spec = self._find_in_folder(PurePosixPath(), fullname)
        if spec is not None:
            self._at_root.add(top)
        return spec

    def _find_in_folder(self, folder: PurePosixPath, fullname: str) -> ModuleSpec | None:
        place = folder.joinpath(*fullname.split("."))
        package, module = str(place / "__init__.py"), f"{place}.py"
        for found, is_package in ((package, True), (module, False)):
            if found in self._files:
                self.found.append(fullname)
                return self._spec(fullname, found, is_package=is_package)
        if any(PurePosixPath(other).is_relative_to(place) for other in self._files):
            self.found.append(fullname)
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        return None

    def _spec(self, fullname: str, found: str, *, is_package: bool) -> ModuleSpec:
        loader = _MemoryLoader(found, self._files[found], self._compiler, is_package=is_package)
        spec = ModuleSpec(fullname, loader, origin=found, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [str(PurePosixPath(found).parent)]
        return spec


class _MemoryLoader(InspectLoader):
    def __init__(self, filename: str, text: str, compiler: Compiler, *, is_package: bool) -> None:
        self._filename, self._text, self._compiler, self._package = filename, text, compiler, is_package
        remember(filename, text)

    def get_source(self, fullname: str) -> str:
        return self._text

    def get_filename(self, fullname: str) -> str:
        return self._filename

    def is_package(self, fullname: str) -> bool:
        return self._package

    def get_code(self, fullname: str) -> CodeType:
        return self._compiler(self._text.encode("utf-8", "surrogatepass"), self._filename, self._filename)


def remember(filename: str, text: str) -> None:
    """Let tracebacks and `inspect` show the lines of a file that is not on disk."""
    lines = decode_source(text.encode("utf-8", "surrogatepass")).splitlines(keepends=True)
    linecache.cache[filename] = (len(text), None, lines, filename)


def after_import(
    fullname: str, path: Sequence[str] | None, target: ModuleType | None, then: Callable[[ModuleType], None]
) -> ModuleSpec | None:
    """Find a module, and let its loader do something more at its end; None if there is no such module."""
    spec = PathFinder.find_spec(fullname, path, target)
    if spec is None or spec.loader is None:
        return None
    loader: Any = spec.loader
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        then(module)

    loader.exec_module = exec_module
    return spec


class Hook:
    """An import hook for the length of one run; what it imported is taken out of `sys.modules` again."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def __enter__(self) -> None:
        places = [i for i, f in enumerate(sys.meta_path) if f is importlib.machinery.PathFinder]
        sys.meta_path.insert(places[0] if places else len(sys.meta_path), self._finder)

    def __exit__(self, *_: object) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        for name in self._finder.found:
            sys.modules.pop(name, None)
