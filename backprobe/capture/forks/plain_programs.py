"""Which programs may share a process, by their text: those that do nothing whose traces `process_state` cannot see.

A wrong no costs a fork. (One that imports `os` is not plain, so nobody changes the environment.) A yes that could be
wrong is one that changes torch or Python themselves: a module's attribute, a switch of the process, what is done once
in a process only.
"""

from __future__ import annotations

import ast
import re
from typing import Final

_IMPORTS: Final = frozenset(
    {
        "__future__", "abc", "collections", "contextlib", "copy", "dataclasses", "enum", "functools", "itertools",
        "json", "math", "numpy", "operator", "random", "time", "torch", "typing",
    }
)  # fmt: skip
"""Modules of which a program may use what leaves no trace."""

_WORDS: Final = re.compile(
    r"""\b(
        \w*warn\w* | \w*anomaly\w* | distributed | multiprocessing | parallel | num_workers | compile | \w*dynamo\w*
      | jit | fx | export | library | backends | profiler | swa_utils | parametri[sz]\w* | set_\w+(?=\() | cuda | mps
      | use_deterministic\w* | register_module_\w+ | register_optimizer_\w+ | __enter__ | __dict__ | __class__
      | __globals__ | __builtins__ | setattr | delattr | vars | globals | exec | eval | __import__ | importlib | patch
      | _C | lru_cache | cache | \w*empty\w* | resize\w* | \w*Tensor(?=\()
    )\b""",
    re.VERBOSE,
)
"""What changes a process, has an effect once in it, or reads memory as an earlier program left it."""


def is_plain(text: str) -> bool:
    """Return whether a program may share a process with others, if the state of the process says so afterwards."""
    if _WORDS.search(text):
        return False
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    imported: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if not _may_import(node):
                return False
            imported.update(name.asname or name.name.split(".")[0] for name in node.names)
    return not any(
        isinstance(node, ast.Attribute | ast.Subscript)
        and not isinstance(node.ctx, ast.Load)
        and _root(node) in imported
        for node in nodes
    )


def _may_import(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        return all(name.name.split(".")[0] in _IMPORTS for name in node.names)
    return node.level == 0 and (node.module or "").split(".")[0] in _IMPORTS


def _root(node: ast.expr) -> str | None:
    """Return the name that an expression of attributes, elements and calls begins with."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return None
    return node.id
