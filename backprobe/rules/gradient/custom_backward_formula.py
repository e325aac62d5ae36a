"""BP245 custom-backward-formula: `backward` of a custom Function is not the derivative of its `forward`.

What it finds:
    For tensors of one element both methods are evaluated as they stand in the source. What `backward` returns for an
    input differs from the derivative of `forward` by more than 5 %, at each of three points: a factor is missing, two
    gradients are exchanged, a sign or an exponent is wrong.

Why it matters:
    torch does not compare the two. Training goes on with another gradient than that of the loss.

What PyTorch does:
    `Function.backward` returns one gradient per input of `forward`, in that order, each of them the gradient that
    came in times the derivative. `torch.autograd.gradcheck` compares them by numbers. Seen in torch 2.13.

Example:
    import torch

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad, None  # <- here

    weight = torch.ones(3, requires_grad=True)
    Scale.apply(weight, 0.1).pow(2).sum().backward()

Use instead:
    import torch

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    weight = torch.ones(3, requires_grad=True)
    Scale.apply(weight, 0.1).pow(2).sum().backward()

Near miss: a gradient of its own for a value that passes unchanged
    import torch

    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -ctx.factor * grad, None

    weight = torch.ones(3, requires_grad=True)
    Reverse.apply(weight, 0.1).pow(2).sum().backward()

Near miss: the gradient goes straight through a mask
    import torch

    class Masked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weight, mask):
            return weight * mask

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    weight = torch.ones(3, requires_grad=True)
    Masked.apply(weight, torch.tensor([1.0, 0.0, 1.0])).pow(2).sum().backward()

Blind spots:
    Methods with branches, loops, comparisons, indexes or operations that have a kink or a step (relu, clamp, round):
    their gradient is often meant to be another one. A gradient that goes straight through, unchanged, is taken for
    meant unless `forward` does no more than scale by a plain number. A missing 1/n of a mean is not seen with one
    element; BP910 measures the whole, and where it did so this rule is silent.

Source:
    Extending PyTorch, on `torch.autograd.Function`; the derivative is a central difference with a step of 1e-5, right
    to about 1e-9 here. 5 % leaves room for an epsilon against a division by zero.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.method_flow import inputs_made_without, made_last
from backprobe.rules.analysis.gradients.one_element import Context, Unknown, Value, value_returned
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.custom_functions import (
    CustomFunction,
    class_site,
    custom_functions,
    tensor_inputs,
)
from backprobe.rules.analysis.source.syntax import parts_of, region_in, site_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="custom-backward-formula",
    code="BP245",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "backward", "site"),
)

_POINTS: Final = ((0.63, 1.41, 0.87, 1.13), (1.27, 0.58, 1.09, 0.71), (0.37, 0.81, 1.53, 0.92))
"""What the inputs are, by place: positive, so that roots and logarithms are defined, and apart from each other."""

_ARRIVED: Final = 1.7
"""The gradient that comes in: not 1, as a product and a power of it must differ."""

_STEP: Final = 1e-5
_SHARE: Final = 0.05
_LEAST: Final = 1e-3
"""Below this a derivative counts as zero."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per Function: the first input whose gradient is another one."""
    ran = {step.node for step in record.node_passes}
    measured = {(row.function or "").rpartition(".")[2] for row in record.gradient_checks if row.cause == "backward"}
    for name, function in custom_functions(record).items():
        nodes = [row for row in record.nodes if row.node in ran and (row.custom or "").rpartition(".")[2] == name]
        site = class_site(record, function)
        if not nodes or site is None or name in measured:
            continue
        found = _differs(record, function, nodes[0])
        if found is not None:
            yield _finding(record, function, site, nodes[0], *found)


def _differs(record: Record, function: CustomFunction, node: Node) -> tuple[int, float, float] | None:
    """The place of an input, the derivative by it and what `backward` returns, at the last of the points."""
    method = function.derivative
    if function.forward is None or method is None or function.takes_any_number or not 0 < len(function.inputs) <= 4:
        return None
    if len(function.forward.args.args) == len(function.inputs) or _hides_its_gradient(method):
        return None
    places = tensor_inputs(record, node, function)
    try:
        seen = [_at(function, point) for point in _POINTS]
    except Unknown:
        return None
    alone = inputs_made_without(function)  # another rule tells that
    for at in (one for one in range(len(function.inputs)) if one not in alone):
        pairs = [(slopes[at], given[at]) for slopes, given in seen]
        plain = places is not None and set(places) == {at}
        if all(_apart(slope, given) for slope, given in pairs) and not _is_meant(seen, at, plain=plain):
            slope, given = pairs[-1]
            return at, slope, given or 0.0
    return None


