"""Whether an optimizer decays weights, as far as the statement that builds it says: the record holds no decay."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.syntax import parts_of, site_of, statement

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record

KEY: Final = "weight_decay"


def default_decay(record: Record, optimizer: Optimizer) -> bool | None:
    """Return whether groups decay that do not say so themselves; None: it is not known."""
    given = _given(record, optimizer)
    return optimizer.cls == "AdamW" if given is None else is_decay(given)


def is_decay(value: ast.expr) -> bool | None:
    """Return True for a number other than 0, or for something with a name: nobody names a decay of 0."""
    if isinstance(value, ast.Constant):
        return bool(value.value) if isinstance(value.value, int | float) else None
    return True


def decays_surely(record: Record, optimizer: Optimizer) -> bool:
    """Return whether all parameters decay: there is one group, and the decay is a number, or AdamW's own."""
    groups = {row.group for row in optimizer.tensors}
    node = None if optimizer.site is None else statement(record, site_of(record, optimizer.site))
    if len(groups) != 1 or node is None or any(_names_decay(part) for part in parts_of(node)):
        return False
    given = _given(record, optimizer)
    if given is None:
        calls = [part for part in parts_of(node) if isinstance(part, ast.Call)]
        is_open = any(keyword.arg is None for call in calls for keyword in call.keywords)
        is_built_here = any(ast.unparse(call.func).endswith(optimizer.cls) for call in calls)
        return optimizer.cls == "AdamW" and is_built_here and not is_open
    return isinstance(given, ast.Constant) and is_decay(given) is True


def _names_decay(part: ast.AST) -> bool:
    """The part is a group that is written as a dict with a decay of its own."""
    keys = part.keys if isinstance(part, ast.Dict) else []
    return any(isinstance(key, ast.Constant) and key.value == KEY for key in keys)


def _given(record: Record, optimizer: Optimizer) -> ast.expr | None:
    """Return the decay that the statement which builds an optimizer gives; None: it gives none."""
    node = None if optimizer.site is None else statement(record, site_of(record, optimizer.site))
    for part in parts_of(node):
        if isinstance(part, ast.Call):
            given = next((keyword.value for keyword in part.keywords if keyword.arg == KEY), None)
            if given is not None:
                return given
    return None
