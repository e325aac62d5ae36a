"""BP608 grad-mode-left-off: `set_grad_enabled(False)` is never undone, and training goes on without gradients.

What it finds:
    A plain call switched gradients off. After it, a statement that computed tracked values before, or the root of a
    backward call, ran without them. The finding stands where gradients were switched off, and names that statement.

Why it matters:
    From there on nothing is recorded: the backward call raises, or is skipped by a guard, and training has ended.

What PyTorch does:
    `torch.set_grad_enabled(False)` as a statement holds for the thread until the next switch; as a context it ends with
    its block. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(8, 3)).pow(2).mean()
        if loss.requires_grad:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.set_grad_enabled(False)  # <- here
        print(net(torch.randn(8, 3)).mean())

Use instead:
    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(8, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.set_grad_enabled(False):
            print(net(torch.randn(8, 3)).mean())

Near miss: it is switched on again
    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        torch.set_grad_enabled(True)
        loss = net(torch.randn(8, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.set_grad_enabled(False)
        print(net(torch.randn(8, 3)).mean())

Near miss: the program only predicts from there on
    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(8, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.set_grad_enabled(False)
    print(net(torch.randn(8, 3)).mean())

Blind spots:
    A helper that trains and evaluates through one and the same statement is told apart by the backward call that
    follows it in the source only.

Source:
    torch.set_grad_enabled in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.losses.handed_losses import ways_to_roots
from backprobe.rules.analysis.modules.module_sites import outermost_call
from backprobe.rules.analysis.modules.training_modes import parameters_in, receiver_of, written_call
from backprobe.rules.analysis.source.data_flow import Step
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.analysis.training.grad_modes import left_off
from backprobe.rules.analysis.training.trained_parameters import required_grad
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import line_words
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Mode, ModuleCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="grad-mode-left-off",
    code="BP608",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("mode", "module", "backward", "snapshot"),
    explains=("step-without-gradient",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per plain call that leaves gradients off over a training statement."""
    hurt: dict[int, list[tuple[Mode, ModuleCall]]] = {}
    for call in record.module_calls:
        switch = None if call.grad_mode or call.parent is not None else _switch(record, call)
        if switch is not None and switch.site is not None and _feeds_a_root(record, call):
            hurt.setdefault(switch.site, []).append((switch, call))
    for rows in hurt.values():
        yield _finding(record, *rows[0], len(rows))


def _switch(record: Record, call: ModuleCall) -> Mode | None:
    """The plain call that had switched gradients off when a module was called; None: something else did."""
    return left_off(record, call, _moment(record, call))


def _moment(record: Record, call: ModuleCall) -> int:
    """When a call was over: the k-th moment at its statement."""
    own = _after(record).get(call.site, [])
    return own[min(_turns(record)[call.module_call], len(own) - 1)] if own else 0


@table
def _after(record: Record) -> dict[int | None, list[int]]:
    """The moments after each statement, in order, by site."""
    found: dict[int | None, list[int]] = {}
    for row in record.moments:
        if row.kind == "after-statement":
            found.setdefault(row.site, []).append(row.moment)
    return found


@table
def _turns(record: Record) -> dict[int, int]:
    """How often each module call's module had been called at its statement before."""
    calls: Counter[tuple[int | None, int]] = Counter()
    found: dict[int, int] = {}
    for row in record.module_calls:
        found[row.module_call] = calls[row.site, row.module]
        calls[row.site, row.module] += 1
    return found


def _feeds_a_root(record: Record, call: ModuleCall) -> bool:
    """Its statement went into a backward call when gradients were on, or is about to go into one; and is trainable."""
    top = outermost_call(record, call)
    found = written_call(record, top)
    if found is None or not any(required_grad(record, tensor) for tensor in parameters_in(record, top)):
        return False
    return bool(ways_to_roots(record, [Step(part=found[1], source=found[0])]))


def _finding(record: Record, switch: Mode, call: ModuleCall, times: int) -> Finding:
    name = receiver_of(record, call)
    raised = next(iter(raised_as(record, "no-history")), None)
    line = line_words(record, call.site or 0, switch.site)
    return told(
        record,
        RULE,
        switch.site or 0,
        (
            f"Gradients are switched off here and never switched on again: at {line} `{name}` runs without them.",
            "What it gives to the loss has no history, so the backward call has nothing to walk.",
            "Use `with torch.no_grad():` around what needs no gradients; it ends by itself.",
        ),
        binding=name,
        moments=[_moment(record, call)],
        related=((f"`{name}` runs without gradients here", call.site),),
        evidence={"grad_mode": False, "switched_by": switch.switched_by, "calls": times},
        tensors=sorted(parameters_in(record, call)),
        level=None if raised is None else level_of(record, raised),
    )
