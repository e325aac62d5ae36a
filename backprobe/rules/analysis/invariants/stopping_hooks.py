"""Hooks behind which no gradient goes on: what comes to them is not zero, and what leaves them is zero or None."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.arrivals import is_nonzero, is_zero
from backprobe.rules.analysis.gradients.hook_code import hook_function, returned_by_hook
from backprobe.rules.analysis.gradients.hook_returns import replaced_gradient
from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Hook, Node, NodePass, Record

_OF_MODULE: Final = "BackwardHookFunctionBackward"
"""The node that torch puts around a module with a backward hook."""


def hook_before(record: Record, leaves: Iterable[int]) -> Hook | None:
    """Return the hook that stops the gradients of some leaves, of all of them; None: there is none."""
    wanted, met = set(leaves), set[int]()
    found: Hook | None = None
    for hook, stopped, is_seen in stopping_hooks(record):
        if is_seen and not wanted.isdisjoint(stopped):
            found, met = found or hook, met | stopped
    return found if wanted <= met else None


def has_unseen_hook(record: Record, leaves: Iterable[int]) -> bool:
    """Return whether a hook may stop the gradients of some leaves: the record does not show what it returned."""
    return any(not is_seen and not stopped.isdisjoint(leaves) for _hook, stopped, is_seen in stopping_hooks(record))


@table
def stopping_hooks(record: Record) -> tuple[tuple[Hook, frozenset[int], bool], ...]:
    """Return the hooks behind which no gradient goes on, with the leaves behind them, and whether the hook was seen to.

    It was seen to if it got a gradient that is not zero and returned zeros or None.
    """
    nodes: dict[int, int] = {row.tensor: row.node for row in record.tensor_nodes}
    nodes |= dict(lookup(record).accumulator_of)
    found: list[tuple[Hook, frozenset[int], bool]] = []
    hooked: set[int] = set()
    for hook in record.hooks:
        if hook.tensor in nodes and hook.kind == "tensor" and _is_stopped(record, node := nodes[hook.tensor]):
            stops = _stops(record, hook)
            if stops is not False:
                hooked.add(node)
                found.append((hook, leaves_behind(record, node), stops is True))
    for node, hook, is_only in _of_modules(record):
        following = [edge.to_node for edge in lookup(record).edges_of[node.node] if edge.to_node is not None]
        if following and _gets_one(record, node.node) and all(_is_stopped(record, receiver) for receiver in following):
            is_seen = is_only and hooked.isdisjoint(following)
            found += [(hook, leaves_behind(record, receiver), is_seen) for receiver in following]
    return tuple(found)


def _stops(record: Record, hook: Hook) -> bool | None:
    """Return whether a hook on a tensor makes zeros of each gradient; None where the record does not show it.

    One function may be the hook of several tensors, and its calls do not tell of which. Nothing is known of a lambda.
    """
    if replaced_gradient(record, hook) is False:
        return False
    function = hook_function(record, hook)
    calls = () if function is None else tuple(returned_by_hook(record, hook, function))
    if calls and all(is_zero(call.before) for call in calls):
        return False
    return True if calls and all(is_nonzero(call.before) and is_zero(call.after) for call in calls) else None


def _of_modules(record: Record) -> Iterator[tuple[Node, Hook, bool]]:
    """Yield the nodes of backward hooks on modules, each with a hook of its module and whether that has no other."""
    rows = [hook for hook in record.hooks if hook.kind in ("module-backward", "module-backward-pre")]
    modules = {call.module_call: call.module for call in record.module_calls}
    for node in record.nodes if rows else ():
        module = modules.get(-1 if node.module_call is None else node.module_call)
        hooks = [hook for hook in rows if hook.module == module] or (rows if len(rows) == 1 else [])
        if node.type == _OF_MODULE and hooks:
            yield node, hooks[0], len(hooks) == 1


def _passes(record: Record, node: int) -> list[NodePass]:
    return [row for row in lookup(record).passes_of_node[node] if row.position is not None]


def _is_stopped(record: Record, node: int) -> bool:
    """Whenever it ran, nothing came to it, or a gradient of zeros."""
    rows = _passes(record, node)
    return bool(rows) and all(row.hole or is_zero(row.grad_output) for row in rows)


def _gets_one(record: Record, node: int) -> bool:
    return any(is_nonzero(row.grad_output) for row in _passes(record, node))
