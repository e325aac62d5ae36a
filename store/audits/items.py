"""The items of audits: a page of them with their verdicts, the matrix of items and rules, the audit's findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.audits.audits import Audit
from store.audits.policy import Cell, Found, Rules, Verdict
from store.database.session import Transaction
from store.tables import audit_cell, audit_item, finding, record, run, snippet

AT_ONCE: Final = 500

_again: Final = audit_item.alias("again")
_rerun: Final = run.alias("rerun")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """One item.

    Attributes:
        custom_id: None: it came without one that could be kept; `problem` has its line.
        run: Public id; None: it was refused, and `problem` says why. status: of the run.
        ended: No more work follows. verdict: None: it goes on.
        cells: What the policy says of its findings, by rule; a rule that passes has none.
        rules_judged: Of the run: how many rules looked at the whole record. backward_calls: of its record.
        unnamed: Public id of the run's snippet, if whoever sent that named no file.
        number, run_id: Not shown.
    """

    n: int
    custom_id: str | None
    run: str | None
    status: str | None
    ended: bool
    verdict: Verdict | None
    problem: Mapping[str, Any] | None
    cells: tuple[Cell, ...]
    run_id: int | None
    ruleset: str | None
    rules_judged: int
    backward_calls: int
    unnamed: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilter:
    """Which items of an audit; what is None, or empty, lets all pass.

    Attributes:
        custom_id: Only this one.
        name_part: Only those whose `custom_id` has it somewhere, whatever its case.
        rule, level: Only those of whose run this rule says something today, with a finding of any of these levels.
            Items of which the policy says nothing pass as well: their cells decide.
    """

    custom_id: str | None = None
    name_part: str | None = None
    rule: str | None = None
    level: Collection[str] = ()

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return them as conditions on `audit_item` and its `run`."""
        found: list[sa.ColumnElement[bool]] = []
        if self.custom_id is not None:
            found.append(audit_item.c.custom_id == self.custom_id)
        if self.name_part is not None:
            found.append(sa.cast(audit_item.c.custom_id, sa.Text).icontains(self.name_part, autoescape=True))
        if self.rule is not None or self.level:
            found.append(self._has_finding() if self.level else sa.or_(self._has_finding(), self._lacks_fact()))
        return found

    def _has_finding(self) -> sa.ColumnElement[bool]:
        f = finding.c
        shown = sa.exists().where(f.run_id == run.c.id, f.attempt == run.c.result_attempt, f.gone_at.is_(None))
        shown = shown.where(f.suppressed.is_(None))
        if self.rule is not None:
            shown = shown.where(f.rule == self.rule)
        return (shown.where(f.level.in_(self.level)) if self.level else shown).correlate(run)

    def _lacks_fact(self) -> sa.ColumnElement[bool]:
        """Match items whose record names the rule among those that lacked a fact."""
        r = record.c
        lacking = sa.cast(r.rules_not_run, sa.Text).contains(f'"{self.rule}"', autoescape=True)
        return sa.exists().where(r.run_id == run.c.id, r.attempt == run.c.result_attempt, lacking).correlate(run)


ALL: Final = ItemFilter()


def page(
    transaction: Transaction,
    found: Audit,
    rules: Rules,
    known: frozenset[str],
    *,
    which: ItemFilter = ALL,
    after: int = -1,
    limit: int = AT_ONCE,
    ruleset: str | None = None,
) -> list[ItemRow]:
    """Items behind place `after`, in order.

    Args:
        transaction: To read by.
        found: Their audit.
        rules: Of its policy.
        known: Fingerprints of its baseline.
        which: Only these. With `ruleset` it has neither rule nor level.
        after: Place of the last one of the page before.
        limit: Items at most.
        ruleset: As the audit was judged under it, which it was; None: by the findings of today.
    """
    i = audit_item
    query = (
        sa.select(
            i,
            run.c.public_id.label("run"),
            run.c.status,
            run.c.ruleset,
            run.c.rules_judged,
            run.c.backward_calls,
            run.c.result_attempt,
            snippet.c.public_id.label("unnamed"),
        )
        .select_from(i)
        .outerjoin(run, run.c.id == i.c.run_id)
        .outerjoin(snippet, sa.and_(snippet.c.id == run.c.snippet_id, ~snippet.c.named))
        .where(i.c.audit_id == found.number, i.c.n > after, *which.conditions())
    )
    rows = transaction.execute(query.order_by(i.c.n).limit(limit)).all()
    if ruleset is not None:
        then = _cells(transaction, found, ruleset, [row.n for row in rows])
        return [_row_to_item(row, rules, tuple(then[row.n]), judged=True) for row in rows]
    attempts = {row.run_id: row.result_attempt for row in rows if row.result_attempt is not None}
    findings = _findings(transaction, attempts)
    lacking = _not_run(transaction, attempts)
    return [_item(row, rules, known, findings[row.run_id], lacking.get(row.run_id, ())) for row in rows]


