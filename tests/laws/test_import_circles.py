"""The modules of a package do not import each other in a circle when they run; test_import_contracts.py has the packages.

Imports under TYPE_CHECKING are not counted: a part of a capture names the type of the session that holds it. The rules are
exempt: the manual of a plug-in's rule is parsed where plug-ins are loaded.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = [folder for folder in (ROOT / "backprobe").iterdir() if (folder / "__init__.py").is_file()]
PACKAGES = sorted(f"backprobe.{folder.name}" for folder in FOLDERS if folder.name != "rules")


def imported(text: str, package: str, modules: Collection[str]) -> set[str]:
    """Return the modules that a file imports, at its top or inside a function; names are relative to the package."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif isinstance(node, ast.ImportFrom) and node.module == package:
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
            inside = (node.module or "").removeprefix(f"{package}.")
            names = {f"{inside}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else inside for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix(f"{package}.") for alias in node.names}
        else:
            waiting += ast.iter_child_nodes(node)
    return found & set(modules)


def find_circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Return modules on a circle, each importing the next one; empty if there is none."""
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


@pytest.mark.parametrize("package", [*PACKAGES, "store", "workers", "service"])
def test_no_modules_of_a_package_import_each_other_in_a_circle(package):
    folder = ROOT.joinpath(*package.split("."))
    files = {".".join(path.relative_to(folder).with_suffix("").parts): path for path in folder.rglob("*.py")}
    modules = {name: path.read_text() for name, path in files.items() if not name.endswith("__init__")}
    imports = {name: imported(text, package, modules) for name, text in modules.items()}
    assert any(imports.values())
    assert find_circle(imports) == []


def test_a_circle_is_found_and_imports_for_types_alone_are_none():
    texts = {
        "a": "from pack.inner import b",
        "inner.b": "def f():\n    from pack.c import g",
        "c": "import pack.a",
        "d": "if TYPE_CHECKING:\n    from pack.e import x",
        "e": "from pack.d import y",
    }
    imports = {name: imported(text, "pack", texts) for name, text in texts.items()}
    assert find_circle(imports) == ["a", "inner.b", "c"]
    assert find_circle({"d": imports["d"], "e": imports["e"]}) == []
