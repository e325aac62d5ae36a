"""BP750 copy-is-alias: a second name for the trained module, where the program uses it as a copy.

What it finds:
    A statement gives a trained module a second name, or copies it with `copy.copy`, which copies no parameter. Under
    the second name it serves as a target, reference or average: a loop writes each parameter with itself, it loads its
    own state, or what it gives untracked enters the loss of the same module. The finding stands at that statement.

Why it matters:
    There is one set of weights. A reference that should stand still moves with every step, an average is the model
    itself, and a target is what is being trained.

What PyTorch does:
    An assignment copies nothing. `copy.copy` makes a new module around the same parameters; `copy.deepcopy` copies
    those. Seen in torch 2.13.

Example:
    import copy

    import torch
    from torch import nn

    print(copy.__name__)
    net = nn.Linear(3, 1)
    target = net  # <- here
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        with torch.no_grad():
            wanted = 1 + 0.9 * target(x.flip(0))
        optimizer.zero_grad()
        (net(x) - wanted).pow(2).mean().backward()
        optimizer.step()
        target.load_state_dict(net.state_dict())

Use instead:
    import copy

    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    target = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        with torch.no_grad():
            wanted = 1 + 0.9 * target(x.flip(0))
        optimizer.zero_grad()
        (net(x) - wanted).pow(2).mean().backward()
        optimizer.step()
        target.load_state_dict(net.state_dict())

Near miss: towers that share their weights
    import torch
    from torch import nn

    left = nn.Linear(3, 2)
    right = left
    optimizer = torch.optim.SGD(left.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        (left(x) - right(x.flip(0))).pow(2).mean().backward()
        optimizer.step()

Near miss: the network is its own target, and has one name
    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        with torch.no_grad():
            wanted = 1 + 0.9 * net(x.flip(0))
        optimizer.zero_grad()
        (net(x) - wanted).pow(2).mean().backward()
        optimizer.step()

Near miss: it is evaluated under another name
    import torch
    from torch import nn

    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()
    trained = net
    with torch.no_grad():
        print(trained(torch.randn(2, 3)).mean())

Blind spots:
    A second name that a function's argument or a list gives is not followed.

Source:
    copy in Python's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.module_tree import calls_of_modules
from backprobe.rules.analysis.modules.second_names import SecondName, held_by, reads, second_names
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.scopes import last_name, names
from backprobe.rules.analysis.source.syntax import (
    method_called,
    parts_of,
    region_in,
    site_of,
    statement_at,
    text_in,
    tree_of,
)
from backprobe.rules.analysis.tensors.parents import made_by, operands_below
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, WatchedCall
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="copy-is-alias",
    code="BP750",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("module", "call", "binding", "optimizer"),
)

_LOAD = "torch.nn.Module.load_state_dict"


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that gave the second name."""
    for one in second_names(record):
        held = held_by(record, one.module)
        if held.isdisjoint(in_optimizers(record)):
            continue
        used = _averaged(record, one, held) or _loaded(record, one, held) or _referred_to(record, one, held)
        if used is not None:
            yield _finding(record, one, used)


def _averaged(record: Record, one: SecondName, held: frozenset[int]) -> tuple[int, str] | None:
    """A loop over pairs of parameters, whose names always hold one parameter, and that writes one of the two."""
    for site, pairs in _pairs(record).items():
        node = statement_at(record, site)
        same = [tensors for tensors in pairs if len(tensors) > 1 and len(set(tensors)) == 1]
        if not isinstance(node, ast.For) or len(same) < len(pairs) or not same:
            continue
        mine = all(tensors[0] in held for tensors in same) and _handed_to(record, site, node.iter, one)
        if mine and any(_writes(part) for inner in node.body for part in ast.walk(inner)):
            return site, "each parameter is averaged with itself here"
    return None


@table
def _pairs(record: Record) -> dict[int, list[list[int]]]:
    """By statement, the tensors that its names came to hold together, one list for each turn."""
    found: dict[int, dict[int, list[int]]] = {}
    for row in record.bindings:
        if record.sites and site_of(record, row.site).kind == "for":
            found.setdefault(row.site, {}).setdefault(row.moment, []).append(row.tensor)
    return {site: list(turns.values()) for site, turns in found.items()}


def _handed_to(record: Record, site: int, over: ast.expr, one: SecondName) -> bool:
    """What a loop runs over reads the second name, or a caller of its function hands that in."""
    if reads(over, one.name):
        return True
    function = site_of(record, site).function.rpartition(".")[2]
    calls = [call for file in names(record).values() for call in file.calls.get(function, ())]
    return any(reads(argument, one.name) for call in calls for argument in (*call.args, *call.keywords))


def _writes(part: ast.AST) -> bool:
    called = method_called(part) or ""
    if called.endswith("_") and not called.endswith("__"):
        return True
    targets = part.targets if isinstance(part, ast.Assign) else []
    return isinstance(part, ast.AugAssign) or any(last_name(target) == "data" for target in targets)


def _loaded(record: Record, one: SecondName, held: frozenset[int]) -> tuple[int, str] | None:
    """It loads the state of the first name, and that is its own: the tensors loaded lie in its parameters' memory."""
    for row in record.watched_calls:
        if row.function != _LOAD or row.site is None or not row.inputs or row.arguments.get("module") is None:
            continue
        node = statement_at(record, row.site)
        direct = any(method_called(part) == "state_dict" for part in parts_of(node))
        if direct and reads(node, one.name) and _are_its_own(record, row, held):
            return row.site, "here it loads its own state"
    return None


