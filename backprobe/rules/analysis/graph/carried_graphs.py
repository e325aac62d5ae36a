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
from backprobe.rules.analysis.tensors.collected_values import collected_between
from backprobe.rules.analysis.tensors.parents import operands_below
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
        kept: The statement that put it where the later turn found it; None: none did, or the one that takes it out
            again puts the next one there.
        made_anew: The statement that made it ran again before the later call: each turn has one of its own.
    """

    tensor: int
    name: str
    site: int | None
    made_anew: bool
    kept: int | None = None


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
    made_anew = _runs_again(record, tensor, first, second)
    held = None if fed else collected_between(record, first, second)
    if held is not None:
        site, name, kept = held
        return Carried(tensor=tensor, name=name, site=site, made_anew=made_anew, kept=kept)
    return Carried(
        tensor=tensor,
        name=fed[1] if fed else last.name.split("[")[0],
        site=fed[0] if fed else None,
        made_anew=made_anew,
        kept=_kept(record, tensor, fed, second),
    )


def _kept(record: Record, tensor: int, fed: tuple[int, str] | None, second: BackwardCall) -> int | None:
    """The last statement before the later call that only put the tensor somewhere: `self.state = state`, `old = new`.

    In an attribute, also where a module is handed it again as an argument, or under a further name of the later call's
    own function.
    """
    if fed is None:
        return None
    own = "" if second.site is None else lookup(record).sites[second.site].function
    feeding = lookup(record).sites[fed[0]].function
    made, *later = lookup(record).bindings_of[tensor]
    rows = [row for row in later if row.moment <= second.moment_before and row.site != made.site]
    if fed[1] in _stores(record, fed[0]):
        rows = [row for row in rows if "." in row.name and feeding not in (own, row.function)]
    elif "." in fed[1]:
        rows = [row for row in (made, *later) if row.moment <= second.moment_before and "." in row.name]
    else:
        names = {row.name.split("[")[0] for row in (made, *later)}
        reads = lookup(record).sites
        kept = [row for row in rows if "." in row.name and feeding not in (own, row.function)]
        rows = [row for row in rows if row.function == own and names & set(reads[row.site].reads)] or kept
    rows = [row for row in rows if row.name.split("[")[0] in _stores(record, row.site)]
    written = [row.moment for row in lookup(record).inplace_of[tensor] if row.moment <= second.moment_before]
    # what is written in place later on is carried by that write
    return rows[-1].site if rows and rows[-1].moment >= max(written, default=0) else None


def _stores(record: Record, site: int) -> frozenset[str]:
    """The names that a statement gives a value, `state` for `state[0]`."""
    return frozenset(name.split("[")[0] for name in lookup(record).sites[site].targets)


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
    below = operands_below(record)
    inside: list[Operation] = []
    for row in record.operations:
        if row.moment is None or not start <= row.moment < second.moment_before:
            continue
        if tensor in row.operands:
            inside.append(row)
        if inside and row.tensor is not None and tensor in below[row.operation] and _node(record, row.tensor) in met:
            here = [one for one in inside if one.statement == row.statement]
            return row.statement, _written(record, (here or [row])[-1], tensor)
    return None


def _written(record: Record, row: Operation, tensor: int) -> str:
    """The argument that the operation was given a tensor in, else the name that the tensor had last."""
    for part in parts_of(statement_at(record, row.statement)):
        if not isinstance(part, ast.Call | ast.BinOp):
            continue
        given = part.args if isinstance(part, ast.Call) else [part.left, part.right]
        if (part.lineno, len(given)) == (row.line, len(row.operands)):
            return ast.unparse(given[row.operands.index(tensor)])
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
