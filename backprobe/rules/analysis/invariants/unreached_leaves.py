"""Where the way of a leaf to the loss ends, when no gradient ever comes: the statement that cuts it off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from backprobe.rules.analysis.invariants.replaced_values import replaced_values
from backprobe.rules.analysis.invariants.value_flow import value_flow
from backprobe.rules.analysis.modules.module_sites import calls_by_number, modules_by_number
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, ModuleCall, Operation, Record


@table
def owners(record: Record) -> Mapping[int, Module]:
    """Return the module that owns a parameter, by tensor."""
    return {row.tensor: module for module in record.modules for row in module.parameters if row.tensor is not None}


def site_of_cut(record: Record, call: ModuleCall, leaf: int) -> int | None:
    """Return the statement that cuts a leaf off from the loss, given the first call of its module.

    In this order: the switch of the grad mode around the call, a custom Function that gave the leaf no gradient, the
    first operation whose untracked result goes into a loss, the statement that replaces the values made of the leaf,
    the first operation whose untracked result is used on, and a forward hook. None: nothing of these is known.
    """
    chain = _enclosing(record, call)
    if not call.grad_mode:
        return _site_of_mode(record, call, chain)
    return _site_of_custom_function(record, leaf) or _site_of_operation(record, chain) or _site_of_hook(record)


def _enclosing(record: Record, call: ModuleCall) -> list[ModuleCall]:
    calls, chain = calls_by_number(record), [call]
    while chain[-1].parent is not None and chain[-1].parent in calls:
        chain.append(calls[chain[-1].parent])
    return chain


def _site_of_mode(record: Record, call: ModuleCall, chain: list[ModuleCall]) -> int | None:
    when = next((row.moment for row in record.moments if row.module_call == call.module_call), None)
    for mode in record.modes:
        is_off = (mode.kind, mode.after) in (("grad", "False"), ("inference", "True"))
        if not is_off or mode.site is None or mode.moment is None:
            continue
        if when is None or mode.moment <= when <= (mode.until or when):
            return mode.site
    tracked = [row for row in chain if row.site is not None and row.grad_mode] or chain[-1:]
    return tracked[0].site


def _site_of_custom_function(record: Record, leaf: int) -> int | None:
    accumulators = {node.node for node in record.nodes if node.variable == leaf}
    before = {edge.node for edge in record.edges if edge.to_node in accumulators}
    for node in record.nodes:
        if node.custom and node.node in before:
            return node.custom_site if node.custom_site is not None else node.site
    return None


def _site_of_operation(record: Record, chain: list[ModuleCall]) -> int | None:
    flow = value_flow(record)
    roots = frozenset(root.tensor for call in record.backward_calls for root in call.roots if root.tensor is not None)
    hooks = _hooks_of_modules(record)
    for call in chain:
        rows = [row for row in record.operations if row.statement == call.site]
        starts = [row for row in rows if row.requires_grad or row.result == "tensors"][:12]
        own = [row for row in starts if row.function.rpartition(".")[2] == _last_name(record, call)]
        cuts = flow.first_cuts(own or starts)  # a statement may call another module, too
        chosen = [row for row in cuts if flow.reaches(row, roots)]
        replacing = None if chosen else _site_of_replacing(record, own or starts)
        if replacing is not None:
            return replacing
        chosen = chosen or cuts
        if chosen:
            called = [row.module for row in record.module_calls if row.site == chosen[0].statement]
            return next((hooks[module] for module in called if module in hooks), chosen[0].statement)
        if rows:
            break
    return None


def _site_of_replacing(record: Record, starts: list[Operation]) -> int | None:
    """Return the statement that replaced, before the backward call, the values that some operations led to."""
    flow = value_flow(record)
    for site, replaced in replaced_values(record).items():
        if any(flow.reaches(row, replaced.tensors, is_tracked=True) for row in starts):
            return site
    return None


def _last_name(record: Record, call: ModuleCall) -> str:
    """Return what the module of a call is called in the module that holds it."""
    module = modules_by_number(record).get(call.module)
    return "" if module is None else (module.fqn or module.binding or "").rpartition(".")[2]


def _site_of_hook(record: Record) -> int | None:
    return next(iter(_hooks_of_modules(record).values()), None)


@table
def _hooks_of_modules(record: Record) -> Mapping[int, int]:
    """Return the statement that registered a forward hook, by module."""
    return {
        hook.module: hook.site
        for hook in record.hooks
        if hook.kind == "module-forward" and hook.module is not None and hook.site is not None
    }


def site_of_zero(record: Record) -> int | None:
    """Return the statement of the first node, from the root on, behind which all gradients are exactly zero."""
    index = lookup(record)
    for call in record.backward_calls:
        rows = [row for row in index.passes_of_call[call.call] if row.position is not None]
        norms = {row.node: row.grad_output.norm for row in rows if row.grad_output is not None}
        last: int | None = None
        for row in sorted(rows, key=lambda row: row.position or 0):
            if norms.get(row.node):
                behind = [norms[edge.to_node] for edge in index.edges_of[row.node] if edge.to_node in norms]
                if behind and not any(behind):
                    last = row.node
        if last is not None and last in index.nodes:
            return index.nodes[last].site
    return None
