"""The files of a program that it imports: modules that lie beside it, or below the folder that it is started in.

train.py    import model            model.py          comes along
            from lib import data    lib/__init__.py, lib/data.py
            import torch            nothing beside it has that name
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

MOST_FILES: Final = 64
"""Of one program, as the service takes them."""


def imported_files(script: Path, roots: Sequence[Path]) -> tuple[Path, ...]:
    """List the script and the project's files that it imports, directly or through others.

    Args:
        script: An absolute path.
        roots: Folders in which a module may lie: the script's own first.
    """
    found: dict[Path, None] = {script: None}
    due = [script]
    while due and len(found) < MOST_FILES:
        importer = due.pop(0)
        for name in _names(importer):
            for path in _files(name, roots, importer):
                if path not in found and len(found) < MOST_FILES:
                    found[path] = None
                    due.append(path)
    return tuple(found)


def module_roots(script: Path, folder: Path) -> tuple[Path, ...]:
    """Folders in which a script of this project finds modules: its own, the project's, and `src` of that."""
    return tuple(dict.fromkeys((script.parent, folder, folder / "src")))


def _names(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports; relative imports with their dots."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            before = "." * node.level + (node.module or "")
            yield before
            joint = "" if not before or before.endswith(".") else "."
            yield from (f"{before}{joint}{alias.name}" for alias in node.names if alias.name != "*")


def _files(name: str, roots: Sequence[Path], importer: Path) -> Iterator[Path]:
    """Yield the files of a module and of the packages around it, where some root has them."""
    bare = name.lstrip(".")
    dots = len(name) - len(bare)
    if dots:
        base = importer.parents[min(dots, len(importer.parents)) - 1]
        yield from _find_below(base, bare.split(".") if bare else [])
        return
    for root in roots:
        found = tuple(_find_below(root, bare.split(".")))
        if found:
            yield from found
            return


def _find_below(base: Path, parts: Sequence[str]) -> Iterator[Path]:
    folder = base
    for at, part in enumerate(parts):
        module = folder / f"{part}.py"
        if module.is_file():
            yield module
            return
        folder = folder / part
        package = folder / "__init__.py"
        if package.is_file():
            yield package
        elif not folder.is_dir() or at == len(parts) - 1:
            return
