"""Two runs laid beside each other: tensors aligned by module call and source, their values, the diff of the source.

0. A file that one run calls otherwise is the same file if its text is, or if each run has one that the other has not.
1. A pair is made once, by the most that both have in common: the fqn; then module call, function, name and the text of
   the line; then the same without the text, so that a line that was edited still finds its partner.
2. Among equals the n-th meets the n-th; what finds no partner is counted and listed, never dropped in silence.
3. Values are compared by their norms, with a tolerance: of two runs that differ by rounding none has changed.
"""

from __future__ import annotations

import difflib
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace as replace_fields

from backprobe.record.rows.tensors import Grad
from backprobe.record.state_flags import NAMES
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding import with_fingerprints
from backprobe.show.tensor_table import name_of

if TYPE_CHECKING:
    from backprobe.record import Record, Statistics
    from backprobe.rules.framework.finding import Finding

TOLERANCE: Final = 1e-3
"""By so much of itself a norm may differ: float32 sums of a million terms in another order differ by about 1e-5."""

MOST_DIFF_LINES: Final = 5_000
"""Of a file: difflib's time grows with the square of what differs."""

_FLAGS: Final = (*NAMES, "grad", "held_bytes")
_NORMS: Final = ("value_norm", "grad_norm")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedTensor:
    """A tensor, where it was made, and its last state.

    Attributes:
        module_call: The calls of modules that it was made in, `h.3.attn#0`; None: in none.
        path, line, function: Of the statement where it was first seen; None: at none.
        is_leaf, requires_grad, retains_grad, grad: None: no snapshot of it was taken.
        value_norm, grad_norm: The last ones measured; None: none was.
    """

    tensor: int
    name: str | None
    fqn: str | None
    module_call: str | None
    path: str | None
    line: int | None
    function: str | None
    is_leaf: bool | None
    requires_grad: bool | None
    retains_grad: bool | None
    grad: Grad | None
    grad_norm: float | None
    held_bytes: int
    value_norm: float | None = None


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
    known_b = {one.tensor: one for one in b}
    called = same_files(lines_a, lines_b)
    rest_b = [replace(one, path=called.get(one.path or "", one.path)) for one in rest_b]
    lines_b = {called.get(path, path): lines for path, lines in lines_b.items()}
    for of in (_by_fqn, _by_line, _by_place):
        found = _paired(rest_a, rest_b, lambda one, of=of: of(one, lines_a), lambda one, of=of: of(one, lines_b))
        pairs += found
        met_a, met_b = {one.tensor for one, _ in found}, {other.tensor for _, other in found}
        rest_a = [one for one in rest_a if one.tensor not in met_a]
        rest_b = [one for one in rest_b if one.tensor not in met_b]
    ordered = sorted(pairs, key=lambda pair: pair[1].tensor)
    told = tuple(Pair(a=one, b=known_b[other.tensor], changed=_changed(one, other)) for one, other in ordered)
    return Aligned(pairs=told, only_a=tuple(rest_a), only_b=tuple(known_b[one.tensor] for one in rest_b))


def same_files(a: Mapping[str, Sequence[str]], b: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What the one run calls a file of the other, where the names differ: by its lines, or as the only one left."""
    rest_a, rest_b = (
        {path: [*a[path]] for path in a if path not in b},
        {path: [*b[path]] for path in b if path not in a},
    )
    found: dict[str, str] = {}
    for path, lines in rest_b.items():
        same = next((one for one, text in rest_a.items() if text == lines), None)
        if same is not None:
            found[path] = same
            del rest_a[same]
    left = [path for path in rest_b if path not in found]
    if len(left) == len(rest_a) == 1:
        found[left[0]] = next(iter(rest_a))
    return found


def fingerprints_as_called(findings: Iterable[Finding], called: Mapping[str, str]) -> list[str]:
    """The fingerprints that findings have under other names of their files, as `same_files` tells them."""
    moved = (
        replace_fields(
            one, location=replace_fields(one.location, path=called.get(one.location.path, one.location.path))
        )
        for one in findings
    )
    return [one.fingerprint for one in with_fingerprints(moved)]


def placed_tensors(record: Record) -> tuple[PlacedTensor, ...]:
    """The tensors of a record that have a name, in order."""
    index, held = lookup(record), {row.root: row.held_bytes for row in record.retentions}
    modules = {row.module: row.fqn or row.binding or row.cls for row in record.modules}
    calls = {row.module_call: f"{modules[row.module]}#{row.k}" for row in record.module_calls}
    found: list[PlacedTensor] = []
    for row in record.tensors:
        name, seen = name_of(index, row.tensor), index.snapshots_of[row.tensor]
        if name is None:
            continue
        site, last = index.sites.get(-1 if row.site is None else row.site), seen[-1] if seen else None
        moment = index.moments.get(row.moment)
        found.append(
            PlacedTensor(
                tensor=row.tensor, name=name, fqn=row.fqn,
                module_call=None if moment is None or moment.module_call is None else calls.get(moment.module_call),
                path=None if site is None else index.sources[site.source].path,
                line=None if site is None else site.line, function=None if site is None else site.function,
                is_leaf=None if last is None else last.is_leaf,
                requires_grad=None if last is None else last.requires_grad,
                retains_grad=None if last is None else last.retains_grad, grad=None if last is None else last.grad,
                value_norm=_last_norm(one.value for one in seen), grad_norm=_last_norm(one.grad_stats for one in seen),
                held_bytes=held.get(row.tensor, 0),
            )
        )  # fmt: skip
    return tuple(found)


def _last_norm(measured: Iterable[Statistics | None]) -> float | None:
    norms = [one.norm for one in measured if one is not None and one.norm is not None]
    return norms[-1] if norms else None


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
    return (*found, *(name for name in _NORMS if not is_close(getattr(a, name), getattr(b, name))))


def is_close(a: float | None, b: float | None) -> bool:
    """Two measured values are equal but for rounding; NaN equals NaN, and nothing measured only itself."""
    if a is None or b is None:
        return a is b
    if not (math.isfinite(a) and math.isfinite(b)):
        return repr(a) == repr(b)
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-12)


def tensors_json(both: Aligned, most: int) -> dict[str, Any]:
    """Counts, and the first `most` of each kind."""
    changed = [pair for pair in both.pairs if pair.changed]
    return {
        "aligned": len(both.pairs),
        "changed": len(changed),
        "only_a": len(both.only_a),
        "only_b": len(both.only_b),
        "changes": [
            {"a": tensor_json(pair.a), "b": tensor_json(pair.b), "changed": list(pair.changed)}
            for pair in changed[:most]
        ],
        "in_a": [tensor_json(one) for one in both.only_a[:most]],
        "in_b": [tensor_json(one) for one in both.only_b[:most]],
    }


def tensor_json(one: PlacedTensor) -> dict[str, Any]:
    """As `PlacedTensor` says it."""
    return asdict(one)


def diffs(a: Mapping[str, str], b: Mapping[str, str]) -> list[dict[str, Any]]:
    """The files that differ, each with its unified diff; null where a file is too long for one."""
    called = same_files(lines_of(a), lines_of(b))
    b = {called.get(path, path): text for path, text in b.items()}
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
