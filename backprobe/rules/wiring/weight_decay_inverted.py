"""BP765 weight-decay-inverted: biases and norms decay, and the matrices do not.

What it finds:
    Of the groups of an optimizer, those with a weight decay hold vectors only, two or more, and those whose decay is
    written as 0 hold no vector, only tensors of two and more dimensions.

Why it matters:
    Decay is to keep the matrices small. Taken from biases and the scales of norms it only pulls these towards 0, and
    the matrices are not regularised at all. The filter that sorts the parameters is the wrong way round.

What PyTorch does:
    Each group has its own `weight_decay`; what is in it is the program's affair. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": vectors, "weight_decay": 0.1},  # <- here
            {"params": matrices, "weight_decay": 0.0},
        ],
    )
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": 0.1},
            {"params": vectors, "weight_decay": 0.0},
        ],
    )
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Near miss: a head does not decay, biases and all
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    groups = [
        {"params": model[:2].parameters(), "weight_decay": 0.1},
        {"params": model[2].parameters(), "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    The record holds what is in each group and not its decay: that is read off the source, where the groups are written
    in one list. Groups that are appended one by one are not judged.

Source:
    Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019); minGPT's `configure_optimizers` as the usual
    way round.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.syntax import Tree, region_in, site_at, site_of, statement, trees
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="weight-decay-inverted",
    code="BP765",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("optimizer",),
)

_KEY = "weight_decay"


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer."""
    for optimizer in record.optimizers:
        groups = _ranks(record, optimizer)
        written = None if len(groups) < 2 else _written(record, len(groups))
        if written is None:
            continue
        source, entries = written
        default = _default(record, optimizer)
        decays = [_decays(entry, default=default) for entry in entries]
        with_decay = [rank for at, ranks in groups.items() if decays[at] for rank in ranks]
        without = [rank for at, ranks in groups.items() if decays[at] is False for rank in ranks]
        inverted = len(with_decay) > 1 and max(with_decay) <= 1 and bool(without) and min(without) > 1
        if None not in decays and inverted:
            yield from _finding(record, optimizer, source, entries[decays.index(True)])


def _ranks(record: Record, optimizer: Optimizer) -> dict[int, list[int]]:
    """The numbers of dimensions of the tensors in each group."""
    found: dict[int, list[int]] = {}
    for row in optimizer.tensors:
        shape = lookup(record).tensors[row.tensor].shape
        found.setdefault(row.group, []).append(0 if shape is None else len(shape))
    return found if sorted(found) == list(range(len(found))) else {}


def _written(record: Record, number: int) -> tuple[int, list[ast.Dict | ast.Call]] | None:
    """The one list of that many groups in the sources, with its file; None if there is none, or more than one."""
    found = [
        (source, [one for one in part.elts if isinstance(one, ast.Dict | ast.Call)])
        for source, tree in trees(record).items()
        for part in tree.nodes
        if isinstance(part, ast.List | ast.Tuple) and len(part.elts) == number
        and all("params" in _entries(one) for one in part.elts)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _entries(node: ast.expr) -> dict[str, ast.expr]:
    """What a group is written with: `{"params": x, "lr": y}` or `dict(params=x, lr=y)`."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {
            key.value: value for key, value in pairs if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return {one.arg: one.value for one in node.keywords if one.arg is not None}
    return {}


def _default(record: Record, optimizer: Optimizer) -> bool | None:
    """The optimizer's groups decay if they do not say; None: it is not known."""
    node = None if optimizer.site is None else statement(record, site_of(record, optimizer.site))
    for part in ast.walk(node or ast.Pass()):
        if isinstance(part, ast.Call):
            given = next((one.value for one in part.keywords if one.arg == _KEY), None)
            if given is not None:
                return _is_decay(given)
    return optimizer.cls == "AdamW"


def _decays(entry: ast.expr, *, default: bool | None) -> bool | None:
    given = _entries(entry).get(_KEY)
    return default if given is None else _is_decay(given)


def _is_decay(value: ast.expr) -> bool | None:
    """A number other than 0, or something that has a name: nobody names a decay of 0."""
    if isinstance(value, ast.Constant):
        return bool(value.value) if isinstance(value.value, int | float) else None
    return True


def _finding(record: Record, optimizer: Optimizer, source: int, entry: ast.expr) -> Iterator[Finding]:
    tree, who = trees(record)[source], optimizer_name(record, optimizer.optimizer)
    site = _site(record, tree, entry)
    if site is not None:
        yield told(
            record,
            RULE,
            site,
            (
                f"Of the groups of `{who}` only this one decays, and it holds biases and norms alone.",
                "The matrices have a weight decay of 0: nothing is regularised that should be.",
                "Swap the two filters, or the two numbers.",
            ),
            binding=who,
            moments=[optimizer.moment],
            region=region_in(record, source, entry),
            related=(("the optimizer is built here", optimizer.site if optimizer.site != site else None),),
            evidence={"optimizer": who, "groups": len(_ranks(record, optimizer))},
            optimizers=(optimizer.optimizer,),
        )


def _site(record: Record, tree: Tree, entry: ast.expr) -> int | None:
    node = next((above for above in tree.ancestors(entry) if isinstance(above, ast.stmt)), None)
    site = None if node is None else site_at(record, node)
    return None if site is None else site.site
