"""BP759 group-without-trainable: a parameter group of its own holds nothing that requires grad.

What it finds:
    An optimizer has several groups, and of one with a learning rate of its own no tensor required grad at any step,
    though the forward pass used it and other groups were trained. Or an optimizer that trains holds a plain tensor that
    never requires grad and is computed with: the finding stands where that tensor is made.

Why it matters:
    Somebody gave these parameters a group, and with it options of their own, to train them. They stay as they are.

What PyTorch does:
    A tensor that requires no grad gets no `.grad`, and `step()` passes over tensors without one in silence.
    `nn.Embedding.from_pretrained` freezes its table unless `freeze=False` is given. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    table = nn.Embedding.from_pretrained(torch.randn(9, 4))  # <- here
    head = nn.Linear(4, 2)
    optimizer = torch.optim.SGD([
        {"params": table.parameters(), "lr": 0.01},
        {"params": head.parameters(), "lr": 0.1},
    ])
    for step in range(3):
        optimizer.zero_grad()
        head(table(torch.arange(6))).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    table = nn.Embedding.from_pretrained(torch.randn(9, 4), freeze=False)
    head = nn.Linear(4, 2)
    optimizer = torch.optim.SGD([
        {"params": table.parameters(), "lr": 0.01},
        {"params": head.parameters(), "lr": 0.1},
    ])
    for step in range(3):
        optimizer.zero_grad()
        head(table(torch.arange(6))).pow(2).mean().backward()
        optimizer.step()

Near miss: the group is thawed later
    import torch
    from torch import nn

    body, head = nn.Linear(4, 4), nn.Linear(4, 2)
    body.requires_grad_(False)
    optimizer = torch.optim.SGD([
        {"params": body.parameters(), "lr": 0.01},
        {"params": head.parameters(), "lr": 0.1},
    ])
    for step in range(4):
        if step == 2:
            body.requires_grad_(True)
        optimizer.zero_grad()
        head(body(torch.randn(6, 4))).pow(2).mean().backward()
        optimizer.step()

Near miss: groups by kind, one of which is frozen as a whole
    import torch
    from torch import nn

    body, head = nn.BatchNorm1d(4), nn.Linear(4, 2)
    body.requires_grad_(False)
    norms = {"params": body.parameters(), "weight_decay": 0.0}
    optimizer = torch.optim.SGD([norms, {"params": head.parameters()}], lr=0.1, weight_decay=0.01)
    for step in range(3):
        optimizer.zero_grad()
        head(body(torch.randn(6, 4))).pow(2).mean().backward()
        optimizer.step()

Near miss: a group without a learning rate of its own is frozen by a filter
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("1."))
    optimizer = torch.optim.SGD([{"params": layer.parameters()} for layer in model], lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    One group that holds frozen and trained parameters of modules alike is taken as meant. Where a statement that can
    set flags to True never ran, or runs while the program trains, the group may wait for it: the finding is a note. So
    it is where the flag is computed, or set to False under a condition: the group may belong to another stage.

Source:
    torch.nn.Embedding.from_pretrained and torch.optim in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.frozen_groups import filtered_by, loaded_frozen, may_thaw
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called, optimizer_name
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.tensors.plain_unknowns import is_flagged_in_text, plain_unknowns
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="group-without-trainable",
    code="BP759",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("optimizer", "snapshot", "module"),
)

LEAST: Final = 2
"""Steps after which a group that still waits is told of."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer."""
    for optimizer in record.optimizers:
        steps = [one for one in record.optimizer_events if one.optimizer == optimizer.optimizer and one.kind == "step"]
        groups: dict[int, list[int]] = defaultdict(list)
        for row in optimizer.tensors:
            groups[row.group].append(row.tensor)
        since = steps[0].moment if steps else 0
        frozen = {group for group, rows in groups.items() if all(_is_frozen(record, one, since) for one in rows)}
        used = {
            group
            for group in frozen
            if any(one in _used_in_training(record) for one in groups[group])
            and _has_own_rate(optimizer, group, frozen)
        }
        trains = len(steps) >= LEAST and len(groups) > len(frozen) and any(one.with_grad for one in steps)
        if used and trains:
            yield _finding(record, optimizer, sorted(used), groups, since=since)
        if len(steps) >= LEAST and any(one.with_grad for one in steps):
            for tensor in plain_unknowns(record, optimizer):
                yield _of_plain(record, optimizer, tensor)


