"""BP109 freeze-without-effect: an attribute is set that torch never looks at, and the parameters stay trainable.

What it finds:
    `module.requires_grad = False`, or a misspelt flag such as `p.require_grad = False`. The parameters still require
    grad afterwards. The finding stands at the assignment.

Why it matters:
    What was to be frozen is trained all the same, and nothing says so.

What PyTorch does:
    A module has no flag of its own, and Python lets any attribute be set on a tensor or a module. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    encoder, head = nn.Linear(3, 3), nn.Linear(3, 1)
    encoder.requires_grad = False  # <- here
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        encoder.zero_grad()
        head(encoder(torch.randn(4, 3)).detach()).sum().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    encoder, head = nn.Linear(3, 3), nn.Linear(3, 1)
    encoder.requires_grad_(False)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        head(encoder(torch.randn(4, 3))).sum().backward()
        optimizer.step()

Near miss: each parameter's own flag
    import torch
    from torch import nn

    encoder = nn.Linear(3, 3)
    for p in encoder.parameters():
        p.requires_grad = False
    print(encoder(torch.randn(4, 3)).requires_grad)

Near miss: a class that has such a property
    import torch
    from torch import nn


    class Encoder(nn.Linear):
        @property
        def requires_grad(self):
            return self.weight.requires_grad

        @requires_grad.setter
        def requires_grad(self, flag):
            self.requires_grad_(flag)


    encoder = Encoder(3, 3)
    encoder.requires_grad = False
    print(encoder(torch.randn(4, 3)).requires_grad)

Blind spots:
    A module that is reached by a name which the record does not know, as in a loop over `model.layers`, is not judged.

Source:
    torch.nn.Module.requires_grad_ in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.expressions import replacement
from backprobe.rules.finding import Fix
from backprobe.rules.lookup import bindings_named, lookup
from backprobe.rules.places import region_of
from backprobe.rules.rule import Rule
from backprobe.rules.syntax import region_in, statement, trees
from backprobe.rules.told import told

if TYPE_CHECKING:
    from backprobe.record import Module, Record, Site
    from backprobe.rules.finding import Finding

RULE = Rule(
    name="freeze-without-effect",
    code="BP109",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="safe",
    needs=("module", "snapshot", "site"),
)

_FLAG: Final = "requires_grad"
ALIKE: Final = 0.85
"""Likeness by `difflib` that makes a misspelling: `require_grad` has 0.96, `required_grad` 0.92, `grad` 0.47."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per assignment."""
    moments = {row.site: row.moment for row in reversed(record.moments) if row.site is not None}
    for site in record.sites:
        node = statement(record, site) if site.kind == "assign" else None
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Attribute) or not _is_false(node.value):
            continue
        owner = ast.unparse(target.value)
        if target.attr == _FLAG:
            module = _module_called(record, owner)
            if module is not None and _still_requires(record, _below(record, module)):
                yield _finding(record, site, target, owner, moments.get(site.site, 0), module=True)
        elif _is_misspelt(target.attr):
            tensors = {row.tensor for row in bindings_named(record)[owner]}
            if _still_requires(record, tensors):
                yield _finding(record, site, target, owner, moments.get(site.site, 0), module=False)


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def _is_misspelt(name: str) -> bool:
    return name != _FLAG and difflib.SequenceMatcher(None, name, _FLAG).ratio() >= ALIKE


def _module_called(record: Record, owner: str) -> Module | None:
    """The module of that name: a binding, or a path below one; one whose class has such a property is left out."""
    roots = {module.binding: module for module in record.modules if module.binding}
    for module in record.modules:
        names = {module.binding} | {f"{root}.{module.fqn}" for root in roots if module.fqn}
        if owner in names:
            return None if module.user_code and _has_property(record, module.cls) else module
    return None


def _has_property(record: Record, cls: str) -> bool:
    """A class of that name in the user's files defines the attribute."""
    for tree in trees(record).values():
        for node in ast.walk(tree.module):
            if isinstance(node, ast.ClassDef) and node.name == cls.rsplit(".", 1)[-1]:
                return any(isinstance(part, ast.FunctionDef) and part.name == _FLAG for part in node.body)
    return False


def _below(record: Record, module: Module) -> set[int]:
    """The parameters of a module and of what it contains."""
    prefix = module.fqn or ""
    found: set[int] = set()
    for other in record.modules:
        inside = other.fqn is not None and (other.fqn == prefix or other.fqn.startswith(f"{prefix}."))
        if other.module == module.module or (module.binding and not prefix) or inside:
            found |= {row.tensor for row in other.parameters if row.tensor is not None}
    return found


def _still_requires(record: Record, tensors: set[int]) -> bool:
    """Each of them requires grad to the end."""
    states = [lookup(record).snapshots_of[tensor] for tensor in tensors]
    return bool(states) and all(rows and rows[-1].requires_grad for rows in states)


def _finding(record: Record, site: Site, target: ast.Attribute, owner: str, moment: int, *, module: bool) -> Finding:
    region = region_in(record, site.source, target)
    if module:
        said = f"`{owner}` is a module: setting `{_FLAG}` on it does nothing, and its parameters still require grad."
        edits = (replacement(record, site, region_of(site), f"{owner}.requires_grad_(False)"),)
        fix = Fix(title="Freeze its parameters", safety="safe", edits=edits)
    else:
        said = f"`{target.attr}` is no attribute that torch knows: `{owner}` still requires grad."
        edits = (replacement(record, site, region, f"{owner}.{_FLAG}"),)
        fix = Fix(title=f"Write `{_FLAG}`", safety="safe", edits=edits)
    return told(
        record,
        RULE,
        site.site,
        (said, "What was to be frozen is trained all the same.", f"Write `{_remedy(owner, module=module)}`."),
        binding=owner,
        moments=[moment],
        evidence={"attribute": target.attr},
        fixes=(fix,),
    )


def _remedy(owner: str, *, module: bool) -> str:
    return f"{owner}.requires_grad_(False)" if module else f"{owner}.{_FLAG} = False"
