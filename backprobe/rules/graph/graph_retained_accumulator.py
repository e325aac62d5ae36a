"""BP304 graph-retained-accumulator: a running value takes in a tracked tensor at each step, and keeps all their graphs.

What it finds:
    A statement adds a tracked tensor to a value that lives on from step to step (`running += loss`, an average of
    weights), three times or more with a backward call or an optimizer step between, and no backward call walks the
    result. An evaluation that adds up ten or more losses in a row is found as well. The finding stands at that
    statement.

Why it matters:
    The running value holds the node of each operand, and through it the whole graph of every step: memory and the time
    to free it grow with each step, until an out-of-memory error far away from here.

What PyTorch does:
    The sum with a tracked operand is tracked, and its node keeps its operands' nodes alive. A backward call frees what
    nodes saved, not the nodes; what was never walked keeps its saved tensors too. `item()` and `detach()` give the
    value without a history. Seen in torch 2.13.

Example:
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    running = 0.0
    for x in torch.ones(4, 5, 3):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss  # <- here
    print(running / 4)

Use instead:
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    running = 0.0
    for x in torch.ones(4, 5, 3):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(running / 4)

Near miss: a sum that is walked
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in torch.ones(4, 3, 5, 3):
        total = 0.0
        for x in batch:
            total = total + model(x).pow(2).mean()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()

Near miss: the running value is detached
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = torch.zeros(())
    for x in torch.ones(4, 5, 3):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = 0.9 * average + 0.1 * loss.detach()
    print(average)

Near miss: it is summed without tracking
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    running = torch.zeros(())
    for x in torch.ones(4, 5, 3):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            running += loss
    print(running)

Near miss: a choice among values keeps one of them
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best, chosen = torch.tensor(1e9), None
    for batch in torch.ones(4, 3, 5, 3):
        for x in batch:
            loss = model(x).pow(2).mean()
            best = min(best, loss)
            chosen = 2 * loss if loss.item() >= 0 else chosen
        optimizer.zero_grad()
        chosen.backward()
        optimizer.step()

Blind spots:
    A value that grows in a loop that only evaluates is judged from its tenth turn on, and only where it is a sum of
    scalars: one that is short-lived costs little.

Source:
    "My model reports out of memory" in PyTorch's FAQ; three turns are the least that make a pattern.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.handed_arguments import Handed, handed_in
from backprobe.rules.analysis.graph.detaching_edits import handed_without, is_read_as_tensor, number_of
from backprobe.rules.analysis.graph.graph_memory import held_by
from backprobe.rules.analysis.graph.retained_values import (
    LEAST,
    crossing,
    executions,
    kept_alive,
    may_be_walked_after,
    results_kept,
    taken_unwalked,
    unwalked_run,
)
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.arithmetic import summands
from backprobe.rules.analysis.source.assignments import last_assigned
from backprobe.rules.analysis.source.named_values import reads_with_default, tensor_named
from backprobe.rules.analysis.source.scopes import names, scope_of
from backprobe.rules.analysis.source.syntax import number_at, region_in, site_at, site_of, statement, tree_of, value_of
from backprobe.rules.analysis.tensors.parents import undetached_from
from backprobe.rules.analysis.terms.tracked_operands import Operand, is_cut, operands
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding import Edit, Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Site

RULE = Rule(
    name="graph-retained-accumulator",
    code="BP304",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="safe",
    needs=("binding", "backward", "node", "snapshot"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that makes a running value of tracked ones."""
    for number, moments in executions(record).items():
        turns = crossing(record, moments)
        site = site_of(record, number)
        into = _running(record, site)
        if into is None:
            continue
        name, value = into
        summed = _summed(record, site, name, value, moments)
        if summed:
            yield _finding(record, site, name, [(at, one[0].tensor) for at, one in summed], summed[0][1])
            continue
        if len(turns) < LEAST:
            continue
        kept = _kept(record, site, _element(record, site, name), turns)
        if not kept and isinstance(statement(record, site), ast.AugAssign):
            kept = _kept_unseen(record, site, value, turns)
        kept = kept or (results_kept(record, site.site, turns) if "[" in name else [])
        taken = _innermost(_taken(record, site, name, value, turns[-1] - 1), value)
        if kept and may_be_walked_after(record, kept[0][1], kept[0][0]):
            kept = kept[1:]  # what it begins with may be the first loss itself, which is walked once
        if len(kept) >= LEAST and not any(may_be_walked_after(record, tensor, moment) for moment, tensor in kept):
            yield _finding(record, site, name, kept, taken)


