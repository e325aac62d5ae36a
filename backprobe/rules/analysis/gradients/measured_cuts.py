"""What a check of gradients measured of a mistake that another rule names: how much of the loss's dependence it takes.

    penalty = w.data.abs().sum()     BP601 says: its gradient is meant, and the graph ends here
    (loss + penalty).backward()      the check says of w: 1.2 by small changes, 0.3 arrives, held at this cut 0.3

The check alone cannot say of a cut, or of a hook, that it is not meant: targets and baselines look the same. Rules that
say so declare that they explain `gradient-not-derivative`; what they find at a place that the check measured gets the
numbers, and the rows of the check are then those of a mistake (`checked_rows`).
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import tree_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import GradientCheck, Record, Site
    from backprobe.rules.framework.finding import Finding
    from backprobe.rules.framework.rule import Rule

EXPLAINED: Final = "gradient-not-derivative"
ROWS: Final = "checked_rows"
"""Of a finding's evidence: numbers of the rows of `gradient_checks` that it explains."""

_MOST_ROWS: Final = 128
_WRONG: Final = ("cut", "factor", "differs")
_SCOPES: Final = (ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef)


def measured(record: Record, findings: Sequence[Finding], rules: Iterable[Rule]) -> list[Finding]:
    """The findings, with what was measured of their mistakes."""
    if not record.gradient_checks:
        return list(findings)
    explaining = {rule.name for rule in rules if EXPLAINED in rule.explains}
    loud = [one for one in findings if one.rule.name in explaining and one.level != "note"]
    rows: defaultdict[int, list[GradientCheck]] = defaultdict(list)
    for row in record.gradient_checks:
        for finding in _causes(record, row, loud):
            rows[id(finding)].append(row)
    return [_with_rows(record, one, rows[id(one)]) if id(one) in rows else one for one in findings]


def _causes(record: Record, row: GradientCheck, findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings that stand where the dependence on a row's tensor is cut, or where its gradient is changed."""
    if row.verdict not in _WRONG or not (row.explained_by is not None or row.cause == "cut"):
        return
    numbers = {one.site for one in row.cuts if one.site is not None} | ({row.site} - {None})
    places = [lookup(record).sites[number] for number in numbers if number is not None]
    here = [one for one in findings if any(_stands_at(record, one, place) for place in places)]
    yield from here or [one for one in findings if row.cuts and _surrounds(record, one, row)]


def _stands_at(record: Record, finding: Finding, place: Site) -> bool:
    """On the line of the place, on the `with` or the decorator around it, or in the function that the place defines.

    A finding at the call of a helper has the place among its related locations.
    """
    path = lookup(record).sources[place.source].path
    if any((other.location.path, other.location.region.start_line) == (path, place.line) for other in finding.related):
        return True
    if path != finding.location.path:
        return False
    line = finding.location.region.start_line
    if line <= place.line <= finding.location.region.end_line:
        return True
    return any(
        (first == line and place.line <= last) or (first == place.line and line <= last)
        for first, last in _scopes(record).get(place.source, ())
    )


@table
def _scopes(record: Record) -> dict[int, list[tuple[int, int]]]:
    """First and last lines of `with` blocks and functions, decorators included, by source."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for site in {one.source: one for one in record.sites}.values():
        tree = tree_of(record, site)
        for node in tree.nodes if tree is not None else ():
            if isinstance(node, _SCOPES):
                decorators = [] if isinstance(node, ast.With | ast.AsyncWith) else node.decorator_list
                for first in (node.lineno, *(one.lineno for one in decorators)):
                    found[site.source].append((first, node.end_lineno or node.lineno))
    return dict(found)


def _surrounds(record: Record, finding: Finding, row: GradientCheck) -> bool:
    """It stands at a `with` or a decorator of a step's own backward call: the cut lies in a function called there."""
    line = finding.location.region.start_line
    sources = {one.source for one in record.sources if one.path == finding.location.path}
    if not any(first == line for source in sources for first, _last in _scopes(record).get(source, ())):
        return False
    calls = {number for kind, number in finding.subject.facts if kind == "call"}
    until = row.moment if row.moment is not None else 0
    before = [one.call for one in record.backward_calls if one.moment_before <= until]
    return bool(calls.intersection(before[-1:]))


def _with_rows(record: Record, finding: Finding, rows: Sequence[GradientCheck]) -> Finding:
    numbers = [row.n for row in rows][:_MOST_ROWS]
    most = max(rows, key=lambda row: abs((row.numeric or 0.0) - (row.used or 0.0)))
    whose = together(record, [most.tensor] if most.tensor is not None else [])
    used = "none of it" if most.used is None else f"{most.used:.4g}"
    told = (
        f"A check of gradients measured it: along one direction of {whose} the loss changes by {most.numeric or 0:.4g}"
    )
    lines = finding.message.split("\n")
    lines[min(1, len(lines) - 1)] += f" {told}, and the step uses {used}."
    evidence = {**finding.evidence, ROWS: numbers, "derivative": most.numeric, "used": most.used}
    if most.frozen is not None:
        evidence["derivative_with_cuts_held"] = most.frozen
    return msgspec.structs.replace(finding, message="\n".join(lines), evidence=evidence)


def checked_rows(findings: Iterable[Finding]) -> dict[int, Finding]:
    """By the number of a row of `gradient_checks` the finding that names its mistake."""
    found: dict[int, Finding] = {}
    for finding in findings:
        numbers = finding.evidence.get(ROWS)
        for number in numbers if isinstance(numbers, list | tuple) else ():
            if isinstance(number, int):
                found.setdefault(number, finding)
    return found
