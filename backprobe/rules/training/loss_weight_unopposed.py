"""BP878 loss-weight-unopposed: a learned weight of a loss that nothing holds runs to zero or without end.

What it finds:
    A trained leaf enters what is walked back only as a positive factor of a loss that other leaves train (`exp(-s) *
    loss`, `softplus(m) * violation`), and its gradient had one sign at every step. No other term takes it in, nobody
    maximises it, turns its gradient round or writes it. The finding stands at the product; where an optimizer of its
    own holds the leaf and the factor is a difference from a bound, at that optimizer.

Why it matters:
    The loss is made smaller by weighing it less. A Lagrange multiplier that descends gives its constraint up; task
    weights without a term of their own fall until no task is learnt.

What PyTorch does:
    An optimizer goes down the gradient of whatever it holds; `maximize=True` goes up. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net, s = nn.Linear(4, 1), nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([*net.parameters(), s], lr=0.05)
    for x in torch.randn(6, 16, 4):
        error = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss = torch.exp(-s) * error  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    net, s = nn.Linear(4, 1), nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([*net.parameters(), s], lr=0.05)
    for x in torch.randn(6, 16, 4):
        error = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss = torch.exp(-s) * error + s
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a multiplier that ascends
    import torch
    from torch import nn
    import torch.nn.functional as F

    net, raw = nn.Linear(4, 1), nn.Parameter(torch.zeros(()))
    primal = torch.optim.SGD(net.parameters(), lr=0.05)
    dual = torch.optim.SGD([raw], lr=0.05, maximize=True)
    for x in torch.randn(6, 16, 4):
        out = net(x)
        loss = (out - 1).pow(2).mean() + F.softplus(raw) * (out.pow(2).mean() - 0.1)
        primal.zero_grad()
        dual.zero_grad()
        loss.backward()
        primal.step()
        dual.step()

Near miss: a temperature with a loss of its own
    import torch
    from torch import nn

    net, log_alpha = nn.Linear(4, 2), nn.Parameter(torch.zeros(()))
    actor = torch.optim.SGD(net.parameters(), lr=0.05)
    tuner = torch.optim.SGD([log_alpha], lr=0.05)
    for x in torch.randn(6, 16, 4):
        logp = torch.log_softmax(net(x), 1)
        entropy = -(logp.exp() * logp).sum(1).mean()
        actor.zero_grad()
        (logp[:, 0].mean() - log_alpha.exp().detach() * entropy).backward()
        actor.step()
        tuner.zero_grad()
        (log_alpha.exp() * (entropy - 0.5).detach()).backward()
        tuner.step()

Blind spots:
    A weight that is taken in plainly, `w * loss`, or through a softmax over tasks. More than 16 weights in one leaf.

Source:
    Kendall et al. (2018), the term `log sigma`; Platt and Barr (1988), ascent on the multipliers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.arrivals import came_to_leaves
from backprobe.rules.analysis.gradients.grad_writes import is_of_torch
from backprobe.rules.analysis.graph.reach import leaves_behind, reaches
from backprobe.rules.analysis.graph.walks import op, operands
from backprobe.rules.analysis.losses.maximised import is_maximised
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called, optimizer_name
from backprobe.rules.analysis.terms.loss_weights import (
    MOST,
    Weighted,
    first_calls,
    is_only_weight,
    reduced,
    weighted_losses,
)
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import LeafGrad, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="loss-weight-unopposed",
    code="BP878",
    since="0.2",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "backward", "stats", "optimizer"),
)

LEAST: Final = 5
"""Steps with a gradient of one sign: fewer are no direction."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per product and optimizer."""
    leaves = {
        leaf for leaf in in_optimizers(record) if lookup(record).tensors[leaf].numel <= MOST and _is_left(record, leaf)
    }
    if not leaves or is_maximised(record):
        return
    calls = [call for call in first_calls(record) if reaches(record)[call.call].leaves & leaves]
    found: defaultdict[int, list[Weighted]] = defaultdict(list)
    for call in calls:
        own = [one for one in weighted_losses(record, call) if one.leaf in leaves]
        for leaf in reaches(record)[call.call].leaves & leaves:
            ways = [one for one in own if one.leaf == leaf]
            if ways and is_only_weight(record, call, leaf, ways):
                found[leaf] += ways
            else:
                leaves.discard(leaf)
    groups: defaultdict[tuple[int, int | None], list[Weighted]] = defaultdict(list)
    for leaf in leaves & found.keys():
        if _has_one_sign(record, leaf):
            place = _place(record, found[leaf][0])
            if place is not None:
                groups[place] += found[leaf]
    for (site, optimizer), rows in sorted(groups.items(), key=lambda one: one[0][0]):
        yield _finding(record, site, optimizer, rows)


