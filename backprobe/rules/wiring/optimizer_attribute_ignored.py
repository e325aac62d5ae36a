"""BP758 optimizer-attribute-ignored: a rate is written to the optimizer, which reads its parameter groups only.

What it finds:
    A statement assigns `optimizer.lr`, or another option of an optimizer, as an attribute of the optimizer.

Why it matters:
    Nothing reads it: the learning rate stays what it was, and the schedule has no effect.

What PyTorch does:
    `step()` takes each option from `optimizer.param_groups`. An attribute of another name is stored, as on any Python
    object. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.lr = 0.1 / (step + 1)  # <- here
        optimizer.zero_grad()
        model(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / (step + 1)
        optimizer.zero_grad()
        model(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()

Near miss: the program reads what it wrote
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.lr = 0.1 / (step + 1)
        for group in optimizer.param_groups:
            group["lr"] = optimizer.lr
        optimizer.zero_grad()
        model(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    Optimizers of the program's own classes are not judged: they may read what they like. `setattr` is not seen.

Source:
    torch.optim in PyTorch's documentation, on per-parameter options; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.syntax import region_in, statement, tree_of, trees
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="optimizer-attribute-ignored",
    code="BP758",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="manual",
    needs=("optimizer", "site"),
)

OPTIONS: Final = frozenset({
    "lr", "learning_rate", "momentum", "dampening", "weight_decay", "nesterov", "betas", "eps", "alpha", "rho",
})  # fmt: skip
"""Options of torch's optimizers, and the name that other frameworks have for the first of them."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    for site in record.sites:
        target = _target(record, site) if site.kind == "assign" else None
        optimizer = None if target is None else _held_by(record, target)
        if target is None or optimizer is None:
            continue
        rates = [row.learning_rates for row in record.optimizer_events if row.optimizer == optimizer.optimizer]
        changed = len({rate for rate in rates if rate}) > 1
        is_read = _is_read(record, site, target)
        if not (is_read and changed):  # the program may hand on what it reads
            yield _finding(record, site, target, optimizer, rates, is_read=is_read)


def _target(record: Record, site: Site) -> ast.Attribute | None:
    """The option that a statement assigns as an attribute."""
    node = statement(record, site)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    found = (one for one in targets if isinstance(one, ast.Attribute) and one.attr in OPTIONS)
    return next(found, None)


def _held_by(record: Record, target: ast.Attribute) -> Optimizer | None:
    """The optimizer of torch of that name; not one of a class of the program."""
    owner = ast.unparse(target.value)
    held = (one for one in record.optimizers if one.binding is not None)
    optimizer = next((one for one in held if owner == one.binding or owner.endswith(f".{one.binding}")), None)
    return None if optimizer is None or optimizer.cls.rpartition(".")[2] in _classes(record) else optimizer


def _classes(record: Record) -> set[str]:
    nodes = (node for tree in trees(record).values() for node in tree.nodes)
    return {node.name for node in nodes if isinstance(node, ast.ClassDef)}


def _is_read(record: Record, site: Site, target: ast.Attribute) -> bool:
    """The program reads an attribute of that name of what bears the same name."""
    tree, text = tree_of(record, site), ast.unparse(target)
    loads = (part for part in (tree.nodes if tree else ()) if isinstance(part, ast.Attribute))
    return any(isinstance(part.ctx, ast.Load) and ast.unparse(part) == text for part in loads)


def _finding(
    record: Record,
    site: Site,
    target: ast.Attribute,
    optimizer: Optimizer,
    rates: list[tuple[float, ...]],
    *,
    is_read: bool,
) -> Finding:
    owner = ast.unparse(target.value)
    option = "lr" if target.attr == "learning_rate" else target.attr
    reader = "the program alone" if is_read else "nothing"
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{owner}.{target.attr}` is an attribute that {reader} reads: options are taken from `param_groups`.",
            "The option stays what it was, and this assignment has no effect.",
            f'Write it to each group: `for group in {owner}.param_groups: group["{option}"] = ...`.',
        ),
        binding=owner,
        moments=[optimizer.moment],
        region=region_in(record, site.source, target),
        related=((f"`{owner}` is made here", optimizer.site),),
        evidence={"attribute": target.attr, "rates": [f"{one[0]:g}" for one in dict.fromkeys(rates) if one][:8]},
        optimizers=(optimizer.optimizer,),
        level="note" if is_read else None,
    )
