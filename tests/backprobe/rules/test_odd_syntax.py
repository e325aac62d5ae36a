"""No rule breaks on syntax that its programs do not have: that of the standard library, and random Python."""

from __future__ import annotations

import ast
import random
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from backprobe.record import Record
from backprobe.rules import RULES
from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.framework.tables import shared_tables
from backprobe.rules.testing import example, wants_check
from tests.backprobe.rules.programs import PROGRAMS
from tests.mutation.random_python import RandomPython
from tests.mutation.transplanted import describe, names_of, rename, transplant

KINDS = frozenset(
    kind
    for base in (ast.stmt, ast.expr, ast.pattern)
    for kind in base.__subclasses__()
    if not kind.__name__.startswith(("Const", "_"))
) - {getattr(ast, name) for name in ("Num", "Str", "Bytes", "NameConstant", "Ellipsis", "Param") if hasattr(ast, name)}
"""Every kind of statement, expression and pattern."""

STATEMENTS = 8
"""Of one random module, at its top level."""

MOST_LINES = 150
"""Of a piece of a file."""

PIECES = 16
"""Of the standard library, for each rule: all rules together see every file several times."""

MODULES = 16
"""Random ones, for each rule, where whole corpora are judged."""


STORES = """\
import x
x["b"] = 1
del x["b"]
x.step += 1


def f(model, loss):
    step = x.get(model)
    for n in range(3):
        step = x.join(step, loss)
        loss = x.fspath(step)
        x[len(step)], model.x = step, x
    return x.join(loss, step)
"""
"""Elements and attributes are stored into names that nothing assigns: imports and built-in functions."""


@cache
def texts_with_every_kind() -> tuple[str, ...]:
    """Write as few random modules as together have every kind of syntax."""
    lacking, texts, seed = set(KINDS), list[str](), 0
    while lacking:
        text = RandomPython(random.Random(seed), ["loss", "model", "step", "x"]).text(STATEMENTS)
        found = lacking & {type(node) for node in ast.walk(ast.parse(text))}
        if found:
            texts.append(text)
        lacking, seed = lacking - found, seed + 1
    return tuple(texts)


@cache
def library() -> tuple[Path, ...]:
    """Find the files of the standard library."""
    root = Path(sysconfig.get_path("stdlib"))
    return tuple(path for path in sorted(root.rglob("*.py")) if "site-packages" not in path.parts)


def pieces(chooser: random.Random, count: int) -> Iterator[str]:
    """Cut statements that stand together out of files of the standard library."""
    while count:
        text = chooser.choice(library()).read_text("utf-8", "replace")
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError):  # the library has files that are no Python, to test that
            continue
        if not body:
            continue
        first = chooser.randrange(len(body))
        start = body[first].lineno
        ends = [row.end_lineno or start for row in body[first:] if (row.end_lineno or start) - start < MOST_LINES]
        if ends:
            yield "\n".join(text.split("\n")[start - 1 : max(ends)])
            count -= 1


def find_broken(rule: RuleModule, record: Record, text: str, seed: int) -> list[str]:
    """Judge a record whose statements stand in another source by one rule: what it raised."""
    other = describe(text)
    if other is None:
        return []
    moved = transplant(record, other, seed)
    with shared_tables(moved):
        try:
            list(rule.check(moved))
        except Exception as error:
            return [f"{type(error).__name__} {error}, seed {seed}, at\n{moved.sources[0].text}"]
    return []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.RULE.name)
def test_a_rule_breaks_on_no_kind_of_syntax(rule, captured) -> None:
    record = captured(example(rule)[0], check=wants_check(rule))
    broken = [row for seed in range(3) for row in find_broken(rule, record, STORES, seed)]
    broken += [
        row
        for seed, text in enumerate(texts_with_every_kind())
        for row in find_broken(rule, record, rename(text, names_of(record), seed), seed)
    ]
    assert broken == [], broken[0]


@pytest.mark.usefixtures("sweep")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.RULE.name)
def test_a_rule_breaks_on_nothing_in_the_standard_library_and_on_no_random_module(rule, captured) -> None:
    chooser = random.Random(rule.RULE.code)
    own = [text for title, text in PROGRAMS.items() if title.startswith(f"{rule.RULE.name}: ")]
    programs = [example(rule)[0], *chooser.sample(own, min(2, len(own)))]
    records = [captured(text, check=wants_check(rule)) for text in programs]
    broken: list[str] = []
    for at, text in enumerate(pieces(chooser, PIECES)):
        record = records[at % len(records)]
        broken += find_broken(rule, record, rename(text, names_of(record), at) if at % 3 else text, at)
    for at in range(MODULES):
        record = records[at % len(records)]
        names = [*chooser.sample(names_of(record), 6), "backward", "grad", "append"]
        broken += find_broken(rule, record, RandomPython(chooser, names).text(STATEMENTS), at)
    assert broken == [], broken[0]
