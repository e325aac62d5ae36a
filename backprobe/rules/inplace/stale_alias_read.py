"""BP412 stale-alias-read: two names hold one tensor, it is changed in place through one, and the other is read after.

What it finds:
    A name was bound to a tensor, the tensor was changed in place under another name, and then both names went into one
    result that is differentiated: the skip connection around an in-place activation. The finding stands at the change;
    related are the binding and the read.

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
from backprobe.rules.edits.out_of_place import out_of_place
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

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
    names = {row.name for row in bound if row.moment < event.moment and row.name in {*site.reads, *site.targets}}
    for older in bound:
        if older.moment >= event.moment or older.name in names or not _is_alias(record, older):
            continue
        for name in names:
            read = _read_after(record, event, older, name)
            if read is not None:
                return _Stale(event=event, older=older, changed=name, read=read)
    return None


def _is_alias(record: Record, row: Binding) -> bool:
    """The statement binds one name to another: `skip = x`."""
    node = statement(record, site_of(record, row.site))
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute)


def _read_after(record: Record, event: InplaceEvent, older: Binding, changed: str) -> int | None:
    """A later statement of the function that reads the older name while it holds the tensor.

    What it makes is walked by a backward call, and so is something that was made of the changed name.
    """
    index = lookup(record)
    later = [row for row in bindings_named(record)[older.name] if row.moment > event.moment]
    until = next((row.moment for row in later if row.function == older.function), record.moments[-1].moment + 1)
    reads: dict[str, int] = {}
    for row in record.moments:
        if row.site is None or not event.moment < row.moment <= until:
            continue
        site = index.sites[row.site]
        if site.function == older.function and site.kind in ("assign", "return", "call", "inplace"):
            for name in (older.name, changed):
                if name in site.reads:
                    reads.setdefault(name, row.site)
    walked = _is_walked(record, event.tensor)
    return reads[older.name] if walked and older.name in reads and changed in reads else None


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
