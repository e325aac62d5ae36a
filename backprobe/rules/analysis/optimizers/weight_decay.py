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


def _given(record: Record, optimizer: Optimizer) -> ast.expr | None:
    """Return the decay that the statement which builds an optimizer gives; None: it gives none."""
    node = None if optimizer.site is None else statement(record, site_of(record, optimizer.site))
    for part in parts_of(node):
        if isinstance(part, ast.Call):
            given = next((keyword.value for keyword in part.keywords if keyword.arg == KEY), None)
            if given is not None:
                return given
    return None
