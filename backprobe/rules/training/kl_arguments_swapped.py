"""BP868 kl-arguments-swapped: `kl_div` is given the teacher's distribution first and the student's as the target.

What it finds:
    In every call the first argument of `kl_div` is computed anew from each batch and not trained, the target is what is
    trained, and nothing but class and regression losses of torch goes into the root beside it.

Why it matters:
    It is the divergence the other way round: the student is pushed into one mode of the teacher and may ignore the
    others. Distillation and consistency training mean KL(teacher || student).

What PyTorch does:
    `kl_div(input, target)` is KL(target || input), with `input` in logarithms: in formulas the other order. Both
    arguments may be tracked, so nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    teacher, student = nn.Linear(4, 3).requires_grad_(False), nn.Linear(4, 3)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        wanted, guess = teacher(x).log_softmax(1), student(x).log_softmax(1)
        optimizer.zero_grad()
        nn.functional.kl_div(wanted, guess, log_target=True, reduction="batchmean").backward()  # <- here
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    teacher, student = nn.Linear(4, 3).requires_grad_(False), nn.Linear(4, 3)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        wanted, guess = teacher(x).log_softmax(1), student(x).log_softmax(1)
        optimizer.zero_grad()
        nn.functional.kl_div(guess, wanted, log_target=True, reduction="batchmean").backward()
        optimizer.step()

Near miss: the distance from a fixed prior
    import torch
    from torch import nn

    encoder = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    prior = torch.full((8, 3), 1 / 3).log()
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        nn.functional.kl_div(prior, encoder(x).softmax(1), reduction="batchmean").backward()
        optimizer.step()

Near miss: both ways
    import torch
    from torch import nn

    teacher, student = nn.Linear(4, 3).requires_grad_(False), nn.Linear(4, 3)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    divergence = nn.KLDivLoss(log_target=True, reduction="batchmean")
    for x in torch.randn(3, 8, 4):
        p, q = teacher(x).log_softmax(1), student(x).log_softmax(1)
        optimizer.zero_grad()
        (divergence(p, q) + divergence(q, p)).backward()
        optimizer.step()

Blind spots:
    Beside a reward, an entropy or any term that is no loss of torch it is taken for a penalty that is meant so.

Source:
    torch.nn.KLDivLoss in PyTorch's documentation; Hinton et al., "Distilling the Knowledge in a Neural Network" (2015).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import node_of, op, operands
from backprobe.rules.analysis.losses.loss_calls import (
    LossCall,
    argument_text,
    callee,
    loss_calls,
    region_of_call,
    tensor_given,
    values_of,
    written,
)
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.syntax import region_in, site_of
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Edit, Finding

RULE = Rule(
    name="kl-arguments-swapped",
    code="BP868",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("call", "node", "backward", "stats"),
)

LEAST: Final = 2
"""Calls: what is computed anew shows itself in two."""
_SUMS: Final = frozenset({"Add", "Sub", "Mul", "Div", "Neg", "Sum", "Mean", "Stack", "Unsqueeze", "Squeeze", "View"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per call of the loss in the program."""
    calls = loss_calls(record, "kl_div")
    if any(_is_tracked(record, one.given, one.moment) and not _target_is_tracked(record, one) for one in calls):
        return
    by_site: dict[int, list[LossCall]] = {}
    for call in calls:
        by_site.setdefault(call.site, []).append(call)
    for site, found in by_site.items():
        swapped = all(_is_swapped(record, call) for call in found)
        if swapped and len(found) >= LEAST and _is_new_each_time(record, found) and not _beside_others(record):
            yield _finding(record, site, found)


def _is_tracked(record: Record, tensor: int | None, moment: int) -> bool:
    state = None if tensor is None else state_at(record, tensor, moment)
    return state is not None and state.requires_grad


def _target_is_tracked(record: Record, call: LossCall) -> bool:
    return _is_tracked(record, tensor_given(call.call, "target"), call.moment)


def _is_swapped(record: Record, call: LossCall) -> bool:
    return _target_is_tracked(record, call) and not _is_tracked(record, call.given, call.moment)


def _is_new_each_time(record: Record, calls: list[LossCall]) -> bool:
    """The values of the first argument differ from call to call: it is computed from data, no fixed prior."""
    seen = {
        (stats.sum, stats.min, stats.max)
        for call in calls
        if (stats := values_of(record, call.given, call.moment)) is not None
    }
    return len(seen) > 1


def _beside_others(record: Record) -> bool:
    """Some root of the run is made of more than losses of torch."""
    losses = {
        node
        for call in record.watched_calls
        if call.function.endswith(("_loss", ".cross_entropy", ".kl_div", "_with_logits", "binary_cross_entropy"))
        for tensor in call.outputs
        if (node := node_of(record, tensor)) is not None
    }
    index = lookup(record)
    waiting = [node for call in record.backward_calls for root in call.roots if (node := node_of(record, root.tensor))]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if node in seen or node in losses:
            continue
        seen.add(node)
        if op(index.nodes[node]) not in _SUMS or any(
            size != 1 for one in index.nodes[node].outputs for size in one.shape
        ):
            return True
        waiting += [one for one in operands(record, node) if one is not None]
    return False


def _finding(record: Record, site: int, found: list[LossCall]) -> Finding:
    first = found[0]
    name = callee(record, first.call)
    given, target = argument_text(record, first.call, 0, "input"), argument_text(record, first.call, 1, "target")
    edits = _swapped(record, first)
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` gets `{given}` first, which is not trained, and what is trained, `{target}`, as its target.",
            "That is the divergence the other way round: the model may leave out what the target thinks likely.",
            "Give the trained log-probabilities first and the distribution to learn second.",
        ),
        binding=given,
        moments=[one.moment for one in found],
        region=region_of_call(record, first.call),
        evidence={"calls": len(found), "assumed": "what is not trained is what is to be learnt"},
        fixes=(Fix(title="Swap the two arguments", safety="unsafe", edits=edits),) if edits else (),
        tensors=(first.given,),
    )


def _swapped(record: Record, call: LossCall) -> tuple[Edit, ...]:
    """Edits that swap the arguments: where both are logarithms, or the target is written as `x.exp()`."""
    node = written(record, call.call)
    if node is None or len(node.args) < 2:
        return ()
    one, other = node.args[0], node.args[1]
    first, second = ast.unparse(other), ast.unparse(one)
    if not call.call.arguments.get("log_target"):
        if (
            not isinstance(other, ast.Call)
            or not isinstance(other.func, ast.Attribute)
            or not isinstance(one, ast.Name)
        ):
            return ()
        if other.func.attr != "exp" or other.args:
            return ()
        first, second = ast.unparse(other.func.value), f"{second}.exp()"
    site = site_of(record, call.site)
    return (
        replacement(record, site, region_in(record, site.source, one), first),
        replacement(record, site, region_in(record, site.source, other), second),
    )
