"""What a box of a graph tells beside its nodes: the gradients that came to them, and the leaves that lie in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from backprobe.show.drawing.repeated_calls import masked
from store import tables
from store.database.in_clause import among
from store.database.session import Transaction
from store.queries.graph.graph_answers import GraphGradient, GraphParameter
from store.queries.graph.graph_part import flags_told, in_pieces
from store.queries.history.value_series import state_at
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

MOST_PARAMETERS: Final = 6
"""Kinds of leaves told of a box; the others are counted."""

_p: Final = tables.node_pass
_t: Final = tables.tensor
_k: Final = tables.backward_call

Norms = Mapping[int, tuple[float | None, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A leaf as a badge tells it."""

    tensor: int
    name: str
    grad: str


def norms_of(transaction: Transaction, key: RunKey, call: int, moment: int | None) -> Norms:
    """Of each node that the call ran: the largest finite norm that came to it, and whether NaN or Inf did.

    Args:
        transaction: To read by.
        key: Of the run's visible attempt.
        call: Which backward call.
        moment: The moment that is seen: before the call had ended nothing came to any node.
    """
    if moment is not None:
        query = sa.select(sa.func.coalesce(_k.c.moment_after, _k.c.moment_before + 1)).where(
            at_key(_k, key), _k.c.call == call
        )
        over = transaction.execute(query).scalar()
        if over is None or over > moment:
            return {}
    rows = sa.select(_p.c.node, _p.c.norm, _p.c.nan, _p.c.inf).where(
        at_key(_p, key), _p.c.call == call, _p.c.counted.is_not(None)
    )
    found: dict[int, tuple[float | None, bool]] = {}
    for node, norm, nan, inf in transaction.execute(rows):
        bad = bool(nan or inf)
        before, was_bad = found.get(node, (None, False))
        finite = None if bad else norm
        known = [value for value in (before, finite) if value is not None]
        found[node] = (max(known, default=None), bad or was_bad)
    return found


def gradient_of(norms: Norms, nodes: Iterable[int]) -> GraphGradient | None:
    """The range over these nodes; None: nothing was measured at any."""
    told = [norms[node] for node in nodes if node in norms]
    if not told:
        return None
    finite = [norm for norm, _ in told if norm is not None]
    return GraphGradient(
        least=min(finite, default=None), most=max(finite, default=None), nonfinite=sum(bad for _, bad in told)
    )


def leaves_of(
    transaction: Transaction, run: RunRow, key: RunKey, numbers: Sequence[int], moment: int | None
) -> dict[int, Leaf]:
    """Names and gradients of leaves, as they were at a moment; None: at the end."""
    found: dict[int, Leaf] = {}
    then: dict[int, str] = {}
    for piece in in_pieces(numbers):
        if moment is not None:
            seen = state_at(transaction, run, moment, ("flags",), piece)
            pairs = zip(seen["tensor"].tolist(), seen["flags"].tolist(), strict=True)
            then |= {tensor: str(flags_told(bits)["grad"]) for tensor, bits in pairs}
        query = sa.select(_t.c.tensor, _t.c.name, _t.c.fqn, _t.c.grad).where(at_key(_t, key), among(_t.c.tensor, piece))
        for row in transaction.execute(query):
            grad = then.get(row.tensor, "not-read") if moment is not None else row.grad or "not-read"
            found[row.tensor] = Leaf(tensor=row.tensor, name=row.fqn or row.name or f"tensor {row.tensor}", grad=grad)
    return found


def parameters_of(
    leaves: Mapping[int, Leaf], inside: Collection[int], *, is_folded: bool
) -> tuple[tuple[GraphParameter, ...], int]:
    """The leaves inside of a box, those of a fold that differ in numbers together; and how many kinds are not told."""
    groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for tensor in sorted(inside):
        leaf = leaves.get(tensor)
        if leaf is not None:
            groups[masked(leaf.name) if is_folded else leaf.name, leaf.grad].append(tensor)
    kinds = sorted(groups.items(), key=_missing_first)
    told = tuple(
        GraphParameter(name=name, grad=grad, times=len(tensors), tensor=tensors[0])
        for (name, grad), tensors in kinds[:MOST_PARAMETERS]
    )
    return told, max(0, len(kinds) - MOST_PARAMETERS)


def _missing_first(kind: tuple[tuple[str, str], list[int]]) -> tuple[bool, Any]:
    (_, grad), tensors = kind
    return grad == "present", tensors[0]
