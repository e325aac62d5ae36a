"""Whether a hook of the program replaced the gradient that it was given: as far as its own `return` shows it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import site_of, statement

if TYPE_CHECKING:
    from backprobe.record import Hook, Record


def replaced_gradient(record: Record, hook: Hook) -> bool | None:
    """It returned a new tensor while a backward call ran, at least once; None where that cannot be told.

    A function of the program has a tap at each `return`; one without a value there returns None and changes nothing.
    Of a lambda the record knows its text only: one that names nothing but a call of `print` or the like is not told.
    """
    if hook.replaced_gradient is not None:
        return hook.replaced_gradient
    if hook.callable_site is None or hook.kind not in ("tensor", "module-backward", "module-backward-pre"):
        return None
    node = statement(record, site_of(record, hook.callable_site))
    if not isinstance(node, ast.FunctionDef) or node.name != hook.callable.rsplit(".", 1)[-1]:
        return None
    returns = [one for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None]
    if all(isinstance(one.value, ast.Constant) for one in returns):
        return False
    first, last = node.lineno, node.end_lineno or node.lineno
    index = lookup(record)
    inside = [
        row
        for row in record.tensors
        if row.site is not None
        and (site := index.sites[row.site]).kind == "return"
        and first <= site.line <= last
        and any(call.moment_before <= row.moment <= _ended(record, call.moment_after) for call in record.backward_calls)
    ]
    return True if inside else None


def _ended(record: Record, moment: int | None) -> int:
    return moment if moment is not None else record.moments[-1].moment
