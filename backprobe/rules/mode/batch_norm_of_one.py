"""BP668 batch-norm-of-one: batch norm in training mode gets one value per channel, and raises.

What it finds:
    A batch norm raised, since a batch held a single sample without further places. The finding stands at the only
    loader of the program that may give a last batch of one; else at the statement that called the layer.

Why it matters:
    The program stops, often at the end of its first epoch: the data is one more than a multiple of the batch size.

What PyTorch does:
    The variance of one value is not defined, so `batch_norm` raises a ValueError in training mode: "Expected more than
    1 value per channel when training". `DataLoader` keeps a last, smaller batch unless `drop_last=True`. Seen in torch
    2.13.

Example:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.randn(9, 3)), batch_size=4)  # <- here
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    for (x,) in loader:
        model(x).pow(2).mean().backward()

Use instead:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.randn(9, 3)), batch_size=4, drop_last=True)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    for (x,) in loader:
        model(x).pow(2).mean().backward()

Near miss: one sample in evaluation
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).eval()
    print(model(torch.randn(1, 3)))

Blind spots:
    Of several loaders that keep their last batch the one at fault is not told apart.

Source:
    torch.nn.BatchNorm1d and torch.utils.data.DataLoader in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.expressions import keyword, with_keyword
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import region_in, site_at, trees
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_with_text
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="batch-norm-of-one",
    code="BP668",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised",),
)

_TEXT: Final = "Expected more than 1 value per channel when training"


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_with_text(record, _TEXT):
        yield _finding(record, raised, _loader(record))


def _loader(record: Record) -> tuple[Site, ast.Call] | None:
    """The only loader of the program that makes batches of several and keeps a smaller last one, with its site."""
    found: list[tuple[Site, ast.Call]] = []
    for tree in trees(record).values():
        for part in tree.nodes:
            if isinstance(part, ast.Call) and last_name(part.func) == "DataLoader" and _keeps_last(part):
                node = next((above for above in tree.ancestors(part) if isinstance(above, ast.stmt)), None)
                site = None if node is None else site_at(record, node)
                if site is not None:
                    found.append((site, part))
    return found[0] if len(found) == 1 else None


def _keeps_last(call: ast.Call) -> bool:
    size = keyword(call, "batch_size") or (call.args[1] if len(call.args) > 1 else None)
    value = size.value if isinstance(size, ast.keyword) else size
    is_one = value is None or (isinstance(value, ast.Constant) and value.value == 1)
    given = keyword(call, "drop_last")
    return not is_one and (given is None or (isinstance(given.value, ast.Constant) and not given.value.value))


def _finding(record: Record, raised: Raised, loader: tuple[Site, ast.Call] | None) -> Finding:
    site, call = loader or (None, None)
    at = raised.site or 0
    edits = () if site is None or call is None else (with_keyword(record, site, call, "drop_last", "True"),)
    return told(
        record,
        RULE,
        at if site is None else site.site,
        (
            "Batch norm gets one value per channel in training mode, of which it cannot take a variance."
            if site is None
            else "The last batch of this loader is a single sample, of which batch norm cannot take a variance.",
            "It raises, in the middle of training.",
            "Train on batches of two and more, or use another norm: `GroupNorm`, `LayerNorm`."
            if site is None
            else "Leave the last batch out: `drop_last=True`.",
        ),
        binding="batch norm" if call is None else ast.unparse(call.func),
        moments=[raised.moment or 0],
        region=None if site is None or call is None else region_in(record, site.source, call),
        related=(("raised here", None if site is None else at),),
        evidence={"raised": raised.message},
        fixes=(Fix(title="Leave the last batch out", safety="unsafe", edits=edits),) if edits else (),
        level=level_of(record, raised),
    )
