"""BP910 custom-function-wrong-gradient: the backward of a custom Function is not the derivative of its forward.

What it finds:
    A check of gradients saw that what a step uses is not the derivative of its loss, and, comparing each custom
    Function alone at the inputs that it had, that what its `backward` returns is not what small changes of its inputs
    give. The finding stands at the end of the `backward`.

Why it matters:
    Nothing raises, and the loss may even fall: the parameters below it are trained towards something else.

What PyTorch does:
    It takes what `backward` returns as it is. `torch.autograd.gradcheck` compares, where someone calls it. Seen in
    torch 2.13.

Example:
    import torch

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x**2  # <- here

    weight = torch.nn.Parameter(torch.tensor([0.5, 0.8, 1.2]))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    x, y = torch.randn(10, 3), torch.randn(10)
    for _ in range(3):
        loss = (Cube.apply(x @ weight) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    weight = torch.nn.Parameter(torch.tensor([0.5, 0.8, 1.2]))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    x, y = torch.randn(10, 3), torch.randn(10)
    for _ in range(3):
        loss = (Cube.apply(x @ weight) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a straight-through estimator, whose forward has no derivative to speak of
    import torch

    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad):
            return grad

    weight = torch.nn.Parameter(torch.tensor([0.5, 0.8, 1.2]))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    x, y = torch.randn(10, 3), torch.randn(10)
    for _ in range(3):
        loss = (Round.apply(x @ weight) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a gradient that is turned round on purpose, by a Function that hands its input on
    import torch

    class Reversed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -grad

    weight = torch.nn.Parameter(torch.tensor([0.5, 0.8, 1.2]))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    x, y = torch.randn(10, 3), torch.randn(10)
    for _ in range(3):
        loss = (Reversed.apply(x @ weight) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Only steps that are checked are seen: by `backprobe run`, `--check-gradients`, or `capture.check` in a request. The
    first three calls of a Function in such a step are compared, those that do not compute in float64 not at all.

Source:
    Central differences and their tolerance: `backprobe/capture/gradient_check/comparison.py`, `functions.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.naming import together
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import GradientCheck, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="custom-function-wrong-gradient",
    code="BP910",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("check",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per Function."""
    found: dict[tuple[int, str], list[GradientCheck]] = {}
    for row in record.gradient_checks:
        if row.cause == "backward" and row.site is not None and row.tensor is not None:
            found.setdefault((row.site, row.function or "a Function"), []).append(row)
    for (site, function), rows in found.items():
        yield _finding(record, site, function, rows)


def _finding(record: Record, site: int, function: str, rows: list[GradientCheck]) -> Finding:
    first = rows[0]
    tensors = list(dict.fromkeys(row.tensor for row in rows if row.tensor is not None))
    return told(
        record,
        RULE,
        site,
        (
            f"`{function}.backward` does not return the derivative of its forward.",
            _compared(record, first),
            "Derive `backward` from `forward` again; `torch.autograd.gradcheck` tests it alone.",
        ),
        binding=function,
        moments=sorted({row.moment for row in rows if row.moment is not None}) or [0],
        evidence={"function": function, "derivative": first.numeric, "used": first.used, "tolerance": first.tolerance},
        tensors=tensors,
    )


def _compared(record: Record, row: GradientCheck) -> str:
    whose = together(record, [row.tensor] if row.tensor is not None else [])
    used = "is not there" if row.used is None else f"says {row.used:.4g}"
    changed = f"{row.numeric or 0:.4g}"
    return f"Along one direction of {whose} the loss changes by {changed}, and its gradient {used}."
