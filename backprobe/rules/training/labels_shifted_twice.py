"""BP843 labels-shifted-twice: a language model is asked for the token after the next one.

What it finds:
    The targets of a class loss begin two places after the tokens that went into the embedding: they are sliced by
    `1:` twice on their way, or were written one place earlier before the loss slices them again.

Why it matters:
    The model learns to leave one token out: what it generates is every second one.

What PyTorch does:
    Nothing: the shift is the program's part, or a library model's, but not of both. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    embed, lstm, head = nn.Embedding(9, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 9)
    optimizer = torch.optim.SGD([*embed.parameters(), *lstm.parameters(), *head.parameters()], lr=0.1)
    for tokens in torch.randint(0, 9, (4, 2, 7)):
        labels = tokens[:, 1:]  # <- here
        logits = head(lstm(embed(tokens))[0])
        loss = nn.functional.cross_entropy(logits[:, :-2].reshape(-1, 9), labels[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    embed, lstm, head = nn.Embedding(9, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 9)
    optimizer = torch.optim.SGD([*embed.parameters(), *lstm.parameters(), *head.parameters()], lr=0.1)
    for tokens in torch.randint(0, 9, (4, 2, 7)):
        logits = head(lstm(embed(tokens))[0])
        loss = nn.functional.cross_entropy(logits[:, :-1].reshape(-1, 9), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the data are shifted, and the loss is not
    import torch
    from torch import nn

    embed, lstm, head = nn.Embedding(9, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 9)
    optimizer = torch.optim.SGD([*embed.parameters(), *lstm.parameters(), *head.parameters()], lr=0.1)
    for text in torch.randint(0, 9, (4, 2, 7)):
        tokens, labels = text[:, :-1], text[:, 1:]
        logits = head(lstm(embed(tokens))[0])
        loss = nn.functional.cross_entropy(logits.reshape(-1, 9), labels.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Shifts by `roll`, by `narrow`, or inside library code are not counted.

Source:
    The causal models of Hugging Face transformers, whose loss shifts labels that are given as the input's own tokens.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.losses.loss_calls import LossCall, loss_calls, tensor_given
from backprobe.rules.analysis.modules.embedded_tokens import embedded
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import statement_at
from backprobe.rules.analysis.tensors.operation_chains import argument_of, behind, slices_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="labels-shifted-twice",
    code="BP843",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("call", "module", "backward", "site", "parents"),
)

LEAST: Final = 2
"""Losses of that kind: once may be a start."""
_TWICE: Final = 2


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that shifts first."""
    calls = loss_calls(record, "cross_entropy", "nll_loss")
    if not calls or not embedded(record):
        return
    found: dict[int, list[LossCall]] = {}
    for one in calls:
        shifts = _shifts(record, one)
        if len(shifts) == 1:
            return  # another loss asks for the next token: the one after it is asked for on purpose
        if len(shifts) == _TWICE:
            found.setdefault(shifts[-1], []).append(one)
    for site, ones in found.items():
        if len(ones) >= LEAST:
            yield _finding(record, site, ones)


def _shifts(record: Record, one: LossCall) -> list[int]:
    """The statements that shift the targets of a loss against the tokens, the last first."""
    target = tensor_given(one.call, "target")
    if target is None or not lookup(record).tensors[target].dtype.startswith("int") or not _ends_early(record, one):
        return []
    found: list[int] = []
    last: int | None = None
    start = argument_of(record, one.call, 1, "target")
    for row in () if start is None else behind(record, start):
        if isinstance(row, int):
            last = row
        elif ("1", "") in slices_of(record, row):
            found.append(row.statement)
        elif row.tensor is not None:
            last = row.tensor
    if last is not None and found:
        found += _moved_before(record, last)
    return found


def _ends_early(record: Record, one: LossCall) -> bool:
    """The last places of the scores are sliced off."""
    scores = argument_of(record, one.call, 0, "input")
    for row in () if scores is None else behind(record, scores):
        if not isinstance(row, int) and any(upper in ("-1", "-2") for _lower, upper in slices_of(record, row)):
            return row.requires_grad is True
    return False


def _moved_before(record: Record, tensor: int) -> list[int]:
    """The statement that wrote the labels one place earlier, or gave them beside the tokens."""
    for event in lookup(record).inplace_of[tensor]:
        if event.site is not None and _writes_earlier(statement_at(record, event.site)):
            return [event.site]
    if tensor in embedded(record) or lookup(record).tensors[tensor].view_of is not None:
        return []
    length = (lookup(record).tensors[tensor].shape or (0,))[-1]
    return [site for site, size in _pairs(record) if size == length][:1]


def _writes_earlier(node: ast.stmt | None) -> bool:
    """`labels[:, :-1] = tokens[:, 1:]`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    return _bounds(node.targets[0]) == ("", "-1") and _bounds(node.value) == ("1", "")


def _bounds(node: ast.expr) -> tuple[str, str] | None:
    """The bounds of the last slice of a subscript."""
    if not isinstance(node, ast.Subscript):
        return None
    last = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else node.slice
    if not isinstance(last, ast.Slice):
        return None
    return ast.unparse(last.lower) if last.lower else "", ast.unparse(last.upper) if last.upper else ""


@table
def _pairs(record: Record) -> tuple[tuple[int, int], ...]:
    """The statements that give two views of whole numbers, of one length, of which one begins a place later.

    With that length.
    """
    index, found = lookup(record), dict[tuple[int, int], None]()
    by_site: dict[int, list[int]] = {}
    for row in record.operations:
        if (
            row.function == "[]"
            and row.tensor is not None
            and row.dtype.startswith("int")
            and len(row.shape or ()) == 1
        ):
            by_site.setdefault(row.statement, []).append(row.tensor)
    for site, tensors in by_site.items():
        for one, other in zip(tensors[::2], tensors[1::2], strict=False):
            first, second = index.tensors[one], index.tensors[other]
            apart = (second.storage_offset or 0) - (first.storage_offset or 0)
            if first.storage == second.storage and first.shape == second.shape and apart == 1:
                found[site, (first.shape or (0,))[0]] = None
    return tuple(found)


def _finding(record: Record, site: int, ones: list[LossCall]) -> Finding:
    return told(
        record,
        RULE,
        site,
        (
            "The labels are shifted by one place here, and by another one before the loss.",
            "The model is asked for the token after the next one, and learns to leave one out.",
            "Shift once: either here or at the loss.",
        ),
        binding="labels",
        moments=[one.moment for one in ones],
        related=(("the loss", ones[0].site if ones[0].site != site else None),),
        evidence={"losses": len(ones), "assumed": "the next token is asked for"},
    )