def _is_left(record: Record, leaf: int) -> bool:
    """Optimizers alone write the leaf, and nobody its gradient; no hook turns that round."""
    index = lookup(record)
    rows = index.leaf_grads_of[leaf]
    first = rows[0].moment if rows else 0
    if any(row.kind == "assigned" or (row.kind == "modified-in-place" and not _is_kept(record, row)) for row in rows):
        return False
    if any(event.done_by == "statement" and event.moment > first for event in index.inplace_of[leaf]):
        return False
    return not any(hook.tensor == leaf for hook in record.hooks)


def _is_kept(record: Record, row: LeafGrad) -> bool:
    """Clipping, or the zeros of a clear."""
    return is_of_torch(record, row) or row.site in _clears(record)


@table
def _clears(record: Record) -> frozenset[int | None]:
    return frozenset(row.site for row in record.optimizer_events if row.kind == "zero_grad") - {None}


def _has_one_sign(record: Record, leaf: int) -> bool:
    """All elements of all its gradients."""
    rows = [row.grad_output for row in came_to_leaves(record).get(leaf, ()) if row.grad_output is not None]
    signs = {(one.min > 0) - (one.max < 0) for one in rows if one.min is not None and one.max is not None}
    return len(rows) >= LEAST and signs in ({1}, {-1})


def _place(record: Record, weighted: Weighted) -> tuple[int, int | None] | None:
    """The product; the optimizer, where it holds the weight alone and the loss is a difference from a bound."""
    index = lookup(record)
    held = in_optimizers(record)[weighted.leaf]
    beside = leaves_behind(record, weighted.other)
    own = [row for row in record.optimizers if row.optimizer in held]
    made = index.nodes[reduced(record, weighted.other)]
    tracked = [one for one in operands(record, made.node) if one is not None]
    is_bound = op(made) in ("Sub", "Rsub", "Add") and len(tracked) == 1
    if is_bound and len(own) == 1 and own[0].site is not None and not beside & {one.tensor for one in own[0].tensors}:
        return own[0].site, own[0].optimizer
    return None if weighted.product.site is None else (weighted.product.site, None)


def _finding(record: Record, site: int, optimizer: int | None, rows: list[Weighted]) -> Finding:
    first = rows[0]
    leaves = sorted({one.leaf for one in rows})
    name, product = called(record, first.leaf), first.product.site
    steps = len(came_to_leaves(record)[first.leaf])
    held = optimizer_name(record, in_optimizers(record)[first.leaf][0])
    advice = f"Let it ascend: `maximize=True` for `{held}`, or walk back its own loss with a minus."
    if optimizer is None:
        advice = "Add the term that pays for a small weight, as `log_variance`; or do not train the weight."
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` only weighs a loss, and `{held}` moves it the same way at each of {steps} steps.",
            "What is walked back grows smaller by weighing that loss less, and nothing in it holds the weight.",
            advice,
        ),
        binding=name,
        moments=[one.product.first_seen for one in rows],
        related=(
            ("the weight goes in here", product if product != site else None),
            ("walked back here", first.call.site),
        ),
        evidence={"weights": len(leaves), "steps": steps},
        tensors=leaves,
        calls=[first.call.call],
        optimizers=() if optimizer is None else (optimizer,),
    )
