"""BP613 dropout-always-on: `F.dropout` drops in a module that is in eval mode.

What it finds:
    A call of a functional dropout that drops while the module around it has `training` false, because the call does not
    say `training=self.training`. The finding stands at the call.

Why it matters:
    `eval()` does not reach it: every prediction and every validation number is noisy and too low.

What PyTorch does:
    `F.dropout(x)` has `training=True` as its default; the module `nn.Dropout` follows `train()` and `eval()`. Seen in
    torch 2.13.

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

Blind spots:
    Dropout in a function outside every module has no flag to compare with.

Source:
    torch.nn.functional.dropout in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.expressions import with_keyword
from backprobe.rules.finding import Fix
from backprobe.rules.module_sites import calls_by_number
from backprobe.rules.rule import Rule
from backprobe.rules.scopes import Function, last_name, parameters_of, scope_of
from backprobe.rules.syntax import region_in, site_of, statement, tree_of
from backprobe.rules.told import told
from backprobe.rules.training_modes import DROPOUTS, module_of

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record, Site, WatchedCall
    from backprobe.rules.finding import Finding

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
