"""BP867 padding-counted-in-mean: places that are padding take part in a mean, as zeros.

What it finds:
    A class loss without reduction is set to zero where its own targets say so, and then averaged over all places; or
    vectors of an embedding with `padding_idx` are averaged over a dimension in which that index stands.

Why it matters:
    The mean is smaller by the share of padding, so a batch with short texts counts less, and the same text gives
    another result in another batch.

What PyTorch does:
    `mean()` divides by the number of all elements. `padding_idx` makes the vector zero, and keeps it so; it takes it
    out of no mean. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    for length in (2, 4, 3):
        target = torch.randint(1, 9, (3, 5))
        target[:, length:] = 0
        each = nn.functional.cross_entropy(model(target).transpose(1, 2), target, reduction="none")
        loss = (each * (target != 0)).mean()  # <- here
        loss.backward()

Use instead:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    for length in (2, 4, 3):
        target = torch.randint(1, 9, (3, 5))
        target[:, length:] = 0
        each = nn.functional.cross_entropy(model(target).transpose(1, 2), target, reduction="none")
        mask = target != 0
        loss = (each * mask).sum() / mask.sum()
        loss.backward()

Near miss: what the model is unsure of is left out on purpose
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    for x in torch.randn(3, 16, 4):
        sure, guess = model(x).detach().softmax(1).max(1)
        each = nn.functional.cross_entropy(model(x + 0.1), guess, reduction="none")
        (each * (sure > 0.4)).mean().backward()

Near miss: no text is padded
    import torch
    from torch import nn

    words, out = nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 2)
    for _ in range(3):
        out(words(torch.randint(1, 9, (3, 5))).mean(1)).pow(2).mean().backward()

Blind spots:
    A mask that was made elsewhere than from the targets, and padding behind a recurrent network or attention, are not
    known to be padding.

Source:
    torch.nn.Embedding in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import behind_shapes, op, op_of, operands, walked
from backprobe.rules.analysis.losses.activations import built_call
from backprobe.rules.analysis.losses.loss_calls import loss_calls, values_of
from backprobe.rules.analysis.modules.module_outputs import innermost_call
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import parts_of, statement_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Node, Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="padding-counted-in-mean",
    code="BP867",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "saved", "call", "stats", "backward"),
)

LEAST: Final = 2
"""Means with padding in them: once is no pattern."""
_MEANS: Final = (".mean", "torch.mean", "mean")
_PRODUCTS: Final = ("*", ".mul", "torch.mul", ".masked_fill", "torch.where", "where", ".where")
_COMPARISONS: Final = frozenset({"!=", "==", ">", ">=", "<", "<="})
_COMPARING: Final = (".ne", ".eq", ".gt", ".ge", ".lt", ".le", "torch.ne", "torch.eq", "torch.gt", "torch.ge")
_DEEPEST: Final = 12
"""Operations from a mean down to its mask: cast, reshaped, compared."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that takes a mean."""
    masked: dict[int, list[Operation]] = {}
    for row in record.operations:
        if row.function.endswith(_MEANS) and row.shape == () and _is_masked(record, row):
            masked.setdefault(row.statement, []).append(row)
    for site, rows in masked.items():
        if len(rows) >= LEAST:
            yield _masked(record, site, rows)
    pooled: dict[int, list[Node]] = {}
    for node in nodes_like(record, lambda kind: op_of(kind) == "Mean"):
        if node.site is not None and node.node in walked(record) and _pools_padding(record, node):
            pooled.setdefault(node.site, []).append(node)
    for site, nodes in pooled.items():
        if len(nodes) >= LEAST:
            yield _pooled(record, site, nodes)


@table
def _operations(record: Record) -> dict[int, Operation]:
    return {row.operation: row for row in record.operations}


@table
def _made_by(record: Record) -> dict[int, Operation]:
    """The first operation that gave a tensor."""
    return {row.tensor: row for row in reversed(record.operations) if row.tensor is not None}


@table
def _losses(record: Record) -> dict[int, frozenset[int | None]]:
    """The results of class losses without reduction, each with the memory of the whole numbers that went in."""
    found: dict[int, frozenset[int | None]] = {}
    for call in loss_calls(record, "cross_entropy", "nll_loss", is_walked=False):
        if call.call.arguments.get("reduction") == "'none'":
            handed = [one.tensor for one in call.call.inputs if one.tensor is not None]
            for output in call.call.outputs:
                found[output] = frozenset(
                    _memories(record, [*handed, *_operands(record, _made_by(record).get(output))])
                )
    return found


def _memories(record: Record, tensors: list[int]) -> Iterator[int | None]:
    """The memory of those tensors that hold whole numbers: targets, or the words that were read."""
    for one in tensors:
        row = lookup(record).tensors[one]
        if row.dtype.startswith("int"):
            yield row.storage


def _operands(record: Record, row: Operation | None) -> list[int]:
    """The tensors that went into an operation, and into those whose results it was given."""
    found: list[int] = []
    waiting = [] if row is None else [row]
    for one in waiting:
        found += one.operands
        waiting += [_operations(record)[inner] for inner in one.inner if inner in _operations(record)]
    return found


