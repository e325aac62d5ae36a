"""BP911 gradient-not-derivative: what a step uses is not the derivative of its loss, and nothing explains it.

What it finds:
    A check of gradients moved a parameter, computed the step again, and the loss changed otherwise than the gradient
    says. No scaler, clipping, accumulation, hook, written cut or custom Function makes the difference. The finding
    stands at a checkpoint that draws other random numbers when it computes again, else at the backward call.

Why it matters:
    Nothing raises: the parameters are trained towards something else than the loss, or by a wrong amount.

What PyTorch does:
    Autograd gives the derivative of the operations that it recorded. Where memory was written behind its back, where
    a forward was computed a second time with other random numbers, that is another one. Seen in torch 2.13.

Example:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(10, 6), torch.randn(10, 1)


    def block(x):
        return net(x * (torch.rand_like(x) > 0.5))


    for _ in range(3):
        out = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)  # <- here
        loss = (out - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(10, 6), torch.randn(10, 1)


    def block(x):
        return net(x * (torch.rand_like(x) > 0.5))


    for _ in range(3):
        out = checkpoint(block, x, use_reentrant=False, preserve_rng_state=True)
        loss = (out - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the gradient is clipped
    import torch

    weight = torch.nn.Parameter(torch.tensor([0.5, 0.8, 1.2]))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    x, y = torch.randn(10, 3), torch.randn(10)
    for _ in range(3):
        loss = (x @ weight - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([weight], 0.1)
        optimizer.step()

Near miss: a target is held fixed on purpose
    import torch

    weight = torch.nn.Parameter(torch.tensor([0.5, 0.8, 1.2]))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    x, after = torch.randn(10, 3), torch.randn(10, 3)
    for _ in range(3):
        with torch.no_grad():
            target = 1 + 0.9 * (after @ weight)
        loss = (x @ weight - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Only steps that are checked are seen: by `backprobe run`, `--check-gradients`, or `capture.check` in a request. A
    difference that a hook on the way might make is put down to the hook.

Source:
    Central differences and their tolerance: `backprobe/capture/gradient_check/comparison.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import source_lines
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import GradientCheck, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="gradient-not-derivative",
    code="BP911",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("check", "backward"),
)

_WRONG = ("cut", "factor", "differs")


def check(record: Record) -> Iterator[Finding]:
    """One finding per place."""
    found: dict[int, list[GradientCheck]] = {}
    for row in record.gradient_checks:
        is_wrong = row.verdict in _WRONG and row.explained_by is None and row.cause is None
        site = _place(record, row) if is_wrong and row.tensor is not None else None
        if site is not None:
            found.setdefault(site, []).append(row)
    for site, rows in found.items():
        yield _finding(record, site, rows)


def _place(record: Record, row: GradientCheck) -> int | None:
    """A checkpoint that does not keep its random numbers; else the last backward call before the step."""
    before = row.moment if row.moment is not None else 2**31
    for call in record.watched_calls:
        if "checkpoint" in call.function and call.site is not None and _draws_again(record, call.site):
            return call.site
    calls = [one for one in record.backward_calls if one.accumulate_grad and one.moment_before <= before]
    return calls[-1].site if calls else None


def _draws_again(record: Record, site: int) -> bool:
    """The statement asks a checkpoint not to keep its random numbers."""
    row = lookup(record).sites[site]
    text = "".join(source_lines(record)[row.source][row.line - 1 : row.end_line])
    return "preserve_rng_state=False" in text.replace(" ", "")


def _finding(record: Record, site: int, rows: list[GradientCheck]) -> Finding:
    first = rows[0]
    tensors = list(dict.fromkeys(row.tensor for row in rows if row.tensor is not None))
    why = "Nothing that was recorded explains it: something changed behind autograd's back."
    change = "Look for what is written into, computed twice, or drawn again between this parameter and the loss."
    return told(
        record,
        RULE,
        site,
        (
            _compared(record, first),
            why,
            change,
        ),
        binding=_binding(record, tensors[0]),
        moments=sorted({row.moment for row in rows if row.moment is not None}) or [0],
        evidence={
            "derivative": first.numeric, "used": first.used, "tolerance": first.tolerance, "factor": first.factor,
            "tensors": tensors[:16],
        },
        tensors=tensors,
    )  # fmt: skip


def _binding(record: Record, tensor: int) -> str:
    index = lookup(record)
    bound = index.bindings_of[tensor]
    return index.tensors[tensor].fqn or (bound[-1].name if bound else "a tensor")


def _compared(record: Record, row: GradientCheck) -> str:
    whose = together(record, [row.tensor] if row.tensor is not None else [])
    used = "is not there" if row.used is None else f"says {row.used:.4g}"
    changed = f"{row.numeric or 0:.4g}"
    told = f"Along one direction of {whose} the loss changes by {changed}, and its gradient {used}"
    return f"{told}: it is not the derivative of this loss."
