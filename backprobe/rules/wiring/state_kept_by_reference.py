"""BP751 state-kept-by-reference: a state that was kept to go back to shares its memory with the parameters.

What it finds:
    A module loads a state that was taken from itself before an optimizer changed its parameters, and the tensors of
    that state lie in the parameters' memory: it loads what it has. Or what was taken before training, or as the best
    state, is read by a statement behind the training. The finding stands where the state was taken.

Why it matters:
    The best weights, or those of before, are lost: what was kept has moved with every step.

What PyTorch does:
    `state_dict()` gives detached tensors in the memory of the parameters, and so do `.data` and `.detach()`. Copying
    the dict copies no tensor. Seen in torch 2.13.

Example:
    import copy

    import torch
    from torch import nn

    print(copy.__name__)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = model.state_dict()  # <- here
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        (model(x) - 1).pow(2).mean().backward()
        optimizer.step()
    model.load_state_dict(best)

Use instead:
    import copy

    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = copy.deepcopy(model.state_dict())
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        (model(x) - 1).pow(2).mean().backward()
        optimizer.step()
    model.load_state_dict(best)

Near miss: the state is loaded into another module
    import torch
    from torch import nn

    model, served = nn.Linear(3, 1), nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = model.state_dict()
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        (model(x) - 1).pow(2).mean().backward()
        optimizer.step()
    served.load_state_dict(state)

Near miss: no step lies between
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        (model(x) - 1).pow(2).mean().backward()
        optimizer.step()
    state = model.state_dict()
    model.load_state_dict(state)

Blind spots:
    A state that is loaded into another module is not judged, nor one that is kept in an attribute and read later.

Source:
    torch.nn.Module.state_dict in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import (
    method_called,
    parts_of,
    region_in,
    site_at,
    site_of,
    statement_at,
    text_in,
    tree_of,
    trees,
)
from backprobe.rules.analysis.training.kept_states import kept_in, kept_since, read_after_training
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.analysis.training.updates import updates_of
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, WatchedCall
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="state-kept-by-reference",
    code="BP751",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="unsafe",
    needs=("module", "call", "optimizer", "binding"),
)

_LOAD: Final = "torch.nn.Module.load_state_dict"


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that took a state."""
    groups: dict[int, list[tuple[WatchedCall, list[int]]]] = {}
    for row in record.watched_calls:
        if row.function == _LOAD and row.site is not None and row.moment is not None and not row.raised:
            own = _its_own(record, row)
            taken = _taken_at(record, row, row.site) if own else None
            if taken is not None and _changed_since(record, own, taken, row.moment):
                groups.setdefault(taken, []).append((row, own))
    for taken, found in groups.items():
        yield _finding(record, taken, found)
    for site in record.sites if record.optimizer_events else ():
        reader = None if site.site in groups else read_after_training(record, site)
        if reader is not None:
            yield _of_reader(record, site.site, reader)


def _of_reader(record: Record, taken: int, reader: ast.stmt) -> Finding:
    node = statement_at(record, taken)
    name = (kept_in(record, node) if isinstance(node, ast.Assign) else None) or "the state"
    place = site_at(record, reader)
    moments = [row.moment for row in record.moments if row.site == taken]
    return told(
        record,
        RULE,
        taken,
        (
            f"`{name}` shares its memory with the parameters: it moves with every step of the optimizer.",
            "What is read of it after the training is the last state, not that of this moment.",
            "Copy the tensors: `copy.deepcopy(...)`, or `.detach().clone()` each.",
        ),
        binding=name,
        moments=moments,
        related=(("here it is read", None if place is None else place.site),),
        evidence={"taken": len(moments)},
        fixes=_fixes(record, taken, node),
    )


def _its_own(record: Record, row: WatchedCall) -> list[int]:
    """The parameters in whose memory the loaded tensors lie, if all of those do."""
    tensors = lookup(record).tensors
    memory = {
        tensors[one.tensor].storage: one.tensor
        for module in record.modules
        for one in module.parameters
        if one.tensor is not None and one.tensor in in_optimizers(record)
    }
    given = [tensors[one.tensor].storage for one in row.inputs if one.tensor is not None]
    fitting = [memory[storage] for storage in given if storage is not None and storage in memory]
    module = row.arguments.get("module")
    owners = {one.tensor for part in record.modules if part.module == module for one in part.parameters}
    is_mine = not owners or owners & set(fitting)
    return fitting if fitting and len(fitting) == len(given) and is_mine and _is_one_model(record, row, fitting) else []


