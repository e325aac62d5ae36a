"""The page `/compare`: two runs beside each other, differences only, each in words; or a form that chooses two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

from flask import redirect, render_template, request
from pydantic import Field

from backprobe.show.amounts import format_bytes
from backprobe.show.operation_comparison import operation_text
from backprobe.show.plain_text import cut, plain
from service.api.runs.comparison import RunId, comparison
from service.api.runs.run_json import run_of
from service.api.runs.runs import RunsQuery, runs_page
from service.context import context
from service.dashboard.pages import blueprint
from service.dashboard.words import Prose, name, number, prose
from service.web.body import Strict, query
from service.web.parameters import Split
from store import queries
from store.runs.model import ENDED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from werkzeug.wrappers import Response as Redirect

MOST_OFFERED: Final = 20
"""Of the last runs, to be compared."""

SHOWN: Final = 40
"""Rows of a table; the others are counted."""

MOST_TICKED: Final = 50
"""Runs of which two are chosen."""

SHOWN_LINES: Final = 200
"""Of all diffs together."""


class ComparePageQuery(Strict):
    """Which two runs: `a` before, `b` after; `run`: those that are ticked in the list of runs."""

    a: RunId | None = None
    b: RunId | None = None
    run: Annotated[list[RunId], Split, Field(max_length=MOST_TICKED)] = Field(default_factory=list)


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
class OperationShown:
    """An operation, where its run has it, and in words."""

    line: int
    path: str
    text: Prose


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The page. `counts`: as the API has them. Texts are made visible, not escaped.

    Attributes:
        operations: As the API counts them.
        first: The first operation that differs in each run (None: it has no more); None: none of the compared does.
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
    operations: Mapping[str, Any]
    first: tuple[OperationShown | None, OperationShown | None] | None

    @property
    def is_equal(self) -> bool:
        """Nothing differs."""
        return not (self.new or self.fixed or self.changes or self.only_a or self.only_b or self.diffs or self.first)


@blueprint.before_request
def _two_ticked() -> Redirect | None:
    """Redirect from the runs that are ticked to two of them; ids begin with the time, so the older is before."""
    ticked = request.args.getlist("run")
    if request.endpoint != "pages.compare" or len(ticked) < 2:
        return None
    if len(ticked) > 2:
        return redirect(f"/compare?{urlencode({'run': ','.join(ticked[:MOST_TICKED])})}")
    first, second = sorted(ticked)
    return redirect(f"/compare?{urlencode({'a': first, 'b': second})}")


@blueprint.get("/compare")
@query(ComparePageQuery)
def compare(query: ComparePageQuery) -> str:
    """Show what changed between two runs; with fewer or more of them, a form that chooses two."""
    if query.a is None or query.b is None:
        return _choose_two(query)
    shown = build_compare_page(queries.as_json(comparison(query.a, query.b)))
    with context().database.read() as transaction:
        a, b = run_of(transaction, query.a), run_of(transaction, query.b)
    return render_template("compare.html", a=a, b=b, shown=shown)


def _choose_two(query: ComparePageQuery) -> str:
    """Offer the runs that were named, the newest first; where fewer than two were, the last ones as well."""
    ids = [query.a, query.b, *query.run]
    with context().database.read() as transaction:
        named = [run_of(transaction, each) for each in sorted({each for each in ids if each is not None}, reverse=True)]
    runs = [run for run in named if run.ended]
    if len(runs) < 2:
        last, _more = runs_page("page compare", RunsQuery(status=sorted(ENDED), limit=MOST_OFFERED))
        runs += [run for run in last if run.id not in {each.id for each in named}]
    before = query.a or (runs[-1].id if len(named) > 1 else runs[1].id if len(runs) > 1 else None)
    after = query.b or next((run.id for run in runs if run.id != before), None)
    return render_template("compare_choose.html", runs=runs, ticked=len(query.run), before=before, after=after)


def build_compare_page(told: Mapping[str, Any]) -> Compared:
    """Build the page of what `comparison` returns."""
    tensors, found, first = told["tensors"], told["findings"], told["operations"]["first"]
    return Compared(
        new=tuple(_finding(finding, told["b"]) for finding in found["in_b"][:SHOWN]),
        fixed=tuple(_finding(finding, told["a"]) for finding in found["in_a"][:SHOWN]),
        same=found["same"],
        changes=tuple(_change(tensor) for tensor in tensors["changes"][:SHOWN]),
        counts={key: tensors[key] for key in ("aligned", "changed", "only_a", "only_b")},
        only_a=tuple(_tensor_label(tensor) for tensor in tensors["in_a"][:SHOWN]),
        only_b=tuple(_tensor_label(tensor) for tensor in tensors["in_b"][:SHOWN]),
        diffs=tuple(_diffs(told["source"])),
        operations=told["operations"],
        first=None if first is None else (_operation(first["a"]), _operation(first["b"])),
    )


def _operation(told: Mapping[str, Any] | None) -> OperationShown | None:
    if told is None:
        return None
    return OperationShown(line=told["line"], path=name(told["path"]), text=prose(operation_text(told)))


def _finding(finding: Mapping[str, Any], run: str) -> FindingShown:
    return FindingShown(
        run=run,
        id=finding["id"],
        code=name(finding["rule"]["code"]),
        rule=name(finding["rule"]["name"]),
        level=finding["level"],
        line=finding["location"]["region"]["start_line"],
        text=prose(finding["message"].split("\n")[0]),
    )


def _change(change: Mapping[str, Any]) -> Change:
    a, b = change["a"], change["b"]
    facts = tuple((fact.replace("_", " "), _fact(fact, a[fact]), _fact(fact, b[fact])) for fact in change["changed"])
    return Change(name=_tensor_label(b), tensor_a=a["tensor"], tensor_b=b["tensor"], line=b["line"], facts=facts)


def _fact(fact: str, value: Any) -> str:
    if fact == "held_bytes":
        return format_bytes(value)
    return name(number(value)) if isinstance(value, float) else name(str(value))


def _tensor_label(tensor: Mapping[str, Any]) -> str:
    return name(tensor["fqn"] or tensor["name"]) or f"tensor {tensor['tensor']}"


def _diffs(files: list[dict[str, Any]]) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    left = SHOWN_LINES
    for file in files:
        if file["diff"] is None:
            yield name(file["path"]), (("place", "too long to be compared line by line"),)
            continue
        lines = [_line(line) for line in file["diff"].split("\n")[2:]][:left]
        left -= len(lines)
        yield name(file["path"]), tuple(lines)


def _line(line: str) -> tuple[str, str]:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "same")
    return kind, cut(plain(line[1:] if kind != "place" else line, tab="\t"), 400)
