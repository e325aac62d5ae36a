"""Findings of runs: written with the run's end, read by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from backprobe.rules import Finding, Judgement, finding_json
from store.database.ids import new_id
from store.database.session import Transaction
from store.findings.group_state import STATE_NOW, VERSION_NOW
from store.runs.model import Claim, RunRow
from store.tables import Now, finding, finding_group, finding_group_alias, project, run

_INSERT: Final = sa.insert(finding).values(created_at=Now())
_alias_of_it: Final = sa.and_(
    finding_group_alias.c.project_id == finding.c.project_id,
    finding_group_alias.c.fingerprint == finding.c.fingerprint,
)
_group_of_it: Final = sa.and_(
    finding_group.c.project_id == finding.c.project_id,
    finding_group.c.fingerprint == sa.func.coalesce(finding_group_alias.c.known_as, finding.c.fingerprint),
)
SELECT_FINDING: Final = (
    sa.select(
        finding,
        run.c.public_id.label("run"),
        finding_group.c.public_id.label("group"),
        STATE_NOW.label("group_state"),
        finding_group.c.owner.label("group_owner"),
    )
    .join_from(
        finding,
        run,
        sa.and_(
            run.c.id == finding.c.run_id,
            # a watched run is judged while it goes on, and has no result yet
            sa.func.coalesce(run.c.result_attempt, run.c.attempt) == finding.c.attempt,
        ),
    )
    .outerjoin(finding_group_alias, _alias_of_it)
    .outerjoin(finding_group, _group_of_it)
)
_BODIES: Final = ("location", "related", "stacks", "evidence", "fixes", "consequences", "suppressed")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLongerReported:
    """Since when newer rules no longer say so (ISO 8601), and which rules."""

    at: str
    ruleset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShort:
    """The group that a finding is counted in: its public id, what people made of it, and whose task it is."""

    id: str
    state: str
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """A stored finding. `json()` is the API's shape, `backprobe.finding/1`.

    Attributes:
        id: `f_...`. run: public id of its run. number: keyset cursor of its run's list.
        group: None: stored before findings were grouped. created_at, row: keyset cursor of the list over all runs.
    """

    id: str
    run: str
    ruleset: str
    number: int
    finding: Finding
    group: GroupShort | None
    created_at: str
    row: int
    gone: NoLongerReported | None = None

    def json(self) -> dict[str, Any]:
        """As every client reads it, with id, run, ruleset, group and `gone`; `trials` is for who reads them to fill."""
        shown = finding_json(self.finding, id=self.id, run=self.run, ruleset=self.ruleset)
        return shown | {
            "group": None if self.group is None else asdict(self.group),
            "gone": None if self.gone is None else asdict(self.gone),
            "trials": None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingPage:
    """Some findings, worst first, then in order of the source; `next` is the `after` of the next page or None."""

    items: tuple[FindingRow, ...]
    next: int | None


def insert_findings(transaction: Transaction, claim: Claim, judgement: Judgement) -> None:
    """Store what the rules said about this attempt, in the judgement's order."""
    owner = {
        "run_id": claim.run_id,
        "attempt": claim.attempt,
        "tenant_id": claim.tenant_id,
        "project_id": claim.project_id,
    }
    rows = [owner | values_of(judgement.ruleset, n, judged) for n, judged in enumerate(judgement.findings)]
    if rows:
        transaction.execute(_INSERT, rows)


def values_of(ruleset: str, n: int, judged: Finding) -> dict[str, Any]:
    """Return the columns of a finding, without those that say to which run it belongs."""
    bodies = {name: msgspec.to_builtins(getattr(judged, name)) for name in _BODIES}
    return bodies | {
        "public_id": new_id("f"),
        "n": n,
        "fingerprint": judged.fingerprint,
        "rule": judged.rule.name,
        "code": judged.rule.code,
        "ruleset": ruleset,
        "level": judged.level,
        "confidence": judged.confidence,
        "message": judged.message,
        "path": judged.location.path,
        "line": judged.location.region.start_line,
        "tensor": _number(judged.evidence.get("tensor")),
        "call": _number(judged.evidence.get("call")),
        "moment": _number(judged.evidence.get("moment")),
        "count": judged.occurrences.count,
        "first_step": judged.occurrences.first_step,
        "last_step": judged.occurrences.last_step,
    }


