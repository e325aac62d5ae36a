"""BP810 constant-loss-term: a term of the loss is made of trained parameters and has no history.

What it finds:
    A term that was computed from trained parameters alone, without a history (under `no_grad`, of `.detach()` or
    `.data`), is added to the loss in several steps; or one of torch's losses is, that compares two things which nothing
    trained went into. The finding stands where the term is made, or what was compared.

Why it matters:
    A penalty that is a constant penalises nothing: the loss that is printed contains it, and no gradient comes from it.
    The other terms train as if it were not there.

What PyTorch does:
    What is computed under `no_grad`, or of a detached tensor, requires no grad, and the derivative of a constant is
    zero. A sum with one tracked term is tracked, so nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 9, 6):
        fit = net(x).square().mean()
        penalty = sum(p.detach().square().sum() for p in net.parameters())  # <- here
        loss = fit + 0.01 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    net = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 9, 6):
        fit = net(x).square().mean()
        penalty = sum(p.square().sum() for p in net.parameters())
        loss = fit + 0.01 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the norm is printed and not added
    import torch
    from torch import nn

    net = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 9, 6):
        loss = net(x).square().mean()
        size = sum(p.detach().square().sum() for p in net.parameters())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.detach() + size)

Near miss: the constant weighs a term that has a history
    import torch
    from torch import nn

    net = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 9, 6):
        scale = net.weight.detach().norm()
        loss = net(x).square().mean() + 0.01 * scale * net(x).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a straight-through estimator adds what it takes away
    import torch

    step = torch.nn.Parameter(torch.tensor(0.3))
    optimizer = torch.optim.SGD([step], lr=0.1)
    for x in torch.randn(4, 9):
        rest = (step.round() - step).detach()
        rounded = step + rest
        loss = (x - rounded).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a constant that is no loss, such as the entropy of the targets
    import torch
    from torch import nn

    teacher, net = nn.Linear(6, 3).requires_grad_(False), nn.Linear(6, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 9, 6):
        wanted = teacher(x).softmax(1)
        loss = (wanted * wanted.log()).sum(1).mean() - (wanted * net(x).log_softmax(1)).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A term of what modules gave is BP601 to BP607's, as is one whose parameters get no gradient at all.

Source:
    "Locally disabling gradient computation" in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from backprobe.rules.analysis.graph.break_findings import is_constant_penalty
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.losses.loss_calls import FUNCTIONAL
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.arithmetic import summands
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import site_of, statement, value_of
from backprobe.rules.analysis.tensors.parents import unnamed_from
from backprobe.rules.analysis.terms.partial_cuts import partial_cuts, untrained_terms
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers, with_gradient
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Record, WatchedCall
    from backprobe.rules.analysis.graph.breaks import Break
    from backprobe.rules.analysis.terms.terms import Term
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="constant-loss-term",
    code="BP810",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("binding", "parents", "node", "backward", "optimizer"),
    explains=("gradient-not-derivative",),
)

LEAST: Final = 2
"""Steps that added the term: once may be a start value."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that makes such a term."""
    by_site: dict[int, list[tuple[Binding, Binding]]] = {}
    for total in _sums(record) if record.optimizer_events else ():
        if _is_scalar(record, total.tensor) and _is_tracked(record, total) and _is_walked(record, total.tensor):
            for term in _terms(record, total):
                by_site.setdefault(term.site, []).append((term, total))
    told_of: set[int] = set()
    for found in by_site.values():
        if len(found) >= LEAST:
            told_of |= {term.tensor for term, _total in found}
            yield _finding(record, found)
    for one in partial_cuts(record):
        if is_constant_penalty(one) and told_of.isdisjoint(one.tensors) and one.made is not None:
            yield _of_parameters(record, one, one.made)
    for rows in untrained_terms(record) if record.optimizer_events else ():
        call = _loss_of(record, rows[0].tensor)
        if call is not None:
            yield _of_nothing_trained(record, rows, call)


def _is_loss(call: WatchedCall) -> bool:
    """A loss of torch that compares two things."""
    name = call.function.removeprefix(FUNCTIONAL)
    return (
        name != call.function and len(call.inputs) > 1 and name.endswith(("loss", "entropy", "kl_div", "with_logits"))
    )


def _loss_of(record: Record, term: int | None) -> WatchedCall | None:
    """The call of a loss that gave a term, itself or before numbers changed it: `kl(a, b) * 4`."""
    losses = _losses(record)
    while term is not None and term not in losses:
        made = {parent for row in lookup(record).bindings_of[term][:1] for parent in row.parents}
        made = made or set(unnamed_from(record).get(term, ()))
        term = made.pop() if len(made) == 1 else None
    return None if term is None else losses[term]


@table
def _losses(record: Record) -> dict[int, WatchedCall]:
    """The calls of losses, by what they gave."""
    return {tensor: one for one in reversed(record.watched_calls) if _is_loss(one) for tensor in one.outputs}


def _sums(record: Record) -> Iterator[Binding]:
    """What statements bind, and what they add to in place: the binding of its name, at the statement that adds."""
    yield from record.bindings
    adds = {
        number: isinstance(statement(record, site_of(record, number)), ast.AugAssign)
        for number in {event.site for event in record.inplace_events if event.site is not None}
    }
    for event in record.inplace_events:
        if event.site is None or not adds[event.site]:
            continue
        before = [row for row in lookup(record).bindings_of[event.tensor] if row.moment <= event.moment]
        if before:
            yield msgspec.structs.replace(before[-1], site=event.site, moment=event.moment, parents=())


