"""Whose a name is, held against Python's own symbol tables over the programs under test and the standard library."""

from __future__ import annotations

import ast
import contextlib
import symtable
import sysconfig
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from backprobe.capture.rewriting import scopes as scopes_module
from backprobe.capture.rewriting.scopes import MODULE, Scope
from tests.corpus.cases import SETS, load_set

LIBRARY = Path(sysconfig.get_path("stdlib"))
DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FILES = sorted(
    [
        *LIBRARY.glob("*.py"),
        *LIBRARY.glob("asyncio/*.py"),
        *LIBRARY.glob("unittest/*.py"),
        *LIBRARY.glob("test/test_scope.py"),
        *LIBRARY.glob("test/test_named_expressions.py"),
        *LIBRARY.glob("test/test_patma.py"),
    ]
)


def scopes(tree: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    """Every definition with its scope, in order of the text."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, DEFINITION):
            # decorators, defaults and bases belong to the scope around; they contain no definition but in a lambda
            inner = scope.body_scope(child)
            yield child, inner
            for statement in child.body:
                yield from scopes(ast.Module([statement], []), inner)
        elif not isinstance(child, ast.Lambda):
            yield from scopes(child, scope)


def tables(table: symtable.SymbolTable, outer: tuple[symtable.SymbolTable, ...] = ()) -> Iterator[tuple]:
    """Every function's and class's table with those around it; not those of lambdas and comprehensions."""
    for child in table.get_children():
        if child.get_type() in ("function", "class") and child.get_name() not in (
            "lambda", "listcomp", "setcomp", "dictcomp", "genexpr",
        ):  # fmt: skip
            yield child, (*outer, table)
            yield from tables(child, (*outer, table))


def qualified(path: tuple[symtable.SymbolTable, ...]) -> str:
    """The qualified name of the innermost table of a path that begins with the module's."""
    text = ""
    for around, table in pairwise(path):
        name = table.get_name()
        text = (
            name if around.get_type() == "module" else f"{text}{'.<locals>' * (around.get_type() == 'function')}.{name}"
        )
    return text


def owner(name: str, path: tuple[symtable.SymbolTable, ...]) -> str:
    """The function whose a name of the innermost table is, as Python resolved it."""
    symbol = path[-1].lookup(name)
    if symbol.is_free():
        for at in range(len(path) - 2, 0, -1):
            table = path[at]
            if table.get_type() == "function" and name in table.get_identifiers() and table.lookup(name).is_local():
                return qualified(path[: at + 1])
    return qualified(path) if symbol.is_local() else MODULE


def differences(source: str) -> tuple[list[str], int]:
    """Names that the two place differently, and how many were asked."""
    pairs = {(node.lineno, node.name): scope for node, scope in scopes(ast.parse(source), Scope())}
    found, asked = [], 0
    for table, outer in tables(symtable.symtable(source, "program", "exec")):
        scope = pairs[table.get_lineno(), table.get_name()]
        for name in table.get_identifiers():
            if name.startswith((".", "_")) and (name[0] == "." or "__" in name[1:]):
                continue  # a private name of a class body is mangled in the table, and `.0` is a comprehension's
            asked += 1
            expected, got = owner(name, (*outer, table)), scope.owner(name)
            if expected != got:
                found.append(f"{table.get_lineno()} {qualified((*outer, table))}: {name} is of {expected}, not {got}")
    return found, asked


def corpus_sources() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every program of the corpora."""
    for corpus in map(load_set, SETS):
        for case in corpus.cases:
            yield f"{corpus.name}/{case.id}, faulty", case.bad
            yield f"{corpus.name}/{case.id}, repaired", case.good
        for program in corpus.correct:
            yield f"{corpus.name}/{program.name}", program.text


def file_sources() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every file that is text."""
    for path in FILES:
        with contextlib.suppress(UnicodeDecodeError):  # wrong on purpose
            yield str(path), path.read_text()


@pytest.mark.usefixtures("sweep")
def test_every_name_is_whose_python_says_it_is():
    wrong, asked = {}, 0
    for name, source in [*file_sources(), *corpus_sources()]:
        try:
            found, count = differences(source)
        except SyntaxError:
            continue  # wrong on purpose
        asked += count
        if found:
            wrong[name] = found
    assert wrong == {}
    assert asked > 50_000


def test_a_name_that_is_placed_wrongly_is_seen(monkeypatch):
    source = "def f():\n    try:\n        pass\n    except OSError as error:\n        print(error)\n"
    assert differences(source) == ([], 3)
    monkeypatch.setattr(scopes_module, "_bound_by", lambda _node: [])
    assert differences(source) == (["1 f: error is of f, not <module>"], 3)


def test_the_target_of_a_comprehension_is_no_name_of_the_function_around_it(monkeypatch):
    source = "def f(rows):\n    kept = [row for row in rows]\n    return row, kept\n"
    assert differences(source) == ([], 3)
    monkeypatch.setattr(scopes_module, "_COMPREHENSIONS", ())
    assert differences(source) == (["1 f: row is of <module>, not f"], 3)
