"""BP819 penalty-norm-over-wrong-axes: a gradient penalty takes one norm for the batch, or several for one sample.

What it finds:
    The gradient by an input is reduced to a norm, a number is taken off and the rest is squared; the network gives one
    score per sample, and there is not one norm per sample: a norm over the channels leaves one for each pixel, a norm
    without a dimension is that of the whole batch.

Why it matters:
    The penalty holds the slope of a critic near 1 at each sample. A norm per pixel asks that of each pixel, which is
    far too steep in all; a norm of the batch lets slopes of single samples go where they like.

What PyTorch does:
    `norm(dim=1)` of a gradient with shape (10, 3, 8, 8) has shape (10, 8, 8), and `norm()` none; both go on without a
    word. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    critic = nn.Sequential(nn.Flatten(), nn.Linear(48, 16), nn.LeakyReLU(), nn.Linear(16, 1))
    images = torch.randn(5, 3, 4, 4, requires_grad=True)
    scores = critic(images)
    (slope,) = torch.autograd.grad(scores.sum(), images, create_graph=True)
    norms = slope.norm(2, dim=1)  # <- here
    penalty = ((norms - 1) ** 2).mean()
    penalty.backward()

Use instead:
    import torch
    from torch import nn

    critic = nn.Sequential(nn.Flatten(), nn.Linear(48, 16), nn.LeakyReLU(), nn.Linear(16, 1))
    images = torch.randn(5, 3, 4, 4, requires_grad=True)
    scores = critic(images)
    (slope,) = torch.autograd.grad(scores.sum(), images, create_graph=True)
    norms = slope.flatten(1).norm(2, dim=1)
    penalty = ((norms - 1) ** 2).mean()
    penalty.backward()

Near miss: a distance field, one value per point
    import torch
    from torch import nn

    field = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 1))
    points = torch.randn(2, 7, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(field(points).sum(), points, create_graph=True)
    (slope.norm(dim=-1) - 1).pow(2).mean().backward()

Near miss: forces on the atoms of several molecules
    import torch
    from torch import nn

    torch.manual_seed(0)
    atom = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
    positions = torch.randn(4, 6, 3, requires_grad=True)
    energy = atom(positions).sum((1, 2))
    (slope,) = torch.autograd.grad(energy.sum(), positions, create_graph=True)
    (slope.norm(dim=-1) - 1).pow(2).mean().backward()

Blind spots:
    Sequences of at most three channels are taken for points in space. A norm that is written with `sum` and `sqrt` over
    several dimensions at once is told by its shape alone; one in a library is not seen.

Source:
    Gulrajani et al., "Improved training of Wasserstein GANs", algorithm 1: one norm per sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.input_gradients import InputGradient, input_gradients, users
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.finding import Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="penalty-norm-over-wrong-axes",
    code="BP819",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("backward", "binding"),
)

_NORMS: Final = frozenset({"norm", "vector_norm", "sqrt"})
_ON_THE_WAY: Final = frozenset(
    {"pow", "**", "square", "sum", "+", "add", "flatten", "view", "reshape", "squeeze", "clamp", "clamp_min"}
)
_SQUARES: Final = frozenset({"pow", "**", "square", "abs"})
_MOST: Final = 40
"""Operations that are followed from one gradient."""
_POINTS: Final = 3
"""Dimensions of a batch of sets of points."""
_SPACE: Final = 3
"""Coordinates of a point in space, at most."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement of the norm."""
    found: dict[int, list[tuple[InputGradient, Operation]]] = {}
    for one in input_gradients(record):
        norm = _norm_held(record, one)
        if norm is not None and _is_wrong(record, one, norm):
            found.setdefault(norm.statement, []).append((one, norm))
    for number, rows in found.items():
        yield _finding(record, number, rows)


def _norm_held(record: Record, one: InputGradient) -> Operation | None:
    """The norm of the gradient from which a number is taken off, and the rest squared."""
    waiting: list[tuple[Operation, int | None, Operation | None]] = [(one.made, one.tensor, None)]
    for made, tensor, norm in waiting:
        if len(waiting) > _MOST:
            return None
        for row in users(record, made, tensor):
            last = row.function.rpartition(".")[2]
            if row.result != "tensor" or len(row.operands) + len(row.inner) != 1:
                continue
            if last in {"-", "sub"} and norm is not None:
                if any(two.function.rpartition(".")[2] in _SQUARES for two in users(record, row, row.tensor)):
                    return norm
            elif last in _NORMS:
                waiting.append((row, row.tensor, row))
            elif last in _ON_THE_WAY:
                waiting.append((row, row.tensor, norm))
    return None


def _is_wrong(record: Record, one: InputGradient, norm: Operation) -> bool:
    """One score per sample, several samples, and another number of norms."""
    shape, held = one.made.shape or _shape(record, one), norm.shape
    if shape is None or held is None or one.scores is None or len(shape) < 2 or shape[0] < 2:
        return False
    if prod(one.scores) != shape[0] or one.scores[0] != shape[0]:
        return False
    if len(shape) == _POINTS and shape[-1] <= _SPACE and held == shape[:-1]:
        return False  # the sample is a set of points in space: a force, or a slope, for each of them
    return prod(held) != shape[0] and (prod(held) == 1 or held[0] == shape[0])


def _shape(record: Record, one: InputGradient) -> tuple[int, ...] | None:
    return None if one.tensor is None else record.tensors[one.tensor].shape


def _finding(record: Record, number: int, rows: list[tuple[InputGradient, Operation]]) -> Finding:
    one, norm = rows[0]
    shape: tuple[int, ...] = one.made.shape or _shape(record, one) or (0,)
    count = prod(norm.shape or ())
    samples = shape[0]
    what = "one norm for the whole batch" if count == 1 else f"{count} norms, {count // samples} for each sample"
    site = site_of(record, number)
    return told(
        record,
        RULE,
        number,
        (
            f"The gradient by {samples} samples, of shape {tuple(shape)}, is reduced to {what}.",
            "The network gives one score per sample; the penalty is meant to hold the norm of each sample's gradient.",
            "Take one norm per sample: `gradient.flatten(1).norm(2, dim=1)`.",
        ),
        binding=site.targets[0] if site.targets else "",
        moments=[norm.moment or 0 for _one, norm in rows],
        region=Region(start_line=norm.line, start_col=norm.col, end_line=norm.end_line, end_col=norm.end_col),
        related=(("the gradient is taken here", one.call.site),),
        evidence={"gradient": list(shape), "norms": list(norm.shape or ()), "scores": list(one.scores or ())},
        calls=[one.call.call],
    )