def _is_masked(record: Record, mean: Operation) -> bool:
    """A class loss without reduction times a mask that was compared from its targets, and divided by nothing after."""
    product = _product(record, mean)
    if product is None:
        return False
    parts = _behind(record, product)
    losses = [one for one in parts if isinstance(one, int) and one in _losses(record)]
    compared = [one for one in parts if not isinstance(one, int) and _compares(one.function)]
    memories = {memory for one in compared for memory in _memories(record, _operands(record, one))}
    return any(memories & _losses(record)[loss] for loss in losses) and not _is_divided(record, mean)


def _product(record: Record, mean: Operation) -> Operation | None:
    """The operation whose result is averaged, if it masks."""
    below = [_operations(record)[one] for one in mean.inner if one in _operations(record)]
    below += [_made_by(record)[one] for one in mean.operands if one in _made_by(record)]
    return below[0] if len(below) == 1 and below[0].function.endswith(_PRODUCTS) else None


def _behind(record: Record, top: Operation) -> list[int | Operation]:
    """The tensors and operations behind an operation, the nearest first, not past the results of losses."""
    found: list[int | Operation] = []
    waiting: list[Operation] = [top]
    while waiting and len(found) < 4 * _DEEPEST:
        row = waiting.pop(0)
        found.append(row)
        for tensor in row.operands:
            found.append(tensor)
            made = _made_by(record).get(tensor)
            if tensor not in _losses(record) and made is not None and made is not row:
                waiting.append(made)
        waiting += [_operations(record)[one] for one in row.inner if one in _operations(record)]
    return found


def _compares(function: str) -> bool:
    return function in _COMPARISONS or function.endswith(_COMPARING)


def _is_divided(record: Record, mean: Operation) -> bool:
    """The mean is divided by another tensor afterwards."""
    held = -1 if mean.tensor is None else mean.tensor
    return any(
        row.function == "/"
        and (mean.operation in row.inner or held in row.operands)
        and len(row.inner) + len(row.operands) > 1
        for row in record.operations
    )


def _pools_padding(record: Record, mean: Node) -> bool:
    """The mean of an embedding's vectors over a dimension of places, some of which hold its `padding_idx`."""
    below = [one for one in operands(record, mean.node) if one is not None]
    made = behind_shapes(record, below[0]) if len(below) == 1 else None
    if made is None or made != below[0] or op(lookup(record).nodes[made]) != "Embedding":
        return False
    vectors, out = lookup(record).nodes[made].outputs, mean.outputs
    padding = _padding(record, made)
    if not vectors or not out or padding is None:
        return False
    size = vectors[0].shape
    kept = (size[:-2] + size[-1:], (*size[:-2], 1, size[-1]))
    is_told = size[-1:] != size[-2:-1] or _written_dim(record, mean, len(size)) == len(size) - 2
    is_over_places = len(size) > 2 and out[0].shape in kept and is_told
    return is_over_places and _holds(record, made, padding)


def _written_dim(record: Record, mean: Node, rank: int) -> int | None:
    """The dimension that the only `mean` of the statement names as a number, counted from 0."""
    parts = [part for part in parts_of(statement_at(record, mean.site)) if isinstance(part, ast.Call)]
    calls = [part for part in parts if last_name(part.func) == "mean"]
    given = [*(one.value for one in calls[0].keywords if one.arg == "dim"), *calls[0].args] if len(calls) == 1 else []
    for value in given:
        number = value.operand if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) else value
        if isinstance(number, ast.Constant) and type(number.value) is int:
            return (number.value if number is value else -number.value) % rank
    return None


def _padding(record: Record, embedding: int) -> int | None:
    """The `padding_idx` that the embedding was built with, where it is written as a number."""
    called = innermost_call(record, embedding)
    call = None if called is None else built_call(record, called.module)
    given = None if call is None else next((one.value for one in call.keywords if one.arg == "padding_idx"), None)
    return given.value if isinstance(given, ast.Constant) and type(given.value) is int else None


def _holds(record: Record, embedding: int, number: int) -> bool:
    """The indexes hold the number, as the least or the greatest of them, and others beside it."""
    saved = [row.tensor for row in lookup(record).saved_of[embedding] if row.name == "indices"]
    for tensor in saved:
        moment = lookup(record).nodes[embedding].first_seen
        stats = None if tensor is None else values_of(record, tensor, moment)
        if stats is not None and stats.min is not None and stats.max is not None and stats.min < stats.max:
            return number in (stats.min, stats.max)
    return False


def _masked(record: Record, site: int, rows: list[Operation]) -> Finding:
    return told(
        record,
        RULE,
        site,
        (
            "The loss is set to zero where the targets are padding, and these zeros are counted in the mean.",
            "The mean is too small by the share of padding, which differs from batch to batch.",
            "Divide the sum by the number of places that count: `(loss * mask).sum() / mask.sum()`.",
        ),
        binding="mean",
        moments=[row.moment or 0 for row in rows],
        evidence={"means": len(rows), "assumed": "what the mask leaves out by its targets is padding"},
    )


def _pooled(record: Record, site: int, nodes: list[Node]) -> Finding:
    return told(
        record,
        RULE,
        site,
        (
            "The mean over the places of a text counts those of `padding_idx`, whose vectors are zero.",
            "The same text gives a smaller vector the more it is padded.",
            "Sum, and divide by the number of places that are not padding.",
        ),
        binding="mean",
        moments=[node.first_seen for node in nodes],
        evidence={"means": len(nodes), "assumed": "padding_idx marks padding"},
    )
