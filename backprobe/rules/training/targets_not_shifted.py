"""BP815 targets-not-shifted: a language model is asked at each place for the token that it is given there.

What it finds:
    The targets of a class loss are the very tokens that went into the embedding, place by place, and the model reads
    from left to right: it has a causal mask, or a recurrent layer in one direction. Some may be filled with what the
    loss ignores.

Why it matters:
    The answer stands in the input: the loss falls to zero in a short time, and what is learnt is to copy. Generation
    repeats the last token.

What PyTorch does:
    Nothing: to compare a place with itself is as good as any pair to it. Shifting is the program's part; libraries do
    it inside the model in some cases only. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    embed, lstm, head = nn.Embedding(9, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 9)
    optimizer = torch.optim.SGD([*embed.parameters(), *lstm.parameters(), *head.parameters()], lr=0.1)
    for tokens in torch.randint(0, 9, (4, 2, 6)):
        logits = head(lstm(embed(tokens))[0])
        loss = nn.functional.cross_entropy(logits.reshape(-1, 9), tokens.reshape(-1))  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    embed, lstm, head = nn.Embedding(9, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 9)
    optimizer = torch.optim.SGD([*embed.parameters(), *lstm.parameters(), *head.parameters()], lr=0.1)
    for tokens in torch.randint(0, 9, (4, 2, 6)):
        logits = head(lstm(embed(tokens[:, :-1]))[0])
        loss = nn.functional.cross_entropy(logits.reshape(-1, 9), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: an encoder that sees both sides, with masked tokens
    import torch
    from torch import nn

    embed, mix, head = nn.Embedding(9, 8), nn.Conv1d(8, 8, 3, padding=1), nn.Linear(8, 9)
    optimizer = torch.optim.SGD([*embed.parameters(), *mix.parameters(), *head.parameters()], lr=0.1)
    for tokens in torch.randint(0, 8, (4, 2, 6)):
        hidden = mix(embed(tokens.masked_fill(torch.rand(2, 6) < 0.3, 8)).transpose(1, 2)).transpose(1, 2)
        loss = nn.functional.cross_entropy(head(hidden).reshape(-1, 9), tokens.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Models with more than one recurrent layer of their own, as encoder and decoder have, are not judged, nor those that
    slice or join the vectors of the embedding, which may be the shift.

Source:
    Bengio et al.: A Neural Probabilistic Language Model, equation 1, where each word is predicted from those before it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.losses.loss_calls import LossCall, loss_calls, region_of_call, tensor_given, values_of
from backprobe.rules.analysis.modules.embedded_tokens import classes_called, embedded, moved_in
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expression_places import expression_of
from backprobe.rules.analysis.source.expressions import keyword
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="targets-not-shifted",
    code="BP815",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("call", "module", "backward", "site"),
)

LEAST: Final = 2
"""Losses of that kind: once may be a start."""

_RECURRENT: Final = frozenset({"LSTM", "GRU", "RNN"})
_TRIANGLES: Final = frozenset({"tril", "triu", "generate_square_subsequent_mask"})
_SAME: Final = frozenset({"view", "reshape", "flatten", "clone", "contiguous", "long", "to", "detach", "ravel"})
"""Methods that give the same elements in the same order."""
_FILLS: Final = frozenset({"masked_fill", "where"})
"""Functions that give the same elements, but for some that are all one value."""
_IGNORED: Final = -100
"""What class losses ignore if nothing else is said."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that computes such a loss."""
    calls = loss_calls(record, "cross_entropy", "nll_loss")
    if not calls or not embedded(record) or not _reads_forward(record):
        return
    found: dict[int, list[tuple[LossCall, int]]] = {}
    for one in calls:
        tokens = _tokens(record, one)
        if tokens is not None:
            found.setdefault(one.site, []).append((one, tokens))
    for rows in found.values():
        if len(rows) >= LEAST:
            yield _finding(record, rows)


def _reads_forward(record: Record) -> bool:
    """A causal mask is made or asked for, or one recurrent layer runs, in one direction."""
    if any(_is_triangle(record, row) for row in record.operations):
        return True
    if any(_is_causal(record, row) for row in record.operations):
        return True
    called = {row.module for row in record.module_calls}
    layers = [row for row in record.modules if row.module in called and row.cls in _RECURRENT]
    if len(layers) != 1 or any("reverse" in one.name for one in layers[0].parameters):
        return False
    return any(_gives_places(record, row) for row in record.operations if classes_called(record, row) & _RECURRENT)


def _gives_places(record: Record, layer: Operation) -> bool:
    """What goes on from a recurrent layer is a value for each place of the tokens, not its last state alone."""
    index = lookup(record)
    shapes = [sorted((index.tensors[one].shape or ())[:2]) for one in embedded(record)]
    given = {
        row.tensor
        for row in _bound_at(record).get(layer.statement, ())
        if row.tensor not in _made(record) and sorted((index.tensors[row.tensor].shape or ())[:2]) in shapes
    }
    chosen = {
        row.operation
        for row in record.operations
        if row.function == "[]" and layer.operation in row.inner and sorted((row.shape or ())[:2]) in shapes
    }
    for row in record.operations:
        if row.requires_grad or row.result != "tensor":
            takes = given & set(row.operands) or chosen & set(row.inner)
            numel = math.prod(row.shape or ())
            same = any(index.tensors[one].numel == numel for one in given & set(row.operands))
            if takes and (row.result != "tensor" or same or sorted((row.shape or ())[:2]) in shapes):
                return True
    return False