def _is_one_model(record: Record, row: WatchedCall, parameters: list[int]) -> bool:
    """The loading module holds those parameters: loading wrote them, each with itself."""
    written = {event.tensor for event in record.inplace_events if event.site == row.site and event.moment == row.moment}
    return bool(written & set(parameters))


def _taken_at(record: Record, row: WatchedCall, site: int) -> int | None:
    """The statement that took the state: where its tensors got a name, or that which binds the name that is loaded."""
    index = lookup(record)
    for one in row.inputs:
        bound = index.bindings_of[one.tensor] if one.tensor is not None else []
        kept = [
            binding
            for binding in bound
            if "[" in binding.name and binding.moment < (row.moment or 0) and index.sites[binding.site].kind != "enter"
        ]
        if kept:
            return kept[-1].site
    loads = [part for part in parts_of(statement_at(record, site)) if method_called(part) == "load_state_dict"]
    given = loads[0].args[0] if loads and isinstance(loads[0], ast.Call) and loads[0].args else None
    return None if given is None else _bound_at(record, given)


def _bound_at(record: Record, given: ast.expr) -> int | None:
    """The statement that binds what a name, attribute or element holds to a state; None for none, or several."""
    while isinstance(given, ast.Subscript):
        given = given.value
    name, found = last_name(given), list[int]()
    for tree in trees(record).values():
        for node in tree.nodes:
            targets = node.targets if isinstance(node, ast.Assign) else []
            flat = [part for target in targets for part in ast.walk(target)]
            takes = any(method_called(part) == "state_dict" for part in parts_of(node)) and not _copies(node)
            place = site_at(record, node) if isinstance(node, ast.Assign) else None
            if takes and place is not None and any(_called(part) == name for part in flat):
                found.append(place.site)
    return found[0] if len(found) == 1 else None


def _called(part: ast.AST) -> str | None:
    return last_name(part) if isinstance(part, ast.Name | ast.Attribute) else None


def _copies(node: ast.AST) -> bool:
    return any(method_called(part) in ("deepcopy", "clone") for part in ast.walk(node))


def _changed_since(record: Record, parameters: list[int], taken: int, until: int) -> bool:
    """An optimizer changed a parameter between the last time that the statement ran before the load, and the load.

    Of a statement that keeps the best, the first time: which one is the last is chance (`kept_since`).
    """
    runs = [row.moment for row in record.moments if row.site == taken and row.moment < until]
    if not runs:
        return False
    node, tree = statement_at(record, taken), tree_of(record, site_of(record, taken))
    since = runs[-1] if node is None or tree is None else kept_since(tree, node, runs)
    return any(since < update.moment < until for one in parameters for update in updates_of(record).get(one, ()))


def _finding(record: Record, taken: int, found: list[tuple[WatchedCall, list[int]]]) -> Finding:
    row, own = found[0]
    node = statement_at(record, taken)
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    name = "what is kept" if target is None else ast.unparse(target)
    shown = f"`{name}`" if target is not None else "What is kept here"
    return told(
        record,
        RULE,
        taken,
        (
            f"{shown} shares its memory with the parameters: it moves with every step of the optimizer.",
            "What is loaded from it later is what the model has by then.",
            "Copy the tensors: `copy.deepcopy(...)`, or `.detach().clone()` each.",
        ),
        binding=name,
        moments=sorted({one.moment for one, _own in found if one.moment is not None}),
        related=(("here it is loaded into the same parameters", row.site),),
        evidence={"parameters": own[:16], "loads": len(found)},
        fixes=_fixes(record, taken, node),
        tensors=own,
    )


def _fixes(record: Record, taken: int, node: ast.stmt | None) -> Iterator[Fix]:
    """Copy what the one call of `state_dict` gives, where the file imports `copy` as a whole."""
    site = site_of(record, taken)
    tree = tree_of(record, site)
    calls = [part for part in parts_of(node) if isinstance(part, ast.Call) and method_called(part) == "state_dict"]
    imports = [part for part in tree.nodes if isinstance(part, ast.Import)] if tree is not None else []
    if len(calls) == 1 and any(name.name == "copy" and name.asname is None for one in imports for name in one.names):
        region = region_in(record, site.source, calls[0])
        text = f"copy.deepcopy({text_in(record, site.source, region)})"
        edit = replacement(record, site, region, text)
        yield Fix(title="Copy the tensors", safety="unsafe", edits=(edit,))
