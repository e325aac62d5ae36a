"""BP820 loss-overwritten-in-loop: a loss begins at zero before a loop, and each turn replaces it instead of adding.

What it finds:
    A name is set to zero before a loop, the loop binds it to a tracked value in each turn without reading it, and the
    backward call behind the loop takes that name.

Why it matters:
    Only the last turn's term is walked back: the other terms, and parameters that serve them alone, get no gradient.

What PyTorch does:
    A name holds one tensor. The graphs of the earlier terms are freed when the name is bound anew. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
    optimizer = torch.optim.SGD(heads.parameters(), lr=0.1)
    for step in range(3):
        x = torch.randn(8, 4)
        loss = torch.zeros(())
        for head in heads:
            loss = (head(x) - x.sum(1, keepdim=True)).pow(2).mean()  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
    optimizer = torch.optim.SGD(heads.parameters(), lr=0.1)
    for step in range(3):
        x = torch.randn(8, 4)
        loss = torch.zeros(())
        for head in heads:
            loss = loss + (head(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a state that each turn makes of the one before
    import torch
    from torch import nn

    cell = nn.RNNCell(4, 4)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    for step in range(3):
        state = torch.zeros(2, 4)
        for x in torch.randn(3, 2, 4):
            state = cell(x, state)
        optimizer.zero_grad()
        state.pow(2).mean().backward()
        optimizer.step()

Near miss: a state that each turn makes of the one before, whose last loss counts
    import torch
    from torch import nn

    cell, head = nn.GRUCell(3, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
    for step in range(3):
        sequence = torch.randn(5, 8, 3)
        wanted, state, loss = sequence.sum((0, 2)).unsqueeze(1), torch.zeros(8, 8), 0.0
        for x in sequence:
            state = cell(x, state)
            loss = (head(state) - wanted).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Without the zero before the loop the last value may be what is meant, and nothing is said.

Source:
    The Python language reference on name binding; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.invariants.replaced_values import tracked_bindings, turn_of
from backprobe.rules.analysis.source.expressions import insertion
from backprobe.rules.analysis.source.syntax import Tree, method_called, region_in, statement, tree_of
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Binding, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="loss-overwritten-in-loop",
    code="BP820",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("binding", "backward", "node", "site"),
)

_HOLDS: Final = (ast.Name, ast.Attribute)
_ZEROS: Final = frozenset({"zeros", "zeros_like", "new_zeros"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    roots = {root.name for call in record.backward_calls for root in call.roots if root.name is not None}
    walked = {root.tensor for call in record.backward_calls for root in call.roots}
    for site in record.sites:
        node = statement(record, site) if site.kind == "assign" else None
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, _HOLDS):
            continue
        tree, rows, name = tree_of(record, site), tracked_bindings(record).get(site.site, []), ast.unparse(target)
        if name not in roots and not any(row.tensor in walked for row in rows):
            continue  # a helper that returns it gives the root another name
        turns = len({turn_of(record, row) for row in rows})
        if tree is not None and len(rows) > turns and _is_replaced(tree, node, name):
            yield _finding(record, site, node, name, rows)


def _is_replaced(tree: Tree, node: ast.Assign, name: str) -> bool:
    """A loop binds the name in every turn, nothing in the loop reads it, and a zero stands before the loop."""
    loop = next(iter(tree.ancestors(node)), None)
    if not isinstance(loop, ast.For) or any(isinstance(part, ast.Break | ast.Return) for part in ast.walk(loop)):
        return False
    if name in _loaded(loop) or _is_of_state(loop, node):
        return False
    around = next(iter(tree.ancestors(loop)), None)
    body = next((part for part in _bodies(around) if loop in part), None)
    if body is None:
        return False
    at = body.index(loop)
    return any(_sets_to_zero(one, name) for one in body[:at]) and not any(
        name in _loaded(one) for one in body[_last_zero(body[:at], name) : at]
    )


def _is_of_state(loop: ast.For, node: ast.Assign) -> bool:
    """All that changes from turn to turn in it are states that each turn makes of the one before: the last has all."""
    stored = {
        ast.unparse(part) for part in ast.walk(loop) if isinstance(part, _HOLDS) and isinstance(part.ctx, ast.Store)
    }
    used = stored & _loaded(node.value)
    carried = {
        ast.unparse(target)
        for part in ast.walk(loop)
        if isinstance(part, ast.Assign)
        for target in part.targets
        if isinstance(target, _HOLDS) and ast.unparse(target) in _loaded(part.value)
    }
    return bool(used) and used <= carried


def _loaded(node: ast.AST) -> set[str]:
    """The names and attributes that a part of the source reads, as written."""
    return {ast.unparse(part) for part in ast.walk(node) if isinstance(part, _HOLDS) and isinstance(part.ctx, ast.Load)}


def _bodies(node: ast.AST | None) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        value = getattr(node, field, None)
        if isinstance(value, list):
            yield value


def _last_zero(body: list[ast.stmt], name: str) -> int:
    return max(at for at, one in enumerate(body) if _sets_to_zero(one, name))


def _sets_to_zero(node: ast.stmt, name: str) -> bool:
    """`loss = 0`, `loss = 0.0`, `loss = torch.zeros(())`, `loss = torch.tensor(0.0)`."""
    if not isinstance(node, ast.Assign) or not any(
        isinstance(one, _HOLDS) and ast.unparse(one) == name for one in node.targets
    ):
        return False
    value = node.value
    if isinstance(value, ast.Call):
        given = value.args[0] if value.args else None
        return method_called(value) in _ZEROS or (method_called(value) == "tensor" and _is_zero(given))
    return _is_zero(value)


def _is_zero(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and not isinstance(value.value, bool) and value.value == 0


def _finding(record: Record, site: Site, node: ast.Assign, name: str, rows: list[Binding]) -> Finding:
    value = region_in(record, site.source, node.value)
    edit = insertion(record, site, value.start_line, value.start_col, f"{name} + ")
    turns = round(len(rows) / len({turn_of(record, row) for row in rows}))
    return told(
        record,
        RULE,
        site.site,
        (
            f"Each iteration of the loop gives `{name}` another value, and nothing adds to the zero before.",
            f"Of about {turns} terms a backward call gets the last one; what serves the others alone gets no gradient.",
            f"Write `{name} = {name} + ...`.",
        ),
        binding=name,
        moments=[rows[0].moment],
        evidence={"bound": len(rows), "backward_calls": len(record.backward_calls)},
        fixes=(Fix(title=f"Add to `{name}`", safety="unsafe", edits=(edit,)),),
        tensors=[row.tensor for row in rows[:16]],
    )
