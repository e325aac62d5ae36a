"""Where gradients went that an `autograd.grad` without a graph returned: operation by operation, through functions."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.breaks import steps_after
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.arithmetic import imported_from_torch
from backprobe.rules.analysis.source.scopes import names
from backprobe.rules.analysis.source.syntax import statement_at, tree_of
from backprobe.rules.analysis.tensors.parents import is_detached
from backprobe.rules.analysis.training.grad_modes import SWITCHES
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers, with_gradient
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Operation, Record, Tensor

_STOPS: Final = SWITCHES | frozenset(
    {"detach", "data", "item", "tolist", "numpy", "sign", "round", "argmax", "argmin", "tensor", "backward"}
)
"""Behind these nothing is differentiated on purpose, or no tensor follows."""


@dataclass(slots=True)
class Flow:
    """What came of the returned gradients.

    Attributes:
        constants: Untracked tensors made of them, with the name each had first, if any.
        taken: Tracked tensors that took one of those in, each with the operation that did.
        added: Where one was added to a tracked number in the statement that walks it: `(fit + penalty).backward()`.
    """

    constants: dict[int, str] = field(default_factory=dict[int, str])
    taken: dict[int, Operation] = field(default_factory=dict[int, "Operation"])
    added: list[Operation] = field(default_factory=list["Operation"])


def flow_of(record: Record, call: BackwardCall) -> Flow:
    """The flow from one call on, with tracking on all the way."""
    flow = Flow()
    after = call.moment_after if call.moment_after is not None else call.moment_before
    for tensor in _returned(record, call, after):
        flow.constants[tensor] = _name(record, tensor)
    nameless: set[int] = set()
    for row in record.operations:
        if row.moment is None or row.moment < after or not _passes_on(record, row):
            continue
        given = any(one in flow.constants for one in row.operands) or any(one in nameless for one in row.inner)
        if not given or row.statement in _untracked_at(record):
            continue
        if row.requires_grad:
            if row.tensor is not None:
                flow.taken.setdefault(row.tensor, row)
            elif row.function == "+" and row.shape == () and row.statement in _walked_at(record):
                flow.added.append(row)
        elif row.tensor is None:
            nameless.add(row.operation)
        else:
            flow.constants.setdefault(row.tensor, _name(record, row.tensor))
    return flow


@dataclass(frozen=True, slots=True)
class Lost:
    """The call whose gradient has no history, and the statement that took it into what is walked for a step."""

    call: int
    taken: int


@table
def lost_with(record: Record) -> dict[int, Lost]:
    """The leaves that an optimizer steps on, and that only gradients without a history lead to: by leaf.

    The weights of examples in an inner loss: a step on them is all that the outer loss is for, and none ever came.
    """
    held = in_optimizers(record)
    idle = held.keys() - with_gradient(record)
    found: dict[int, Lost] = {}
    for call in record.backward_calls if idle else ():
        asked = {root.tensor for root in call.inputs or ()}
        behind = (reaches(record)[call.call].leaves & idle) - asked - found.keys()
        if behind and not call.accumulate_grad and not call.create_graph and call.outcome == "finished":
            flow = flow_of(record, call)
            for leaf in sorted(behind):
                taken = _walked_for(record, call, flow, held[leaf])
                if taken is not None:
                    found[leaf] = Lost(call.call, taken)
    return found


def _walked_for(record: Record, call: BackwardCall, flow: Flow, optimizers: list[int]) -> int | None:
    """The statement that took the gradient into what a later call walks, before one of these optimizers steps."""
    nodes = {made.node: row for one, row in flow.taken.items() if (made := lookup(record).node_of.get(one)) is not None}
    for later in record.backward_calls if nodes else ():
        if later.call > call.call and later.accumulate_grad and not steps_after(record, later).isdisjoint(optimizers):
            met = reaches(record)[later.call].met
            taken = next((row.statement for node, row in nodes.items() if node in met), None)
            if taken is not None:
                return taken
    return None


@table
def _walked_at(record: Record) -> frozenset[int]:
    """The statements of backward calls that fill `.grad`."""
    rows = (row for row in record.backward_calls if row.accumulate_grad and row.outcome == "finished")
    return frozenset(row.site for row in rows if row.site is not None)


@table
def _untracked_at(record: Record) -> frozenset[int]:
    """The statements that ran with tracking off."""
    return frozenset(row.site for row in record.moments if row.site is not None and not row.grad_mode)


def _passes_on(record: Record, row: Operation) -> bool:
    """It is a function of torch, a method of a tensor or an operator: one of the program has its own operations."""
    last = row.function.rpartition(".")[2]
    if row.result != "tensor" or last in _STOPS or "float" not in row.dtype:
        return False
    parts = row.function.split(".")
    if not row.function[:1].isidentifier() or parts[0] == "sum":
        return True
    source = lookup(record).sites[row.statement].source
    if parts[0] in imported_from_torch(record).get(source, {}):
        return True
    file = names(record).get(source)  # else `g.norm`, a method of a tensor, if it is none of the program
    is_attribute = len(parts) == 2 and parts[0] == "self"
    return len(parts) > 1 and not is_attribute and file is not None and last not in file.functions


def _returned(record: Record, call: BackwardCall, after: int) -> list[int]:
    """The tensors that were first seen between a call and the next one, and are what it returned."""
    later = [other.moment_before for other in record.backward_calls if other.call > call.call]
    until = later[0] if later else record.moments[-1].moment + 1
    shapes = [lookup(record).tensors[root.tensor].shape for root in call.inputs or () if root.tensor is not None]
    function = _function(record, call)
    given = {
        row.tensor
        for row in record.operations
        if row.moment is not None and after <= row.moment <= until and row.function.rpartition(".")[2] == function
    }
    return [
        row.tensor
        for row in record.tensors
        if after <= row.moment <= until
        and row.shape in shapes
        and _is_untracked(record, row)
        and not is_detached(record, row.tensor)
        and (_is_handed_on(record, call, row) or row.tensor in given)
    ]


def _is_handed_on(record: Record, call: BackwardCall, row: Tensor) -> bool:
    """It was first seen in the statement of the call, or as an argument of the function that is handed what it gave."""
    node = statement_at(record, call.site)
    if row.site is None or node is None:
        return False
    site = lookup(record).sites[row.site]
    if site.kind != "enter":
        return statement_at(record, row.site) is node
    called = {part.func.id for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    return site.function.rpartition(".")[2] in called


def _function(record: Record, call: BackwardCall) -> str | None:
    """What the function is called that ends with the call: of a lambda the name that it was given."""
    node = statement_at(record, call.site)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    tree = None if call.site is None else tree_of(record, lookup(record).sites[call.site])
    if not isinstance(node, ast.Return) or tree is None:
        return None
    return next((above.name for above in tree.ancestors(node) if isinstance(above, ast.FunctionDef)), None)


def _is_untracked(record: Record, row: Tensor) -> bool:
    state = state_at(record, row.tensor, row.moment)
    return state is not None and not state.requires_grad


def _name(record: Record, tensor: int) -> str:
    bound = lookup(record).bindings_of[tensor]
    return bound[0].name if bound else ""
