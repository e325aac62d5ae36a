"""BP305 graph-retained-in-container: a list or dict gains a tracked tensor at each step, and keeps all their graphs.

What it finds:
    A statement stores a tracked tensor in a container (`append`, `history[step] = ...`), three times or more with a
    backward call or an optimizer step between; what was stored is alive as long as the container, and no backward call
    walks it afterwards. An evaluation that stores ten or more outputs in a row is found as well. The finding stands at
    that statement; where a function keeps a running mean or sum in the container, at the argument that brings the
    history in.

Why it matters:
    Each stored tensor keeps the graph that made it, also as a part of a tuple or an object. Lists for a log or a plot
    are filled for the whole run: memory grows with every step, until an out-of-memory error far away from here.

What PyTorch does:
    A tensor holds its node, the node those below it. A backward call frees what the nodes saved, not the nodes; a
    tensor that was never walked keeps all. `item()` and `detach()` give the value alone. Seen in torch 2.13.

Example:
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for x in torch.ones(4, 5, 3):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss)  # <- here
    print(len(history))

Use instead:
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for x in torch.ones(4, 5, 3):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    print(len(history))

Near miss: the list is summed and walked
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in torch.ones(4, 3, 5, 3):
        losses = []
        for x in batch:
            losses.append(model(x).pow(2).mean())
        optimizer.zero_grad()
        sum(losses).backward()
        optimizer.step()

Near miss: only the last ones are kept
    import torch
    from collections import deque

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recent = deque(maxlen=2)
    for x in torch.ones(6, 5, 3):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append(loss)
    print(len(recent))

Near miss: what is stored has no history
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    outputs = {}
    for step, x in enumerate(torch.ones(4, 5, 3)):
        output = model(x)
        optimizer.zero_grad()
        output.pow(2).mean().backward()
        optimizer.step()
        outputs[step] = output.detach()
    print(len(outputs))

Blind spots:
    A container that is filled inside a library, or through a function of another name than those of list, dict, set and
    deque, is not followed; nor what is packed up before it is stored. A container with a greatest length is left alone
    once it is full, and for its first ten.

Source:
    "My model reports out of memory" in PyTorch's FAQ; three turns are the least that make a pattern.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.calls.handed_arguments import Handed, handed_in
from backprobe.rules.analysis.graph.detaching_edits import handed_without, number_of
from backprobe.rules.analysis.graph.graph_memory import held_by
from backprobe.rules.analysis.graph.retained_values import (
    LEAST,
    MANY,
    crossing,
    executions,
    kept_alive,
    kept_walked,
    taken_unwalked,
    unwalked_run,
)
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import names
from backprobe.rules.analysis.source.syntax import method_called, region_in, site_of, statement, tree_of
from backprobe.rules.analysis.tensors.collected_values import stored
from backprobe.rules.analysis.terms.tracked_operands import Operand, operands
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Level, Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Site

RULE = Rule(
    name="graph-retained-in-container",
    code="BP305",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="safe",
    needs=("binding", "backward", "node", "snapshot"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that fills a container with tracked tensors of several steps."""
    for number, moments in executions(record).items():
        turns = crossing(record, moments)
        site = site_of(record, number)
        run = unwalked_run(record, moments)
        filled = _stored(record, site) if len(turns) >= LEAST or run else None
        has_length = filled is not None and _has_length(record, site, filled[0])
        # what has taken in more than a few, and still has the first one, is not full: it grows with each step
        if filled is None or (has_length and len(moments) <= MANY):
            continue
        if _is_emptied(record, site, filled[0]):
            kept = kept_alive(record, site, filled[1], turns) if len(turns) >= LEAST else []
            if len(kept) >= LEAST and kept[0][0] == turns[0] and not has_length:
                yield _finding(record, site, filled, kept, level="note")
            continue
        collected = _collected(record, site, filled[1], run)
        if collected and not (has_length and run[0] != moments[0]):
            yield _finding(record, site, filled, collected)
            continue
        if len(turns) < LEAST:
            continue
        kept = kept_alive(record, site, filled[1], turns)
        # what is stored several times before it is walked is a sequence that one loss looks back on
        is_once = len(kept) < LEAST and len(turns) == len(moments) and not has_length
        walked = kept_walked(record, site, filled[1], turns) if is_once else []
        if len(kept) >= LEAST and not (has_length and kept[0][0] != turns[0]):
            yield _finding(record, site, filled, kept)
        elif len(walked) >= LEAST and _is_made_once(record, site, filled[0]):
            yield _finding(record, site, filled, walked, is_walked=True)


