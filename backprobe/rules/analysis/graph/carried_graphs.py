"""What a later backward call walks of an earlier one's graph: the tensor that carries it over, and the statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from backprobe.rules.analysis.graph.reach import above, reaches
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.syntax import parts_of, statement_at
from backprobe.rules.analysis.tensors.autograd_errors import raised_as
from backprobe.rules.analysis.tensors.saved_changes import saved_changes
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.analysis.training.updates import updates
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Operation, Raised, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A tensor of an earlier backward call's time that a later call walks.

    Attributes:
        name: What the program called it when the later call came: `state` for its elements `state[0]`.
        site: The statement that fed it into what the later call walks. None: not known.
        made_anew: The statement that made it ran again before the later call: each turn has one of its own.
    """

    tensor: int
    name: str
    site: int | None
    made_anew: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedAgain:
    """A backward call that raised because it walks what an earlier one had walked.

    Attributes:
        nodes: Those that the second call met in vain: freed by the first, or with saved weights that changed since.
        cause: carried: a turn of the loop hands its graph to the next; built-once: one graph for all turns; shared: two
            calls of one turn share a part.
    """

    raised: Raised
    first: BackwardCall
    second: BackwardCall
    nodes: tuple[int, ...]
    carried: Carried | None
    cause: Literal["carried", "built-once", "shared"]


@table
def walked_again(record: Record) -> tuple[WalkedAgain, ...]:
    """The backward calls that met nodes of an earlier one in vain, with the last such call."""
    return tuple(_walked_again(record))


def _walked_again(record: Record) -> Iterator[WalkedAgain]:
    calls = lookup(record).calls
    for raised in raised_as(record, "freed-graph"):
        second = calls.get(raised.call) if raised.call is not None else None
        if second is None:
            continue
        met = reaches(record)[second.call].met
        freed = {call: met & reach.freed for call, reach in reaches(record).items() if call < second.call}
        guilty = [call for call, nodes in freed.items() if nodes]
        if guilty:
            yield _again(record, raised, calls[max(guilty)], second, freed[max(guilty)])
    for change in saved_changes(record):
        # retained on purpose, the graph of the turn before is walked again, over weights that were stepped since
        node = change.saved.node
        turns = [call for call, reach in reaches(record).items() if call < change.call.call and node in reach.met]
        if turns and change.by_update:
            again = _again(record, change.raised, calls[max(turns)], change.call, frozenset((node,)))
            if again.cause == "carried":
                yield again


def _again(
    record: Record, raised: Raised, first: BackwardCall, second: BackwardCall, nodes: frozenset[int]
) -> WalkedAgain:
    carried = carried_between(record, first, second, nodes)
    return WalkedAgain(
        raised=raised,
        first=first,
        second=second,
        nodes=tuple(sorted(nodes)),
        carried=carried,
        cause=_cause(record, first, second, carried),
    )


def carried_between(record: Record, first: BackwardCall, second: BackwardCall, nodes: frozenset[int]) -> Carried | None:
    """The youngest named tensor from before the first call through which the second one gets to some of these nodes."""
    index = lookup(record)
    met = reaches(record)[second.call].met
    leading = above(record, nodes, met)
    named = [
        (index.nodes[row.node].seq or 0, row.tensor)
        for row in record.tensor_nodes
        if row.node in leading
        and index.bindings_of[row.tensor]
        and index.bindings_of[row.tensor][0].moment <= first.moment_before
    ]
    if not named:
        return None
    tensor = max(named)[1]
    fed = _feeding(record, tensor, first, second) or _feeding_by_an_expression(record, tensor, first, second)
    last = [row for row in index.bindings_of[tensor] if row.moment <= second.moment_before][-1]
    return Carried(
        tensor=tensor,
        name=fed[1] if fed else last.name.split("[")[0],
        site=fed[0] if fed else None,
        made_anew=_runs_again(record, tensor, first, second),
    )


