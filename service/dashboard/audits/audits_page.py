"""The pages `/audits` and `/audits/ID`: audits, and of one its programs by rules and what changed since the last."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

from flask import render_template, request
from pydantic import Field

from service.api.audits.audit_lists import AuditsQuery, audits_asked
from service.api.audits.audit_matrix import columns_of, has_match
from service.api.audits.audit_views import item_batches
from service.api.audits.audits import audit_of
from service.api.runs.run_json import run_of
from service.context import context
from service.dashboard.cards import Card, card
from service.dashboard.inbox.inbox_filters import Unreadable, read_level, read_rule
from service.dashboard.pages import blueprint
from service.dashboard.run_page import Texts
from service.problems.errors import Problem
from service.web.body import query
from service.web.parameters import Page
from service.web.printable_text import is_printable
from service.web.reply import next_address, read_cursor
from store.access import projects
from store.audits import items as audit_items
from store.audits import judging, previous
from store.audits.policy import VERDICTS
from store.findings import findings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.audits.audits import Audit
    from store.audits.items import ItemRow
    from store.audits.policy import Cell, Rules
    from store.audits.previous import RuleChanges
    from store.database.session import Transaction
    from store.runs.model import RunRow

_LISTING: Final = "page audits"

ITEMS: Final = 100
"""Programs on one page of the table."""

MOST_IN_ISLAND: Final = 2_000
"""Programs of an audit that a script loads at once."""

MOST_CARDS: Final = 20
"""Findings of a cell; the page of the run has the others."""

_CELL: Final = re.compile(r"([0-9]{1,9})\.([a-z0-9-]{1,64})")

_Typed = Annotated[str, Field(max_length=2000)]


class AuditPageQuery(Page):
    """Which part of an audit's page, as typed.

    Attributes:
        cell: Place of a program, a dot, and a rule, whose findings are shown.
    """

    level: _Typed = ""
    rule: _Typed = ""
    file: _Typed = ""
    cell: _Typed = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFilter:
    """What the matrix is narrowed to; None lets all pass."""

    level: str | None = None
    rule: str | None = None
    file: str | None = None

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the level as a list."""
        return () if self.level is None else (self.level,)

    @property
    def needs_match(self) -> bool:
        """Whether programs of which no such rule says something are left out."""
        return self.level is not None or self.rule is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A program as a row: its cells by rule, and `else_word` where a rule has none ("": it passed)."""

    item: ItemRow
    cells: Mapping[str, Cell]
    else_word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellShown:
    """The findings of one rule in one program; `has_more`: its run has more of them than are shown."""

    item: ItemRow
    rule: str
    run: RunRow
    cards: Sequence[Card]
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What became of findings since the audit before."""

    before: Audit
    rules: Sequence[RuleChanges]
    new: int
    fixed: int
    unchanged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditShown:
    """The page of one audit.

    Attributes:
        project: Its name. counts: Programs by verdict, those that have none left out; empty: it is not judged.
        lines: Some of its programs, worst first. columns: Rules that say something of them, most findings first.
        rules: Of its policy. more: address of the next programs; None: these were the last.
        later: These are not the first. changes: None: there is no audit before.
        cell: None: no cell was chosen, or it has no findings. matrix: Address that the island asks; None: too many.
    """

    audit: Audit
    project: str
    counts: tuple[tuple[str, int], ...]
    rules: Rules
    lines: tuple[Line, ...]
    columns: tuple[str, ...]
    more: str | None
    later: bool
    changes: Changes | None
    cell: CellShown | None
    matrix: str | None


@blueprint.get("/audits")
@query(AuditsQuery)
def audits_list(query: AuditsQuery) -> str:
    """Show the audits, newest first."""
    page, more = _audits(query)
    return render_template(
        "audits.html",
        audits=page,
        more=more,
        later=query.cursor is not None,
        asked=query,
        filtered=bool(set(request.args) - {"cursor", "limit"}),
        origin=request.host_url.rstrip("/"),
    )


@blueprint.get("/audits/<audit>")
@query(AuditPageQuery)
def audit(audit: str, query: AuditPageQuery) -> tuple[str, int]:
    """Show one audit; a filter that cannot be read leaves the form as it was typed, and the matrix whole."""
    try:
        which, fault = _read_filter(query), None
    except Unreadable as unreadable:
        which, fault = MatrixFilter(), unreadable
    facts: dict[str, Any] = {
        "asked": query,
        "filtered": bool(query.level or query.rule or query.file),
        "fault": fault,
        "most": MOST_IN_ISLAND,
        "here": f"/audits/{audit}?{''.join(f'{pair}&' for pair in _filters_of_address())}",
    }
    shown = _load_audit_page(audit, query, which)
    return render_template("audit.html", shown=shown, **facts), 200 if fault is None else 422


def _filters_of_address() -> list[str]:
    """Return the parameters of the address that decide which cells are shown, quoted."""
    return [urlencode({name: value}) for name, value in request.args.items() if name != "cell"]


