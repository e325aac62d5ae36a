"""BP469 shared-input-modified: data is changed in place where it is stored, again each time it is taken.

What it finds:
    A statement changes untracked data in place at least twice at the same place in memory: in the `__getitem__` of a
    data set or in a transform that it calls, in a training loop over stored batches, or of batches that are slices of
    stored data and are trained on with the change. To erase by chance, as `x[mask] = 0` with a random mask does, is
    such a change; to write the same again is none. The finding stands at the first such statement.

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

Near miss: the same is written again
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = 2 * torch.randn(12, 3)
    for epoch in range(3):
        for x in data.split(4):
            x[x.abs() > 3] = 0.0
            x.clamp_(-2, 2)
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
from math import prod
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.scopes import scope_of, target_names
from backprobe.rules.analysis.source.syntax import site_of, statement, statement_at, tree_of
from backprobe.rules.analysis.stored_data.stored_batches import are_batches, is_of_itself
from backprobe.rules.analysis.stored_data.stored_changes import (
    changed_name,
    changes_more,
    fills_anew,
    is_handed_out,
    writes_by_chance,
)
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Binding, InplaceEvent, Record
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


def check(record: Record) -> Iterator[Finding]:
    """One finding per function that changes what it is handed."""
    said = set[tuple[int, str]]()
    taken, again = _changed_again(record)
    for site, groups in again.items():
        place, name = site_of(record, site), changed_name(statement_at(record, site))
        if (place.source, place.function) in said:
            continue
        fits = _is_taken_in_training(record, site) or _is_item(record, taken.get(site, groups[0][0].tensor), groups[0])
        if fits and writes_by_chance(record, site):
            fits = is_of_itself(record, site, name, groups[0])
        if fits or are_batches(record, groups, name):
            said.add((place.source, place.function))
            yield _finding(record, site, groups[0])


def _changed_again(record: Record) -> tuple[dict[int, int], dict[int, list[list[InplaceEvent]]]]:
    """The changes of each piece of stored memory that a statement changes again and again, by statement.

    First one such piece, by statement, where the changes are told of the whole memory.
    """
    tensors = lookup(record).tensors
    held: dict[int, list[Binding]] = {}
    by_place: dict[tuple[int, int, int | None], list[InplaceEvent]] = {}
    whole: dict[tuple[int, int], list[InplaceEvent]] = {}
    for event in record.inplace_events:
        row, site = tensors[event.tensor], event.site
        if event.done_by != "statement" or row.role is not None or site is None:
            continue
        if site not in held:
            held[site] = _held(record, site)
        if row.view_of is None:
            whole.setdefault((site, event.tensor), []).append(event)
        if _is_target(held[site], event):
            base = event.tensor if row.view_of is None else row.view_of
            by_place.setdefault((site, base, row.storage_offset), []).append(event)
    found: dict[int, list[list[InplaceEvent]]] = {}
    for (site, _base, _offset), events in by_place.items():
        if len(events) >= LEAST and _is_stored(record, events):
            found.setdefault(site, []).append(events)
    taken: dict[int, int] = {}
    items: dict[tuple[int, int], int] = {}
    for (site, base, _offset), events in by_place.items():
        if site not in found:
            items.setdefault((site, base), events[0].tensor)
    for (site, base), item in items.items():
        events = whole.get((site, base), [])
        if len(events) > _places(record, item, base) and _is_item(record, item, events) and _is_stored(record, events):
            found.setdefault(site, []).append(events)
            taken[site] = item
    return taken, found


def _places(record: Record, item: int, base: int) -> int:
    """How many pieces like this one a tensor has: of more changes than that, two were of the same elements.

    Which piece was changed is known of the first turns only: later ones bind no names that are recorded.
    """
    piece, every = (prod(lookup(record).tensors[one].shape or ()) for one in (item, base))
    return max(every // max(piece, 1), 1)


def _held(record: Record, site: int) -> list[Binding]:
    """The bindings, in its function, of the name whose tensor a statement changes."""
    name, function = changed_name(statement_at(record, site)), site_of(record, site).function
    return [row for row in bindings_named(record).get(name, ()) if row.function == function]


def _is_target(held: list[Binding], event: InplaceEvent) -> bool:
    """The name that the statement changes held this tensor: a change of one view shows in all of one memory."""
    at = bisect_right(held, event.moment, key=lambda row: row.moment)
    return at > 0 and held[at - 1].tensor == event.tensor


def _is_stored(record: Record, events: list[InplaceEvent]) -> bool:
    """Nothing of it is tracked, optimizer steps lie between the changes, and each depends on what was there."""
    moments = lookup(record).moments
    states = (state_at(record, event.tensor, event.moment) for event in events)
    if any(state is not None and (state.requires_grad or state.grad != "none") for state in states):
        return False
    if moments[events[0].moment].step == moments[events[-1].moment].step:
        return False
    return events[0].site is not None and changes_more(record, events[0].site)


def _is_item(record: Record, tensor: int, events: list[InplaceEvent]) -> bool:
    """A data set took it and gives out what comes of it, and nothing fills the memory anew after the first change."""
    index = lookup(record)
    for row in index.bindings_of[tensor]:
        if row.function.endswith(_ITEM) and row.moment <= events[-1].moment:
            node, tree = statement_at(record, row.site), tree_of(record, site_of(record, row.site))
            function = None if node is None or tree is None else scope_of(tree, node)
            if function is not None and is_handed_out(function, row.name):
                return not _is_filled_anew(record, index.tensors[tensor].storage, events[0].moment)
    return False


def _is_filled_anew(record: Record, memory: int | None, since: int) -> bool:
    """A later statement writes into the memory what does not depend on what was there."""
    tensors = lookup(record).tensors
    rows = (row for row in record.inplace_events if row.moment > since and tensors[row.tensor].storage == memory)
    return any(fills_anew(record, site) for site in {row.site for row in rows if row.site is not None})


def _is_taken_in_training(record: Record, site: int) -> bool:
    """The name that is changed is bound by a loop in whose body backward calls stand too."""
    row = site_of(record, site)
    node, tree = statement(record, row), tree_of(record, row)
    if node is None or tree is None:
        return False
    changed = changed_name(node)
    calls = {statement_at(record, call.site) for call in record.backward_calls}
    for loop in tree.ancestors(node):
        if isinstance(loop, ast.For) and changed in set(target_names(loop.target)):
            return any(part in calls for inner in loop.body for part in ast.walk(inner))
    return False


def _finding(record: Record, site: int, events: list[InplaceEvent]) -> Finding:
    node = statement_at(record, site)
    name = changed_name(node)
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
