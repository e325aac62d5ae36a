"""Which runs: conditions on a list of them, each served by an index or looked at run by run in the list's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.runs.model import Origin, Queue, Status
from store.tables import audit, audit_item, finding, recorder, run, snippet

_LEVELS: Final = {"error": run.c.errors, "warning": run.c.warnings, "note": run.c.notes}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs of a tenant; what is None, or empty, lets all pass.

    Attributes:
        origin: Any of these; empty: all but trials. status: any of these. queue, actor: this one's. snippet, audit:
            public ids.
        snippet_sha256: The content hash of the snippet, `backprobe.snippet_digest`.
        labels: All of these. words: somewhere in the entry, or in a label's name or value, whatever their case.
        rule, level: Today's rules make a finding of any of these rules (names or codes) that has any of these levels,
            and no comment suppresses it.
        created_after, created_before: ISO times, exclusive.
    """

    origin: Sequence[Origin] = ()
    status: Sequence[Status] = ()
    queue: Queue | None = None
    actor: str | None = None
    snippet: str | None = None
    snippet_sha256: bytes | None = None
    audit: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    words: str | None = None
    rule: Sequence[str] = ()
    level: Sequence[str] = ()
    created_after: str | None = None
    created_before: str | None = None

    def conditions(self, transaction: Transaction, tenant_id: int) -> list[sa.ColumnElement[bool]]:
        """As conditions on `run`."""
        of_origin = run.c.origin.in_(self.origin) if self.origin else run.c.origin != sa.literal_column("'trial'")
        found: list[sa.ColumnElement[bool]] = [of_origin, *([run.c.status.in_(self.status)] if self.status else [])]
        for column, value in ((run.c.queue, self.queue), (run.c.created_by, self.actor)):
            if value is not None:
                found.append(column == value)
        if self.created_after is not None:
            found.append(run.c.created_at > self.created_after)
        if self.created_before is not None:
            found.append(run.c.created_at < self.created_before)
        if self.snippet is not None:
            its = sa.select(snippet.c.id).where(snippet.c.public_id == self.snippet, snippet.c.tenant_id == tenant_id)
            found.append(run.c.snippet_id == its.scalar_subquery())
        if self.snippet_sha256 is not None:
            its = sa.select(snippet.c.id)
            its = its.where(snippet.c.tenant_id == tenant_id, snippet.c.sha256 == self.snippet_sha256)
            found.append(run.c.snippet_id == its.scalar_subquery())
        if self.audit is not None:
            its = sa.select(audit.c.id).where(audit.c.public_id == self.audit, audit.c.tenant_id == tenant_id)
            items = sa.select(audit_item.c.run_id).where(audit_item.c.audit_id == its.scalar_subquery())
            found.append(run.c.id.in_(items.where(audit_item.c.run_id.is_not(None))))
        found += build_label_conditions(run.c.labels, self.labels)
        if self.words is not None:
            found.append(_says(transaction, self.words))
        return found + self._findings()

    @property
    def narrow(self) -> bool:
        """Few runs pass, and an index of their own leads to them: better than to walk along the list."""
        return any(value is not None for value in (self.snippet, self.snippet_sha256, self.audit))

    def _findings(self) -> list[sa.ColumnElement[bool]]:
        if not self.rule:
            return [sa.or_(*[_LEVELS[level] > 0 for level in self.level])] if self.level else []
        f = finding.c
        query = sa.exists().where(f.run_id == run.c.id, f.attempt == run.c.result_attempt, f.gone_at.is_(None))
        query = query.where(f.suppressed.is_(None), sa.or_(f.rule.in_(self.rule), f.code.in_(self.rule)))
        if self.level:
            query = query.where(f.level.in_(self.level))
        return [query.correlate(run)]


ALL: Final = RunFilter()


def build_label_conditions(column: Any, labels: Mapping[str, str]) -> list[sa.ColumnElement[bool]]:
    """Conditions on a column of labels: it has all of these."""
    return [column[name].as_string() == value for name, value in labels.items()]


def _says(transaction: Transaction, words: str) -> sa.ColumnElement[bool]:
    """Match runs whose entry, or one of whose labels, contains the words."""
    each = sa.func.json_each if transaction.dialect.name == "sqlite" else sa.func.jsonb_each_text
    label = each(run.c.labels).table_valued("key", "value").alias("label")
    text = [sa.cast(label.c[name], sa.Text).icontains(words, autoescape=True) for name in ("key", "value")]
    entry = sa.select(snippet.c.entry).where(snippet.c.id == run.c.snippet_id).correlate(run).scalar_subquery()
    in_labels = sa.exists(sa.select(sa.literal(1)).select_from(label).where(sa.or_(*text)))
    script = recorder.c.environment["script"].as_string()
    scripts = sa.select(script).where(recorder.c.run_id == run.c.id).correlate(run).scalar_subquery()
    called = [sa.cast(text, sa.Text).icontains(words, autoescape=True) for text in (entry, scripts)]
    return sa.or_(*called, in_labels)