def _audits(query: AuditsQuery) -> tuple[Sequence[Audit], str | None]:
    """Load some audits, and the address of the next page."""
    items, following = audits_asked(_LISTING, query)
    return items, next_address(_LISTING, query, None if following is None else list(following))


def _read_filter(typed: AuditPageQuery) -> MatrixFilter:
    """Read what was typed.

    Raises:
        Unreadable: naming the first filter that cannot be read.
    """
    level, rule, file = typed.level.strip().lower(), typed.rule.strip().replace("_", "-"), typed.file.strip()
    if len(file) > 200 or not is_printable(file):
        raise Unreadable("file", "Type at most 200 printable characters.")
    return MatrixFilter(
        level=read_level(level) if level else None, rule=read_rule(rule) if rule else None, file=file or None
    )


def _load_audit_page(public_id: str, query: AuditPageQuery, which: MatrixFilter) -> AuditShown:
    """Load what the page of an audit shows.

    Raises:
        Problem: `not-found`.
    """
    listing = f"{public_id[:40]} page items"
    after = read_cursor(listing, query)
    with context().database.read() as transaction:
        found = audit_of(transaction, public_id)
        rules, known = judging.rules_for(transaction, found), judging.known_to(transaction, found)
        cell = _load_cell(transaction, found, rules, known, query.cell)
        changes = _load_changes(transaction, found)
        project_names = projects.names(transaction, [found.project], tenant_id=found.tenant_id)
    rows = _load_rows(found, rules, known, which, after[0] if after else -1)
    items = judging.worst_first(rows[:ITEMS])
    last = found.verdicts[-1] if found.verdicts else None
    counted = {} if last is None else last.counts["items"]
    return AuditShown(
        audit=found,
        project=project_names.get(found.project, found.project),
        counts=tuple((word, counted[word]) for word in VERDICTS if counted.get(word)),
        rules=rules,
        lines=tuple(_line(item) for item in items),
        columns=_order_columns(items, which),
        more=next_address(listing, query, [rows[ITEMS - 1].n] if len(rows) > ITEMS else None),
        later=after is not None,
        changes=changes,
        cell=cell,
        matrix=_matrix_address(found, which) if found.items <= MOST_IN_ISLAND else None,
    )


def _load_rows(found: Audit, rules: Rules, known: frozenset[str], which: MatrixFilter, after: int) -> list[ItemRow]:
    """Load the programs of a page and one more, if there is one."""
    candidates = audit_items.ItemFilter(name_part=which.file, rule=which.rule, level=which.levels)
    chosen: list[ItemRow] = []
    for rows in item_batches(context().database, found, rules, known, which=candidates, after=after):
        chosen += [row for row in rows if not which.needs_match or has_match(row, which.rule, which.levels)]
        if len(chosen) > ITEMS:
            break
    return chosen[: ITEMS + 1]


def _line(item: ItemRow) -> Line:
    word = "to come" if item.verdict is None else "" if item.ruleset is not None else "not run"
    return Line(item=item, cells={cell.rule: cell for cell in item.cells}, else_word=word)


def _order_columns(items: Sequence[ItemRow], which: MatrixFilter) -> tuple[str, ...]:
    """Return the rules with findings in most programs first; those that only lacked a fact come last."""
    programs = Counter(cell.rule for item in items for cell in item.cells if cell.findings)
    return tuple(sorted(columns_of(items, which.rule, which.levels), key=lambda rule: (-programs[rule], rule)))


def _matrix_address(found: Audit, which: MatrixFilter) -> str:
    given = {"level": which.level, "rule": which.rule, "file": which.file}
    asked = {"sort": "worst", **{name: value for name, value in given.items() if value is not None}}
    if which.needs_match:
        asked["matching"] = "true"
    return f"{found.id}/matrix?{urlencode(asked)}"


def _load_changes(transaction: Transaction, found: Audit) -> Changes | None:
    before = previous.audit_before(transaction, found) if found.status == "judged" else None
    if before is None:
        return None
    rules = previous.changes_since(transaction, found, before)
    sums = {name: sum(getattr(rule, name) for rule in rules) for name in ("new", "fixed", "unchanged")}
    return Changes(before=before, rules=rules, **sums)


def _load_cell(
    transaction: Transaction, found: Audit, rules: Rules, known: frozenset[str], typed: str
) -> CellShown | None:
    chosen = _CELL.fullmatch(typed)
    if chosen is None:
        return None
    place, rule = int(chosen[1]), chosen[2]
    rows = audit_items.page(transaction, found, rules, known, after=place - 1, limit=1)
    item = next((row for row in rows if row.n == place), None)
    if item is None or item.run is None:
        return None
    try:
        run = run_of(transaction, item.run)
    except Problem:  # a key of another project does not see it
        return None
    page = findings.page(transaction, run, rule=(rule,), suppressed=False, limit=MOST_CARDS)
    texts = Texts(transaction, run)
    cards = [card(row, texts.lines, run.record.steps_made) for row in page.items]
    return CellShown(item=item, rule=rule, run=run, cards=cards, has_more=page.next is not None) if cards else None
