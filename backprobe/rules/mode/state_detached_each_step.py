"""BP669 state-detached-each-step: a recurrent cell gets its own state detached at every step of a sequence.

What it finds:
    An `nn.RNNCell`, `nn.GRUCell` or `nn.LSTMCell` runs several times for one backward call, and every time but the
    first it is handed a state that came from its last run and was detached. The finding stands at the `detach()`; if a
    helper does that, at its call in the function of the cell.

Why it matters:
    The gradient goes back one step only: the cell never learns to keep anything for later, though the loss falls.

What PyTorch does:
    `detach()` ends the history of the state. For truncated backpropagation it belongs between backward calls. Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn

    cell, out = nn.GRUCell(2, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
    for series in torch.randn(3, 5, 8, 2):
        state = torch.zeros(8, 4)
        for x in series:
            state = cell(x, state)
            state = state.detach()  # <- here
        loss = (out(cell(series[-1], state)) - series[0, :, :1]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    cell, out = nn.GRUCell(2, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
    for series in torch.randn(3, 5, 8, 2):
        state = torch.zeros(8, 4)
        for x in series:
            state = cell(x, state)
        loss = (out(state) - series[0, :, :1]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: truncated between backward calls
    import torch
    from torch import nn

    cell, out = nn.GRUCell(2, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
    state = torch.zeros(8, 4)
    for series in torch.randn(3, 5, 8, 2):
        state = state.detach()
        for x in series:
            state = cell(x, state)
        loss = (out(state) - series[0, :, :1]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Cells of the program's own, and `nn.LSTM` called in a loop: there a detached value may be a refinement by design.

Source:
    Williams and Peng, "An efficient gradient-based algorithm for on-line training of recurrent network trajectories"
    (1990), for truncation; observed with torch 2.13.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.module_sites import modules_by_number
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.tensors.parents import operations_by_number
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="state-detached-each-step",
    code="BP669",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="manual",
    needs=("module", "backward", "binding"),
    explains=("gradient-not-derivative",),
)

CELLS: Final = frozenset({"RNNCell", "GRUCell", "LSTMCell"})
_DETACHES: Final = (".detach", ".data")
LEAST: Final = 2
"""Backward calls with this shape, and runs of the cell with a detached state before each: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that runs a cell."""
    calls = [call.moment_before for call in record.backward_calls]
    for site in _cell_sites(record):
        windows: dict[int, list[int | None]] = {}
        for row in _runs(record, site):
            window = bisect_right(calls, row.moment or 0)
            windows.setdefault(window, []).append(_detached_by(record, row, site))
        walked = [found for at, found in windows.items() if at < len(calls)]
        later = [one for found in walked for one in found[1:]]
        whole = [found for found in walked if len(found) > LEAST]  # a statement that runs often is not always recorded
        if len(whole) >= LEAST and None not in later:
            yield _finding(record, site, [one for one in later if one is not None], len(whole[0]))


@table
def _cell_sites(record: Record) -> tuple[int, ...]:
    """The statements that run a recurrent cell of torch, in order."""
    modules = modules_by_number(record)
    cells = (
        call.site
        for call in record.module_calls
        if call.grad_mode
        and (module := modules.get(call.module)) is not None
        and module.cls in CELLS
        and not module.user_code
    )
    return tuple(dict.fromkeys(site for site in cells if site is not None))


def _runs(record: Record, site: int) -> list[Operation]:
    """The calls of the cell in a statement: those that are handed more than one tensor, or a tuple of states."""
    rows = [row for row in record.operations if row.statement == site and len(row.operands) + len(row.inner) > 1]
    functions = {row.function for row in rows if not row.function.startswith(".")}
    return [row for row in rows if row.function in functions and row.result in ("tensor", "tensors")]


@table
def _detaching(record: Record) -> dict[int, Operation]:
    """The operations that detach, by number."""
    return {row.operation: row for row in record.operations if row.function.endswith(_DETACHES)}


@table
def _detached(record: Record) -> dict[int, Operation]:
    """The operation that gave each detached tensor."""
    return {row.tensor: row for row in _detaching(record).values() if row.tensor is not None}


@table
def _detached_from(record: Record) -> dict[int, list[Operation]]:
    """The operations that detach, by what they take."""
    found: dict[int, list[Operation]] = {}
    for row in _detaching(record).values():
        for one in row.operands:
            found.setdefault(one, []).append(row)
    return found


def _detached_by(record: Record, run: Operation, site: int) -> int | None:
    """The operation that detached a state which a cell of the same statement gave and this run was handed."""
    given = _given_at(record, site)
    handed = [_detached(record)[one] for one in run.operands if one in _detached(record)]
    handed += [_detaching(record)[one] for one in run.inner if one in _detaching(record)]
    found = next((row.operation for row in handed if given.intersection(row.operands)), None)
    return found if found is not None else _detached_unseen(record, run, given)


def _detached_unseen(record: Record, run: Operation, given: frozenset[int]) -> int | None:
    """That of a state which came out of a tuple or of a function: it has no history, and is bound of one that had."""
    bindings, detached = lookup(record).bindings_of, _detached_from(record)
    until = run.moment or 0
    tracked = {one: was.requires_grad for one in run.operands if (was := state_at(record, one, until))}
    if any(tracked.get(one) for one in given.intersection(run.operands)):
        return None
    untracked = [one for one, requires_grad in tracked.items() if not requires_grad]
    made = [parent for one in untracked for row in bindings[one][:1] for parent in row.parents if parent in given]
    inner = (operations_by_number(record)[one] for one in run.inner if one in operations_by_number(record))
    made += [one for row in inner if not row.requires_grad for one in row.operands if one in given]
    rows = [row for one in made for row in detached.get(one, ()) if (row.moment or 0) <= until]
    if made and not rows:  # a statement that runs often is not always recorded: it is the one of earlier turns
        rows = [row for row in _detaching(record).values() if given.intersection(row.operands)][:1]
    return rows[0].operation if rows else None


def _given_at(record: Record, site: int) -> frozenset[int]:
    """What a statement gave: the tensors of its operations, and those that its names came to hold."""
    return _given(record).get(site, frozenset())


@table
def _given(record: Record) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    for row in record.operations:
        if row.tensor is not None:
            found.setdefault(row.statement, set()).add(row.tensor)
    for bound in record.bindings:
        found.setdefault(bound.site, set()).add(bound.tensor)
    return {site: frozenset(tensors) for site, tensors in found.items()}


def _finding(record: Record, site: int, cuts: list[int], runs: int) -> Finding:
    rows = [_detaching(record)[one] for one in cuts]
    module = next(call.module for call in record.module_calls if call.site == site)
    cell = modules_by_number(record)[module].cls
    told_at = _called_at(record, rows[0], site)
    return told(
        record,
        RULE,
        told_at,
        (
            f"The state of this `nn.{cell}` is detached at each of its {runs} steps, before one backward call.",
            "The gradient goes back one step only, so the cell learns nothing over time.",
            "Detach the state between backward calls: at the start of each sequence or chunk.",
        ),
        binding=cell,
        moments=[row.moment or 0 for row in rows],
        related=(
            ("the cell runs here", site if site != told_at else None),
            ("it is detached here", rows[0].statement if rows[0].statement != told_at else None),
        ),
        evidence={"cell": cell, "runs_in_one_call": runs, "detached": len(rows)},
    )


def _called_at(record: Record, row: Operation, site: int) -> int:
    """The statement that detaches; of a helper the first one behind it that ends in the function of the cell."""
    function, moments = site_of(record, site).function, record.moments
    if site_of(record, row.statement).function == function:
        return row.statement
    later = (one.site for one in moments[row.moment or 0 :] if one.site is not None)
    return next((one for one in later if site_of(record, one).function == function), row.statement)
