"""BP754 averaged-with-itself: a target network is loaded from itself, or averaged with itself.

What it finds:
    A module that no optimizer trains loads the tensors that it has already. Or a weighted average,
    `k * a + (1 - k) * b` or `a.mul_(k).add_(b, alpha=1 - k)`, has one and the same value for `a` and `b`.

Why it matters:
    Nothing changes: the target keeps the values that it was born with, and training goes on against them.

What PyTorch does:
    `load_state_dict` copies each tensor of the dict into the parameter of that name; a copy of a tensor into itself
    leaves it as it is. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    online, target = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        with torch.no_grad():
            wanted = target(x)
        optimizer.zero_grad()
        (online(x) - wanted).pow(2).mean().backward()
        optimizer.step()
        target.load_state_dict(target.state_dict())  # <- here

Use instead:
    import torch
    from torch import nn

    online, target = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        with torch.no_grad():
            wanted = target(x)
        optimizer.zero_grad()
        (online(x) - wanted).pow(2).mean().backward()
        optimizer.step()
        target.load_state_dict(online.state_dict())

Near miss: the state was changed before it is loaded
    import torch
    from torch import nn

    online, target = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        (online(x) - target(x).detach()).pow(2).mean().backward()
        optimizer.step()
        state = target.state_dict()
        for key, value in online.state_dict().items():
            state[key] = 0.9 * state[key] + 0.1 * value
        target.load_state_dict(state)

Near miss: a distance to its own average
    import torch

    weight = torch.ones(3, requires_grad=True)
    keep = 0.9
    ((keep * weight + (1 - keep) * weight.mean()) - 2).pow(2).sum().backward()

Blind spots:
    A loop that writes each parameter of a network over itself by `copy_` is not judged, nor an average of two calls:
    the same call may give two values.

Source:
    torch.nn.Module.load_state_dict in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.assignments import spelled_out
from backprobe.rules.analysis.source.scopes import names, scope_of
from backprobe.rules.analysis.source.syntax import (
    Tree,
    method_called,
    parts_of,
    region_in,
    site_of,
    statement_at,
    tree_of,
)
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Site, WatchedCall
    from backprobe.rules.framework.finding import Finding, Region

RULE = Rule(
    name="averaged-with-itself",
    code="BP754",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("module", "call", "site"),
)

_LOAD: Final = "torch.nn.Module.load_state_dict"


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that loads or averages."""
    loads: dict[int, list[WatchedCall]] = {}
    for row in record.watched_calls:
        if row.function == _LOAD and row.site is not None and not row.raised and _loads_itself(record, row):
            loads.setdefault(row.site, []).append(row)
    for site, rows in loads.items():
        yield _of_load(record, site, rows)
    for site in record.sites if record.backward_calls else ():
        average = _average_of_one(record, site)
        if average is not None and _ran(record, site):
            yield _of_average(record, site, *average)


def _loads_itself(record: Record, row: WatchedCall) -> bool:
    """The dict is taken from the very module in this statement, and holds the memory of its untrained parameters."""
    call = next(
        (one for one in parts_of(statement_at(record, row.site)) if method_called(one) == "load_state_dict"), None
    )
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
        return False
    given = _given(record, site_of(record, row.site or 0), call.args[0])
    taken = given.func.value if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) else None
    if taken is None or method_called(given) != "state_dict" or ast.dump(taken) != ast.dump(call.func.value):
        return False
    trained = {lookup(record).tensors[one].storage for one in in_optimizers(record)}
    memory = {lookup(record).tensors[one.tensor].storage for one in row.inputs if one.tensor is not None}
    return bool(memory) and not memory & trained and bool(trained)


def _given(record: Record, site: Site, written: ast.expr) -> ast.expr:
    """What is loaded; behind a name that nothing else reads: a dict that was looked at may have other values now."""
    tree, file = tree_of(record, site), names(record).get(site.source)
    if not isinstance(written, ast.Name) or tree is None or file is None:
        return written
    read = file.loads.get((scope_of(tree, written), written.id), ())
    return spelled_out(record, tree, written) if len(read) == 1 else written