def _of_plain(record: Record, optimizer: Optimizer, tensor: int) -> Finding:
    who, name = optimizer_name(record, optimizer.optimizer), called(record, tensor)
    return told(
        record,
        RULE,
        lookup(record).tensors[tensor].site or 0,
        (
            f"`{name}` is a plain tensor that does not require grad, and `{who}` was given it to change.",
            "No backward call leads to it: each step passes over it, and it stays as it was made.",
            "Make it with `requires_grad=True`, or as an `nn.Parameter`, or leave it out.",
        ),
        binding=name,
        moments=[optimizer.moment],
        related=((f"`{who}` is given it here", optimizer.site),),
        evidence={"of": len(optimizer.tensors)},
        tensors=(tensor,),
        optimizers=(optimizer.optimizer,),
        level="note" if is_flagged_in_text(record, tensor) else None,
    )


def _has_own_rate(optimizer: Optimizer, group: int, frozen: set[int]) -> bool:
    """Its learning rate is that of no trained group: groups by kind, as for weight decay, share theirs."""
    rates = dict(enumerate(optimizer.learning_rates))
    return group in rates and rates[group] not in {rate for other, rate in rates.items() if other not in frozen}


def _is_frozen(record: Record, tensor: int, since: int) -> bool:
    """At the first step and after it, it was never seen with its flag set."""
    rows = lookup(record).snapshots_of[tensor]
    before = [row for row in rows if row.moment <= since][-1:]
    return bool(rows) and not any(row.requires_grad for row in [*before, *(row for row in rows if row.moment > since)])


@table
def _used_in_training(record: Record) -> frozenset[int]:
    """The parameters of modules that were called in training mode."""
    called = {row.module for row in record.module_calls if row.training}
    held = (module.parameters for module in record.modules if module.module in called)
    return frozenset(row.tensor for rows in held for row in rows if row.tensor is not None)


def _finding(
    record: Record, optimizer: Optimizer, frozen: list[int], groups: dict[int, list[int]], *, since: int
) -> Finding:
    who = optimizer.binding or optimizer.cls
    tensors = [tensor for group in frozen for tensor in groups[group]]
    names = [name for tensor in tensors if (name := lookup(record).tensors[tensor].fqn)]
    number = f"Group {frozen[0]}" if len(frozen) == 1 else f"{len(frozen)} groups"
    loaded, filtered = loaded_frozen(record, tensors), filtered_by(record, tensors)
    made = filtered if loaded is None else loaded
    waits_for = may_thaw(record, tensors, since)
    listed = f" (`{'`, `'.join(names[:3])}{'`, ...' if len(names) > 3 else '`'})" if names else ""
    meant = "It stays as it was made. Assumed: a group with a learning rate of its own is to be trained."
    if waits_for is not None:
        meant = (
            f"Line {site_of(record, waits_for).line} decides that: another run, or a later step, may train the group."
        )
    return told(
        record,
        RULE,
        optimizer.site or 0 if made is None else made,
        (
            f"{number} of `{who}`{listed}: nothing in it requires grad, so no step changes it.",
            meant,
            "Set `requires_grad` where it is made (`from_pretrained(..., freeze=False)`), or leave the group out."
            if filtered is None
            else "Let this condition choose them too, or leave the group out.",
        ),
        binding=who,
        moments=[optimizer.moment],
        related=(
            (f"`{who}` is given it here", None if made is None else optimizer.site),
            ("this decides about the flag", waits_for),
        ),
        evidence={"groups": frozen, "of": len(groups), "parameters": names[:16]},
        tensors=tensors[:16],
        optimizers=(optimizer.optimizer,),
        level=None if waits_for is None else "note",
    )
