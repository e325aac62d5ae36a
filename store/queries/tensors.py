"""The tensors of a run: a page of them, or one in full."""

from __future__ import annotations

from collections.abc import Sequence

from store.queries.answers import GradState, TensorFull, TensorPage
from store.run import RunRow
from store.session import Transaction


def tensors(
    transaction: Transaction,
    run: RunRow,
    *,
    is_leaf: bool | None = None,
    requires_grad: bool | None = None,
    retains_grad: bool | None = None,
    grad: Sequence[GradState] = (),
    why: Sequence[str] = (),
    name: str | None = None,
    line: int | None = None,
    path: str | None = None,
    after: int | None = None,
    limit: int = 100,
) -> TensorPage:
    """Tensors in order of their number, by their last state.

    Args:
        grad, why: Any of these; empty: all. `why` are verdicts of `why_none`.
        name: Glob over every name the tensor had and its fqn: `h.*.weight`; `*` and `?` are the only wildcards.
        line, path: Where it was first seen.
    """
    raise NotImplementedError


def tensor(transaction: Transaction, run: RunRow, number: int) -> TensorFull | None:
    """One tensor with its names, snapshots, in-place changes, savers, values and holders; None: no such tensor."""
    raise NotImplementedError
