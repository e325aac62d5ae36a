"""BP469 shared-input-modified: data is changed in place where it is stored, again each time it is taken.

What it finds:
    A statement changes untracked data in place at least twice at the same place in memory: in the `__getitem__` of a
    data set, in a training loop over stored batches, or of batches that are slices of stored data and are trained on
    with the change. The finding stands at the first such statement.

Why it matters:
    What should be a fresh augmentation of an item is added to all earlier ones: the data set drifts from epoch to
    epoch, and validation that reads the same memory sees the changed data.

What PyTorch does:
    Indexing a tensor with a number or a slice gives a view, and a list gives the tensor itself: an in-place method or
    `+=` writes into the store. Nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(2)]
    for epoch in range(3):
        for x, y in batches:
            x.add_(0.1 * torch.randn(8, 3))  # <- here
            optimizer.zero_grad()
            (model(x) - y).pow(2).mean().backward()
            optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(2)]
    for epoch in range(3):
        for x, y in batches:
            x = x + 0.1 * torch.randn(8, 3)
            optimizer.zero_grad()
            (model(x) - y).pow(2).mean().backward()
            optimizer.step()

Near miss: normalised once, before training
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [torch.randn(8, 3) for _ in range(2)]
    for x in batches:
        x.sub_(x.mean())
    for epoch in range(3):
        for x in batches:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()

Near miss: each batch is new
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x in torch.randn(12, 3).split(4):
            x.add_(0.1 * torch.randn(4, 3))
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()

Near miss: what is added is taken away again
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(12, 3)
    for epoch in range(3):
        for i in range(0, 12, 4):
            x, noise = data[i : i + 4], torch.randn(4, 3)
            x += noise
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            x -= noise

Blind spots:
    A slice that is changed by what a function of the program or a module gives is not judged: it may be a state that
    moves on. Items that worker processes of a loader change are changed in their copies, which are not recorded. A run
    of one epoch shows nothing.

Source:
    "Tensor Views" in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.scopes import root_name, target_names
from backprobe.rules.analysis.source.syntax import site_of, statement, statement_at, tree_of
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.analysis.training.stored_batches import are_batches
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="shared-input-modified",
    code="BP469",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("version", "backward"),
)

LEAST: Final = 2
"""Changes of the same elements by one statement."""
_ITEM: Final = ".__getitem__"
_SETS: Final = ("copy_", "fill_", "zero_")
"""Methods whose result does not depend on what was there."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per function that changes what it is handed."""
    index, said, fitting = lookup(record), set[tuple[int, str]](), dict[int, bool]()
    by_place: dict[tuple[int, int, int | None], list[InplaceEvent]] = {}
    for event in record.inplace_events:
        row, site = index.tensors[event.tensor], event.site
        if event.done_by != "statement" or row.role is not None or site is None:
            continue
        if site not in fitting:
            fitting[site] = site_of(record, site).function.endswith(_ITEM) or _is_taken_in_training(record, site)
        if _is_target(record, event, site):
            base = event.tensor if row.view_of is None else row.view_of
            by_place.setdefault((site, base, row.storage_offset), []).append(event)
    found: dict[int, list[list[InplaceEvent]]] = {}
    for (site, _base, _offset), events in by_place.items():
        if len(events) >= LEAST and _is_stored(record, events):
            found.setdefault(site, []).append(events)
    for site, groups in found.items():
        place = site_of(record, site)
        if (place.source, place.function) in said:
            continue
        if fitting[site] or are_batches(record, groups, _changed(statement_at(record, site) or ast.Pass())):
            said.add((place.source, place.function))
            yield _finding(record, site, groups[0])


def _is_target(record: Record, event: InplaceEvent, site: int) -> bool:
    """The name that the statement changes held this tensor: a change of one view shows in all of one memory."""
    node, function = statement_at(record, site), site_of(record, site).function
    rows = bindings_named(record).get("" if node is None else _changed(node), [])
    for at in range(bisect_right(rows, event.moment, key=lambda row: row.moment) - 1, -1, -1):
        if rows[at].function == function:
            return rows[at].tensor == event.tensor
    return False


def _is_stored(record: Record, events: list[InplaceEvent]) -> bool:
    """Nothing of it is tracked, optimizer steps lie between the changes, and each depends on what was there."""
    moments = lookup(record).moments
    states = (state_at(record, event.tensor, event.moment) for event in events)
    if any(state is not None and (state.requires_grad or state.grad != "none") for state in states):
        return False
    if moments[events[0].moment].step == moments[events[-1].moment].step:
        return False
    node = statement_at(record, events[0].site)
    if isinstance(node, ast.AugAssign):
        return True
    calls = [part for part in ast.walk(node or ast.Pass()) if isinstance(part, ast.Call)]
    names = [part.func.attr for part in calls if isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_")]
    return isinstance(node, ast.Expr) and bool(names) and not set(names) & set(_SETS)


def _is_taken_in_training(record: Record, site: int) -> bool:
    """The name that is changed is bound by a loop in whose body backward calls stand too."""
    row = site_of(record, site)
    node, tree = statement(record, row), tree_of(record, row)
    if node is None or tree is None:
        return False
    changed = _changed(node)
    calls = {statement_at(record, call.site) for call in record.backward_calls}
    for loop in tree.ancestors(node):
        if isinstance(loop, ast.For) and changed in set(target_names(loop.target)):
            return any(part in calls for part in ast.walk(loop))
    return False


def _changed(node: ast.stmt) -> str:
    """The plain name that a statement changes in place; "" if it is no plain name."""
    if isinstance(node, ast.AugAssign):
        return node.target.id if isinstance(node.target, ast.Name) else ""
    return root_name(node.value) if isinstance(node, ast.Expr) else ""


def _finding(record: Record, site: int, events: list[InplaceEvent]) -> Finding:
    node = statement_at(record, site)
    name = "" if node is None else _changed(node)
    tensor = lookup(record).tensors[events[0].tensor]
    return told(
        record,
        RULE,
        site,
        (
            f"`{name or 'this'}` is changed in place where it is stored, {len(events)} times the same elements.",
            "Each time it is taken it carries all changes before: the data drifts from epoch to epoch.",
            "Change a copy: use the methods without `_`, or `clone()` it first.",
        ),
        binding=name,
        moments=[event.moment for event in events],
        related=(("it is taken here", tensor.site if tensor.site != site else None),),
        evidence={"changes": len(events), "shape": list(tensor.shape or ())},
        tensors=(events[0].tensor,),
    )
