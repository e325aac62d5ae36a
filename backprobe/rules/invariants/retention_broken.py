"""BP951 retention-broken: graphs of earlier training steps are still alive.

What it finds:
    Graphs of three training steps or more are alive at once after their steps have ended. The finding names the
    statement that keeps the tensors which hold them, else the one that made them.

Why it matters:
    Each graph holds what its operations saved for the backward pass, so memory grows with every step.

What PyTorch does:
    A tensor holds the node that made it, and a node holds all nodes before it. The backward pass frees what the nodes
    saved, and not the nodes; a graph that no backward call walked keeps everything. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    failures = []


    def train_on(batch):
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()  # <- here
        if batch.sum() > 0:
            raise ValueError("an odd batch")
        loss.backward()
        optimizer.step()


    for step in range(16):
        try:
            train_on(torch.randn(8, 4))
        except ValueError as error:
            failures.append(error)

Use instead:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    failures = []


    def train_on(batch):
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        if batch.sum() > 0:
            raise ValueError("an odd batch")
        loss.backward()
        optimizer.step()


    for step in range(16):
        try:
            train_on(torch.randn(8, 4))
        except ValueError as error:
            failures.append(str(error))

Near miss: detached values are kept
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for step in range(6):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

Near miss: an episode is kept for one later backward call
    import torch
    from torch import nn

    torch.manual_seed(0)
    policy, model = nn.Linear(4, 2), nn.Linear(4, 1)
    actor = torch.optim.SGD(policy.parameters(), lr=0.01)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    episode = []
    for step in range(10):
        state = torch.randn(4)
        episode.append((torch.log_softmax(policy(state), 0)[0], 1.0))
        optimizer.zero_grad()
        model(state).pow(2).mean().backward()
        optimizer.step()
        if len(episode) == 5:
            loss = -torch.stack([part * reward for part, reward in episode]).sum()
            actor.zero_grad()
            loss.backward()
            actor.step()
            episode.clear()

Blind spots:
    A run with fewer than three steps, and steps after the first one that was not recorded.

Source:
    The nodes of the record and when they died. Two generations are alive wherever a value of the last step is used in
    the next one; three are not needed by a first-order training loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.graph_memory import closure_of_holder, held_by
from backprobe.rules.analysis.invariants.checks import Coverage
from backprobe.rules.analysis.invariants.retained_generations import retained_generations, turn_ends
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="retention-broken",
    code="BP951",
    since="0.1",
    severity="note",
    confidence="likely",
    fix="manual",
    needs=("backward", "node", "retention"),
)
EXPLAINED_BY = ("BP3", "BP4", "BP6")
"""Families of rules whose findings explain a breach."""


def check(record: Record) -> Iterator[Finding]:
    """Yield a finding for each statement that keeps graphs of earlier steps, two at most."""
    kept = retained_generations(record)
    if kept is None:
        return
    moments, held = turn_ends(record), held_by(record, kept.tensors)
    keeper = f"`{held['held_by']}` keeps one of them. " if held else ""
    closure = closure_of_holder(record, held.get("held_by", ""))
    for site in kept.sites if closure is None else (closure,):
        yield told(
            record,
            RULE,
            site,
            (
                f"Graphs of {kept.generations} training steps are alive at once: "
                + ("a value made here carries them on." if kept.is_carried else "values from here hold them."),
                keeper
                + (
                    "Their nodes and named values stay, though what they saved is freed."
                    if kept.is_freed
                    else "Memory grows with every step."
                ),
                "Keep numbers, texts or detached values: `.item()`, `str(error)`, `.detach()`.",
            ),
            binding="",
            moments=moments,
            tensors=kept.tensors,
            evidence={"breach": "carried" if kept.is_carried else "kept", "generations": kept.generations, **held},
        )


def measure_coverage(record: Record) -> Coverage:
    """Return how many training turns had ended when the record was last complete."""
    total = max(sum(event.kind == "step" for event in record.optimizer_events), len(turn_ends(record)))
    checked = len(turn_ends(record)) if record.nodes else 0
    why = "" if checked >= 3 else "fewer than three training steps were recorded"
    return Coverage(checked=checked if checked >= 3 else 0, total=total, unit="steps", why=why)
