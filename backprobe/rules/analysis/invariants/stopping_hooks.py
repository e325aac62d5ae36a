"""Hooks behind which no gradient goes on: what comes to them is not zero, and what leaves them is zero or None."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.arrivals import is_nonzero, is_zero
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
    for hook, stopped in stopping_hooks(record):
        if not wanted.isdisjoint(stopped):
            found, met = found or hook, met | stopped
    return found if wanted <= met else None


@table
def stopping_hooks(record: Record) -> tuple[tuple[Hook, frozenset[int]], ...]:
    """Return the hooks that stop each gradient that comes to them, with the leaves behind them."""
    nodes: dict[int, int] = {row.tensor: row.node for row in record.tensor_nodes}
    nodes |= dict(lookup(record).accumulator_of)
    found: list[tuple[Hook, frozenset[int]]] = []
    for hook in record.hooks:
        if hook.tensor in nodes and hook.kind == "tensor" and replaced_gradient(record, hook) is not False:
            node = nodes[hook.tensor]
            if _is_stopped(record, node) and any(_gets_one(record, sender) for sender in _senders(record)[node]):
                found.append((hook, leaves_behind(record, node)))
    for node, hook in _of_modules(record):
        following = [edge.to_node for edge in lookup(record).edges_of[node.node] if edge.to_node is not None]
        if following and _gets_one(record, node.node) and all(_is_stopped(record, receiver) for receiver in following):
            found += [(hook, leaves_behind(record, receiver)) for receiver in following]
    return tuple(found)


def _of_modules(record: Record) -> Iterator[tuple[Node, Hook]]:
    """Yield the nodes of hooks on modules, each with its hook: of its module, else the only one."""
    hooks = {hook.module: hook for hook in record.hooks if hook.kind == "module-backward"}
    modules = {call.module_call: call.module for call in record.module_calls}
    for node in record.nodes if hooks else ():
        module = modules.get(-1 if node.module_call is None else node.module_call)
        hook = hooks.get(module) or (next(iter(hooks.values())) if len(hooks) == 1 else None)
        if node.type == _OF_MODULE and hook is not None:
            yield node, hook


@table
def _senders(record: Record) -> defaultdict[int, list[int]]:
    """Return the nodes that send a gradient to a node, by that node."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for edge in record.edges:
        if edge.to_node is not None:
            found[edge.to_node].append(edge.node)
    return found


def _passes(record: Record, node: int) -> list[NodePass]:
    return [row for row in lookup(record).passes_of_node[node] if row.position is not None]


def _is_stopped(record: Record, node: int) -> bool:
    """Whenever it ran, nothing came to it, or a gradient of zeros."""
    rows = _passes(record, node)
    return bool(rows) and all(row.hole or is_zero(row.grad_output) for row in rows)


def _gets_one(record: Record, node: int) -> bool:
    return any(is_nonzero(row.grad_output) for row in _passes(record, node))
