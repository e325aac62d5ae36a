"""BP106 requires-grad-forced: a result without history is flagged, so that `backward()` has something to start from.

What it finds:
    A tensor that lost its history was told to require grad and became the root of a backward call. That call reaches
    nothing that is trained. The finding stands where the history ends, or at the flag where that is not seen.

Why it matters:
    The exception that would have told about the cut is gone, and so is training: the gradient ends in the flagged
    tensor itself.

What PyTorch does:
    A flagged tensor is a new leaf. A backward call from it fills its own `.grad` and goes no further. Seen in torch
    2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        chosen = model(torch.randn(4, 3)).argmax(1)  # <- here
        loss = chosen.float().mean().requires_grad_()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(torch.randn(4, 3)).softmax(1)[:, 1].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: an input is flagged, and optimised
    import torch

    image = torch.rand(4).mul(2).requires_grad_()
    optimizer = torch.optim.SGD([image], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (image - 1).pow(2).sum().backward()
        optimizer.step()

Near miss: the gradient of the flagged tensor is what is wanted
    import torch
    from torch import nn

    model = nn.Linear(3, 2)
    with torch.no_grad():
        features = model(torch.randn(4, 3))
    features = features.requires_grad_()
    features.pow(2).sum().backward()
    print(features.grad)

Blind spots:
    A flagged tensor on the way to the loss, not at its end, is judged as a cut.

Source:
    torch.Tensor.requires_grad_ in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.cuts import cuts
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.optimizers.rebound_leaves import rebound_leaves
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.analysis.tensors.parents import operands_below
from backprobe.rules.analysis.training.trained_parameters import never_reached, trained
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="requires-grad-forced",
    code="BP106",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("backward", "snapshot", "parents", "node", "optimizer"),
    explains=("step-without-gradient", "gradient-not-derivative"),
    refines=(),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per place of the flag."""
    if not any(event.kind == "step" for event in record.optimizer_events):
        return
    groups: dict[int, list[tuple[BackwardCall, int]]] = {}
    for call in record.backward_calls:
        leaf = _forced(record, call)
        site = None if leaf is None else _flagged_at(record, call, leaf)
        if leaf is not None and site is not None:
            groups.setdefault(site, []).append((call, leaf))
    for site, found in groups.items():
        yield _finding(record, site, found)


def _forced(record: Record, call: BackwardCall) -> int | None:
    """The one leaf that a call reaches, if nothing trains it and nobody reads its gradient."""
    leaves = reaches(record)[call.call].leaves | _roots_that_are_leaves(record, call)
    if not call.accumulate_grad or len(leaves) != 1 or call.truncated:
        return None
    (leaf,) = leaves
    if any(one.binding.tensor == leaf for one in rebound_leaves(record)):
        return None  # the name of what an optimizer holds: BP702 tells it
    if leaf in trained(record) or lookup(record).tensors[leaf].cls == "Parameter":
        return None
    return None if any(read.tensor == leaf for read in record.grad_reads) else leaf


def _roots_that_are_leaves(record: Record, call: BackwardCall) -> frozenset[int]:
    index = lookup(record)
    found = (root.tensor for root in call.roots if root.tensor is not None)
    return frozenset(
        tensor for tensor in found if index.snapshots_of[tensor] and index.snapshots_of[tensor][-1].is_leaf
    )


def _flagged_at(record: Record, call: BackwardCall, leaf: int) -> int | None:
    """The statement that flags a computed tensor: seen in its states, else written where it or the root was made."""
    index = lookup(record)
    before = False
    for state in index.snapshots_of[leaf]:
        if before and state.requires_grad and _is_computed(record, index.tensors[leaf].site):
            return index.moments[state.moment].site
        before = not state.requires_grad
    roots = [root.tensor for root in call.roots if root.tensor is not None]
    for site in (index.tensors[leaf].site, *(index.tensors[root].site for root in roots)):
        if _writes_flag(record, site) and _is_computed(record, site):
            return site
    return None


def _writes_flag(record: Record, site: int | None) -> bool:
    """`(1 - hits).requires_grad_()`, `torch.tensor(losses, requires_grad=True)`."""
    node = None if site is None else statement(record, site_of(record, site))
    return any(
        (isinstance(part, ast.Attribute) and part.attr == "requires_grad_")
        or (isinstance(part, ast.keyword) and part.arg == "requires_grad")
        for part in (ast.walk(node) if node is not None else ())
    )


def _is_computed(record: Record, site: int | None) -> bool:
    """The statement reads a name that held a tensor, or an operation of it took tensors in: out of a list, perhaps."""
    names = {row.name.split("[")[0] for row in record.bindings}
    return site is not None and (
        any(name.split("[")[0] in names for name in site_of(record, site).reads)
        or any(operands_below(record)[row.operation] for row in record.operations if row.statement == site)
    )


def _finding(record: Record, site: int, found: list[tuple[BackwardCall, int]]) -> Finding:
    call, leaf = found[0]
    cut = _cut_before(record, leaf)
    bound = lookup(record).bindings_of[leaf]
    name = bound[0].name if bound else next((root.name for root in call.roots if root.name), "this tensor")
    where = site if cut is None else cut[0]
    how = "its history ended on the way" if cut is None else f"{cut[1]} ends its history here"
    return told(
        record,
        RULE,
        where,
        (
            f"`{name}` has no history of its own: {how}, and the flag only hides that.",
            "The backward call ends in the flagged tensor; nothing that is trained gets a gradient.",
            "Keep the value tracked from the parameters to the loss, and drop the flag.",
        ),
        binding=name,
        moments=[one.moment_before for one, _leaf in found],
        related=(
            ("flagged here", site if where != site else None),
            ("this backward call reaches only the flagged tensor", call.site),
        ),
        evidence={"leaf": leaf, "leaves_reached": 1, "requires_grad": True},
        tensors=[*(tensor for _call, tensor in found), *never_reached(record)],
        calls=[one.call for one, _leaf in found],
    )


def _is_tracked(record: Record, tensor: int) -> bool:
    history = lookup(record).snapshots_of[tensor]
    return bool(history) and history[-1].requires_grad


def _cut_before(record: Record, leaf: int) -> tuple[int, str] | None:
    """The nearest cut among what the flagged tensor was computed from."""
    index, known = lookup(record), cuts(record)
    tracked = {call.site for call in record.module_calls if call.hi > call.lo}
    waiting, seen = [leaf], {leaf}
    while waiting:
        tensor = waiting.pop(0)
        if tensor in known:
            return known[tensor].site, known[tensor].how
        made = index.tensors[tensor].site
        if made is not None and tensor != leaf and made in tracked and not _is_tracked(record, tensor):
            return made, "this statement"  # a module computed tracked values in it, and what came out is not
        for binding in index.bindings_of[tensor]:
            new = [parent for parent in binding.parents if parent not in seen]
            seen.update(new)
            waiting += new
    return None
