"""Calls of torch's losses: what each was given, what computed that, and how the program writes the call."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import behind_shapes, node_of, walked
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding import Region

if TYPE_CHECKING:
    from backprobe.record import Record, Statistics, WatchedCall

FUNCTIONAL: Final = "torch.nn.functional."


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCall:
    """One call of a loss whose result a backward call walked.

    Attributes:
        given: The tensor in its first place. made_by: the node that computed its elements, behind views; None if it is
            not tracked or not known.
    """

    call: WatchedCall
    site: int
    moment: int
    given: int
    made_by: int | None


def loss_calls(record: Record, *names: str, is_walked: bool = True) -> list[LossCall]:
    """The calls of these functions of `torch.nn.functional` at a line of the program, in order.

    Args:
        is_walked: Only those whose result was differentiated.
    """
    wanted = {FUNCTIONAL + name for name in names}
    found: list[LossCall] = []
    for call in record.watched_calls:
        if call.function not in wanted or call.site is None or call.moment is None or not call.inputs:
            continue
        given = call.inputs[0].tensor
        if given is None or (is_walked and not _is_walked(record, call)):
            continue
        made_by = behind_shapes(record, node_of(record, given))
        found.append(LossCall(call=call, site=call.site, moment=call.moment, given=given, made_by=made_by))
    return found


def _is_walked(record: Record, call: WatchedCall) -> bool:
    return any(node_of(record, tensor) in walked(record) for tensor in call.outputs)


def tensor_given(call: WatchedCall, name: str) -> int | None:
    """The tensor handed in for a parameter."""
    return next((one.tensor for one in call.inputs if one.name == name), None)


def shape_of(record: Record, tensor: int | None) -> tuple[int, ...] | None:
    """The sizes of a tensor; None if they are not known."""
    return None if tensor is None else lookup(record).tensors[tensor].shape


def class_dim(shape: tuple[int, ...]) -> int | None:
    """The dimension of the classes in what a class loss is given: 1, or 0 without a batch; None of a scalar."""
    return min(1, len(shape) - 1) if shape else None


def values_of(record: Record, tensor: int, moment: int) -> Statistics | None:
    """What was measured of a tensor's elements up to a moment; None if nothing was."""
    state = state_at(record, tensor, moment)
    return None if state is None else state.value


def written(record: Record, call: WatchedCall) -> ast.Call | None:
    """The expression of a watched call in the program; None if it cannot be told."""
    if call.site is None or call.col is None:
        return None
    site = site_of(record, call.site)
    node = statement(record, site)
    found = [
        part
        for part in ast.walk(node or ast.Pass())
        if isinstance(part, ast.Call) and region_in(record, site.source, part).start_col == call.col
    ]
    # a chain such as `f(x).mean()` begins in one column: the innermost call is the one
    return found[-1] if found else None


def callee(record: Record, call: WatchedCall) -> str:
    """How the program writes the function that it called: `criterion`, `F.nll_loss`."""
    node = written(record, call)
    return call.function.rpartition(".")[2] if node is None else ast.unparse(node.func)


def region_of_call(record: Record, call: WatchedCall) -> Region | None:
    """Where the call stands in its statement."""
    node = written(record, call)
    return None if node is None or call.site is None else region_in(record, site_of(record, call.site).source, node)


def argument_text(record: Record, call: WatchedCall, at: int, name: str) -> str:
    """An argument as the program writes it; its parameter's name if that cannot be told."""
    node = written(record, call)
    if node is None:
        return name
    by_name = next((one.value for one in node.keywords if one.arg == name), None)
    value = by_name or (node.args[at] if at < len(node.args) else None)
    text = name if value is None else ast.unparse(value)
    return text if len(text) <= 40 else name