def _item(row: Any, rules: Rules, known: frozenset[str], findings: Sequence[Found], lacking: Sequence[str]) -> ItemRow:
    over = row.status not in ("queued", "running")
    cells = tuple(rules.cells(findings, known, lacking)) if over else ()
    return _row_to_item(row, rules, cells, judged=row.ruleset is not None)


def _row_to_item(row: Any, rules: Rules, cells: tuple[Cell, ...], *, judged: bool) -> ItemRow:
    over = row.status not in ("queued", "running")
    calls = row.backward_calls or 0
    return ItemRow(
        n=row.n,
        custom_id=row.custom_id,
        run=row.run,
        status=row.status,
        ended=over,
        verdict=rules.verdict(row.status, cells, judged=judged, backward_calls=calls) if over else None,
        problem=row.problem,
        cells=cells,
        run_id=row.run_id,
        ruleset=row.ruleset,
        rules_judged=row.rules_judged or 0,
        backward_calls=calls,
        unnamed=row.unnamed,
    )


def _cells(transaction: Transaction, found: Audit, ruleset: str, places: Sequence[int]) -> Mapping[int, list[Cell]]:
    """Load the cells of items under a ruleset, by place."""
    c = audit_cell.c
    query = sa.select(audit_cell).where(c.audit_id == found.number, c.ruleset == ruleset, c.n.in_(places))
    then: defaultdict[int, list[Cell]] = defaultdict(list)
    for row in transaction.execute(query.order_by(c.n, c.rule)):
        then[row.n].append(Cell(rule=row.rule, state=row.state, findings=row.findings, known=row.known))
    return then


def _findings(transaction: Transaction, attempts: Mapping[int, int]) -> Mapping[int | None, list[Found]]:
    """Load today's findings of runs, without those that a comment suppresses."""
    f = finding.c
    query = sa.select(f.run_id, f.attempt, f.rule, f.code, f.level, f.confidence, f.fingerprint).where(
        f.run_id.in_(attempts), f.gone_at.is_(None), f.suppressed.is_(None)
    )
    found: defaultdict[int | None, list[Found]] = defaultdict(list)
    for row in transaction.execute(query.order_by(f.run_id, f.n)):
        if attempts[row.run_id] == row.attempt:
            names = ("rule", "code", "level", "confidence", "fingerprint")
            found[row.run_id].append(Found(**{name: getattr(row, name) for name in names}))
    return found


def _not_run(transaction: Transaction, attempts: Mapping[int, int]) -> Mapping[int | None, tuple[str, ...]]:
    """Names of the rules that lacked a fact of a run."""
    query = sa.select(record.c.run_id, record.c.attempt, record.c.rules_not_run).where(record.c.run_id.in_(attempts))
    return {
        row.run_id: tuple(rule["name"] for rule in row.rules_not_run or ())
        for row in transaction.execute(query)
        if attempts[row.run_id] == row.attempt
    }


def fingerprints(transaction: Transaction, audit_id: int) -> frozenset[str]:
    """Of all that the runs of an audit show today."""
    return frozenset(rules_by_fingerprint(transaction, audit_id))


def rules_by_fingerprint(transaction: Transaction, audit_id: int) -> dict[str, str]:
    """Name of the rule of all that the runs of an audit show today, by fingerprint."""
    return {row.fingerprint: row.rule for row in transaction.execute(_of_audit(audit_id))}


def _of_audit(audit_id: int) -> sa.Select[Any, Any]:
    return (
        sa.select(finding.c.fingerprint, finding.c.rule)
        .join_from(audit_item, run, run.c.id == audit_item.c.run_id)
        .join(finding, sa.and_(finding.c.run_id == run.c.id, finding.c.attempt == run.c.result_attempt))
        .where(audit_item.c.audit_id == audit_id, finding.c.gone_at.is_(None), finding.c.suppressed.is_(None))
        .distinct()
    )


def audited_again(transaction: Transaction, audit_id: int, baseline_id: int | None) -> frozenset[str]:
    """Fingerprints of the baseline's items that an audit has as well, and that ended well in it."""
    if baseline_id is None:
        return frozenset()
    again = (
        sa.select(_again.c.custom_id)
        .join(_rerun, _rerun.c.id == _again.c.run_id)
        .where(_again.c.audit_id == audit_id, _again.c.custom_id.is_not(None), _rerun.c.status == "succeeded")
    )
    query = _of_audit(baseline_id).where(audit_item.c.custom_id.in_(again))
    return frozenset(transaction.execute(query).scalars())
