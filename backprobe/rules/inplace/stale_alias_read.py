"""BP412 stale-alias-read: two names hold one tensor, it is changed in place through one, and the other is read after.

What it finds:
    A name was bound to a tensor, the tensor was changed in place under another name, and then both names went into one
    result that is differentiated: the skip connection around an in-place activation, or inputs that are masked while
    the labels are the same tensor. The finding stands at the change; related are the binding and the read.

Why it matters:
    The second name reads as "what it was before", and holds the changed values: `x + relu(x)` becomes
    `relu(x) + relu(x)`. Nothing raises; the network is another one than the code says. Assumed: the older name stands
    for the older values.

What PyTorch does:
    `skip = x` copies nothing, and `F.relu(x, inplace=True)` returns the tensor it was given. Autograd tracks the change
    rightly, for both names. Seen in torch 2.13.

Example:
    import torch
    import torch.nn.functional as F

    layer = torch.nn.Linear(3, 3)
    x = layer(torch.ones(2, 3))
    skip = x
    x = F.relu(x, inplace=True)  # <- here
    loss = (layer(x) + skip).pow(2).mean()
    loss.backward()

Use instead:
    import torch
    import torch.nn.functional as F

    layer = torch.nn.Linear(3, 3)
    x = layer(torch.ones(2, 3))
    skip = x
    x = F.relu(x)
    loss = (layer(x) + skip).pow(2).mean()
    loss.backward()

Near miss: the older name is not read again
    import torch
    import torch.nn.functional as F

    layer = torch.nn.Linear(3, 3)
    hidden = layer(torch.ones(2, 3))
    active = F.relu(hidden, inplace=True)
    loss = layer(active).pow(2).mean()
    loss.backward()

Near miss: the name is bound after the change
    import torch
    import torch.nn.functional as F

    layer = torch.nn.Linear(3, 3)
    x = F.relu(layer(torch.ones(2, 3)), inplace=True)
    skip = x
    loss = (layer(x) + skip).pow(2).mean()
    loss.backward()

Near miss: the older values are copied
    import torch
    import torch.nn.functional as F

    layer = torch.nn.Linear(3, 3)
    x = layer(torch.ones(2, 3))
    skip = x.clone()
    x = F.relu(x, inplace=True)
    loss = (layer(x) + skip).pow(2).mean()
    loss.backward()

Near miss: one name adds to the other on purpose, and only the sum is read
    import torch

    layer = torch.nn.Linear(3, 3)
    total = layer(torch.ones(2, 3))
    out = total
    out += 1.0
    out.pow(2).mean().backward()

Blind spots:
    Names in two functions, as an argument that its function changes in place, are not compared; nor are views.

Source:
    "In-place operations with autograd" in PyTorch's notes on autograd mechanics; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.expressions import keyword, with_keyword
from backprobe.rules.analysis.source.syntax import parts_of, site_of, statement
from backprobe.rules.analysis.tensors.parents import operands_below
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.edits.out_of_place import out_of_place
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Binding, InplaceEvent, Record, Site

RULE = Rule(
    name="stale-alias-read",
    code="BP412",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("binding", "version", "node", "backward"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stale:
    """One change and the older name that is read after it."""

    event: InplaceEvent
    older: Binding
    changed: str
    read: int


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that changes what an older name is read as later."""
    found: dict[int, list[_Stale]] = {}
    for event in record.inplace_events:
        if event.site is not None and event.done_by == "statement" and event.version_after > event.version_before:
            stale = _stale(record, event, site_of(record, event.site))
            if stale is not None:
                found.setdefault(event.site, []).append(stale)
    for site, rows in found.items():
        yield _finding(record, site_of(record, site), rows)


def _stale(record: Record, event: InplaceEvent, site: Site) -> _Stale | None:
    """The change goes by one name, and an older binding of another name is read after it together with the first."""
    bound = [row for row in lookup(record).bindings_of[event.tensor] if row.function == site.function]
    written = _written(statement(record, site)) or {*site.reads, *site.targets}
    names = {row.name for row in bound if row.moment < event.moment and row.name in written}
    for older in bound:
        if older.moment >= event.moment or older.name in names:
            continue
        for name in names:
            if not _is_alias(record, older) and not _is_named_after(record, bound, name, older):
                continue
            read = _read_after(record, event, older, name)
            if read is not None:
                return _Stale(event=event, older=older, changed=name, read=read)
    return None


def _written(node: ast.stmt | None) -> set[str]:
    """The name that `ids[picked] = 0`, `ids += 1` or `ids.masked_fill_(...)` writes; none where it is not as plain."""
    target: ast.AST | None = node.target if isinstance(node, ast.AugAssign) else None
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
        target = call.func.value
    while isinstance(target, ast.Subscript):
        target = target.value
    return {ast.unparse(target)} if isinstance(target, ast.Name | ast.Attribute) else set()


def _is_alias(record: Record, row: Binding) -> bool:
    """The statement binds one name to another: `skip = x`."""
    node = statement(record, site_of(record, row.site))
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute)


