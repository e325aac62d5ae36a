"""What the page `/compare` shows: two runs beside each other, differences only, each in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from backprobe.show.amounts import sized
from backprobe.show.plain_text import cut, plain
from service.api.runs.comparison import RunId
from service.dashboard.words import Prose, name, number, prose
from service.web.body import Strict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHOWN: Final = 40
"""Rows of a table; the others are counted."""

SHOWN_LINES: Final = 200
"""Of all diffs together."""


class ComparePageQuery(Strict):
    """Which two runs: `a` before, `b` after."""

    a: RunId | None = None
    b: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingShown:
    """A finding that only one of them has."""

    run: str
    id: str
    code: str
    rule: str
    level: str
    line: int
    text: Prose


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A tensor whose facts differ: (fact, before, after) of each."""

    name: str
    tensor_a: int
    tensor_b: int
    line: int | None
    facts: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The page. `counts`: as the API has them. Texts are made visible, not escaped.

    Attributes:
        diffs: Of each file that differs its path and its lines as (kind, text); kind is added, removed, place or same.
        only_a, only_b: Names of tensors without a partner.
    """

    new: tuple[FindingShown, ...]
    fixed: tuple[FindingShown, ...]
    same: int
    changes: tuple[Change, ...]
    counts: Mapping[str, int]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    diffs: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]

    @property
    def is_equal(self) -> bool:
        """Nothing differs."""
        return not (self.new or self.fixed or self.changes or self.only_a or self.only_b or self.diffs)


def compared(told: Mapping[str, Any]) -> Compared:
    """The page of what `comparison` tells."""
    tensors, found = told["tensors"], told["findings"]
    return Compared(
        new=tuple(_finding(one, told["b"]) for one in found["in_b"][:SHOWN]),
        fixed=tuple(_finding(one, told["a"]) for one in found["in_a"][:SHOWN]),
        same=found["same"],
        changes=tuple(_change(one) for one in tensors["changes"][:SHOWN]),
        counts={key: tensors[key] for key in ("aligned", "changed", "only_a", "only_b")},
        only_a=tuple(_named(one) for one in tensors["in_a"][:SHOWN]),
        only_b=tuple(_named(one) for one in tensors["in_b"][:SHOWN]),
        diffs=tuple(_diffs(told["source"])),
    )


def _finding(one: Mapping[str, Any], run: str) -> FindingShown:
    return FindingShown(
        run=run,
        id=one["id"],
        code=name(one["rule"]["code"]),
        rule=name(one["rule"]["name"]),
        level=one["level"],
        line=one["location"]["region"]["start_line"],
        text=prose(one["message"].split("\n")[0]),
    )


def _change(one: Mapping[str, Any]) -> Change:
    a, b = one["a"], one["b"]
    facts = tuple((fact.replace("_", " "), _fact(fact, a[fact]), _fact(fact, b[fact])) for fact in one["changed"])
    return Change(name=_named(b), tensor_a=a["tensor"], tensor_b=b["tensor"], line=b["line"], facts=facts)


def _fact(fact: str, value: Any) -> str:
    if fact == "held_bytes":
        return sized(value)
    return name(number(value)) if isinstance(value, float) else name(str(value))


def _named(one: Mapping[str, Any]) -> str:
    return name(one["fqn"] or one["name"]) or f"tensor {one['tensor']}"


def _diffs(files: list[dict[str, Any]]) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    left = SHOWN_LINES
    for one in files:
        if one["diff"] is None:
            yield name(one["path"]), (("place", "too long to be compared line by line"),)
            continue
        lines = [_line(line) for line in one["diff"].split("\n")[2:]][:left]
        left -= len(lines)
        yield name(one["path"]), tuple(lines)


def _line(line: str) -> tuple[str, str]:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "same")
    return kind, cut(plain(line[1:] if kind != "place" else line, tab="\t"), 400)