def _collected(record: Record, site: Site, value: ast.expr, run: list[int]) -> list[tuple[int, list[Operand]]]:
    """What an evaluation collects that neither it nor a training ever walks, if all of it lives to the last turn."""
    taken = taken_unwalked(record, site, value, run)
    died = (lookup(record).tensors[one.tensor].died for _at, found in taken for one in found)
    is_alive = all(moment is None or moment > run[-1] for moment in died)
    return taken if is_alive and not _is_chain(record, taken) else []


def _is_chain(record: Record, taken: list[tuple[int, list[Operand]]]) -> bool:
    """Each was computed from the one before it: the last one's graph holds all, and the container adds nothing."""
    bound = lookup(record).bindings_of
    before: set[int] | None = None
    for _moment, found in taken:
        parents = {tensor for operand in found for row in bound[operand.tensor] for tensor in row.parents}
        if before is not None and before.isdisjoint(parents):
            return False
        before = {operand.tensor for operand in found}
    return True


def _stored(record: Record, site: Site) -> tuple[ast.expr, ast.expr] | None:
    """The container that a statement fills, and what it puts in; None for a method of the program's own."""
    node = statement(record, site)
    method = method_called(node.value) if isinstance(node, ast.Expr) else None
    if method is not None and any(method in file.functions for file in names(record).values()):
        return None
    return stored(node)


def _has_length(record: Record, site: Site, container: ast.expr) -> bool:
    """The container has a greatest length."""
    tree, last = tree_of(record, site), ast.unparse(container).rpartition(".")[2]
    for part in tree.nodes if tree is not None else ():
        if isinstance(part, ast.Call) and any(given.arg == "maxlen" for given in part.keywords):
            above = tree.parents.get(part) if tree is not None else None
            targets = above.targets if isinstance(above, ast.Assign) else ()
            if isinstance(above, ast.AnnAssign):
                targets = [above.target]
            if any(ast.unparse(target).rpartition(".")[2] == last for target in targets):
                return True
    return False


def _is_emptied(record: Record, site: Site, container: ast.expr) -> bool:
    """The program takes things out of the container."""
    tree, name = tree_of(record, site), ast.unparse(container)
    last = name.rpartition(".")[2]
    for part in tree.nodes if tree is not None else ():
        if method_called(part) in ("pop", "popleft", "clear", "remove") and isinstance(part, ast.Call):
            taken = part.func.value if isinstance(part.func, ast.Attribute) else part.func
            if ast.unparse(taken).rpartition(".")[2] == last:
                return True
        if isinstance(part, ast.Delete) and any(ast.unparse(one).startswith(f"{name}[") for one in part.targets):
            return True
    return False


def _is_made_once(record: Record, site: Site, container: ast.expr) -> bool:
    """A method fills the container, and nothing makes it anew in a loop, or in a function that is no constructor.

    What it held then may live on elsewhere, and is told there.
    """
    tree, name = tree_of(record, site), ast.unparse(container)
    if tree is None or not isinstance(statement(record, site), ast.Expr):
        return False
    for part in tree.nodes:
        targets = (
            part.targets if isinstance(part, ast.Assign) else [part.target] if isinstance(part, ast.AnnAssign) else []
        )
        if any(name in map(ast.unparse, _flat(target)) for target in targets):
            around = [one for one in tree.ancestors(part) if isinstance(one, ast.FunctionDef | ast.For | ast.While)]
            if any(not isinstance(one, ast.FunctionDef) or one.name != "__init__" for one in around):
                return False
    return True


