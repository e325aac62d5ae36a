"""What a stream of events can be about: a run with its stored events, or an audit with its current state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from store import queries
from store.audits import audits
from store.runs import lifecycle
from store.runs.reading import run_events

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from store.audits.audits import Audit
    from store.database.session import Transaction
    from store.runs.model import RunRow
    from store.runs.reading.run_events import Standing

_BATCH: Final = 100
_encoder: Final = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a stream sends next.

    Attributes:
        text: Events as they stand in the stream; empty: nothing has happened.
        after: Number of the last event of it.
        over: Nothing comes after it. more: There is more at once.
    """

    text: bytes
    after: int
    over: bool = False
    more: bool = False


class Subject(Protocol):
    """What one stream is about."""

    @property
    def number(self) -> int:
        """The only one among subjects of its kind."""
        ...

    @property
    def tenant_id(self) -> int:
        """Whose it is."""
        ...

    @staticmethod
    def standing(transaction: Transaction, numbers: Collection[int]) -> Mapping[int, Standing]:
        """How far each of these has come: number of its last event, and whether it has ended."""
        ...

    def news(self, transaction: Transaction, after: int) -> News:
        """Load what happened after this number, and whether the subject has ended."""
        ...


def told_event(run: RunRow, event: queries.EventRow) -> dict[str, Any]:
    """One event of a run as `EventTold` describes it."""
    return {
        "run": run.id,
        "seq": event.seq,
        "kind": event.kind,
        "at": event.at,
        "attempt": event.attempt,
        "detail": queries.as_json(event.payload),
    }


def told_progress(found: Audit) -> dict[str, Any]:
    """How an audit stands, as `AuditEventTold` describes it."""
    return {
        "audit": found.id,
        "seq": found.version,
        "kind": "progress" if found.finished_at is None else found.status,
        "items": {"total": found.items, "running": found.running},
        "verdict": found.verdicts[-1].verdict if found.status == "judged" and found.verdicts else None,
    }


@dataclass(frozen=True, slots=True)
class RunSubject:
    """The events of a run, each once."""

    run: RunRow

    @property
    def number(self) -> int:
        """The run's."""
        return self.run.run_id

    @property
    def tenant_id(self) -> int:
        """The run's."""
        return self.run.tenant_id

    @staticmethod
    def standing(transaction: Transaction, numbers: Collection[int]) -> Mapping[int, Standing]:
        """As `Subject` says."""
        return run_events.standing(transaction, numbers)

    def news(self, transaction: Transaction, after: int) -> News:
        """As `Subject` says."""
        now = lifecycle.get(
            transaction, self.run.id, tenant_id=self.run.tenant_id
        )  # before its events: those of its end are among them
        found = queries.events(transaction, self.run, after=after, limit=_BATCH)
        text = b"".join(_event(event.seq, event.kind, told_event(self.run, event)) for event in found)
        last = found[-1].seq if found else after
        if len(found) == _BATCH:
            return News(text=text, after=last, more=True)
        if now is not None and not now.ended:
            return News(text=text, after=last)
        end = _end({"run": self.run.id, "status": None if now is None else now.status})
        return News(text=text + end, after=last, over=True)


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """How an audit stands, each time that it has moved; what lies between two looks is one event."""

    audit: Audit

    @property
    def number(self) -> int:
        """The audit's."""
        return self.audit.number

    @property
    def tenant_id(self) -> int:
        """The audit's."""
        return self.audit.tenant_id

    @staticmethod
    def standing(transaction: Transaction, numbers: Collection[int]) -> Mapping[int, Standing]:
        """As `Subject` says."""
        return audits.standing(transaction, numbers)

    def news(self, transaction: Transaction, after: int) -> News:
        """As `Subject` says."""
        now = audits.get(transaction, self.audit.id, tenant_id=self.audit.tenant_id)
        if now is None:
            return News(text=_end({"audit": self.audit.id, "status": None}), after=after, over=True)
        told = told_progress(now)
        text = _event(now.version, told["kind"], told) if now.version > after else b""
        if now.finished_at is None:
            return News(text=text, after=now.version)
        end = _end({"audit": now.id, "status": now.status})
        return News(text=text + end, after=now.version, over=True)


def _event(number: int, kind: str, told: dict[str, Any]) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (number, kind.encode(), _encoder.encode(told))


def _end(told: dict[str, Any]) -> bytes:
    return b"event: end\ndata: %b\n\n" % _encoder.encode(told)
