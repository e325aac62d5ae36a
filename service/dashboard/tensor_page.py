"""The page of one tensor: why its gradient is as it is, in sentences with lines; and its life, moment by moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from backprobe.record.state_flags import NAMES
from backprobe.show.amounts import count_noun, format_bytes, format_shape
from backprobe.show.plain_text import cut, plain
from service.dashboard.signs import Sign, sign_of
from service.dashboard.words import Prose, name, number, prose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from store.queries import ArrivedRow, SnapshotRow, TensorFull
    from store.queries.tensors.tensor_answers import SmallValueRow

MOST_EVENTS: Final = 60
MOST_ELEMENTS: Final = 8
LISTED: Final = 1000
"""Snapshots that `queries.tensor` reads at most."""

_KINDS: Final = {
    "after-statement": "after the statement",
    "before-backward": "before backward call",
    "after-backward": "after backward call",
    "optimizer-step": "at an optimizer step",
    "end": "at the end",
}
_FLAGS: Final = (*NAMES, "grad", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One step of the story; path, line: where it happened, None where that is not known."""

    text: Prose
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One moment of its life at which something of it changed."""

    moment: int
    when: str
    step: int
    line: int | None
    text: str
    norm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorShown:
    """The page. `more_events`: changes beyond those listed. `cut_off`: snapshots beyond those that were read."""

    tensor: int
    title: str
    is_named: bool
    sign: Sign
    facts: tuple[tuple[str, str], ...]
    chain: tuple[Sentence, ...]
    events: tuple[Event, ...]
    more_events: int
    cut_off: bool
    holders: tuple[str, ...]
    values: tuple[tuple[str, str], ...]


def tensor_shown(full: TensorFull) -> TensorShown:
    """Build the page of what `queries.tensor` found. Texts are made visible, not escaped."""
    row = full.tensor
    state = row.state
    events = list(_events(full.snapshots))
    return TensorShown(
        tensor=row.tensor,
        title=name(row.name or row.fqn) or f"tensor {row.tensor}",
        is_named=bool(row.name or row.fqn),
        sign=sign_of(
            is_leaf=None if state is None else state.is_leaf,
            requires_grad=None if state is None else state.requires_grad,
            retains_grad=None if state is None else state.retains_grad,
            grad=None if state is None else state.grad,
            grad_norm=row.grad_norm,
        ),
        facts=tuple(_facts(full)),
        chain=tuple(_chain(full)),
        events=tuple(events[:MOST_EVENTS]),
        more_events=max(0, len(events) - MOST_EVENTS),
        cut_off=len(full.snapshots) >= LISTED,
        holders=_holders(full),
        values=tuple((of, cut(plain(_elements(value)), 300)) for of, value in _last_values(full).items()),
    )


def _facts(full: TensorFull) -> Iterator[tuple[str, str]]:
    row = full.tensor
    yield "shape", format_shape(row.shape)
    yield "dtype", name(row.dtype.removeprefix("torch."))
    yield "device", name(row.device)
    yield "size", format_bytes(row.bytes)
    if row.fqn:
        yield "name in the model", name(row.fqn)
    if row.role:
        yield "role", row.role
    if row.view_of is not None:
        yield "view of", f"tensor {row.view_of}"
    if row.state is not None and row.state.version is not None:
        yield "version", str(row.state.version)
    if row.grad_norm is not None:
        yield "gradient's norm", number(row.grad_norm)
    if row.value_norm is not None:
        yield "value's norm", number(row.value_norm)
    if row.nonfinite:
        yield "NaN or Inf seen", count_noun(row.nonfinite, "element")
    if len(row.bindings) > 1:
        yield "all names", cut(name(", ".join(row.bindings)), 200)


def _chain(full: TensorFull) -> Iterator[Sentence]:
    """Made, named, changed, held for backward, and what became of its gradient."""
    row = full.tensor
    yield _describe_creation(full)
    for bound in full.bindings[1:4]:
        yield _build_sentence(f"It is called `{name(bound.name)}` too.", bound.path, bound.line)
    for change in full.inplace_events[:4]:
        how = f"version {change.version_before} became {change.version_after}"
        yield _build_sentence(f"It was changed in place by {name(change.done_by)}: {how}.", change.path, change.line)
    savers = {(saver.type, saver.line) for saver in full.saved_by}
    for kind, line in sorted(savers, key=str)[:3]:
        yield _build_sentence(f"`{name(kind)}` keeps it for the backward call.", row.path, line)
    if row.why_none is not None and (row.state is None or row.state.grad != "present"):
        yield _build_sentence(f"Its `.grad` is None: {plain(row.why_none.text)}.", row.path, row.why_none.line)
        if full.arrived:
            yield _build_sentence(f"A gradient came to it all the same{_came(full.arrived[-1])}.", None, None)
    elif row.state is not None and row.state.grad == "present":
        size = "" if row.grad_norm is None else f", with the norm {number(row.grad_norm)}"
        yield _build_sentence(f"Its `.grad` is there{size}.", None, None)


def _came(last: ArrivedRow) -> str:
    where = f", last in backward call {last.backward_call + 1}"
    if last.nan or last.inf:
        return f"{where}, with {count_noun(last.nan + last.inf, 'element that is', 'elements that are')} NaN or Inf"
    return where if last.norm is None else f"{where}, with the norm {number(last.norm)}"


def _describe_creation(full: TensorFull) -> Sentence:
    row = full.tensor
    state = row.state
    what = "It" if state is None else "This leaf" if state.is_leaf else "This tensor, which is not a leaf,"
    how = f" by `{name(row.created.how)}`" if row.created.how else ""
    by = {"library": " in a library", "unknown": ""}.get(row.created.by, "")
    return _build_sentence(f"{what} was made{how}{by}.", row.path, row.line)


def _build_sentence(text: str, path: str | None, line: int | None) -> Sentence:
    return Sentence(text=prose(text), path=path if line is not None else None, line=line)


def _events(snapshots: Sequence[SnapshotRow]) -> Iterator[Event]:
    """Yield the snapshots at which a flag, the version or the state of the gradient changed."""
    before: SnapshotRow | None = None
    for now in snapshots:
        changed = [flag for flag in _FLAGS if before is None or getattr(now, flag) != getattr(before, flag)]
        if changed:
            shown: dict[str, Any] = {flag: getattr(now, flag) for flag in changed}
            yield Event(
                moment=now.moment,
                when=_when(now),
                step=now.step,
                line=now.line,
                text=", ".join(_flag(flag, value) for flag, value in shown.items() if value is not None),
                norm=number(now.grad_stats.norm) if now.grad_stats is not None and now.grad == "present" else "",
            )
        before = now


def _when(row: SnapshotRow) -> str:
    words = _KINDS.get(row.kind, row.kind)
    return f"{words} {row.k + 1}" if row.kind.endswith("backward") else words


def _flag(flag: str, value: object) -> str:
    if flag == "grad":
        return {"present": "grad is there", "none": "grad None", "not-read": "grad not read"}.get(
            str(value), str(value)
        )
    return f"{flag}={value}"


def _holders(full: TensorFull) -> tuple[str, ...]:
    last = next((row for row in reversed(full.holders) if row.holders), None)
    if last is None:
        return ()
    who = ", ".join(plain(holder) for holder in last.holders[:4])
    return (f"{count_noun(last.held_nodes, 'node')} and {format_bytes(last.held_bytes)} are kept by {cut(who, 300)}",)


def _last_values(full: TensorFull) -> dict[str, Any]:
    words = {"value": "value", "grad": "gradient", "arrived": "gradient that arrived"}
    return {words.get(value.of, value.of): value for value in full.values}


def _elements(value: SmallValueRow) -> str:
    """Write the first elements as people read numbers, and how many there are."""
    if not value.shape:
        return _element(value.elements)
    kept = list(_flat(value.elements, len(value.shape)))
    shown = ", ".join(map(_element, kept[:MOST_ELEMENTS]))
    return f"[{shown}, …] ({len(kept)} elements)" if len(kept) > MOST_ELEMENTS else f"[{shown}]"


def _flat(elements: Any, deep: int) -> Iterator[Any]:
    if deep == 0:
        yield elements
        return
    for element in elements:
        yield from _flat(element, deep - 1)


def _element(value: Any) -> str:
    """Write a number; a complex one from its two parts, one that JSON has no number for as its word."""
    if isinstance(value, list):
        return " + ".join(map(_element, value)) + "i"
    return number(float(value)) if isinstance(value, str) else number(value)