def _hides_its_gradient(method: ast.FunctionDef) -> bool:
    """It never reads what came in: another rule tells that."""
    names = {one.arg for one in method.args.args[1:]}
    return not any(isinstance(part, ast.Name) and part.id in names for part in parts_of(method))


def _at(function: CustomFunction, point: tuple[float, ...]) -> tuple[list[float], list[float | None]]:
    """The derivative by each input, and what `backward` returns for it, over the gradient that came in.

    Raises:
        Unknown: One of the methods is not there, does what cannot be evaluated, or takes or returns another number of
            values.
    """
    forward, method = function.forward, function.derivative
    if forward is None or method is None:
        raise Unknown
    names = function.inputs
    context = Context()
    _forward(forward, dict(zip(names, point, strict=False)), context)
    arrived = [one.arg for one in method.args.args[1:]]
    if len(arrived) != 1 or method.args.vararg is not None:
        raise Unknown
    given = value_returned(method, {arrived[0]: _ARRIVED}, context)
    values = given if isinstance(given, tuple) else (given,)
    if len(values) != len(names):
        raise Unknown
    slopes = [_slope(forward, names, point, at) for at in range(len(names))]
    return slopes, [value / _ARRIVED if isinstance(value, float) else None for value in values]


def _forward(forward: ast.FunctionDef, given: dict[str, Value], context: Context) -> float:
    value = value_returned(forward, given, context)
    if not isinstance(value, float):
        raise Unknown
    return value


def _slope(forward: ast.FunctionDef, names: list[str], point: tuple[float, ...], at: int) -> float:
    """The derivative by one input, as a central difference."""
    both: list[float] = []
    for step in (_STEP, -_STEP):
        moved = [value + step if place == at else value for place, value in enumerate(point[: len(names)])]
        both.append(_forward(forward, dict(zip(names, moved, strict=True)), Context()))
    return (both[0] - both[1]) / (2 * _STEP)


def _apart(slope: float, given: float | None) -> bool:
    """None is no claim: an input without a gradient is another rule's."""
    if given is None or max(abs(slope), abs(given)) < _LEAST:
        return False
    return abs(slope - given) > _SHARE * max(abs(slope), abs(given))


def _is_meant(seen: list[tuple[list[float], list[float | None]]], at: int, *, plain: bool) -> bool:
    """The value passes unchanged, or the gradient does: a reversal, a clip, a straight-through estimator.

    Args:
        plain: Of all inputs this one alone is a tensor, so what scales it is a plain number and no mask.
    """
    slopes, given = ([one[side][at] or 0.0 for one in seen] for side in (0, 1))
    if all(abs(slope - 1) < _LEAST for slope in slopes) or all(abs(slope) < _LEAST for slope in slopes):
        return True
    if all(abs(slope + 1) < _LEAST for slope in slopes):
        return False
    constant = max(given) - min(given) < _LEAST
    return constant and not (plain and abs(given[0] - 1) < _LEAST and _scales(seen, at))


def _scales(seen: list[tuple[list[float], list[float | None]]], at: int) -> bool:
    """The derivative is that of a product with the other input, or with a number: `x * factor`, `x / factor`."""
    others = [place for place in range(len(seen[0][0])) if place != at]
    slopes = [one[0][at] for one in seen]
    if not others:
        return max(slopes) - min(slopes) < _LEAST
    factors = [_POINTS[row][others[0]] for row in range(len(seen))]
    return all(
        any(abs(slope - wanted) < _LEAST for wanted in (factor, 1 / factor))
        for slope, factor in zip(slopes, factors, strict=True)
    )


def _finding(
    record: Record, function: CustomFunction, site: int, node: Node, at: int, slope: float, given: float
) -> Finding:
    place: ast.stmt = function.cls if function.derivative is None else made_last(function.derivative, at)
    inner = site_at(record, place)
    name = function.inputs[at]
    point = ", ".join(f"{one} = {value:g}" for one, value in zip(function.inputs, _POINTS[-1], strict=False))
    passed = next(iter(lookup(record).passes_of_node[node.node]))
    call = lookup(record).calls[passed.call]
    return told(
        record,
        RULE,
        site if inner is None else inner.site,
        (
            f"`{function.name}.backward` does not return the derivative of its `forward` by `{name}`.",
            f"At {point} the derivative is {slope:.3g}, and `backward` gives {given:.3g} times what came in.",
            "Return the gradient that came in, times that derivative; `torch.autograd.gradcheck` compares the two.",
        ),
        binding=function.name,
        moments=[call.moment_before],
        region=region_in(record, function.source, place),
        related=(("this backward call came through it", call.site),),
        evidence={"function": function.name, "input": name, "derivative": slope, "returned": given},
        calls=[call.call],
    )