def _flat(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple | ast.List) else [target]


def _all_taken(record: Record, site: Site, value: ast.expr, moment: int, taken: list[Operand]) -> list[Operand]:
    """What was seen to live on, and whatever else of the same value has a history: `{"loss": loss, "logits": logits}`.

    The moment is one of the first's; another name may have its next value by then.
    """
    names_taken = {one.name for one in taken}
    return [*taken, *(one for one in operands(record, site, value, moment) if one.name not in names_taken)]


def _finding(
    record: Record,
    site: Site,
    stored: tuple[ast.expr, ast.expr],
    kept: list[tuple[int, list[Operand]]],
    *,
    is_walked: bool = False,
    level: Level | None = None,
) -> Finding:
    """What a statement keeps.

    Args:
        stored: The container, and what is put in.
        is_walked: The step's own backward call comes after it and needs the history: no edit is offered.
        level: A note, where the program takes things out again in a place that did not come to it.
    """
    container = ast.unparse(stored[0])
    taken = _all_taken(record, site, stored[1], *kept[0])
    name = taken[0].name
    brought = None if is_walked else _handed(record, site, stored[1], taken)
    handed = None if brought is None else brought[1]
    whole = all(ast.unparse(one.part) == one.name for one in taken)
    edits = tuple(number_of(record, site, one, collected=True) for one in taken)
    instead = " and ".join(f"`{one.name}{edit.text}`" for one, edit in zip(taken, edits, strict=True))
    first = taken[0] if brought is None else brought[0]
    if handed is not None:
        name, instead = first.name, f"`{handed.text}.detach()`"
    tensors = sorted({operand.tensor for _moment, found in kept for operand in found})
    turns = {"turns": len(kept), "stores": [operand.name for operand in taken[:8]], "walked": is_walked}
    return told(
        record,
        RULE,
        site.site if handed is None else handed.site.site,
        (
            f"`{container}` gains `{name}` at each step with its history, and "
            + ("keeps it when the step is over." if is_walked else "no backward call walks it there."),
            f"The graphs of all steps stay alive with it, {len(kept)} here: memory grows with every one.",
            f"{'Store' if handed is None else 'Hand in'} {instead}"
            + (", and walk the value itself." if is_walked else "."),
        ),
        binding=container.partition("[")[0],
        moments=[moment for moment, _taken in kept],
        region=None if handed is None else region_in(record, handed.site.source, handed.part),
        related=(
            ("it is stored here", None if handed is None else site.site),
            (f"`{name}` is made here", lookup(record).tensors[first.tensor].site),
        ),
        evidence=turns | held_by(record, tensors),
        fixes=[
            Fix(title="Store the value without its history", safety="safe", edits=edits)
            if whole and not is_walked and handed is None
            else Fix(
                title="Hand in the value without its history",
                safety="safe",
                edits=(handed_without(record, handed, ".detach()"),),
            )
            if handed is not None and not handed.beside
            else Fix(title="Put the value in without its history", safety="manual")
        ],
        tensors=tensors,
        level=level,
    )


def _handed(record: Record, site: Site, value: ast.expr, taken: list[Operand]) -> tuple[Operand, Handed] | None:
    """Of a running mean or sum that a function keeps: the one argument that brings the history in.

    The function is right for numbers, as one that keeps such a value in an attribute (BP304).
    """
    if not isinstance(value, ast.BinOp):
        return None
    by_name = {one.name: one for one in taken}
    found = [(one, handed) for name, one in by_name.items() if (handed := handed_in(record, site, name)) is not None]
    return found[0] if len(found) == 1 else None
