"""BP870 classes-scrambled-by-view: scores are cut into rows in another order than their targets.

What it finds:
    A `view` or `reshape` gives one row of scores for each target, and its input has the classes in dimension 1: the
    targets, before they were flattened, have its shape without that dimension. A loss takes in both. Or the classes are
    last, and the two dimensions before them are those of the targets in the other order: time first, and batch first.

Why it matters:
    A row then belongs to another place than its target, or it holds the scores of one class at neighbouring places, not
    those of all classes at one place. The shapes fit, the loss falls a little, and what is learned is noise.

What PyTorch does:
    `view` and `reshape` take the elements in their order in memory, the last dimension first; they move no dimension.
    Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Conv2d(3, 5, 3, padding=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        picture, mask = torch.randn(4, 3, 8, 8), torch.randint(0, 5, (4, 8, 8))
        scores = net(picture).reshape(-1, 5)  # <- here
        loss = nn.functional.cross_entropy(scores, mask.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    net = nn.Conv2d(3, 5, 3, padding=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        picture, mask = torch.randn(4, 3, 8, 8), torch.randint(0, 5, (4, 8, 8))
        scores = net(picture).permute(0, 2, 3, 1).reshape(-1, 5)
        loss = nn.functional.cross_entropy(scores, mask.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the classes are the last dimension
    import torch
    from torch import nn

    net = nn.Linear(6, 5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        words, tags = torch.randn(4, 7, 6), torch.randint(0, 5, (4, 7))
        loss = nn.functional.cross_entropy(net(words).view(-1, 5), tags.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the targets are transposed too
    import torch
    from torch import nn

    net = nn.Linear(6, 5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        words, tags = torch.randn(7, 4, 6), torch.randint(0, 5, (4, 7))
        loss = nn.functional.cross_entropy(net(words).flatten(0, 1), tags.t().flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    As many places in a row as rows in the batch. Targets that the program holds flattened from the start, and rows that
    are picked before the loss.

Source:
    torch.Tensor.view and torch.nn.CrossEntropyLoss in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expression_places import expression_of
from backprobe.rules.analysis.source.syntax import region_in, site_of
from backprobe.rules.analysis.tensors.parents import made_by, operations_by_number
from backprobe.rules.analysis.terms.samples import takers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="classes-scrambled-by-view",
    code="BP870",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("binding", "parents", "backward"),
)

_FLATTENS: Final = frozenset({"view", "reshape", "flatten", "ravel"})
_SAME: Final = frozenset({"contiguous", "float", "clone", "to", "cpu", "cuda", "long"})
"""Methods that hand on the elements and their shape."""

_MATRIX: Final = 2
"""Dimensions of rows of scores."""

_LEAST: Final = 3
"""Dimensions of scores that have places beside batch and classes."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    found: dict[int, list[Operation]] = {}
    turned: dict[int, list[Operation]] = {}
    for row in record.operations:
        if _name(row) in _FLATTENS and row.requires_grad and len(row.shape or ()) == _MATRIX:
            targets = [target for taker in takers(record, row) for target in _targets(record, row, taker)]
            if any(_is_scrambled(record, row, target) for target in targets):
                found.setdefault(row.statement, []).append(row)
            elif any(_is_turned(record, row, target) for target in targets):
                turned.setdefault(row.statement, []).append(row)
    for site, rows in found.items():
        yield _finding(record, site, rows)
    for site, rows in turned.items():
        yield _finding_of_turned(record, site, rows)


def _name(row: Operation) -> str:
    return row.function.rpartition(".")[2]


def _is_scrambled(record: Record, row: Operation, targets: tuple[int, ...]) -> bool:
    """The scores have their classes in dimension 1, and the targets their other dimensions."""
    scores, classes = _source_shape(record, row), (row.shape or (0, 0))[1]
    if scores is None or len(scores) < _LEAST or scores[1] != classes or scores[-1] == classes:
        return False
    places = (scores[0], *scores[2:])
    return places == targets and places != tuple(scores[:-1])


def _is_turned(record: Record, row: Operation, targets: tuple[int, ...]) -> bool:
    """The scores have their classes last, and the targets the two dimensions before them in the other order."""
    scores, classes = _source_shape(record, row), (row.shape or (0, 0))[1]
    if scores is None or len(scores) != _LEAST or scores[-1] != classes:
        return False
    return targets == (scores[1], scores[0]) and scores[0] != scores[1]


def _targets(record: Record, row: Operation, taker: Operation) -> list[tuple[int, ...]]:
    """The shapes, before they were flattened, of the targets that something takes in with the rows, one for each."""
    rows, known = (row.shape or (0,))[0], operations_by_number(record)
    found = [_targets_of(record, operand, rows) for operand in taker.operands]
    found += [_flattened(record, known[call], rows) for call in taker.inner if call in known]
    return [shape for shape in found if shape is not None]


def _targets_of(record: Record, tensor: int, rows: int) -> tuple[int, ...] | None:
    """The shape that whole numbers had before they were flattened to one for each row; None for anything else."""
    made = made_by(record).get(tensor)
    return None if made is None else _flattened(record, made, rows)


def _flattened(record: Record, row: Operation, rows: int) -> tuple[int, ...] | None:
    if _name(row) not in _FLATTENS | _SAME or row.shape != (rows,) or not row.dtype.startswith(("int", "uint")):
        return None
    return _source_shape(record, row)


def _source_shape(record: Record, row: Operation) -> tuple[int, ...] | None:
    """The shape of the one tensor that went in, before copies and casts, if it was another one."""
    known = operations_by_number(record)
    while len(row.operands) + len(row.inner) == 1 and row.complete:
        if row.operands:
            shape = lookup(record).tensors[row.operands[0]].shape
        else:
            inner = known.get(row.inner[0])
            shape = None if inner is None else inner.shape
            if inner is not None and (_name(inner) in _SAME or shape == row.shape):
                row = inner
                continue
        return None if shape is None else tuple(shape)
    return None


def _finding(record: Record, site: int, rows: list[Operation]) -> Finding:
    first, row = rows[0], site_of(record, site)
    scores, classes = _source_shape(record, first) or (), (first.shape or (0, 0))[1]
    order = ", ".join(str(one) for one in (0, *range(2, len(scores)), 1))
    node = expression_of(record, first)
    return told(
        record,
        RULE,
        site,
        (
            f"This cuts scores of shape {scores} into rows of {classes} as they lie in memory.",
            f"The classes are dimension 1: a row has one class at {classes} neighbouring places, not all at one.",
            f"Put the classes last first: `permute({order})`, or give the loss the scores and targets as they are.",
        ),
        binding=row.targets[0] if row.targets else "scores",
        moments=[one.moment or 0 for one in rows],
        region=None if node is None else region_in(record, row.source, node),
        evidence={"shape": [*scores], "classes": classes, "calls": len(rows)},
    )


def _finding_of_turned(record: Record, site: int, rows: list[Operation]) -> Finding:
    first, row = rows[0], site_of(record, site)
    scores = _source_shape(record, first) or (0, 0)
    node = expression_of(record, first)
    return told(
        record,
        RULE,
        site,
        (
            f"Scores of shape {scores} and targets of shape ({scores[1]}, {scores[0]}) are both cut into rows.",
            "They lie in memory in another order: a row of scores meets the target of another place.",
            "Transpose the scores first: `transpose(0, 1)`.",
        ),
        binding=row.targets[0] if row.targets else "scores",
        moments=[row.moment or 0 for row in rows],
        region=None if node is None else region_in(record, row.source, node),
        evidence={"shape": [*scores], "calls": len(rows)},
    )
