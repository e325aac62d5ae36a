"""What stands behind and above lines: inlay hints of tensors and graphs, and a lens on each backward call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from lsprotocol import types as lsp

from backprobe.language_server.documents import Document
from backprobe.language_server.runs.results import Call, Result, Tensor
from backprobe.show.amounts import format_bytes, format_shape
from backprobe.show.plain_text import cut, plain

Kind = Literal["leaf", "gradient", "held"]
KINDS: Final[tuple[Kind, ...]] = ("leaf", "gradient", "held")
"""Leaf or not; why `.grad` is None, or what arrived; what a graph still held after a backward call."""

MOST_CHARACTERS: Final = 40
"""Of one hint: a longer one pushes code out of sight."""

MOST_ON_A_LINE: Final = 3
"""Tensors that are named behind one line; the others are counted."""

_DECIDED_AT: Final = {
    "cut": "cut at",
    "requires-grad-false": "cut at",
    "set-none": "set to None at",
    "replaced": "replaced at",
    "retained-too-late": "retained too late at",
    "became-required-later": "required too late at",
    "backward-raised": "the call raised at",
    "not-in-inputs": "not in inputs at",
    "returned-not-stored": "returned at",
    "taken-by-hook": "taken by a hook at",
}
"""Words for a verdict that a line decided, in front of that line's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """What is shown behind one line of the text that ran, from 0; the tooltip has the why.

    Attributes:
        decided: The line that the label ends with the number of, from 0, wherever that is now; None: it names none.
    """

    line: int
    label: str
    tooltip: str
    kind: Kind
    decided: int | None = None


def hints(result: Result, path: str, kinds: Collection[Kind] = KINDS) -> list[Hint]:
    """List the hints of a file of these kinds, in order of lines."""
    found: list[Hint] = []
    by_line: defaultdict[int, list[Tensor]] = defaultdict(list)
    for tensor in result.tensors:
        if tensor.path == path and (tensor.requires_grad or _was_cut_off(tensor)):
            by_line[tensor.line - 1].append(tensor)
    for line, tensors in by_line.items():
        found += _of_tensors(line, tensors, kinds)
    if "held" in kinds:
        found += _of_calls(call for call in result.calls if call.path == path)
    return sorted(found, key=lambda hint: hint.line)


def _was_cut_off(tensor: Tensor) -> bool:
    """Something cut it off; of a tensor that was never to have a gradient, like an input, there is nothing to tell."""
    return tensor.why is not None and tensor.why.line is not None and "cut" in tensor.why.text


def _of_tensors(line: int, tensors: list[Tensor], kinds: Collection[Kind]) -> Iterator[Hint]:
    told = [(tensor, *label) for tensor in tensors if (label := _label(tensor, kinds))[0]]
    for tensor, label, kind, decided in told[:MOST_ON_A_LINE]:
        name = f"{plain(tensor.name)}: " if len(told) > 1 else ""
        yield Hint(line=line, label=name + label, tooltip=describe_tensor(tensor), kind=kind, decided=decided)
    if len(told) > MOST_ON_A_LINE:
        rest = told[MOST_ON_A_LINE:]
        tooltip = "\n".join(describe_tensor(tensor) for tensor, *_ in rest[:MOST_ON_A_LINE])
        yield Hint(line=line, label=f"and {len(rest)} more", tooltip=tooltip, kind=rest[0][2])


def _label(tensor: Tensor, kinds: Collection[Kind]) -> tuple[str, Kind, int | None]:
    leaf = ("leaf" if tensor.is_leaf else "not leaf") if "leaf" in kinds and tensor.requires_grad else ""
    gradient, decided = _gradient(tensor) if "gradient" in kinds else ("", None)
    return ", ".join(filter(None, (leaf, gradient))), "leaf" if leaf else "gradient", decided


def _gradient(tensor: Tensor) -> tuple[str, int | None]:
    """Why there is none, or what arrived and was not kept; nothing where `.grad` holds what it should.

    With it the line that decided it, from 0; None: none did.
    """
    if tensor.gradient is not None:
        return "", None
    if tensor.arrived is not None:
        return f"arrived {plain(tensor.arrived)}", None
    why = tensor.why
    if why is None or why.verdict == "not-leaf":
        return "", None
    words = _DECIDED_AT.get(why.verdict)
    if words is None or why.line is None:
        return f"grad None: {why.verdict.replace('-', ' ')}", None
    return f"grad None: {words}", why.line - 1


def describe_tensor(tensor: Tensor) -> str:
    """All that is known of a tensor, in lines of plain text."""
    times = f", the last of {tensor.times}" if tensor.times > 1 else ""
    lines = [f"{plain(tensor.name)}: {plain(tensor.dtype)}{format_shape(tensor.shape)}{times}"]
    lines.append(
        ("a leaf" if tensor.is_leaf else "not a leaf") + ("" if tensor.requires_grad else ", requires no grad")
    )
    if tensor.gradient is not None:
        lines.append(f".grad: {plain(tensor.gradient)}")
    else:
        lines.append(".grad is None" + (f": {plain(tensor.why.text)}" if tensor.why and tensor.why.text else ""))
    if tensor.arrived is not None:
        lines.append(f"gradient that arrived: {plain(tensor.arrived)}")
    return "\n".join(lines)


def _of_calls(calls: Iterator[Call] | list[Call]) -> Iterator[Hint]:
    for line, (count, last) in _last_calls(calls).items():
        if last.kept_bytes:
            after = "the call" if count == 1 else f"the last of {count:,} calls"
            tooltip = f"The graph still held {format_bytes(last.kept_bytes)} after {after}."
            yield Hint(line=line, label=f"held {format_bytes(last.kept_bytes)}", tooltip=tooltip, kind="held")


def _last_calls(calls: Iterator[Call] | list[Call]) -> dict[int, tuple[int, Call]]:
    """By line from 0: how many calls there were, and the last of them."""
    found: dict[int, tuple[int, Call]] = {}
    for call in calls:
        found[call.line - 1] = (found.get(call.line - 1, (0, call))[0] + 1, call)
    return found


def inlay_hints(document: Document, found: list[Hint]) -> list[lsp.InlayHint]:
    """Place the hints whose lines are still as they ran behind those lines, in order."""
    shown: list[lsp.InlayHint] = []
    for hint in found:
        line = document.line_now(hint.line)
        if line is not None:
            label = cut(_number_label(hint, document), MOST_CHARACTERS)
            place = document.end_of(line)
            shown.append(lsp.InlayHint(position=place, label=label, tooltip=hint.tooltip, padding_left=True))
    return sorted(shown, key=lambda hint: hint.position.line)


def _number_label(hint: Hint, document: Document) -> str:
    """Add to a label the present number of the line that decided it, unless that line was edited."""
    if hint.decided is None:
        return hint.label
    line = document.line_now(hint.decided)
    return hint.label.removesuffix(" at") if line is None else f"{hint.label} {line + 1}"


def run_lens(uri: str) -> lsp.CodeLens:
    """Above a program: runs it."""
    start = lsp.Position(line=0, character=0)
    command = lsp.Command(title="Run with Backprobe", command="backprobe.run", arguments=[uri])
    return lsp.CodeLens(range=lsp.Range(start=start, end=start), command=command)


def lenses(document: Document, result: Result, path: str) -> list[lsp.CodeLens]:
    """Write what a run found above each line that called backward."""
    found: list[lsp.CodeLens] = []
    count = len(result.findings)
    for line, (_, last) in _last_calls([call for call in result.calls if call.path == path]).items():
        now = document.line_now(line)
        if now is None:
            continue
        words = [f"{count} finding{'' if count == 1 else 's'}"]
        words += [f"{format_bytes(last.kept_bytes)} held"] if last.kept_bytes else []
        if result.page is None:
            command = lsp.Command(title=", ".join(words), command="")
        else:
            words.append("open run")
            command = lsp.Command(title=", ".join(words), command="backprobe.openRun", arguments=[result.page])
        start = lsp.Position(line=now, character=0)
        found.append(lsp.CodeLens(range=lsp.Range(start=start, end=start), command=command))
    return found