def _are_its_own(record: Record, row: WatchedCall, held: frozenset[int]) -> bool:
    tensors = lookup(record).tensors
    memory = {tensors[one].storage for one in held}
    given = [tensors[one.tensor] for one in row.inputs if one.tensor is not None]
    return any(one.storage in memory for one in given if one.storage is not None)


def _referred_to(record: Record, one: SecondName, held: frozenset[int]) -> tuple[int, str] | None:
    """What it gives untracked under the second name goes into a loss of the same parameters under the first."""
    every = calls_of_modules(record).get(_first(record, one), ())
    is_used = any(_is_used_tracked(record, one, call.site) for call in every if call.grad_mode)
    if not is_used and (every or not _gives_tracked(record, one, held)):
        return None
    for row in record.bindings:
        node = statement_at(record, row.site)
        state = state_at(record, row.tensor, row.moment)
        if node is None or state is None or state.requires_grad or not reads(node, one.name):
            continue
        for call in record.backward_calls:
            if held & reaches(record)[call.call].leaves and row.tensor in _made_of(record, call.call):
                return row.site, "what it gives here is a constant in the loss of the same parameters"
    return None


def _first(record: Record, one: SecondName) -> int:
    """The module of the first name: that of the second one, or what a shallow copy was made of."""
    if not one.shallow:
        return one.module
    held = held_by(record, one.module)
    others = (row.module for row in record.modules if row.module != one.module)
    return next((other for other in others if held_by(record, other) == held), one.module)


def _gives_tracked(record: Record, one: SecondName, held: frozenset[int]) -> bool:
    """A method that is called under the first name alone gives something tracked to a loss of the same parameters."""
    for row in record.bindings:
        node = statement_at(record, row.site)
        state = state_at(record, row.tensor, row.moment)
        if state is None or not state.requires_grad or not reads(node, one.first) or reads(node, one.name):
            continue
        for call in record.backward_calls:
            if held & reaches(record)[call.call].leaves and row.tensor in _made_of(record, call.call):
                return True
    return False


def _is_used_tracked(record: Record, one: SecondName, site: int | None) -> bool:
    """A statement reads the first name alone, or stands in a function that is handed what has it."""
    if site is None:
        return False
    node = statement_at(record, site)
    if reads(node, one.first):
        return not reads(node, one.name)
    function = site_of(record, site).function.rpartition(".")[2]
    calls = [call for file in names(record).values() for call in file.calls.get(function, ())]
    return any(reads(argument, one.first) for call in calls for argument in call.args)


@table
def _ancestors(_record: Record) -> dict[int, frozenset[int]]:
    """What the roots of each backward call were made of, filled as they are asked for."""
    return {}


def _made_of(record: Record, call: int) -> frozenset[int]:
    kept = _ancestors(record)
    if call not in kept:
        index = lookup(record)
        waiting = [root.tensor for root in index.calls[call].roots if root.tensor is not None]
        seen = set(waiting)
        while waiting:
            tensor = waiting.pop()
            below = {parent for row in index.bindings_of[tensor] for parent in row.parents}
            made = made_by(record).get(tensor)  # of `loss, hits = self.loss(batch)` the binding knows the batch alone
            below |= set() if made is None else set(operands_below(record)[made.operation])
            new = below - seen
            seen |= new
            waiting += sorted(new)
        kept[call] = frozenset(seen)
    return kept[call]


def _finding(record: Record, one: SecondName, used: tuple[int, str]) -> Finding:
    site = site_of(record, one.site)
    how = "`copy.copy` copies no parameter" if one.shallow else "an assignment copies nothing"
    moment = next((row.moment for row in record.watched_calls if row.site == one.site and row.moment is not None), 0)
    return told(
        record,
        RULE,
        one.site,
        (
            f"`{one.name}` and `{one.first}` are one set of weights: {how}.",
            f"`{one.name}` changes with every step of the optimizer, and is used as if it did not.",
            "Make it with `copy.deepcopy`.",
        ),
        binding=one.name,
        moments=[moment],
        related=((used[1], used[0]),),
        evidence={"names": [one.first, one.name], "shallow_copy": one.shallow, "assumed": "two modules are meant"},
        fixes=_fixes(record, one, site.source),
        tensors=sorted(held_by(record, one.module))[:16],
    )


def _fixes(record: Record, one: SecondName, source: int) -> Iterator[Fix]:
    """A deep copy, where the file imports `copy` as a whole."""
    site = site_of(record, one.site)
    tree = tree_of(record, site)
    whole = tree is not None and any(
        isinstance(node, ast.Import) and any(name.name == "copy" and name.asname is None for name in node.names)
        for node in tree.nodes
    )
    if not whole:
        return
    region = region_in(record, source, one.value)
    text = f"copy.deepcopy({text_in(record, source, region)})"
    if isinstance(one.value, ast.Call):
        if ast.unparse(one.value.func) != "copy.copy":
            return
        region, text = region_in(record, source, one.value.func), "copy.deepcopy"
    edit = replacement(record, site, region, text)
    yield Fix(title="Copy the parameters too", safety="unsafe", edits=(edit,))