def _running(record: Record, site: Site) -> tuple[str, ast.expr] | None:
    """The name that a statement gives a new value made of its old one, and the expression that it takes in."""
    node = statement(record, site)
    if isinstance(node, ast.AugAssign):
        return ast.unparse(node.target), node.value
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        name = ast.unparse(node.targets[0])
        if isinstance(node.value, ast.IfExp) and not _takes_in(node.value, name):
            return None
        reads = name in site.reads or reads_with_default(node.value, name) or _before(record, site, name, node.value)
        return (name, node.value) if reads else None
    return None


def _takes_in(choice: ast.IfExp, name: str) -> bool:
    """Whether a part of a choice computes with the old value; `loss if loss < best else best` keeps it as it is."""
    parts = (part for part in (choice.body, choice.orelse) if ast.unparse(part) != name)
    return any(ast.unparse(inner) == name for part in parts for inner in ast.walk(part))


_DEPTH: Final = 3
"""Names that are followed one after another to what they were assigned."""


def _before(record: Record, site: Site, name: str, value: ast.expr, depth: int = _DEPTH) -> dict[ast.expr, ast.Assign]:
    """What an expression reads that is made of the old value: `t` of `mean = t + loss`, after `t = 0.9 * mean`."""
    tree, found = tree_of(record, site), dict[ast.expr, ast.Assign]()
    for part in ast.walk(value):
        given = last_assigned(record, tree, part) if tree is not None and isinstance(part, ast.Name) else None
        row = None if given is None else site_at(record, given)
        if isinstance(part, ast.Name) and given is not None and row is not None and depth > 0:
            further = _before(record, site, name, given.value, depth - 1)
            if further or name in row.reads:
                found |= {part: given, **further}
    return found


def _taken(record: Record, site: Site, name: str, value: ast.expr, moment: int) -> list[Operand]:
    """What goes in beside the old value: of a product that only this statement reads its tracked factor."""
    found: list[Operand] = []
    old = _before(record, site, name, value)
    for one in [*operands(record, site, value, moment)]:
        given = old.get(one.part)
        product = _only_for(record, site, one.part) if given is None and name not in site.reads else None
        inner = [] if product is None else [*operands(record, site, product.value, moment)]
        if given is not None:
            found += _taken(record, site, name, given.value, moment)
        else:
            found += inner if len(inner) == 1 else [one]
    return [one for one in found if one.name != name]


def _only_for(record: Record, site: Site, part: ast.expr) -> ast.Assign | None:
    """The operation whose value has a name for the one statement that reads it."""
    tree = tree_of(record, site)
    if tree is None or not isinstance(part, ast.Name):
        return None
    given, loads = last_assigned(record, tree, part), names(record)[site.source].loads
    is_read_once = len(loads.get((scope_of(tree, part), part.id), ())) == 1
    return given if given is not None and is_read_once and isinstance(given.value, ast.BinOp) else None


def _summed(
    record: Record, site: Site, name: str, value: ast.expr, moments: list[int]
) -> list[tuple[int, list[Operand]]]:
    """What an evaluation adds up, scalar by scalar, that neither it nor a training ever walks."""
    run = unwalked_run(record, moments)
    node = statement(record, site)
    if not run or (not isinstance(node, ast.AugAssign) and name not in map(ast.unparse, summands(value))):
        return []
    if isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.Add):
        return []
    others = [one for one in summands(value) if ast.unparse(one) != name]
    if len(others) != 1 or any(ast.unparse(part) == name for part in ast.walk(others[0])):
        return []
    if isinstance(node, ast.Assign) and _begins_untracked(record, site, name, run):
        return []
    taken = taken_unwalked(record, site, others[0], run)
    numel = (lookup(record).tensors[one.tensor].numel for _at, found in taken for one in found)
    return taken if all(count == 1 for count in numel) else []


