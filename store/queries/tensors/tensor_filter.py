"""Which tensors a question is about: conditions on their last state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from backprobe.record.rows.tensors import Grad
from backprobe.record.state_flags import FlagsOrNone
from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction

_t: Final = tables.tensor
_s: Final = tables.site
_b: Final = tables.binding


def same_key(left: sa.Table, right: sa.Table) -> sa.ColumnElement[bool]:
    """Two record tables' rows belong to the same attempt."""
    return sa.and_(*[left.c[name] == right.c[name] for name in tables.KEY])


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFilter(FlagsOrNone):
    """Which tensors, by their last state; what is None, or empty, lets all pass.

    Attributes:
        grad, why, role: Any of these. why: verdicts of `why_none`.
        name: Glob over every name the tensor had and its fqn: `h.*.weight`; `*` and `?` are the only wildcards.
        fqn: Glob over its fqn only.
        line, path: Where it was first seen.
        grad_ever: It had a gradient at some moment.
        nonfinite_gt, grad_norm_gt, value_norm_gt, held_bytes_gt: More than this; NaN is more than any number.
        numbers: Any of these tensors.
        seen_by: First seen at this moment, or before.
    """

    grad_ever: bool | None = None
    grad: Sequence[Grad] = ()
    why: Sequence[str] = ()
    role: Sequence[str] = ()
    name: str | None = None
    fqn: str | None = None
    line: int | None = None
    path: str | None = None
    nonfinite_gt: int | None = None
    grad_norm_gt: float | None = None
    value_norm_gt: float | None = None
    held_bytes_gt: int | None = None
    numbers: Sequence[int] = ()
    seen_by: int | None = None

    def conditions(self, transaction: Transaction) -> list[sa.ColumnElement[bool]]:
        """As conditions on `tensor`."""
        found: list[sa.ColumnElement[bool]] = [_t.c[name].is_(wanted) for name, wanted in self.known_flags.items()]
        if self.grad_ever is not None:
            found.append(_t.c.grad_ever.is_(self.grad_ever))
        for column, values in ((_t.c.grad, self.grad), (_t.c.why_none, self.why), (_t.c.role, self.role)):
            if values:
                found.append(column.in_(values))
        amounts = ("nonfinite", "grad_norm", "value_norm", "held_bytes")
        found += [_t.c[name] > least for name in amounts if (least := getattr(self, f"{name}_gt")) is not None]
        if self.seen_by is not None:
            found.append(_t.c.moment <= self.seen_by)
        if self.numbers:
            found.append(in_numbers(_t.c.tensor, self.numbers))
        if self.name is not None:
            found.append(_matches_name(transaction, self.name))
        if self.fqn is not None:
            found.append(_matches(transaction, _t.c.fqn, self.fqn))
        if self.line is not None:
            found.append(_t.c.line == self.line)
        if self.path is not None:
            there = sa.exists().where(same_key(_s, _t), _s.c.site == _t.c.site, _s.c.path == self.path).correlate(_t)
            found.append(there)
        return found


def _matches(transaction: Transaction, column: sa.ColumnElement[Any], glob: str) -> sa.ColumnElement[bool]:
    if transaction.dialect.name == "sqlite":
        return column.op("GLOB", is_comparison=True)(glob.replace("[", "[[]"))  # LIKE has no case there
    like = glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%").replace("?", "_")
    return column.like(like, escape="\\")


def _matches_name(transaction: Transaction, glob: str) -> sa.ColumnElement[bool]:
    """Match the tensor's fqn, or a name that it had."""
    bound = sa.exists().where(same_key(_b, _t), _b.c.tensor == _t.c.tensor, _matches(transaction, _b.c.name, glob))
    return sa.or_(_matches(transaction, _t.c.fqn, glob), bound)
