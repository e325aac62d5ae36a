"""BP411 saved-changed-unseen: a saved tensor was written past autograd, and the gradient is wrong without an error.

What it finds:
    A write through `.data` or NumPy changed the elements of a tensor that a node had saved, and a backward call used
    other values than those that were saved. The finding stands at the write, and where a function of its own writes
    weights at the call of it beside the backward call; related are the statement whose node had saved it and the
    backward call. Of a tensor that is no leaf the values are not measured: there the write itself is shown.

Why it matters:
    The gradient is computed with values that the forward pass never had. Nothing raises, and training goes on with it.

What PyTorch does:
    An in-place operation raises `_version`, and a node compares versions before it uses what it saved. A write through
    `.data` or a NumPy array that shares the memory raises no version: the check passes. Seen in torch 2.13.

Example:
    import torch

    gain = torch.full((3,), 2.0, requires_grad=True)
    loss = gain.pow(3).sum()
    gain.data.clamp_(max=1.0)  # <- here
    loss.backward()

Use instead:
    import torch

    gain = torch.full((3,), 2.0, requires_grad=True)
    loss = gain.pow(3).sum()
    loss.backward()
    with torch.no_grad():
        gain.clamp_(max=1.0)

Near miss: written after the backward call
    import torch

    gain = torch.full((3,), 2.0, requires_grad=True)
    loss = gain.pow(3).sum()
    loss.backward()
    gain.data.clamp_(max=1.0)

Near miss: written before the forward pass
    import torch

    gain = torch.full((3,), 2.0, requires_grad=True)
    gain.data.clamp_(max=1.0)
    loss = gain.pow(2).sum()
    loss.backward()

Near miss: no node saved it
    import torch

    offset = torch.full((3,), 2.0, requires_grad=True)
    loss = (torch.ones(3) + offset).sum()
    offset.data.clamp_(max=1.0)
    loss.backward()

Near miss: undone before the backward call
    import torch

    gain = torch.full((3,), 2.0, requires_grad=True)
    loss = gain.pow(3).sum()
    gain.data[0] += 0.5
    print(gain.pow(3).sum().item() - loss.item())
    gain.data[0] -= 0.5
    loss.backward()

Blind spots:
    A write inside a library is taken for one that the library undoes, as `gradcheck` does. Rounding through `.data` is
    taken for a straight-through estimator. At the tiers that measure nothing this rule does not run.

Source:
    "In-place correctness checks" in PyTorch's notes on autograd mechanics; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.calling_statements import statement_beside
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import method_called, parts_of, statement_at
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding import Finding
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Node, Record, Statistics

RULE = Rule(
    name="saved-changed-unseen",
    code="BP411",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("saved", "version", "node", "stats"),
    explains=("gradient-not-derivative",),
)


_ROUNDING: Final = frozenset({"round_", "sign_", "floor_", "ceil_", "trunc_", "copy_"})
"""Methods by which a straight-through estimator writes its levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """A statement wrote into a tensor past autograd. measured: the values before and after it were."""

    tensor: int
    site: int
    moment: int
    version: int
    measured: bool


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that wrote unseen into what a backward call then used."""
    found: dict[int, list[tuple[_Write, Node, BackwardCall]]] = {}
    for write in (*_measured(record), *_shown(record)):
        used = _used(record, write)
        if used is not None:
            found.setdefault(write.site, []).append((write, *used))
    for site, rows in found.items():
        yield _finding(record, site, rows)


def _measured(record: Record) -> Iterator[_Write]:
    """Changes that raised no version, where the values before and after differ and the statement is seen to write."""
    for event in record.inplace_events:
        if event.site is None or event.version_after != event.version_before or not _writes(record, event.site):
            continue
        after = state_at(record, event.tensor, event.moment)
        before = state_at(record, event.tensor, event.moment - 1)
        if before is None or after is None or before.value is None or after.value is None:
            continue
        if before.value != after.value:
            yield _Write(
                tensor=event.tensor, site=event.site, moment=event.moment, version=event.version_after, measured=True
            )  # fmt: skip


def _shown(record: Record) -> Iterator[_Write]:
    """Writes through `.data` into tensors that are no leaves, `h.data.mul_(0.5)`: their values are not measured."""
    for row in record.operations:
        if row.function.endswith(".data") and row.operands and row.moment is not None:
            state = state_at(record, row.operands[0], row.moment)
            if state is not None and state.grad_fn is not None and _scales(record, row.statement):
                yield _Write(
                    tensor=row.operands[0], site=row.statement, moment=row.moment, version=state.version or 0,
                    measured=False,
                )  # fmt: skip


def _writes(record: Record, site: int) -> bool:
    """The statement itself changes something in place: an assignment to elements, `+=`, `x.add_(y)`, `out=`."""
    for part in parts_of(statement_at(record, site)):
        if isinstance(part, ast.Attribute) and part.attr in ("data", "numpy"):
            return True
        if isinstance(part, ast.AugAssign) or (isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)):
            return True
        name = method_called(part) or ""
        if (name.endswith("_") and not name.startswith("_")) or name in ("fill", "sort", "put", "copyto", "place"):
            return True
        if isinstance(part, ast.keyword) and part.arg == "out":
            return True
    return False


def _scales(record: Record, site: int) -> bool:
    """`x.data.mul_(y)` as a whole statement, by another method than those of rounding; `x.data *= y` and `+=`."""
    match statement_at(record, site):
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Attribute(attr="data"), attr=name))):
            return name.endswith("_") and name not in _ROUNDING
        case ast.AugAssign(target=ast.Attribute(attr="data")):
            return True
        case _:
            return False


def _used(record: Record, write: _Write) -> tuple[Node, BackwardCall] | None:
    """The first node that had saved this memory before the write, and a call that ran it after with other values."""
    index = lookup(record)
    storage = index.tensors[write.tensor].storage
    newest = _newest_before(record, write.moment)
    for row in record.saved:
        node = index.nodes[row.node]
        same = row.tensor == write.tensor or (storage is not None and row.storage == storage)
        if not same or node.seq is None or node.seq > newest or "BatchNorm" in node.type:
            continue  # a batch norm writes its running statistics itself, and saves them though its gradient reads none
        for call in record.backward_calls:
            late = call.moment_before >= write.moment and node.node in reaches(record)[call.call].ran
            if late and not _is_undone(record, write, node, call):
                return node, call
    return None


def _is_undone(record: Record, write: _Write, node: Node, call: BackwardCall) -> bool:
    """The tensor has the values again that it had when the node was made: a probe, put back."""
    if not write.measured:
        return False
    saved = state_at(record, write.tensor, _birth(record, node))
    used = state_at(record, write.tensor, call.moment_before)
    if saved is None or used is None or saved.value is None or used.value is None:
        return False
    return _are_same(saved.value, used.value)


def _are_same(one: Statistics, other: Statistics) -> bool:
    """As far as float32 tells after a difference was added and taken off again."""
    scale = max(abs(one.norm or 0.0), abs(other.norm or 0.0), 1e-30)
    pairs = ((one.norm, other.norm), (one.sum, other.sum), (one.min, other.min), (one.max, other.max))
    return all(a == b or (a is not None and b is not None and abs(a - b) <= 1e-6 * scale) for a, b in pairs)


def _birth(record: Record, node: Node) -> int:
    """A moment by which a node was made: that of the first tensor whose node is as young."""
    numbers = _births(record)
    at = bisect_left(numbers, (node.seq or 0, -1))
    return min((moment for _seq, moment in numbers[at:]), default=0)


@table
def _births(record: Record) -> list[tuple[int, int]]:
    """The sequence numbers of the nodes that made tensors, with the moments of these, in order."""
    index = lookup(record)
    rows = ((index.nodes[row.node].seq, index.tensors[row.tensor].moment) for row in record.tensor_nodes)
    return sorted((seq, moment) for seq, moment in rows if seq is not None)


def _newest_before(record: Record, moment: int) -> int:
    """The sequence number of the youngest node that was surely made by a moment: it made a tensor seen by then."""
    return max((seq for seq, at in _births(record) if at <= moment), default=-1)


def _called_between(record: Record, write: _Write, call: BackwardCall) -> int | None:
    """The call, beside the backward call, of a function that writes weights: right, at the wrong time."""
    if call.site is None or write.tensor not in in_optimizers(record):
        return None
    outer = statement_beside(record, write.site, write.moment, call.site)
    return None if outer is None else outer.site


def _finding(record: Record, site: int, rows: list[tuple[_Write, Node, BackwardCall]]) -> Finding:
    event, node, call = rows[0]
    name = called(record, event.tensor)
    outer = _called_between(record, event, call)
    return told(
        record,
        RULE,
        site if outer is None else outer,
        (
            f"This statement changes `{name}` past autograd, after `{node.type}` had saved it for its gradient.",
            "The backward call computes with values that the forward pass never had: the gradient is wrong.",
            "Change it after the backward call, under `torch.no_grad()`; then torch would tell.",
        ),
        binding=name,
        moments=[one.moment for one, _node, _call in rows],
        related=(
            (f"`{node.type}` saved `{name}` here", node.site),
            ("it is changed here", None if outer is None else site),
            ("this backward call uses it", call.site),
        ),
        evidence={"tensor": event.tensor, "version": event.version, "saved_by": node.type, "call": call.call},
        tensors=[event.tensor],
        calls=[call.call for _event, _node, call in rows],
    )
