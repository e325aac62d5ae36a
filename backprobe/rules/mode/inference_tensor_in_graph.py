"""BP609 inference-tensor-in-graph: a tensor made under `inference_mode` is used where gradients are recorded.

What it finds:
    A tensor from `inference_mode` met an operation that autograd records, or was flagged or changed outside of the
    mode, and torch raised. The finding stands at the `with` or decorator.

Why it matters:
    The program ends there. What is kept for training later, such as cached features, must not be made in this mode.

What PyTorch does:
    Tensors from `inference_mode` have no version counter, so autograd cannot save them: it says "Inference tensors
    cannot be saved for backward" and the like. `no_grad` makes ordinary tensors. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    trunk, head = nn.Linear(4, 8), nn.Linear(8, 2)
    with torch.inference_mode():  # <- here
        bank = trunk(torch.randn(6, 4))
    head(bank).pow(2).mean().backward()

Use instead:
    import torch
    from torch import nn

    trunk, head = nn.Linear(4, 8), nn.Linear(8, 2)
    with torch.no_grad():
        bank = trunk(torch.randn(6, 4))
    head(bank).pow(2).mean().backward()

Near miss: a clone made outside of the mode
    import torch
    from torch import nn

    trunk, head = nn.Linear(4, 8), nn.Linear(8, 2)
    with torch.inference_mode():
        bank = trunk(torch.randn(6, 4))
    head(bank.clone()).pow(2).mean().backward()

Blind spots:
    Where several places of the program run under the mode, the one whose tensor the failing statement reads is named;
    a tensor without a name there gives the last one.

Source:
    torch.inference_mode in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.expressions import path_of, replacement
from backprobe.rules.analysis.source.syntax import site_of, text_in
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.analysis.training.grad_modes import switched_off_at
from backprobe.rules.framework.finding import Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import line_words
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Tensor
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="inference-tensor-in-graph",
    code="BP609",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "site", "binding"),
)
_FAMILIES = (
    "inference-tensor-saved",
    "inference-tensor-requires-grad",
    "inference-tensor-changed",
    "inference-tensor-version",
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception about a tensor that the record saw under the mode."""
    for raised in raised_as(record, *_FAMILIES):
        tensor = _tensor(record, raised)
        if tensor is not None and tensor.site is not None:
            yield _finding(record, raised, tensor, tensor.site)


def _tensor(record: Record, raised: Raised) -> Tensor | None:
    """The inference tensor that the statement reads; else the last one before it, one with a name first."""
    index = lookup(record)
    until = raised.moment if raised.moment is not None else 0
    named = [
        index.tensors[rows[-1].tensor]
        for name in (site_of(record, raised.site).reads if raised.site is not None else ())
        if (rows := [row for row in bindings_named(record)[name] if row.moment <= until])
    ]
    bound = [index.tensors[row.tensor] for row in record.bindings if row.moment <= until]
    found = [one for one in (*bound, *reversed(named)) if one.special == "inference" and one.site is not None]
    if found:
        return _maker(record, found[-1])
    made = (one for one in reversed(record.tensors) if one.special == "inference" and one.moment <= until)
    return next((one for one in made if one.site is not None), None)


def _maker(record: Record, tensor: Tensor) -> Tensor:
    """The tensor itself; of a view taken outside of the mode, the last one before it that a statement under it made."""
    if switched_off_at(record, tensor.site or 0) is not None:
        return tensor
    earlier = (one for one in reversed(record.tensors) if one.tensor < tensor.tensor and one.special == "inference")
    return next((one for one in earlier if one.site is not None and _is_under_it(record, one.site)), tensor)


def _is_under_it(record: Record, site: int) -> bool:
    switch = switched_off_at(record, site)
    return switch is not None and switch[1] == "inference_mode"


def _finding(record: Record, raised: Raised, tensor: Tensor, made: int) -> Finding:
    index, site = lookup(record), site_of(record, made)
    bound = index.bindings_of[tensor.tensor]
    name = f"`{bound[0].name}`" if bound else "a value without a name"
    first = f"{name[0].upper()}{name[1:]}"
    switch = switched_off_at(record, made)
    region: Region | None = None
    fixes: list[Fix] = []
    if switch is not None and switch[1] == "inference_mode":
        region = switch[0]
        text = text_in(record, site.source, region).replace("inference_mode", "no_grad")
        edit = replacement(record, site, region, text)
        fixes.append(Fix(title="Use `no_grad` in place of `inference_mode`", safety="unsafe", edits=(edit,)))
    where = "" if raised.site is None else f" at {line_words(record, raised.site, made)}"
    finding = told(
        record,
        RULE,
        made,
        (
            f"{first} is made under `inference_mode` here, and is used{where} where gradients are recorded.",
            "Such a tensor has no version counter, so autograd can neither save nor track it.",
            "Use `torch.no_grad()` here, or hand on `.clone()` made outside of the mode.",
        ),
        binding=name.strip("`"),
        moments=[tensor.moment],
        region=region,
        related=((f"{name} is made here", made if region is not None else None), ("raised here", raised.site)),
        evidence={
            "tensor": tensor.tensor,
            "special": "inference",
            "raised": raised.type,
            "path": path_of(record, site),
        },
        fixes=fixes,
        tensors=(tensor.tensor,),
        level=level_of(record, raised),
    )
    is_only = bool(bound) or len({row.site for row in record.modes if row.kind == "inference"}) < 2
    return finding if is_only else msgspec.structs.replace(finding, confidence="likely")