def _begins_untracked(record: Record, site: Site, name: str, run: list[int]) -> bool:
    """The name is bound elsewhere to a tensor without history, as often as the statement runs: no sum goes on."""
    rows = [row for row in bindings_named(record)[name] if row.site != site.site and run[0] <= row.moment <= run[-1]]
    states = (state_at(record, row.tensor, row.moment) for row in rows)
    return 2 * sum(state is not None and not state.requires_grad for state in states) > len(run)


def _element(record: Record, site: Site, name: str) -> str:
    """The name, or that of its first part where the statement binds a list or dict of tensors: `average[0]`."""
    bound = {row.name for row in record.bindings if row.site == site.site}
    parts = sorted(one for one in bound if one.startswith(f"{name}["))
    return parts[0] if parts and name not in bound else name


def _kept(record: Record, site: Site, name: str, turns: list[int]) -> list[tuple[int, int]]:
    """The turns after which the name held a tracked result made of what it had held before, with that tensor.

    The longest run of them: names in a function that runs often are not all kept, and a sum may begin anew.
    """
    found, longest = list[tuple[int, int]](), list[tuple[int, int]]()
    before: int | None = None
    results = frozenset(row.tensor for row in bindings_named(record)[name] if row.site == site.site)
    for moment in turns:
        tensor = tensor_named(record, name, site, moment)
        state = None if tensor is None else state_at(record, tensor, moment)
        if tensor is None or state is None or not state.requires_grad or state.is_leaf:
            found, before = [], None
            continue
        if before is not None and not _goes_on(record, site, name, before, tensor, results):
            found = []
        found.append((moment, tensor))
        before, longest = tensor, max(longest, found, key=len)
    return longest


def _goes_on(record: Record, site: Site, name: str, before: int, tensor: int, results: frozenset[int]) -> bool:
    """The statement itself made the new value of the old one, or changed it in place: a list may bear the name too.

    Or a statement before made a part of it of the old one. Several objects may take turns at
    `self.sum = self.sum + value`. Names do not tell them apart, so an older result of the statement counts as well.

    Args:
        results: All that the statement gave that name.
    """
    index = lookup(record)
    if tensor == before:
        return any(row.site == site.site for row in index.inplace_of[tensor])
    rows = [row for row in index.bindings_of[tensor] if row.name == name and row.site == site.site]
    is_chosen = any(row.function == site.function and row.site != site.site for row in index.bindings_of[tensor])
    parents = () if is_chosen else [parent for row in rows for parent in row.parents]
    made_of_older = any(parent in results and parent < tensor for parent in parents)
    if made_of_older or (bool(rows) and before in undetached_from(record, tensor)):
        return True
    value = value_of(statement(record, site))
    given = () if value is None or not rows else _before(record, site, name, value).values()
    through, seen, waiting = {number_at(record, one) for one in given}, {tensor}, [tensor] if given else []
    while waiting:
        made = undetached_from(record, waiting.pop())
        if made & {before, *results} - {tensor}:
            return True
        waiting += [one for one in made - seen if any(row.site in through for row in index.bindings_of[one])]
        seen |= made
    return False


def _kept_unseen(record: Record, site: Site, value: ast.expr, turns: list[int]) -> list[tuple[int, int]]:
    """The turns whose operands live on: what `self.total += loss` makes has no row, as no name of its own holds it."""
    return [(moment, taken[0].tensor) for moment, taken in kept_alive(record, site, value, turns)]


def _places(record: Record, site: Site, operand: Operand) -> tuple[list[Operand], bool]:
    """The operand at each place that takes it in: `x if total is None else 0.9 * total + 0.1 * x`.

    And whether another place takes it in without its history.
    """
    tree, value = tree_of(record, site), value_of(statement(record, site))
    if tree is None or value is None or not isinstance(operand.part, ast.Name | ast.Attribute):
        return [operand], False
    tested = {part for one in ast.walk(value) if isinstance(one, ast.IfExp) for part in ast.walk(one.test)}
    same = (part for part in ast.walk(value) if isinstance(part, ast.Name | ast.Attribute) and part not in tested)
    places = [part for part in same if ast.unparse(part) == operand.name]
    if operand.part not in places:
        return [operand], False
    others = [part for part in places if part is not operand.part]
    whole = [part for part in others if not is_cut(tree, part, value)]
    return [operand, *(replace(operand, part=part) for part in whole)], len(whole) < len(others)