def _number(value: object) -> int | None:
    """Return the value if it is a number that a record can have; otherwise None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def page(
    transaction: Transaction,
    run: RunRow,
    *,
    level: Sequence[str] = (),
    rule: Sequence[str] = (),
    confidence: Sequence[str] = (),
    line: int | None = None,
    suppressed: bool | None = None,
    gone: bool = False,
    after: int | None = None,
    limit: int = 100,
) -> FindingPage:
    """List the findings of a run's visible attempt.

    Args:
        transaction: To read by.
        run: Whose findings.
        level: Any of these; empty: all. confidence: likewise.
        rule: Names or codes; empty: all.
        line: Where its location begins.
        suppressed: Only those that are or are not; None: both.
        gone: Those that newer rules no longer make; otherwise those that they do.
        after: `FindingPage.next` of the page before; None: the first page.
        limit: Findings at most.
    """
    if run.key is None:
        return FindingPage(items=(), next=None)
    query = SELECT_FINDING.where(finding.c.run_id == run.run_id, finding.c.attempt == run.key.attempt)
    if level:
        query = query.where(finding.c.level.in_(level))
    if rule:
        query = query.where(sa.or_(finding.c.rule.in_(rule), finding.c.code.in_(rule)))
    if confidence:
        query = query.where(finding.c.confidence.in_(confidence))
    if line is not None:
        query = query.where(finding.c.line == line)
    if suppressed is not None:
        query = query.where(finding.c.suppressed.is_not(None) if suppressed else finding.c.suppressed.is_(None))
    query = query.where(finding.c.gone_at.is_not(None) if gone else finding.c.gone_at.is_(None))
    if after is not None:
        query = query.where(finding.c.n > after)
    rows = transaction.execute(query.order_by(finding.c.n).limit(limit + 1)).all()
    more = len(rows) > limit
    return FindingPage(items=tuple(finding_row(row) for row in rows[:limit]), next=rows[limit - 1].n if more else None)


def groups_version(transaction: Transaction, run: RunRow) -> int:
    """Return a number that rises with each change of a group that the run's findings are counted in."""
    if run.key is None:
        return 0
    mine = sa.and_(finding.c.run_id == run.run_id, finding.c.attempt == run.key.attempt)
    query = sa.select(sa.func.coalesce(sa.func.sum(VERSION_NOW), 0)).select_from(finding)
    query = query.outerjoin(finding_group_alias, _alias_of_it).join(finding_group, _group_of_it)
    return int(transaction.execute(query.where(mine)).scalar_one())


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPage:
    """Some findings of all runs, newest first; `next` is the `after` of the next page or None."""

    items: tuple[FindingRow, ...]
    next: tuple[str, int] | None


def over_runs(
    transaction: Transaction,
    *,
    tenant_id: int = 1,
    of_project: str | None = None,
    level: Sequence[str] = (),
    rule: Sequence[str] = (),
    confidence: Sequence[str] = (),
    path: str | None = None,
    fingerprint: str | None = None,
    created_after: str | None = None,
    after: tuple[str, int] | None = None,
    limit: int = 100,
) -> FoundPage:
    """List the findings of a tenant's runs, newest first: those of today's rules that no comment suppresses.

    Runs of trials are left out.

    Args:
        transaction: To read by.
        tenant_id: Whose.
        of_project: Public id of the only project; None: all of the tenant's.
        level: Any of these; empty: all. confidence: likewise. rule: names or codes.
        path: File of the location.
        fingerprint: The same finding, in whichever run; of a group: under its aliases too.
        created_after: ISO time, exclusive.
        after: `FoundPage.next` of the page before; None: the first page.
        limit: Findings at most.
    """
    f = finding.c
    query = SELECT_FINDING.where(f.tenant_id == tenant_id, f.gone_at.is_(None), f.suppressed.is_(None))
    query = query.where(run.c.origin != sa.literal_column("'trial'"))
    if of_project is not None:
        query = query.join(project, project.c.id == f.project_id).where(project.c.public_id == of_project)
    if rule:
        query = query.where(sa.or_(f.rule.in_(rule), f.code.in_(rule)))
    for column, values in ((f.level, level), (f.confidence, confidence)):
        if values:
            query = query.where(column.in_(values))
    if path is not None:
        query = query.where(f.path == path)
    if fingerprint is not None:
        also = sa.select(finding_group_alias.c.fingerprint).where(finding_group_alias.c.known_as == fingerprint)
        query = query.where(f.fingerprint.in_([fingerprint, *transaction.execute(also).scalars()]))
        query = query.where(sa.or_(f.fingerprint == fingerprint, finding_group_alias.c.known_as == fingerprint))
    if created_after is not None:
        query = query.where(f.created_at > created_after)
    if after is not None:
        at, number = after
        query = query.where(sa.or_(f.created_at < at, sa.and_(f.created_at == at, f.id < number)))
    rows = transaction.execute(query.order_by(f.created_at.desc(), f.id.desc()).limit(limit + 1)).all()
    items = tuple(finding_row(row) for row in rows[:limit])
    return FoundPage(items=items, next=(items[-1].created_at, items[-1].row) if len(rows) > limit else None)


def get(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> FindingRow | None:
    """One finding; None: no such finding of this tenant, or its attempt is not the visible one."""
    query = SELECT_FINDING.where(finding.c.public_id == public_id, finding.c.tenant_id == tenant_id)
    row = transaction.execute(query).first()
    return None if row is None else finding_row(row)


def finding_row(row: Any) -> FindingRow:
    """Convert a row of `SELECT_FINDING` to the finding that callers get."""
    fields: dict[str, Any] = {name: getattr(row, name) for name in _BODIES}
    fields |= {name: getattr(row, name) for name in ("level", "confidence", "message", "fingerprint")}
    fields["rule"] = {"code": row.code, "name": row.rule, "url": f"/rules/{row.code}"}
    fields["occurrences"] = {"count": row._mapping["count"], "first_step": row.first_step, "last_step": row.last_step}  # noqa: SLF001 - `count` is a method of every tuple
    return FindingRow(
        id=row.public_id,
        run=row.run,
        ruleset=row.ruleset,
        number=row.n,
        finding=msgspec.convert(fields, Finding),
        group=None if row.group is None else GroupShort(id=row.group, state=row.group_state, owner=row.group_owner),
        created_at=row.created_at,
        row=row.id,
        gone=None if row.gone_at is None else NoLongerReported(at=row.gone_at, ruleset=row.gone_ruleset),
    )
