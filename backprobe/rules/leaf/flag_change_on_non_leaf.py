"""BP108 flag-change-on-non-leaf: `requires_grad` of a computed tensor is switched off.

What it finds:
    `requires_grad = False` or `requires_grad_(False)` on a tensor that was computed from tracked ones, which raises.
    The finding stands at that statement.

Why it matters:
    The program stops. A result requires grad because what it was computed from does: the flag is no switch there.

What PyTorch does:
    Only the flag of a leaf can be changed; for others torch raises "you can only change requires_grad flags of leaf
    variables". `detach()` gives the same values without history. Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, requires_grad=True)
    state = weight * 2
    state.requires_grad_(False)  # <- here
    print(state.sum())

Use instead:
    import torch

    weight = torch.ones(3, requires_grad=True)
    state = weight * 2
    state = state.detach()
    print(state.sum())

Near miss: a leaf is frozen
    import torch

    layer = torch.nn.Linear(3, 1)
    layer.weight.requires_grad_(False)
    layer(torch.ones(2, 3)).sum().backward()

Near miss: a computed tensor is flagged as it is already
    import torch

    weight = torch.ones(3, requires_grad=True)
    state = weight * 2
    state.requires_grad_()
    state.sum().backward()

Blind spots:
    An exception that the program catches is its own decision and is not recorded.

Source:
    torch.Tensor.requires_grad_ and torch.Tensor.detach in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import outermost, replacement
from backprobe.rules.analysis.source.named_values import tensor_named
from backprobe.rules.analysis.source.syntax import parts_of, region_in, site_of, statement, statement_at, value_of
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="flag-change-on-non-leaf",
    code="BP108",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "snapshot", "site"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_as(record, "flag-of-non-leaf"):
        if raised.site is not None:
            yield _finding(record, raised, site_of(record, raised.site))


def _flagged(node: ast.stmt | None) -> ast.expr | None:
    """What the flag is set on, as written."""
    paths = (part for part in parts_of(node) if isinstance(part, ast.Attribute))
    return next((part.value for part in paths if part.attr in ("requires_grad", "requires_grad_")), None)


def _finding(record: Record, raised: Raised, site: Site) -> Finding:
    flagged = _flagged(statement(record, site))
    name = "this tensor" if flagged is None else ast.unparse(flagged)
    tensor = tensor_named(record, name, site, raised.moment or 0)
    made = None if tensor is None else lookup(record).tensors[tensor].site
    how = outermost(value_of(statement_at(record, made)))
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{name}` is computed from what requires grad, so its own flag cannot be switched off.",
            "Only a leaf has a flag of its own; the statement raises.",
            f"Use `{name}.detach()` for the same values without history, or freeze the parameters behind it.",
        ),
        binding=name,
        moments=[raised.moment or 0],
        related=((f"{how} makes it here", made),),
        evidence={"is_leaf": False, "requires_grad": True},
        fixes=tuple(_fixes(record, site, flagged)),
        tensors=() if tensor is None else (tensor,),
        level=level_of(record, raised),
    )


def _fixes(record: Record, site: Site, flagged: ast.expr | None) -> Iterator[Fix]:
    """`x = x.detach()` where the flag of a plain name is a statement of its own."""
    node = statement(record, site)
    if isinstance(flagged, ast.Name) and node is not None:
        edit = replacement(record, site, region_in(record, site.source, node), f"{flagged.id} = {flagged.id}.detach()")
        yield Fix(title="Detach it", safety="unsafe", edits=(edit,))