def _terms(record: Record, total: Binding) -> Iterator[Binding]:
    """The untracked summands that are made of trained parameters, none of which is a summand beside them."""
    node = statement(record, site_of(record, total.site))
    is_sum = isinstance(node.op, ast.Add) if isinstance(node, ast.AugAssign) else isinstance(node, ast.Assign)
    parts = list(summands(value_of(node))) if is_sum else []
    given = [_bound(record, total, one) for one in parts]
    for summand, rows in zip(parts, given, strict=True):
        if len(rows) == 1 and _is_plain(summand) and _is_of_parameters(record, rows[0]):
            beside = {row.tensor for others in given if others is not rows for row in others}
            if not beside & set(rows[0].parents):
                yield rows[0]


def _is_plain(summand: ast.expr) -> bool:
    """Names and numbers alone: what a call in it gives may have a history."""
    return not any(isinstance(part, ast.Call) for part in ast.walk(summand))


def _bound(record: Record, total: Binding, summand: ast.expr) -> list[Binding]:
    """What the names in a summand stand for, as its statement reads them."""
    names = {ast.unparse(part) for part in ast.walk(summand) if isinstance(part, ast.Name | ast.Attribute)}
    found: list[Binding] = []
    for name in sorted(names):
        rows = [row for row in bindings_named(record)[name] if row.moment < total.moment]
        is_part = not total.parents or (bool(rows) and rows[-1].tensor in total.parents)
        if rows and is_part and rows[-1].function in (total.function, "<module>"):
            found.append(rows[-1])
    return found


def _is_of_parameters(record: Record, term: Binding) -> bool:
    """An untracked scalar whose only tracked ingredients are parameters that an optimizer trains."""
    tracked = [one for one in term.parents if (was := state_at(record, one, term.moment)) and was.requires_grad]
    dtype = lookup(record).tensors[term.tensor].dtype
    return (
        _is_scalar(record, term.tensor)
        and dtype.startswith(("float", "bfloat"))
        and not _is_tracked(record, term)
        and bool(tracked)
        and all(one in in_optimizers(record) and one in with_gradient(record) for one in tracked)
    )


def _is_scalar(record: Record, tensor: int) -> bool:
    return lookup(record).tensors[tensor].shape == ()


def _is_tracked(record: Record, binding: Binding) -> bool:
    state = state_at(record, binding.tensor, binding.moment)
    return state is not None and state.requires_grad


def _is_walked(record: Record, tensor: int) -> bool:
    """A backward call began at this tensor, or met the node that made it."""
    made = lookup(record).node_of.get(tensor)
    return made is not None and any(made.node in reaches(record)[call.call].met for call in record.backward_calls)


def _of_parameters(record: Record, one: Break, made: int) -> Finding:
    """A term that was found by taking the loss apart: it may have no name, and a value for each row."""
    return told(
        record,
        RULE,
        made,
        (
            f"`{one.term}` is made of {together(record, one.leaves)} and has no history: a constant in the loss.",
            "The loss that is shown contains it, and no gradient comes from it: it penalises nothing.",
            f"Keep it tracked: no {one.ending.how} on the way.",
        ),
        binding=one.term,
        moments=[lookup(record).calls[call].moment_before for call in one.calls],
        related=(("this backward call gets no gradient from it", one.root),),
        evidence={
            "parameters": [*one.leaves[:16]],
            "steps": len(one.calls),
            "assumed": "a term that is added to the loss is meant to train",
        },
        tensors=[*one.leaves, *one.tensors],
    )


def _of_nothing_trained(record: Record, rows: list[Term], call: WatchedCall) -> Finding:
    """A loss of torch between two things that nothing trained went into."""
    term, given = rows[0], call.inputs[0].tensor
    bound = lookup(record).bindings_of[given] if given is not None else []
    made = bound[-1] if bound and bound[-1].parents else None
    name = f"`{made.name}`" if made is not None else "what it is given first"
    of_term = lookup(record).bindings_of[term.tensor] if term.tensor is not None else []
    text = of_term[-1].name if of_term else call.function
    return told(
        record,
        RULE,
        term.site if made is None else made.site,
        (
            f"Nothing that is trained went into {name}: `{text}` compares two constants.",
            "The loss that is shown contains it, and no gradient comes from it: it teaches nothing.",
            "Give it the output of what is to be trained, with its history.",
        ),
        binding=text,
        moments=[one.call.moment_before for one in rows],
        related=(("the loss is computed here", term.site),),
        evidence={"function": call.function, "steps": len(rows), "assumed": "a loss in the sum is meant to train"},
        tensors=[one.tensor for one in rows if one.tensor is not None],
    )


def _finding(record: Record, found: list[tuple[Binding, Binding]]) -> Finding:
    term, total = found[0]
    tracked = [one for one in term.parents if one in in_optimizers(record)]
    return told(
        record,
        RULE,
        term.site,
        (
            f"`{term.name}` is made of {together(record, tracked)} and has no history: a constant in `{total.name}`.",
            "The loss that is shown contains it, and no gradient comes from it: it penalises nothing.",
            f"Keep it tracked: no `.detach()`, `.data`, `.item()` or `no_grad` on the way to `{term.name}`.",
        ),
        binding=term.name,
        moments=sorted({one.moment for one, _total in found}),
        related=((f"added to `{total.name}` here", total.site),),
        evidence={
            "parameters": tracked[:16],
            "steps": len(found),
            "assumed": "a term that is added to the loss is meant to train",
        },
        tensors=tracked,
    )