@table
def _bound_at(record: Record) -> dict[int, list[Binding]]:
    """The bindings of each statement."""
    found: dict[int, list[Binding]] = {}
    for row in record.bindings:
        found.setdefault(row.site, []).append(row)
    return found


def _is_triangle(record: Record, row: Operation) -> bool:
    """A mask that lets a place see itself and what is before it; one without its own place asks for something else."""
    name = row.function.rpartition(".")[2]
    if name not in _TRIANGLES:
        return False
    node = expression_of(record, row)
    if not isinstance(node, ast.Call) or name == "generate_square_subsequent_mask":
        return isinstance(node, ast.Call)
    named = keyword(node, "diagonal")
    given = [named.value] if named is not None else node.args[1 if row.function == f"torch.{name}" else 0 :]
    return [ast.unparse(one) for one in given] in ({"tril": ([], ["0"]), "triu": (["1"],)}[name])


def _is_causal(record: Record, row: Operation) -> bool:
    """An attention that is asked for a causal mask."""
    node = expression_of(record, row) if "attention" in row.function else None
    given = keyword(node, "is_causal") if isinstance(node, ast.Call) else None
    return given is not None and not (isinstance(given.value, ast.Constant) and not given.value.value)


def _tokens(record: Record, one: LossCall) -> int | None:
    """The embedded tensor that the targets are, if there is one target for each of its places, and a row for each."""
    target = tensor_given(one.call, "target")
    given = lookup(record).tensors[one.given]
    source, is_filled = (None, False) if target is None else _source(record, target)
    if is_filled and not _is_filled_with_ignored(record, one):
        return None
    if target is None or source is None or source not in embedded(record) or source in moved_in(record):
        return None
    places = lookup(record).tensors[source].numel
    classes = given.shape[1] if given.shape and len(given.shape) > 1 else 0
    whole = lookup(record).tensors[target].numel == places and classes > 1 and given.numel == places * classes
    return source if whole else None


def _is_filled_with_ignored(record: Record, one: LossCall) -> bool:
    """The least or the greatest of the targets is the value that the loss ignores."""
    target, ignored = tensor_given(one.call, "target"), one.call.arguments.get("ignore_index", _IGNORED)
    values = None if target is None else values_of(record, target, one.moment)
    return values is not None and ignored in (values.min, values.max)


def _source(record: Record, tensor: int) -> tuple[int, bool]:
    """The tensor whose elements these are, in order: behind views of all of it and copies; whether some are filled."""
    index, made, filled, is_filled = lookup(record), _made(record), _filled(record), False
    for _turn in range(8):
        row = index.tensors[tensor]
        base = None if row.view_of is None else index.tensors[row.view_of]
        if base is not None and base.numel == row.numel:
            tensor = base.tensor
            continue
        if tensor in filled:
            tensor, is_filled = filled[tensor], True
            continue
        by = made.get(tensor)
        if (
            by is None
            or by.function.rpartition(".")[2] not in _SAME
            or len(by.operands) != 1
            or by.operands[0] == tensor
        ):
            break
        tensor = by.operands[0]
    return next((one for one in embedded(record) if _is_same_memory(record, one, tensor)), tensor), is_filled


@table
def _filled(record: Record) -> dict[int, int]:
    """What was filled by a mask, by what came of it: of what went in the one tensor of its shape and type."""
    index, found = lookup(record), dict[int, int]()
    for row in record.operations:
        if row.tensor is not None and row.function.rpartition(".")[2] in _FILLS:
            same = [one for one in row.operands if index.tensors[one].dtype == row.dtype]
            same = [one for one in same if index.tensors[one].shape == row.shape and one != row.tensor]
            if len(same) == 1:
                found.setdefault(row.tensor, same[0])
    return found


def _is_same_memory(record: Record, one: int, other: int) -> bool:
    """Two views of the same elements in the same order."""
    rows = lookup(record).tensors[one], lookup(record).tensors[other]
    first, second = ((row.storage, row.storage_offset, row.numel, (row.stride or (0,))[-1]) for row in rows)
    return first == second and first[0] is not None


@table
def _made(record: Record) -> dict[int, Operation]:
    """The operation that gave a tensor."""
    found: dict[int, Operation] = {}
    for row in record.operations:
        if row.tensor is not None and not row.inner:
            found.setdefault(row.tensor, row)
    return found


def _finding(record: Record, rows: list[tuple[LossCall, int]]) -> Finding:
    one, tokens = rows[0]
    bound = lookup(record).bindings_of[tokens]
    name = bound[0].name if bound else "the tokens"
    return told(
        record,
        RULE,
        one.site,
        (
            f"The targets are `{name}` itself, which went into the embedding: no place is asked for what comes next.",
            "The answer stands in the input, and what is learnt is to copy it.",
            f"Shift by one: predict `{name}[:, 1:]` from `{name}[:, :-1]`.",
        ),
        binding=name,
        moments=[row.moment for row, _tokens in rows],
        region=region_of_call(record, one.call),
        related=(("the same tokens go in here", embedded(record)[tokens]),),
        evidence={"losses": len(rows), "places": lookup(record).tensors[tokens].numel},
        tensors=[tokens],
    )