def _feeding(record: Record, tensor: int, first: BackwardCall, second: BackwardCall) -> tuple[int, str] | None:
    """The statement after the first call that reads the tensor and makes what the second one walks, and its name there.

    Of several the first one in the second call's own function; else the first of all.
    """
    index = lookup(record)
    met = reaches(record)[second.call].met
    made = [(row.moment, row.site) for row in record.bindings if _node(record, row.tensor) in met]
    made += [(row.moment, row.site) for row in index.inplace_of[tensor] if row.site is not None]
    start = first.moment_before if first.moment_after is None else first.moment_after
    found: list[tuple[bool, int, int, str]] = []
    for moment, site in made:
        if start < moment <= second.moment_before:
            row = index.sites[site]
            own = second.site is not None and row.function == index.sites[second.site].function
            names = {one.name for one in index.bindings_of[tensor]}
            names = {name for name in names if name in row.reads or name.split("[")[0] in row.reads}
            held = (name for name in names if _held(record, name, row.function, moment) == tensor)
            found += [(not own, moment, site, name) for name in held]
    if not found:
        return None
    _own, _moment, site, name = min(found)
    return site, name.split("[")[0]


def _feeding_by_an_expression(
    record: Record, tensor: int, first: BackwardCall, second: BackwardCall
) -> tuple[int, str] | None:
    """The same where no name of the statement held it, `cell(x, states[-1])`: the statement and the expression."""
    met = reaches(record)[second.call].met
    start = first.moment_before if first.moment_after is None else first.moment_after
    for row in record.operations:
        late = row.moment is not None and start <= row.moment < second.moment_before
        if late and tensor in row.operands and row.tensor is not None and _node(record, row.tensor) in met:
            return row.statement, _written(record, row, tensor)
    return None


def _written(record: Record, row: Operation, tensor: int) -> str:
    """The argument that the operation was given a tensor in, else the name that the tensor had last."""
    for part in parts_of(statement_at(record, row.statement)):
        if isinstance(part, ast.Call) and (part.lineno, len(part.args)) == (row.line, len(row.operands)):
            return ast.unparse(part.args[row.operands.index(tensor)])
    return lookup(record).bindings_of[tensor][-1].name


def _node(record: Record, tensor: int) -> int | None:
    row = lookup(record).node_of.get(tensor)
    return None if row is None else row.node


def _held(record: Record, name: str, function: str, moment: int) -> int | None:
    """The tensor that a name held before a statement that ended at a moment."""
    rows = [row for row in bindings_named(record).get(name, ()) if row.moment < moment]
    rows = [row for row in rows if row.function == function or "." in name] or [
        row for row in rows if row.function == "<module>"
    ]
    return rows[-1].tensor if rows else None


def _runs_again(record: Record, tensor: int, first: BackwardCall, second: BackwardCall) -> bool:
    """The statement that made the tensor, or changes it in place, ran between the two calls."""
    index = lookup(record)
    start = first.moment_before if first.moment_after is None else first.moment_after
    sites = {index.bindings_of[tensor][0].site, *(row.site for row in index.inplace_of[tensor])}
    return any(row.site in sites and start < row.moment <= second.moment_before for row in record.moments)


def _cause(
    record: Record, first: BackwardCall, second: BackwardCall, carried: Carried | None
) -> Literal["carried", "built-once", "shared"]:
    if carried is None:
        return "shared"
    if carried.made_anew:
        return "carried"
    trains = second.accumulate_grad and any(
        first.moment_before < update.moment <= second.moment_before for update in updates(record)
    )
    return "built-once" if trains and first.site == second.site else "shared"


def is_same_turn(record: Record, first: BackwardCall, second: BackwardCall) -> bool:
    """Neither an optimizer step nor a new turn of the loop lies between the two calls."""
    return step_of(record, first.moment_before) == step_of(record, second.moment_before) and first.site != second.site


def is_used_between(record: Record, first: BackwardCall, second: BackwardCall) -> bool:
    """What the first call brought is read, changed, cleared or stepped on before the second one begins."""
    leaves = reaches(record)[first.call].leaves
    start, end = first.moment_before, second.moment_before
    read = any(row.tensor in leaves and start < row.moment <= end for row in record.grad_reads)
    changed = any(row.tensor in leaves and start < row.moment <= end and row.call is None for row in record.leaf_grads)
    return read or changed or any(start < row.moment <= end for row in record.optimizer_events)
