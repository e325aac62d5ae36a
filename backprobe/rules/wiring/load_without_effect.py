"""BP764 load-without-effect: `load_state_dict(strict=False)` finds no key that fits, and loads nothing.

What it finds:
    A call of `load_state_dict` with `strict=False` after which no parameter and no buffer has been written.

Why it matters:
    The model keeps its random weights, and fine-tuning, freezing or evaluation goes on with them. Nothing raises.

What PyTorch does:
    With `strict=False` keys that do not fit are put into what the call returns, and are otherwise ignored: also if none
    fits, as after a wrapper has put `module.` or `model.` in front of each, or where the whole checkpoint is handed in.
    Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    saved = {f"module.{key}": value for key, value in nn.Linear(3, 1).state_dict().items()}
    model = nn.Linear(3, 1)
    model.load_state_dict(saved, strict=False)  # <- here

Use instead:
    import torch
    from torch import nn

    saved = {f"module.{key}": value for key, value in nn.Linear(3, 1).state_dict().items()}
    model = nn.Linear(3, 1)
    model.load_state_dict({key.removeprefix("module."): value for key, value in saved.items()})

Near miss: a new head is missing from the checkpoint
    import torch
    from torch import nn

    saved = nn.Sequential(nn.Linear(3, 4)).state_dict()
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    model.load_state_dict(saved, strict=False)

Near miss: the tensors are put in place of the parameters
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    model.load_state_dict({"weight": torch.ones(1, 3)}, strict=False, assign=True)

Blind spots:
    A load that fits only in part is not judged: a new head is meant to be missing. Nor is a module that no name held
    before it was loaded.

Source:
    torch.nn.Module.load_state_dict in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import keyword
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import region_in, statement, statement_at, tree_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="load-without-effect",
    code="BP764",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="manual",
    needs=("version", "module"),
)

_METHOD: Final = "load_state_dict"
_COMPOUND: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.With, ast.Try)


def check(record: Record) -> Iterator[Finding]:
    """One finding per call in the program."""
    said: set[ast.Call] = set()
    for site in record.sites:
        node = statement(record, site)
        for part in () if node is None or isinstance(node, _COMPOUND) else ast.walk(node):
            if not isinstance(part, ast.Call) or part in said or not _is_lax(part):
                continue
            said.add(part)
            moment = _ran_at(record, site, node)
            if moment is not None and _is_seen_before(record, part, moment) and not _writes(record, node):
                yield _finding(record, site, part, moment)


def _is_lax(call: ast.Call) -> bool:
    """A call that is not strict and copies into the tensors that are there."""
    strict = keyword(call, "strict")
    is_off = strict is not None and isinstance(strict.value, ast.Constant) and strict.value.value is False
    is_load = isinstance(call.func, ast.Attribute) and call.func.attr == _METHOD
    return is_load and is_off and keyword(call, "assign") is None and bool(call.args)


def _ran_at(record: Record, site: Site, node: ast.stmt | None) -> int | None:
    """The first moment of the statement, or of one after it in its block; None: it is not known to have run."""
    tree = tree_of(record, site)
    if node is None or tree is None:
        return None
    around = tree.parents.get(node)
    block = next((body for body in _blocks(around) if node in body), [node])
    later = block[block.index(node) :]
    rows = [row.moment for row in record.operations if row.moment and statement_at(record, row.statement) is node]
    rows += [row.moment for row in record.moments if statement_at(record, row.site) in later]
    return min(rows, default=None)


def _blocks(around: ast.AST | None) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(around, name, None)
        if isinstance(body, list):
            yield body


def _is_seen_before(record: Record, call: ast.Call, moment: int) -> bool:
    """A module by this name has parameters, and each was recorded before the call: a write to them would be seen."""
    last = last_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    index = lookup(record)
    for module in record.modules:
        name = module.binding or module.fqn or ""
        if last and name.rpartition(".")[2] == last:
            owned = [one for one in _parameters(record).get(module.module, ()) if one in index.tensors]
            if owned and all(index.tensors[one].moment <= moment for one in owned):
                return True
    return False


@table
def _parameters(record: Record) -> dict[int, list[int]]:
    """The parameters of each root and of the modules that were seen directly after it, as its parts, or have its name.

    The layers that a factory gives names of their own, before it puts them into a container, are seen before that.
    """
    found: dict[int, list[int]] = {}
    named: defaultdict[str, list[int]] = defaultdict(list)
    for tensor in record.tensors:
        if tensor.fqn is not None:
            named[tensor.fqn.partition(".")[0]].append(tensor.tensor)
    root = -1
    for module in record.modules:
        own = [row.tensor for row in module.parameters if row.tensor is not None]
        if not module.fqn:
            root = module.module
            own += [] if module.binding is None else named[module.binding]
        found.setdefault(module.module, []).extend(own)
        if root != module.module:
            found.setdefault(root, []).extend(own)
    return found


def _writes(record: Record, node: ast.stmt | None) -> bool:
    """Something was written in place at this statement."""
    return any(statement_at(record, event.site) is node for event in record.inplace_events)


def _finding(record: Record, site: Site, call: ast.Call, moment: int) -> Finding:
    held = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else "the module"
    given = ast.unparse(call.args[0])
    what = f"`{given}`" if len(given) <= 40 else "what it is given"
    return told(
        record,
        RULE,
        site.site,
        (
            f"Nothing is loaded: no key of {what} is one of `{held}`, and `strict=False` hides it.",
            f"`{held}` keeps the weights that it was made with.",
            "Take the prefix off the keys, or hand in the state itself; look at the keys that the call returns.",
        ),
        binding=held,
        moments=[moment],
        region=region_in(record, site.source, call),
        evidence={"written": 0, "strict": False},
    )
