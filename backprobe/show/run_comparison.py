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
    """Split the files into lines, without their ends."""
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
    known_b = {tensor.tensor: tensor for tensor in b}
    called = same_files(lines_a, lines_b)
    rest_b = [replace(tensor, path=called.get(tensor.path or "", tensor.path)) for tensor in rest_b]
    lines_b = {called.get(path, path): lines for path, lines in lines_b.items()}
    for of in (_by_fqn, _by_line, _by_place):
        found = _pair_tensors(
            rest_a, rest_b, lambda tensor, of=of: of(tensor, lines_a), lambda tensor, of=of: of(tensor, lines_b)
        )
        pairs += found
        met_a, met_b = {first.tensor for first, _ in found}, {other.tensor for _, other in found}
        rest_a = [tensor for tensor in rest_a if tensor.tensor not in met_a]
        rest_b = [tensor for tensor in rest_b if tensor.tensor not in met_b]
    ordered = sorted(pairs, key=lambda pair: pair[1].tensor)
    told = tuple(
        Pair(a=first, b=known_b[other.tensor], changed=_list_changed_facts(first, other)) for first, other in ordered
    )
    return Aligned(pairs=told, only_a=tuple(rest_a), only_b=tuple(known_b[tensor.tensor] for tensor in rest_b))


def same_files(a: Mapping[str, Sequence[str]], b: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Map the names of the other run's files to this run's, where they differ: by equal lines, or if one is left."""
    rest_a, rest_b = (
        {path: [*a[path]] for path in a if path not in b},
        {path: [*b[path]] for path in b if path not in a},
    )
    found: dict[str, str] = {}
    for path, lines in rest_b.items():
        same = next((path for path, text in rest_a.items() if text == lines), None)
        if same is not None:
            found[path] = same
            del rest_a[same]
    left = [path for path in rest_b if path not in found]
    if len(left) == len(rest_a) == 1:
        found[left[0]] = next(iter(rest_a))
    return found


def fingerprints_as_called(findings: Iterable[Finding], called: Mapping[str, str]) -> list[str]:
    """Compute the fingerprints of findings under other names of their files, as `same_files` maps them."""
    moved = (
        replace_fields(
            finding,
            location=replace_fields(finding.location, path=called.get(finding.location.path, finding.location.path)),
        )
        for finding in findings
    )
    return [with_fingerprint.fingerprint for with_fingerprint in with_fingerprints(moved)]


def placed_tensors(record: Record) -> tuple[PlacedTensor, ...]:
    """List the tensors of a record that have a name, in order."""
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
                value_norm=_last_norm(state.value for state in seen),
                grad_norm=_last_norm(state.grad_stats for state in seen),
                held_bytes=held.get(row.tensor, 0),
            )
        )  # fmt: skip
    return tuple(found)


def _last_norm(measured: Iterable[Statistics | None]) -> float | None:
    norms = [statistics.norm for statistics in measured if statistics is not None and statistics.norm is not None]
    return norms[-1] if norms else None


def _by_fqn(placed_tensor: PlacedTensor, _lines: Mapping[str, Sequence[str]]) -> Hashable:
    return placed_tensor.fqn


def _by_line(placed_tensor: PlacedTensor, lines: Mapping[str, Sequence[str]]) -> Hashable:
    text = lines.get(placed_tensor.path or "", ())
    if placed_tensor.line is None or placed_tensor.line > len(text):
        return None
    return (*_place(placed_tensor), " ".join(text[placed_tensor.line - 1].split()))


def _by_place(placed_tensor: PlacedTensor, _lines: Mapping[str, Sequence[str]]) -> Hashable:
    return None if placed_tensor.name is None else _place(placed_tensor)


def _place(placed_tensor: PlacedTensor) -> tuple[str | None, ...]:
    return placed_tensor.module_call, placed_tensor.path, placed_tensor.function, placed_tensor.name


def _pair_tensors(
    a: Iterable[PlacedTensor],
    b: Iterable[PlacedTensor],
    key_a: Callable[[PlacedTensor], Hashable],
    key_b: Callable[[PlacedTensor], Hashable],
) -> list[tuple[PlacedTensor, PlacedTensor]]:
    waiting: defaultdict[Hashable, list[PlacedTensor]] = defaultdict(list)
    for tensor in a:
        if (key := key_a(tensor)) is not None:
            waiting[key].append(tensor)
    for queue in waiting.values():
        queue.reverse()
    pairs: list[tuple[PlacedTensor, PlacedTensor]] = []
    for other in b:
        key = key_b(other)
        if key is not None and waiting.get(key):
            pairs.append((waiting[key].pop(), other))
    return pairs


def _list_changed_facts(a: PlacedTensor, b: PlacedTensor) -> tuple[str, ...]:
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
    """Count the tensors of each kind, and list the first `most`."""
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
        "in_a": [tensor_json(tensor) for tensor in both.only_a[:most]],
        "in_b": [tensor_json(tensor) for tensor in both.only_b[:most]],
    }


def tensor_json(placed_tensor: PlacedTensor) -> dict[str, Any]:
    """As `PlacedTensor` says it."""
    return asdict(placed_tensor)


def diffs(a: Mapping[str, str], b: Mapping[str, str]) -> list[dict[str, Any]]:
    """List the files that differ, each with its unified diff; null where a file is too long for one."""
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
