"""BP613 dropout-always-on: dropout drops in a module that is in eval mode.

What it finds:
    A call of a functional dropout that drops while the module around it has `training` false, because the call does not
    say `training=self.training`; or an `nn.Dropout` that such a module builds anew in each forward pass. The finding
    stands at the call, or where the dropout is built.

Why it matters:
    `eval()` does not reach it: every prediction and every validation number is noisy and too low.

What PyTorch does:
    `F.dropout(x)` has `training=True` as its default; the module `nn.Dropout` follows `train()` and `eval()` of the
    module that it is an attribute of, and begins in training mode. Seen in torch 2.13.

Example:
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(F.dropout(x, 0.4))  # <- here

    reader = Reader()
    reader.eval()
    with torch.no_grad():
        print(reader(torch.ones(2, 4)))

Use instead:
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(F.dropout(x, 0.4, training=self.training))

    reader = Reader()
    reader.eval()
    with torch.no_grad():
        print(reader(torch.ones(2, 4)))

Near miss: dropout at prediction is written out, to sample from the model
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(F.dropout(x, 0.4, training=True))

    reader = Reader()
    reader.eval()
    with torch.no_grad():
        print(torch.stack([reader(torch.ones(2, 4)) for _ in range(5)]).std(0))

Near miss: a dropout of one's own is left out in eval mode
    import torch
    from torch import nn

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            if self.training:
                x = nn.Dropout(0.4)(x)
            return self.layer(x)

    reader = Reader()
    reader(torch.ones(2, 4))
    reader.eval()
    with torch.no_grad():
        print(reader(torch.ones(2, 4)))

Blind spots:
    Dropout in a function outside every module has no flag to compare with.

Source:
    torch.nn.functional.dropout in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.modules.module_sites import calls_by_number, function_at
from backprobe.rules.analysis.modules.training_modes import DROPOUTS, module_of, modules_of
from backprobe.rules.analysis.source.expressions import with_keyword
from backprobe.rules.analysis.source.scopes import Function, last_name, parameters_of, scope_of
from backprobe.rules.analysis.source.syntax import number_at, region_in, site_of, statement, tree_of
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record, Site, WatchedCall
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="dropout-always-on",
    code="BP613",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="safe",
    needs=("call", "module"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per functional dropout that drops in eval mode."""
    by_site: dict[tuple[int, int | None], list[WatchedCall]] = {}
    for call in record.watched_calls:
        if "dropout" in call.function and call.site is not None and _drops_in_eval(record, call):
            by_site.setdefault((call.site, call.col), []).append(call)
    for (site, _col), calls in by_site.items():
        part = _written(record, calls[0])
        if part is not None:
            yield _finding(record, site, calls, part)
    for part, found in _built_in_forward(record).items():
        yield _built(record, part, found)


def _built_in_forward(record: Record) -> dict[ast.Call, list[ModuleCall]]:
    """The expressions of a method that build a dropout, with its calls in which the module around was in eval mode."""
    switched = {row.module for row in record.modes if row.kind == "training"}
    found: dict[ast.Call, list[ModuleCall]] = {}
    dropouts = modules_of(record, DROPOUTS)
    for call in record.module_calls if dropouts else ():
        if call.module not in dropouts or call.parent is None or not call.training or call.site is None:
            continue
        around, module = calls_by_number(record).get(call.parent), module_of(record, call)
        if around is None or around.training or module is None:
            continue
        unowned = not module.fqn and module.module not in switched
        if unowned and not module.user_code:
            function, tree = function_at(record, call.site), tree_of(record, site_of(record, call.site))
            for part in ast.walk(function) if isinstance(function, Function) else ():
                asks = None if tree is None else tree.parents.get(part)
                asked = isinstance(asks, ast.Attribute) and asks.attr == "train"
                if isinstance(part, ast.Call) and last_name(part.func) == module.cls and not asked:
                    found.setdefault(part, []).append(call)
    return found