def _average_of_one(record: Record, site: Site) -> tuple[ast.BinOp | ast.Call, str] | None:
    """`k * x + (1 - k) * x`, with the text of x."""
    node, tree = statement_at(record, site.site), tree_of(record, site)
    if tree is None or site.kind not in ("assign", "inplace", "return", "statement", "call"):
        return None
    for part in parts_of(node):
        if isinstance(part, ast.Call) and (value := _averaged_in_place(part)) is not None:
            return part, ast.unparse(value)
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
            one, other = _factors(record, tree, part.left), _factors(record, tree, part.right)
            for share, value in one:
                if _is_made_anew(share) or _is_made_anew(value):
                    continue
                if any(ast.dump(value) == ast.dump(second) and _are_shares(share, rest) for rest, second in other):
                    return part, ast.unparse(value)
    return None


def _averaged_in_place(part: ast.Call) -> ast.expr | None:
    """`x` of `x.lerp_(x, w)` or `x.mul_(k).add_(x, alpha=1 - k)`; a module's average that is fed with its own copy."""
    if not isinstance(part.func, ast.Attribute) or not part.args or _is_made_anew(part.args[0]):
        return None
    held, given = part.func.value, part.args[0]
    if part.func.attr == "add_" and method_called(held) == "mul_" and part.keywords:
        held = held.func.value if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) else held
    elif part.func.attr != "lerp_":
        return None
    return given if ast.dump(held) == ast.dump(given) else None


def _is_made_anew(value: ast.expr) -> bool:
    """A call: the same text gives two values there, of two passes with dropout or of two draws."""
    return any(isinstance(part, ast.Call | ast.Await | ast.NamedExpr) for part in ast.walk(value))


def _factors(record: Record, tree: Tree, node: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Share and value of a product, in either order."""
    product = spelled_out(record, tree, node)
    if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
        return []
    sides = [(product.left, product.right), (product.right, product.left)]
    return [(_share(spelled_out(record, tree, share), share), value) for share, value in sides]


def _share(spelled: ast.expr, written: ast.expr) -> ast.expr:
    """`1 - k`, if a name stands for that; other names are compared as they are."""
    return spelled if isinstance(spelled, ast.BinOp) and isinstance(spelled.op, ast.Sub) else written


def _are_shares(one: ast.expr, other: ast.expr) -> bool:
    """One is `1 -` the other."""
    return _is_rest(one, other) or _is_rest(other, one)


def _is_rest(one: ast.expr, other: ast.expr) -> bool:
    if isinstance(one, ast.Constant) and isinstance(other, ast.Constant):
        share, rest = one.value, other.value
        return isinstance(share, float) and isinstance(rest, float) and abs(share + rest - 1) < 1e-9
    return (
        isinstance(other, ast.BinOp)
        and isinstance(other.op, ast.Sub)
        and isinstance(other.left, ast.Constant)
        and other.left.value == 1
        and ast.dump(other.right) == ast.dump(one)
    )


def _ran(record: Record, site: Site) -> bool:
    """It is known to have run, with tensors."""
    return any(row.statement == site.site for row in record.operations)


def _of_load(record: Record, site: int, rows: list[WatchedCall]) -> Finding:
    call = next(one for one in parts_of(statement_at(record, site)) if method_called(one) == "load_state_dict")
    name = ast.unparse(call.func.value) if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
    tensors = [one.tensor for one in rows[0].inputs if one.tensor is not None]
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` loads its own state here: nothing changes.",
            f"No optimizer trains it, so it keeps the values that it was born with, in all {len(rows)} loads.",
            "Load the state of the network that is trained.",
        ),
        binding=name,
        moments=[max(row.moment or 0, 0) for row in rows],
        evidence={"loads": len(rows), "tensors": len(tensors)},
        tensors=tensors[:16],
    )


def _of_average(record: Record, site: Site, node: ast.BinOp | ast.Call, value: str) -> Finding:
    rows = [row for row in record.operations if row.statement == site.site]
    region: Region = region_in(record, site.source, node)
    return told(
        record,
        RULE,
        site.site,
        (
            f"Both sides of this average are `{value}`: what comes out is `{value}` itself.",
            "What was to follow other values stays where it was.",
            "Take one of the two from the network, or the statistics, that it is to follow.",
        ),
        binding=value,
        moments=sorted({max(row.moment or 0, 0) for row in rows})[:64] or [0],
        region=region,
        evidence={"average_of": value},
        tensors=sorted({one for row in rows for one in row.operands})[:16],
    )
