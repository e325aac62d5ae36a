"""Where tracking ends: statements that read a tracked tensor and give an untracked one."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.lookup import lookup
from backprobe.rules.steps import state_at
from backprobe.rules.syntax import statement, value_of
from backprobe.rules.table import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Record

_CAUSES: Final = {
    "detach": "`.detach()`",
    "detach_": "`.detach_()`",
    "data": "`.data`",
    "item": "`.item()`",
    "numpy": "`.numpy()`",
    "tolist": "`.tolist()`",
    "tensor": "`torch.tensor()`",
    "argmax": "`argmax`, which has no derivative,",
    "no_grad": "`no_grad`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A statement that made an untracked tensor from a tracked one.

    Attributes:
        tensor: What came out; source: the tracked one that went in.
        how: Its cause in words, as far as the statement or the grad mode shows it.
    """

    tensor: int
    source: int
    site: int
    how: str


@table
def cuts(record: Record) -> dict[int, Cut]:
    """The cut at which each untracked tensor lost its history, by the tensor that came out."""
    found: dict[int, Cut] = {}
    for binding in record.bindings:
        state = state_at(record, binding.tensor, binding.moment)
        if state is None or state.requires_grad or binding.tensor in found:
            continue
        for parent in binding.parents:
            before = state_at(record, parent, binding.moment)
            if parent != binding.tensor and before is not None and before.requires_grad:
                found[binding.tensor] = Cut(
                    tensor=binding.tensor, source=parent, site=binding.site, how=_cause(record, binding)
                )
                break
    return found


def _cause(record: Record, binding: Binding) -> str:
    index = lookup(record)
    moment = index.moments[binding.moment]
    if moment.inference_mode:
        return "`inference_mode`"
    if not moment.grad_mode:
        return "`no_grad`"
    value = value_of(statement(record, index.sites[binding.site]))
    for node in ast.walk(value) if value is not None else ():
        if isinstance(node, ast.Attribute) and node.attr in _CAUSES:
            return _CAUSES[node.attr]
    return "this statement"


def derived_from(record: Record, start: int) -> frozenset[int]:
    """A tensor and everything computed from it, tracked or not, as far as `parents` tell."""
    children = _children(record)
    seen, waiting = {start}, [start]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in seen:
                seen.add(child)
                waiting.append(child)
    return frozenset(seen)


@table
def _children(record: Record) -> dict[int, set[int]]:
    children: defaultdict[int, set[int]] = defaultdict(set)
    for binding in record.bindings:
        for parent in binding.parents:
            if parent != binding.tensor:
                children[parent].add(binding.tensor)
    return dict(children)
