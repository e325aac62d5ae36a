"""BP306 graph-grows-each-step: each backward call walks all the steps before it as well.

What it finds:
    The calls of one statement share nodes with the call before, which it retained or which save nothing, and walk more
    nodes each time, by the same number four times running. The finding stands at the statement that carries the graph
    over; related is the backward call.

Why it matters:
    The program runs, but step n costs n times the first: it slows down without end, and memory grows. Gradients of old
    steps also come again, through weights that have changed since.

What PyTorch does:
    `retain_graph=True` keeps a graph that a carried tensor then makes part of the next one. Sums and differences save
    nothing: a chain of them can be walked again and again without it. Seen in torch 2.13.

Example:
    import torch

    cell = torch.nn.Linear(3, 3)
    memory = torch.zeros(1, 3)
    for x in torch.ones(6, 1, 3):
        memory = torch.tanh(cell(memory) + x)  # <- here
        cell.zero_grad()
        memory.pow(2).sum().backward(retain_graph=True)

Use instead:
    import torch

    cell = torch.nn.Linear(3, 3)
    memory = torch.zeros(1, 3)
    for x in torch.ones(6, 1, 3):
        memory = torch.tanh(cell(memory.detach()) + x)
        cell.zero_grad()
        memory.pow(2).sum().backward()

Near miss: longer sequences, each with a graph of its own
    import torch

    cell = torch.nn.Linear(3, 3)
    for length in range(1, 7):
        memory = torch.zeros(1, 3)
        for _ in range(length):
            memory = torch.tanh(cell(memory))
        cell.zero_grad()
        memory.pow(2).sum().backward()

Near miss: one graph, retained for several losses
    import torch

    cell = torch.nn.Linear(3, 6)
    output = torch.tanh(cell(torch.ones(1, 3))) * 2
    for at in range(6):
        cell.zero_grad()
        output[0, at].backward(retain_graph=True)
        print(cell.weight.grad.norm())

Blind spots:
    Without `retain_graph=True` the second call raises instead: BP302 sees that. Fewer than five calls are no pattern.

Source:
    torch.Tensor.backward in PyTorch's documentation; growth by one number over four calls is no chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.carried_graphs import Carried, carried_between
from backprobe.rules.analysis.graph.graph_memory import held_by
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.graph.graph_carried_across_steps import detached

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record

RULE = Rule(
    name="graph-grows-each-step",
    code="BP306",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="unsafe",
    needs=("backward", "node", "binding"),
)

GROWTHS: Final = 4
"""Calls in a row that each walk more nodes than the one before, by one number."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement whose backward calls take in one step more each time."""
    by_site: defaultdict[int, list[BackwardCall]] = defaultdict(list)
    for call in record.backward_calls:
        if call.site is not None and call.outcome == "finished":
            by_site[call.site].append(call)
    for calls in by_site.values():
        grown = _grown(record, calls)
        carried = None if grown is None else _carried(record, grown)
        if grown is None or _is_for_another(record, grown):
            continue
        if carried is not None and carried.site is not None:
            yield _finding(record, grown, carried, carried.site if carried.kept is None else carried.kept)


def _grown(record: Record, calls: list[BackwardCall]) -> list[BackwardCall] | None:
    """The first calls in a row that grow by one number and share nodes, each with the one before."""
    run: list[BackwardCall] = calls[:1]
    for before, after in pairwise(calls):
        grows = after.nodes_met - before.nodes_met
        same = len(run) < 2 or grows == run[-1].nodes_met - run[-2].nodes_met
        if grows > 0 and same and _shared(record, before, after):
            run.append(after)
        else:
            run = [after]
        if len(run) > GROWTHS:
            return run
    return None


def _is_for_another(record: Record, grown: list[BackwardCall]) -> bool:
    """Gradients are only asked for, and another statement later walks back the whole graph: an unrolled optimizer."""
    last = grown[-1]
    if any(call.accumulate_grad for call in grown):
        return False
    shared = _shared(record, grown[-2], last)
    return any(
        call.accumulate_grad and call.site != last.site and not shared.isdisjoint(reaches(record)[call.call].met)
        for call in record.backward_calls
        if call.call > last.call
    )


def _shared(record: Record, before: BackwardCall, after: BackwardCall) -> frozenset[int]:
    """The nodes that both walked, but for those of the leaves, which all calls share."""
    nodes = lookup(record).nodes
    both = reaches(record)[before.call].met & reaches(record)[after.call].met
    return frozenset(node for node in both if nodes[node].type != "AccumulateGrad")


def _carried(record: Record, grown: list[BackwardCall]) -> Carried | None:
    before, after = grown[-2], grown[-1]
    return carried_between(record, before, after, _shared(record, before, after))


def _finding(record: Record, grown: list[BackwardCall], carried: Carried, at: int) -> Finding:
    site = site_of(record, at)
    edit = detached(record, site, carried) if carried.kept is None else None
    retained = grown[-1].retain_graph
    each = grown[-1].nodes_met - grown[-2].nodes_met
    return told(
        record,
        RULE,
        at,
        (
            f"`{carried.name}` brings the graph of all steps before into this one, and each backward call walks it.",
            f"They walk {grown[0].nodes_met}, {grown[1].nodes_met}, ... nodes: {each} more each time, without end.",
            (
                f"Use `{carried.name}.detach()` here"
                if carried.kept is None
                else f"Keep `{carried.name}.detach()` here for the next step"
            )
            + (
                ", and drop `retain_graph=True`." if retained else ": nothing raises, for what is shared saves nothing."
            ),
        ),
        binding=carried.name,
        moments=[call.moment_before for call in grown],
        related=(
            ("the next step takes it in here", None if at == carried.site else carried.site),
            (f"this backward call {'retains' if retained else 'walks'} the graph", grown[-1].site),
        ),
        evidence={
            "nodes": [call.nodes_met for call in grown],
            "calls": [call.call for call in grown],
            **held_by(record, [carried.tensor]),
        },
        fixes=[] if edit is None else [Fix(title="Cut the history off", safety="unsafe", edits=(edit,))],
        tensors=[carried.tensor],
        calls=[call.call for call in grown],
    )
