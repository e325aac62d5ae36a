"""BP114 freeze-matches-nothing: a loop freezes parameters by name, and no parameter has such a name.

What it finds:
    In a loop over `named_parameters()` a condition on the name chooses whose `requires_grad` is set, and it is false of
    the name of every parameter that the program has. Only conditions of constants are judged: `"backbone" in name`,
    `name.startswith("encoder.")`, `name == "head.weight"`, `any(part in name for part in ("fc", "cls"))`, and `and`,
    `or`, `not` of them. The finding stands at the statement that was to set the flag.

Why it matters:
    Nothing is frozen, or nothing is made trainable again, and nothing says so: the loop runs to its end. A name changes
    when an attribute is renamed, or when a wrapper puts `module.` or `_orig_mod.` before it.

What PyTorch does:
    `named_parameters()` names each parameter by the attributes on its way, from the module that it is called on. Seen
    in torch 2.13.

Example:
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(6, 8)
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            return self.head(torch.relu(self.encoder(x)))


    net = Net()
    for name, p in net.named_parameters():
        if name.startswith("backbone"):
            p.requires_grad = False  # <- here
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
    for x in torch.randn(3, 8, 6):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(6, 8)
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            return self.head(torch.relu(self.encoder(x)))


    net = Net()
    for name, p in net.named_parameters():
        if name.startswith("encoder"):
            p.requires_grad = False
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
    for x in torch.randn(3, 8, 6):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Near miss: a helper for all kinds of norm layers, of which this network has one
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 2))
    for name, p in net.named_parameters():
        if "bn" in name or name.startswith("1."):
            p.requires_grad = False
    net(torch.randn(4, 6)).pow(2).mean().backward()

Near miss: all but one part is frozen
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    for name, p in net.named_parameters():
        if "2" not in name:
            p.requires_grad_(False)
    net(torch.randn(4, 6)).pow(2).mean().backward()

Near miss: which part is frozen is a setting, and nothing is set
    import torch
    from torch import nn

    frozen = ()
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    for name, p in net.named_parameters():
        if any(part in name for part in frozen):
            p.requires_grad_(False)
    net(torch.randn(4, 6)).pow(2).mean().backward()

Blind spots:
    A name that is made of variables, and `continue` in place of a body, are not judged. Names are those of the modules
    that ran or were handed to an optimizer.

Source:
    torch.nn.Module.named_parameters in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.modules.name_conditions import name_condition
from backprobe.rules.analysis.source.syntax import method_called, number_at, region_in, trees
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="freeze-matches-nothing",
    code="BP114",
    since="0.2",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("module", "site", "backward"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per condition that no name fulfils."""
    names = _names(record)
    for source, tree in trees(record).items() if names else ():
        for loop in tree.nodes:
            variable = _name_in(loop)
            for test, flag in _flagged(loop) if variable is not None else ():
                asked = name_condition(test, variable or "")
                if asked is not None and not any(map(asked, names)):
                    yield from _finding(record, source, test, flag)


def _names(record: Record) -> frozenset[str]:
    """The names of all parameters, as seen from each module around them."""
    keys = [row.fqn for row in record.tensors if row.role == "parameter" and row.fqn is not None]
    parts = [key.split(".") for key in keys]
    return frozenset(".".join(one[at:]) for one in parts for at in range(len(one)))


def _name_in(loop: ast.AST) -> str | None:
    """The variable of a loop over `named_parameters()` that holds the name."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Tuple) or not loop.target.elts:
        return None
    first = loop.target.elts[0]
    calls = [part for part in ast.walk(loop.iter) if method_called(part) == "named_parameters"]
    return first.id if calls and isinstance(first, ast.Name) else None


def _flagged(loop: ast.AST) -> Iterator[tuple[ast.expr, ast.stmt]]:
    """The conditions in a loop that choose whose flag is set, without another branch, each with that statement."""
    for part in ast.walk(loop):
        if isinstance(part, ast.If) and not part.orelse:
            flags = [one for one in part.body if _sets_flag(one)]
            if flags:
                yield part.test, flags[0]


def _sets_flag(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Attribute) and target.attr == "requires_grad" for target in node.targets)
    return isinstance(node, ast.Expr) and method_called(node.value) == "requires_grad_"


def _finding(record: Record, source: int, test: ast.expr, flag: ast.stmt) -> Iterator[Finding]:
    site = number_at(record, flag)
    if site is None:
        return
    asked = ast.unparse(test)
    keys = (row.fqn for row in record.tensors if row.role == "parameter" and row.fqn is not None)
    known = list(dict.fromkeys(key.partition(".")[2] or key for key in keys))[:3]
    yield told(
        record,
        RULE,
        site,
        (
            f"No parameter has a name of which `{asked[:120]}` is true: this statement never runs.",
            f"Names are such as {', '.join(f'`{one}`' for one in known)}.",
            "Compare with the names that `named_parameters()` gives: print them once.",
        ),
        binding=asked[:120],
        moments=[0],
        region=region_in(record, source, flag),
        evidence={"condition": asked[:200], "names": known},
    )
