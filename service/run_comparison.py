"""Two runs laid beside each other: tensors aligned by module call and source, findings by fingerprint, the diff.

1. A pair is made once, by the most that both have in common: the fqn; then module call, function, name and the text of
   the line; then the same without the text, so that a line that was edited still finds its partner.
2. Among equals the n-th meets the n-th; what finds no partner is counted and listed, never dropped in silence.
"""

from __future__ import annotations

import difflib
import math
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from backprobe.record.state_flags import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from store.queries.history.alignment import PlacedTensor

FACTOR: Final = 10.0
"""By so much a gradient's norm must have changed to be told."""

MOST_DIFF_LINES: Final = 5_000
"""Of a file: difflib's time grows with the square of what differs."""

_FLAGS: Final = (*NAMES, "grad", "held_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One tensor in both runs, and the names of the facts that differ."""

    a: PlacedTensor
    b: PlacedTensor
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """Tensors of two runs: those in both, and those that only one has."""

    pairs: tuple[Pair, ...]
    only_a: tuple[PlacedTensor, ...]
    only_b: tuple[PlacedTensor, ...]


def lines_of(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The files as lines, without their ends."""
    return {path: text.split("\n") for path, text in texts.items()}


def align(
    a: Sequence[PlacedTensor],
    b: Sequence[PlacedTensor],
    lines_a: Mapping[str, Sequence[str]],
    lines_b: Mapping[str, Sequence[str]],
) -> Aligned:
    """Pair the tensors of two runs.

    Args:
        a: Of the one run, in order; b: of the other.
        lines_a: Its source by path; lines_b: likewise.
    """
    pairs: list[tuple[PlacedTensor, PlacedTensor]] = []
    rest_a, rest_b = list(a), list(b)
    for of in (_by_fqn, _by_line, _by_place):
        found = _paired(rest_a, rest_b, lambda one, of=of: of(one, lines_a), lambda one, of=of: of(one, lines_b))
        pairs += found
        met_a, met_b = {one.tensor for one, _ in found}, {other.tensor for _, other in found}
        rest_a = [one for one in rest_a if one.tensor not in met_a]
        rest_b = [one for one in rest_b if one.tensor not in met_b]
    ordered = sorted(pairs, key=lambda pair: pair[1].tensor)
    told = tuple(Pair(a=one, b=other, changed=_changed(one, other)) for one, other in ordered)
    return Aligned(pairs=told, only_a=tuple(rest_a), only_b=tuple(rest_b))


def _by_fqn(one: PlacedTensor, _lines: Mapping[str, Sequence[str]]) -> Hashable:
    return one.fqn


def _by_line(one: PlacedTensor, lines: Mapping[str, Sequence[str]]) -> Hashable:
    text = lines.get(one.path or "", ())
    if one.line is None or one.line > len(text):
        return None
    return (*_place(one), " ".join(text[one.line - 1].split()))


def _by_place(one: PlacedTensor, _lines: Mapping[str, Sequence[str]]) -> Hashable:
    return None if one.name is None else _place(one)


def _place(one: PlacedTensor) -> tuple[str | None, ...]:
    return one.module_call, one.path, one.function, one.name


def _paired(
    a: Iterable[PlacedTensor],
    b: Iterable[PlacedTensor],
    key_a: Callable[[PlacedTensor], Hashable],
    key_b: Callable[[PlacedTensor], Hashable],
) -> list[tuple[PlacedTensor, PlacedTensor]]:
    waiting: defaultdict[Hashable, list[PlacedTensor]] = defaultdict(list)
    for one in a:
        if (key := key_a(one)) is not None:
            waiting[key].append(one)
    for queue in waiting.values():
        queue.reverse()
    pairs: list[tuple[PlacedTensor, PlacedTensor]] = []
    for other in b:
        key = key_b(other)
        if key is not None and waiting.get(key):
            pairs.append((waiting[key].pop(), other))
    return pairs


def _changed(a: PlacedTensor, b: PlacedTensor) -> tuple[str, ...]:
    found = [name for name in _FLAGS if getattr(a, name) != getattr(b, name)]
    if _norm_changed(a.grad_norm, b.grad_norm):
        found.append("grad_norm")
    return tuple(found)


def _norm_changed(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is not b
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.isfinite(a) != math.isfinite(b)
    small, large = sorted((abs(a), abs(b)))
    return large > FACTOR * small


def tensor_json(one: PlacedTensor) -> dict[str, Any]:
    """As `PlacedTensor` says it."""
    return asdict(one)


def diffs(a: Mapping[str, str], b: Mapping[str, str]) -> list[dict[str, Any]]:
    """The files that differ, each with its unified diff; null where a file is too long for one."""
    found: list[dict[str, Any]] = []
    for path in sorted({*a, *b}):
        before, after = a.get(path, ""), b.get(path, "")
        if path in a and path in b and before == after:
            continue
        old, new = before.splitlines(), after.splitlines()
        diff = None
        if max(len(old), len(new)) <= MOST_DIFF_LINES:
            diff = "\n".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))
        found.append({"path": path, "in_a": path in a, "in_b": path in b, "diff": diff})
    return found
