"""BP817 larger-loss-dropped: a sum of losses is made, and one of its parts is walked in its place.

What it finds:
    In step after step a statement adds a second, trained term to a loss, and no backward call ever walks the sum nor
    the other term: the call starts from the loss alone.

Why it matters:
    The sum may be shown and logged, but its other term trains nothing: a penalty is without effect.

What PyTorch does:
    A backward call walks what its root was made from. A sum that was made of the root is not part of that. Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        fit = (model(x) - 1).pow(2).mean()
        loss = fit + 0.1 * model.weight.abs().sum()  # <- here
        optimizer.zero_grad()
        fit.backward()
        optimizer.step()
    print(loss.item())

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        fit = (model(x) - 1).pow(2).mean()
        loss = fit + 0.1 * model.weight.abs().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())

Near miss: each part is walked by itself, and the sum is shown
    import torch
    from torch import nn

    left, right = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizer = torch.optim.SGD([*left.parameters(), *right.parameters()], lr=0.1)
    for x in torch.randn(4, 8, 4):
        one, other = left(x).pow(2).mean(), right(x).pow(2).mean()
        total = one + other
        optimizer.zero_grad()
        one.backward()
        other.backward()
        optimizer.step()
    print(total.item())

Near miss: the sum is one of numbers
    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        fit = (model(x) - 1).pow(2).mean()
        shown = fit.item() + 0.1 * model.weight.detach().abs().sum()
        optimizer.zero_grad()
        fit.backward()
        optimizer.step()
    print(shown)

Blind spots:
    A running total of the losses of several steps is no such sum (see BP304).

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.chosen_returns import choosing_return
from backprobe.rules.analysis.graph.walks import node_of, walked
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.parents import operations_by_number
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="larger-loss-dropped",
    code="BP817",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("backward", "node", "optimizer"),
)

LEAST: Final = 2
"""Steps that made the sum: once may be a look."""

_SUMS: Final = frozenset({"+", "add", "torch.add", ".add"})
_SCALES: Final = frozenset({"*", "/", ".mul", ".div"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that makes the sum."""
    roots = {call.roots[0].tensor: call for call in _plain_calls(record)}
    found: dict[int, list[tuple[Operation, BackwardCall]]] = {}
    used = set[int]()
    for row in record.operations if record.optimizer_events else ():
        if row.function in _SUMS and row.requires_grad and row.shape == () and row.tensor is not None and row.is_value:
            call = next((roots[one] for one in row.operands if one in roots), None)
            if row.tensor in _roots(record) or node_of(record, row.tensor) in walked(record):
                used.add(row.statement)  # a sum that is left out in the first steps only
            elif call is not None and not _is_used(record, row.tensor) and _is_lost(record, row, call):
                found.setdefault(row.statement, []).append((row, call))
    for site, rows in found.items():
        if site not in used and len({call.call for _row, call in rows}) >= LEAST:
            yield _finding(record, site, rows)


def _plain_calls(record: Record) -> Iterator[BackwardCall]:
    """The backward calls that trained, from one root each."""
    for call in record.backward_calls:
        if call.accumulate_grad and call.outcome == "finished" and len(call.roots) == 1 and not call.inputs:
            yield call


def _is_used(record: Record, total: int) -> bool:
    """A backward call walked the sum, or something tracked was made of it."""
    return node_of(record, total) in walked(record) or any(
        row.requires_grad and total in row.operands for row in record.operations
    )


def _is_lost(record: Record, row: Operation, call: BackwardCall) -> bool:
    """The other summand has a history, and no part of it was ever walked, or a backward call's root."""
    known = operations_by_number(record)
    root = call.roots[0].tensor
    others: list[int | Operation] = [one for one in row.operands if one != root]
    others += [known[one] for one in row.inner if one in known]
    if not others or any(
        part in _roots(record) or node_of(record, part) in walked(record)
        for one in others
        for part in _parts(record, one)
    ):
        return False
    return all(_is_tracked(record, one, call.moment_before) for one in others)


def _is_tracked(record: Record, one: int | Operation, moment: int) -> bool:
    if not isinstance(one, int):
        return bool(one.requires_grad)
    state = state_at(record, one, moment)
    return state is not None and state.requires_grad and not state.is_leaf


def _parts(record: Record, one: int | Operation) -> Iterator[int]:
    """The tensors that a summand is, or is a multiple of."""
    known = operations_by_number(record)
    waiting: list[int | Operation] = [one]
    while waiting:
        part = waiting.pop()
        if isinstance(part, int):
            made = _made(record).get(part)
            yield part
            if made is not None and made.function in _SCALES | _SUMS:
                waiting.append(made)
        elif part.function in _SCALES | _SUMS:
            waiting += [*part.operands, *(known[inner] for inner in part.inner if inner in known)]


@table
def _roots(record: Record) -> frozenset[int | None]:
    """The tensors that backward calls began at, also those whose graph was not followed."""
    return frozenset(one.tensor for call in record.backward_calls for one in call.roots)


@table
def _made(record: Record) -> dict[int, Operation]:
    """The operation that gave a tensor first."""
    found: dict[int, Operation] = {}
    for row in record.operations:
        if row.tensor is not None:
            found.setdefault(row.tensor, row)
    return found


def _finding(record: Record, site: int, rows: list[tuple[Operation, BackwardCall]]) -> Finding:
    row, call = rows[0]
    chosen = None if row.tensor is None else choosing_return(record, site, call.roots[0].tensor or 0, row.tensor)
    total = next((one.name for one in lookup(record).bindings_of[row.tensor or 0]), "the sum")
    verb = "Walk" if chosen is None else "Return"
    bound = lookup(record).bindings_of[call.roots[0].tensor or 0]
    root = bound[0].name if bound else call.roots[0].name or "one term"
    return told(
        record,
        RULE,
        site if chosen is None else chosen,
        (
            f"`{total}` adds a term to `{root}`, and no backward call walks it: the call starts from `{root}` alone.",
            "The other term trains nothing, though it is computed in each step.",
            f"{verb} `{total}`; or drop the term, or detach it where it is only shown.",
        ),
        binding=total,
        moments=[one.moment_before for _row, one in rows],
        related=(
            ("the sum is made here", None if chosen is None else site),
            ("this call walks one part", call.site),
        ),
        evidence={"steps": len(rows), "assumed": "a term with a history is meant to train"},
        tensors=[] if row.tensor is None else [row.tensor],
    )
