"""BP752 one-module-repeated: a list holds one module several times, where several modules are meant.

What it finds:
    A list is made of one module by `[module] * n`, or by a comprehension that always gives the same module. In one step
    its members get the same input, so all of them give the same; or they run one after another, and nothing but that
    that list refers to the module, or it was handed in only to be repeated. The finding stands where the list is made.
    Or a default argument made a module that is trained, and several objects run it: it stands at that default.

Why it matters:
    An ensemble of such members is one network, its spread is zero, and the least of two critics is the one there is.

What PyTorch does:
    `[x] * n` makes a list of n references. A ModuleList registers each, and `parameters()` gives each parameter once.
    Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    members = nn.ModuleList([nn.Linear(3, 1)] * 4)  # <- here
    optimizer = torch.optim.SGD(members.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        sum((member(x) - 1).pow(2).mean() for member in members).backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    members = nn.ModuleList([nn.Linear(3, 1) for _ in range(4)])
    optimizer = torch.optim.SGD(members.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        sum((member(x) - 1).pow(2).mean() for member in members).backward()
        optimizer.step()

Near miss: one layer, which has a name, several times in a row
    import torch
    from torch import nn

    layer = nn.Linear(3, 3)
    layers = nn.ModuleList([layer] * 4)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        h = x
        for layer in layers:
            h = torch.tanh(layer(h))
        optimizer.zero_grad()
        (h - 1).pow(2).mean().backward()
        optimizer.step()

Near miss: dropout makes two passes differ
    import torch
    from torch import nn

    views = [nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5))] * 2
    optimizer = torch.optim.SGD(views[0].parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        one, other = (view(x) for view in views)
        (one - other).pow(2).mean().backward()
        optimizer.step()

Near miss: each tower has an input of its own
    import torch
    from torch import nn

    towers = [nn.Linear(3, 2)] * 2
    optimizer = torch.optim.SGD(towers[0].parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        one, other = (tower(view) for tower, view in zip(towers, (x, x.flip(0))))
        (one - other - 1).pow(2).mean().backward()
        optimizer.step()

Near miss: one set of weights at every depth, by a name
    import torch
    from torch import nn

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Linear(4, 4)

        def forward(self, x):
            for block in [self.block] * 3:
                x = x + torch.tanh(block(x))
            return x

    net = Shared()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    Members that are called by different statements are not compared. A default argument that some call of the file
    replaces is not judged.

Source:
    The Python tutorial on lists; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.default_modules import DefaultModule, default_modules
from backprobe.rules.analysis.modules.module_sites import modules_by_number
from backprobe.rules.analysis.modules.module_tree import calls_of_modules
from backprobe.rules.analysis.modules.second_names import ModuleName, held_by, module_names
from backprobe.rules.analysis.modules.training_modes import inside
from backprobe.rules.analysis.source.scopes import parameters_of, scope_of
from backprobe.rules.analysis.source.syntax import Tree, region_in, site_of, statement_at, tree_of
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="one-module-repeated",
    code="BP752",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("module", "call", "optimizer", "site"),
)

LEAST_STEPS: Final = 2
"""Steps in which its members got one input: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per list."""
    for module, rows in module_names(record).items():
        if held_by(record, module).isdisjoint(in_optimizers(record)):
            continue
        for site in dict.fromkeys(row.site for row in rows):
            members = [row for row in rows if row.site == site]
            made = _repeating(statement_at(record, site)) if len(members) > 1 else None
            found = _same_input(record, module) if made is not None and not _is_random(record, module) else []
            alike = len({step for step, _row in found}) >= LEAST_STEPS
            if made is not None and not alike and _is_nameless(tree_of(record, site_of(record, site)), made):
                found = _in_turn(record, module)
            if made is not None and len({step for step, _row in found}) >= LEAST_STEPS:
                yield _finding(record, members, made, [row for _step, row in found], alike=alike)
    for one in default_modules(record):
        if not held_by(record, one.module).isdisjoint(in_optimizers(record)):
            yield _by_default(record, one)


def _repeating(node: ast.stmt | None) -> ast.expr | None:
    """`[x] * n`, or `[x for _ in ...]` whose element is no call and no name that the comprehension binds."""
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
            if any(isinstance(side, ast.List) and side.elts for side in (part.left, part.right)):
                return part
        elif isinstance(part, ast.ListComp | ast.GeneratorExp) and isinstance(part.elt, ast.Name | ast.Attribute):
            bound = {one.id for over in part.generators for one in ast.walk(over.target) if isinstance(one, ast.Name)}
            if not any(isinstance(one, ast.Name) and one.id in bound for one in ast.walk(part.elt)):
                return part
    return None


def _is_nameless(tree: Tree | None, made: ast.expr) -> bool:
    """Nothing but the list refers to the module, or a comprehension asks for it once for each member.

    Who wants one set of weights at every depth, as in ALBERT, gives the one module a name and calls that.
    """
    sides = (made.left, made.right) if isinstance(made, ast.BinOp) else ()
    lists = [side for side in sides if isinstance(side, ast.List)]
    if not sides or all(isinstance(one, ast.Call) for side in lists for one in side.elts):
        return True
    return all(_is_handed_in(tree, one) for side in lists for one in side.elts)


def _is_handed_in(tree: Tree | None, part: ast.expr) -> bool:
    """A parameter of the function around, read there only once: a pattern for what is to be built."""
    scope = None if tree is None else scope_of(tree, part)
    if not isinstance(part, ast.Name) or not isinstance(scope, ast.FunctionDef):
        return False
    reads = [one for one in ast.walk(scope) if isinstance(one, ast.Name) and one.id == part.id]
    return part.id in parameters_of(scope) and len(reads) == 1


def _in_turn(record: Record, module: int) -> list[tuple[int, ModuleCall]]:
    """The calls of the module that followed another one inside one call of what holds it, each with its number."""
    calls = [call for call in calls_of_modules(record).get(module, ()) if call.grad_mode and not call.recompute]
    first: dict[int | None, ModuleCall] = {}
    found: list[tuple[int, ModuleCall]] = []
    for call in calls:
        before = first.setdefault(call.parent, call)
        if before is not call and call.parent is not None:
            found.append((call.parent, call))
    return found


def _is_random(record: Record, module: int) -> bool:
    """A dropout layer runs in it."""
    calls = calls_of_modules(record).get(module, [])
    known = modules_by_number(record)
    return any("Dropout" in known[one.module].cls for call in calls[:1] for one in inside(record, call))


def _same_input(record: Record, module: int) -> list[tuple[int, ModuleCall]]:
    """The steps in which two calls of the module from one statement got the same tensors and gave two results."""
    found: list[tuple[int, ModuleCall]] = []
    for call in calls_of_modules(record).get(module, ()):
        rows = _given(record).get(call.site, []) if call.site is not None and call.grad_mode else []
        seen: dict[tuple[int, str, tuple[int, ...]], set[int]] = {}
        for row in rows:
            if row.tensor is not None and row.moment is not None and row.requires_grad:
                key = (step_of(record, row.moment), row.function, row.operands)
                seen.setdefault(key, set()).add(row.tensor)
        found += [(key[0], call) for key, results in seen.items() if len(results) > 1]
        if found:
            break
    return found


@table
def _given(record: Record) -> dict[int, list[Operation]]:
    """The operations that were given tensors and called something by a plain name or element, by statement."""
    found: dict[int, list[Operation]] = {}
    for row in record.operations:
        if row.operands and row.function.replace("_", "").replace(".", "").isalnum() and row.function[:1] != ".":
            found.setdefault(row.statement, []).append(row)
    return found


def _finding(
    record: Record, members: list[ModuleName], made: ast.expr, calls: list[ModuleCall], *, alike: bool
) -> Finding:
    first, site = members[0], members[0].site
    name = first.name.partition("[")[0] if "[" in first.name else first.name.rpartition(".")[0]
    moment = next((row.moment for row in record.watched_calls if row.site == site and row.moment is not None), 0)
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` holds one module {len(members)} times"
            + (", and each time it is given the same input." if alike else ": its members are one and the same."),
            "Its members have the same weights, and give the same: they are one network."
            if alike
            else "All of them share one set of weights, and their gradients add up in it: the others do not exist.",
            "Build each: `[make() for _ in range(n)]`.",
        ),
        binding=name,
        moments=[moment],
        region=region_in(record, site_of(record, site).source, made),
        related=(("the members are called here", calls[0].site),),
        evidence={"times": len(members), "assumed": "members are meant to differ"},
        tensors=sorted(held_by(record, first.module))[:16],
    )


def _by_default(record: Record, one: DefaultModule) -> Finding:
    return told(
        record,
        RULE,
        one.site,
        (
            f"`{one.parameter}={ast.unparse(one.default)[:60]}` is one module for all {len(one.owners)} objects.",
            "A default is made once, with the function: all of them share its weights, and train and move each other.",
            f"Let the default be None, and build the module inside where `{one.parameter}` is None.",
        ),
        binding=one.parameter,
        moments=[next((row.moment for row in record.moments if row.site == one.calls[0]), 0)],
        region=region_in(record, one.source, one.default),
        related=(("each object takes it here", one.site), ("it runs here", one.calls[0])),
        evidence={"objects": len(one.owners), "assumed": "each object is meant to have its own"},
        tensors=sorted(held_by(record, one.module))[:16],
    )
