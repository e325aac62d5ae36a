"""The files of the capture engine do not import each other in a circle when they run.

What stands under TYPE_CHECKING is not counted: a part names the type of the recorder that holds it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from pathlib import Path

CAPTURE = Path(__file__).parents[2] / "backprobe" / "capture"
PACKAGE = "backprobe.capture"


def imported(text: str, modules: Collection[str]) -> set[str]:
    """Those of the modules that a file imports, at its top or inside a function; names lie below the package."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
            inside = (node.module or "").removeprefix(f"{PACKAGE}.")
            below = {f"{inside}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else inside for name in below}
        elif isinstance(node, ast.Import):
            names = (alias.name for alias in node.names if alias.name.startswith(f"{PACKAGE}."))
            found |= {name.removeprefix(f"{PACKAGE}.") for name in names}
        else:
            waiting += ast.iter_child_nodes(node)
    return found & set(modules)


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Files on a circle, each importing the next one; empty if there is none."""
    done: set[str] = set()

    def search(path: list[str]) -> list[str]:
        for name in sorted(imports.get(path[-1], set())):
            if name in path:
                return path[path.index(name) :]
            if name not in done and (found := search([*path, name])):
                return found
        done.add(path[-1])
        return []

    return next((found for name in sorted(imports) if (found := search([name]))), [])


def test_no_files_of_capture_import_each_other_in_a_circle():
    files = {".".join(path.relative_to(CAPTURE).with_suffix("").parts): path for path in CAPTURE.rglob("*.py")}
    modules = {name: path.read_text() for name, path in files.items() if not name.endswith("__init__")}
    imports = {name: imported(text, modules) for name, text in modules.items()}
    assert len(imports) > 50
    assert sum(map(len, imports.values())) > 100
    assert circle(imports) == []


def test_a_circle_is_seen_and_what_is_only_for_types_is_none():
    texts = {
        "a": f"from {PACKAGE}.inner import b",
        "inner.b": f"def f():\n    from {PACKAGE}.c import g",
        "c": f"import {PACKAGE}.a",
        "d": f"if TYPE_CHECKING:\n    from {PACKAGE}.e import x",
        "e": f"from {PACKAGE}.d import y",
    }
    imports = {name: imported(text, texts) for name, text in texts.items()}
    assert circle(imports) == ["a", "inner.b", "c"]
    assert circle({"d": imports["d"], "e": imports["e"]}) == []