def _built(record: Record, part: ast.Call, calls: list[ModuleCall]) -> Finding:
    row = site_of(record, calls[0].site or 0)
    tree = tree_of(record, row)
    above = () if tree is None else tree.ancestors(part)
    at = number_at(record, next((one for one in above if isinstance(one, ast.stmt)), None))
    return told(
        record,
        RULE,
        row.site if at is None else at,
        (
            f"`{ast.unparse(part)}` is built in each forward pass, and so begins in training mode each time.",
            "`eval()` never reaches it, and predictions stay noisy. Assumed: not meant.",
            "Build it once, in `__init__`, as an attribute of the module.",
        ),
        binding=ast.unparse(part.func),
        moments=[_moment(record, calls[0])],
        region=region_in(record, row.source, part),
        related=(("it is called here", row.site if at != row.site else None),),
        evidence={"module_training": False, "dropout_training": True, "calls": len(calls)},
        fixes=[Fix(title="Build it in `__init__`", safety="manual")],
    )


def _moment(record: Record, call: ModuleCall) -> int:
    """The first moment inside a call of a module; the first of all where it has none of its own."""
    return next((row.moment for row in record.moments if row.module_call == call.module_call), 0)


def _around(record: Record, call: WatchedCall) -> ModuleCall | None:
    return None if call.module_call is None else calls_by_number(record).get(call.module_call)


def _drops_in_eval(record: Record, call: WatchedCall) -> bool:
    around = _around(record, call)
    if around is None or around.training or call.arguments.get("training") is False or call.arguments.get("p") == 0:
        return False
    module = module_of(record, around)
    return module is not None and module.cls not in DROPOUTS


def _written(record: Record, call: WatchedCall) -> ast.Call | None:
    """The call in the source; None if it says `training` itself, by name or as third argument."""
    row = site_of(record, call.site or 0)
    node = statement(record, row)
    name = call.function.rpartition(".")[2]
    found = [part for part in (ast.walk(node) if node is not None else ()) if isinstance(part, ast.Call)]
    own = [part for part in found if last_name(part.func) == name]
    part = next((one for one in own if region_in(record, row.source, one).start_col == call.col), next(iter(own), None))
    if part is None or len(part.args) > 2 or any(one.arg in ("training", None) for one in part.keywords):
        return None
    return part


def _is_in_method(record: Record, site: Site) -> bool:
    """The function around the statement has a `self`."""
    node, tree = statement(record, site), tree_of(record, site)
    around = None if node is None or tree is None else scope_of(tree, node)
    return isinstance(around, Function) and parameters_of(around)[:1] == ["self"]


def _finding(record: Record, site: int, calls: list[WatchedCall], part: ast.Call) -> Finding:
    row, around = site_of(record, site), _around(record, calls[0])
    module = None if around is None else module_of(record, around)
    who = "the module" if module is None else f"`{module.fqn or module.binding or module.cls}`"
    switch = next(
        (one.site for one in record.modes if one.kind == "training" and one.after == "False" and one.site is not None),
        None,
    )
    fixes: list[Fix] = []
    if _is_in_method(record, row):
        edit = with_keyword(record, row, part, "training", "self.training")
        fixes.append(Fix(title="Follow the module's mode", safety="safe", edits=(edit,)))
    return told(
        record,
        RULE,
        site,
        (
            f"`{ast.unparse(part.func)}` drops elements although {who} is in eval mode.",
            "Its `training` is True unless it is told otherwise, so predictions stay noisy. Assumed: not meant.",
            "Pass `training=self.training`; or write `training=True` if dropout is wanted here.",
        ),
        binding=ast.unparse(part.func),
        moments=[call.moment or 0 for call in calls],
        region=region_in(record, row.source, part),
        related=(("eval mode was switched on here", switch),),
        evidence={"module_training": False, "dropout_training": True, "calls": len(calls)},
        fixes=fixes,
    )
