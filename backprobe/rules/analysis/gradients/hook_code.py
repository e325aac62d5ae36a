"""The hooks of the program in its source: the function that is called, what it was given, and what it returned."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.custom_functions import returns
from backprobe.rules.analysis.source.syntax import number_at, trees

if TYPE_CHECKING:
    from backprobe.record import Hook, Record, Statistics

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """One call of a hook that returned a tensor: its values as it came, and as it went.

    Attributes:
        statement: The `return`; site: the number of its site; moment: when.
    """

    statement: ast.Return
    site: int
    moment: int
    before: Statistics
    after: Statistics


def hook_function(record: Record, hook: Hook) -> Function | None:
    """The definition of a hook's callable; None for a lambda, and for what is not in the user's files."""
    for node in _at_line(record, hook):
        if isinstance(node, Function) and node.name == hook.callable.rpartition(".")[2]:
            return node
    return None


def hook_lambda(record: Record, hook: Hook) -> ast.Lambda | None:
    """The only lambda that begins in the line that a hook is defined in; None where there are several, or none."""
    found = [node for node in _at_line(record, hook) if isinstance(node, ast.Lambda)]
    return found[0] if len(found) == 1 else None


def source_of_hook(record: Record, hook: Hook) -> int | None:
    """Return the source that defines a hook's callable: that of its site, else the one with its path."""
    site = None if hook.callable_site is None else lookup(record).sites.get(hook.callable_site)
    if site is not None:
        return site.source  # the path of a program that was started by its path is written whole
    return next((row.source for row in record.sources if row.path == hook.path), None)


def _at_line(record: Record, hook: Hook) -> list[ast.AST]:
    """What begins in the first line of a callable's code: with its decorators, for a function."""
    source = source_of_hook(record, hook)
    tree = None if source is None else trees(record).get(source)
    if tree is None:
        return []
    return [node for node in tree.nodes if hook.line in (getattr(node, "lineno", None), *_marks(node))]


def _marks(node: ast.AST) -> list[int]:
    return [mark.lineno for mark in node.decorator_list] if isinstance(node, Function) else []


def gradient_name(function: Function) -> str | None:
    """The parameter that a hook on a tensor gets the gradient in: its last one."""
    given = [*function.args.posonlyargs, *function.args.args]
    return given[-1].arg if given else None


def returned_by_hook(record: Record, hook: Hook, function: Function) -> Iterator[Returned]:
    """The calls of a hook on a tensor that returned a tensor: it had a name by then, or the `return` made it."""
    name = gradient_name(function)
    rows = [row for row in bindings_named(record)[name or ""] if row.function == hook.callable]
    entries = [row for row in rows if lookup(record).sites[row.site].kind == "enter"]
    ends = [*(row.moment for row in entries[1:]), len(record.moments)]
    for entry, end in zip(entries, ends, strict=False):
        before = _values(record, entry.tensor, entry.moment)
        for node in returns(function):
            site = number_at(record, node)
            tensor, moment = _returned(record, hook, node, range(entry.moment, end))
            after = _values(record, tensor, moment)
            if before is not None and after is not None and site is not None:
                yield Returned(statement=node, site=site, moment=moment, before=before, after=after)


def _returned(record: Record, hook: Hook, node: ast.Return, window: range) -> tuple[int | None, int]:
    """What a `return` gave back in a call, and when: what its name held, else what it made. None: it did not run."""
    if isinstance(node.value, ast.Name):
        rows = [row for row in bindings_named(record)[node.value.id] if row.function == hook.callable]
        found = [(row.tensor, row.moment) for row in rows if row.moment in window]
    else:
        site = number_at(record, node)
        found = [(row.tensor, row.moment) for row in record.tensors if row.site == site and row.moment in window]
    return found[-1] if found else (None, window.start)


def _values(record: Record, tensor: int | None, moment: int) -> Statistics | None:
    """The last statistics of a tensor's elements up to a moment."""
    rows = lookup(record).snapshots_of[-1 if tensor is None else tensor]
    found = [row.value for row in rows if row.moment <= moment and row.value is not None]
    return found[-1] if found else None