def _innermost(taken: list[Operand], value: ast.expr) -> list[Operand]:
    """`mean = smooth(mean, loss)`: the loss is what is taken in, not the new mean that the call gives."""
    inner = [one for one in taken if one.part is not value]
    return inner or taken


def _beginnings(record: Record, site: Site, name: str, operand: Operand) -> list[Edit]:
    """`self.mean = loss` in the same function, where the running value begins: it keeps a history there as well."""
    node, tree = statement(record, site), tree_of(record, site)
    if node is None or tree is None:
        return []
    around = next((one for one in tree.ancestors(node) if isinstance(one, ast.FunctionDef)), None)
    found = [one for one in ast.walk(around or ast.Pass()) if isinstance(one, ast.Assign) and one is not node]
    same = [
        one.value for one in found if [*map(ast.unparse, one.targets), ast.unparse(one.value)] == [name, operand.name]
    ]
    return [number_of(record, site, replace(operand, part=part), as_tensor=True) for part in same]


def _fix(record: Record, site: Site, name: str, taken: list[Operand]) -> Fix:
    """Each place takes in a number; a tensor where its methods are called, or where another place has one."""
    tree = tree_of(record, site)
    is_asked = tree is not None and is_read_as_tensor(tree, name)
    edits: list[Edit] = []
    for places, has_cut in (_places(record, site, one) for one in taken):
        above = [tree.parents.get(place.part) for place in places] if tree is not None else []
        as_tensor = has_cut or is_asked or any(isinstance(one, ast.Attribute | ast.Call) for one in above)
        edits += [number_of(record, site, place, as_tensor=as_tensor) for place in places]
    edits += [edit for one in taken for edit in _beginnings(record, site, name, one)]
    return Fix(title="Take in the value without its history", safety="safe", edits=tuple(edits))


def _handed(record: Record, site: Site, taken: Operand, moment: int) -> Handed | None:
    """The argument of a call that what is taken in was, or that it is a product of: `part = value * count`."""
    product = _only_for(record, site, taken.part)
    inner = [] if product is None else [*operands(record, site, product.value, moment)]
    return _handed(record, site, inner[0], moment) if len(inner) == 1 else handed_in(record, site, taken.name)


def _finding(record: Record, site: Site, name: str, kept: list[tuple[int, int]], taken: list[Operand]) -> Finding:
    what = f"`{taken[0].name}`" if taken else "a value"
    fixes = [_fix(record, site, name, taken)] if taken else []
    said = (
        f"`{name}` takes in {what} at each step with its history, and no backward call ever walks it.",
        f"It keeps the graphs of all steps alive, {len(kept)} here: memory grows with every one.",
    )
    if taken and _places(record, site, taken[0])[1]:
        said = (
            f"`{name}` takes in {what} with its history in one place only, and no backward call ever walks it.",
            f"All values that are made of it keep that graph alive, {len(kept)} here: memory grows with every one.",
        )
    remedy = fixes[0].edits[0].text if fixes else ".detach()"
    advice = f"Take in `{taken[0].name}{remedy}`." if taken else "Take in the value without its history: `.detach()`."
    moments = [moment for moment, _tensor in kept]
    handed = _handed(record, site, taken[0], moments[0]) if len(taken) == 1 else None
    if handed is not None:
        if any(edit.text == ".detach()" for fix in fixes for edit in fix.edits):
            remedy = ".detach()"  # somewhere in the function a tensor is asked for
        advice = f"Hand in `{ast.unparse(handed.part)}{remedy}`."
        edits = () if handed.beside else (handed_without(record, handed, remedy),)
        fixes = [Fix(title="Hand in the value without its history", safety="safe", edits=edits)] if edits else []
    tensors = sorted({tensor for _moment, tensor in kept})
    turns = {"turns": len(kept), "takes_in": [operand.name for operand in taken[:8]], "walked": False}
    return told(
        record,
        RULE,
        site.site if handed is None else handed.site.site,
        (*said, advice),
        binding=name,
        moments=moments,
        region=None if handed is None else region_in(record, handed.site.source, handed.part),
        related=(
            ("it is taken in here", None if handed is None else site.site),
            (f"{what} is made here", lookup(record).tensors[taken[0].tensor].site if taken else None),
        ),
        evidence=turns | held_by(record, tensors),
        fixes=fixes,
        tensors=tensors,
    )