def _is_named_after(record: Record, bound: list[Binding], name: str, older: Binding) -> bool:
    """A statement gave the changed name to what the older one held: `noisy = batch`."""
    for row in bound:
        node = statement(record, site_of(record, row.site)) if row.name == name and row.moment > older.moment else None
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == older.name:
            return len(node.targets) == 1 and ast.unparse(node.targets[0]) == name
    return False


def _read_after(record: Record, event: InplaceEvent, older: Binding, changed: str) -> int | None:
    """A later statement of the function that reads the older name while it holds the tensor.

    What it makes is walked by a backward call, and so is something that was made of the changed name. Data, which has
    no history, must go under both names into what has one, or be handed on as two values by one statement.
    """
    index = lookup(record)
    later = [row for row in bindings_named(record)[older.name] if row.moment > event.moment]
    until = next((row.moment for row in later if row.function == older.function), record.moments[-1].moment + 1)
    reads: dict[str, int] = {}
    pairs: dict[int, None] = {}
    for row in record.moments:
        if row.site is None or not event.moment < row.moment <= until:
            continue
        site = index.sites[row.site]
        if site.function == older.function and site.kind in ("assign", "return", "call", "inplace"):
            for name in (older.name, changed):
                if name in site.reads:
                    reads.setdefault(name, row.site)
            if {older.name, changed} <= set(site.reads):
                pairs.setdefault(row.site)
    for site in _silent_returns(record).get(older.function, ()):  # of several values, a `return` has no moment
        if event.site is not None and site.line > site_of(record, event.site).line and older.name in site.reads:
            reads.setdefault(older.name, site.site)
            if changed in site.reads:
                reads.setdefault(changed, site.site)
                pairs.setdefault(site.site)
    if older.name not in reads or changed not in reads:
        return None
    if _is_walked(record, event.tensor):
        return reads[older.name]
    if not (older.name.isidentifier() and changed.isidentifier()) or not _is_untracked(record, event):
        return None
    if any(_gives_both(statement(record, site_of(record, site)), older.name, changed) for site in pairs):
        return next(iter(pairs))
    trained = all(_goes_into_tracked(record, event.tensor, reads[name]) for name in (older.name, changed))
    return reads[older.name] if trained else None


@table
def _silent_returns(record: Record) -> dict[str, list[Site]]:
    """The `return` statements that no moment tells of, by function."""
    told_of = {row.site for row in record.moments}
    found: dict[str, list[Site]] = {}
    for site in record.sites:
        if site.kind == "return" and site.site not in told_of:
            found.setdefault(site.function, []).append(site)
    return found


def _is_untracked(record: Record, event: InplaceEvent) -> bool:
    """It has no history and never had a gradient."""
    row, state = lookup(record).tensors[event.tensor], state_at(record, event.tensor, event.moment)
    return row.role is None and (state is None or (not state.requires_grad and state.grad == "none"))


def _gives_both(node: ast.stmt | None, one: str, other: str) -> bool:
    """A tuple, list or dict that is returned or handed on has both names as elements, or a call is given both."""
    for part in parts_of(node):
        if isinstance(part, ast.Call) and {one, other} <= {ast.unparse(value) for value in part.args}:
            return ast.unparse(part.func) != "print"
        given = part.elts if isinstance(part, ast.Tuple | ast.List) else []
        given = part.values if isinstance(part, ast.Dict) else given
        if {one, other} <= {value.id for value in given if isinstance(value, ast.Name)}:
            return True
    return False


def _goes_into_tracked(record: Record, tensor: int, site: int) -> bool:
    """An operation of the statement takes the tensor in and gives something with a history."""
    rows = (row for row in record.operations if row.statement == site and row.requires_grad)
    return any(tensor in operands_below(record)[row.operation] for row in rows)


def _is_walked(record: Record, tensor: int) -> bool:
    """A backward call met the node that the changed tensor has."""
    made = lookup(record).node_of.get(tensor)
    return made is not None and any(made.node in reach.met for reach in reaches(record).values())


def _finding(record: Record, site: Site, rows: list[_Stale]) -> Finding:
    one = rows[0]
    older, changed = one.older.name, one.changed
    return told(
        record,
        RULE,
        site.site,
        (
            f"This statement changes `{changed}` in place, and `{older}` is the same tensor: it changes too.",
            f"`{older}` is read afterwards, together with `{changed}`: it no longer holds the values from before.",
            f"Make a new tensor here; if `{older}` is to change too, say so with one name.",
        ),
        binding=older,
        moments=[row.event.moment for row in rows],
        related=(
            (f"`{older}` and `{changed}` are one tensor since here", one.older.site),
            (f"`{older}` is read here", one.read),
        ),
        evidence={"tensor": one.event.tensor, "names": [older, changed], "assumed": f"{older} is the older value"},
        fixes=list(_fixes(record, site)),
        tensors=[row.event.tensor for row in rows],
    )


def _fixes(record: Record, site: Site) -> Iterator[Fix]:
    switched = [
        part for part in parts_of(statement(record, site)) if isinstance(part, ast.Call) and keyword(part, "inplace")
    ]
    edit = with_keyword(record, site, switched[0], "inplace", "False") if switched else out_of_place(record, site)
    if edit is not None:
        yield Fix(title="Make a new tensor", safety="unsafe", edits=(edit,))
