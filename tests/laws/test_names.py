"""Law 6: no drawer folders, and no name that says nothing."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("backprobe", "store", "workers", "service", "migrations", "bench", "docs", "tests")
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc"}
EMPTY_WORDS = {"manager", "helper", "helpers", "data", "info", "utils", "misc"}
VERBS = ("process_", "handle_")
PROGRAMS = {
    "programs", "public", "second", "threads", "threads2", "round5", "round6", "round7", "round8", "round9", "round10", "round11", "third", "real_programs", "snippets",
}  # fmt: skip
"""Folders of programs under test, which are as users write them, some not even Python."""
GIVEN_BY_OTHERS = {"process_bind_param", "process_result_value", "handle_data", "handle_close", "data_address"}
"""Names that others gave: SQLAlchemy's TypeDecorator, the standard library's HTMLParser, waitress's channel, torch's
`_data_address`."""


def words(name: str) -> set[str]:
    """The words of a snake_case or CamelCase name, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def defined_names(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and name of each class and function of a module."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [(node.lineno, node.name) for node in ast.walk(tree) if isinstance(node, kinds)]


def violations(root: Path) -> list[str]:
    """What breaks the law below `root`, as `path[:line] name`."""
    found = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            relative = path.relative_to(root)
            if PROGRAMS & set(relative.parts):
                continue
            found += [f"{relative} {part}" for part in relative.with_suffix("").parts if part in DRAWERS | EMPTY_WORDS]
            for line, name in defined_names(ast.parse(path.read_text())):
                if name in GIVEN_BY_OTHERS or name.startswith("test_"):  # a test's name is a sentence
                    continue
                vague = package != "tests" and name.lstrip("_").startswith(VERBS)  # a test may be about processes
                if words(name) & EMPTY_WORDS or vague:
                    found.append(f"{relative}:{line} {name}")
    return found


def test_no_name_is_a_drawer():
    assert violations(ROOT) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("store/utils.py", ""),
        ("workers/common/__init__.py", ""),
        ("service/runs.py", "class RunManager: ..."),
        ("backprobe/show/formats/terminal_report.py", "def tensor_data(): ..."),
        ("backprobe/show/formats/terminal_report.py", "def handle_row(): ..."),
        ("store/runs/lifecycle.py", "class TensorInfo: ..."),
    ],
)
def test_a_planted_drawer_is_found(tmp_path, path, text):
    planted = tmp_path / path
    planted.parent.mkdir(parents=True)
    planted.write_text(text)
    assert len(violations(tmp_path)) == 1
