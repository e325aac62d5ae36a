"""An audit that comes as NDJSON: line 1 is the audit, each further line an item.

1. A line is all that is in hand at once of what was sent, and the items of 500 lines, or 4 MiB, before any of them is
   stored; then they are stored 50 in a transaction, between which others write.
2. A line that cannot be read or run fails alone: its item tells why, and at which line. At the 100th, or after 10 s
   spent on lines that are refused, the upload is refused with a list of them (`bad_lines.py`).
3. Under its Idempotency-Key the same upload, sent again, goes on behind what is stored. A digest that runs from line to
   line tells whether it is the same. Without a key an upload that breaks is canceled.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec
from flask import request
from pydantic import ValidationError
from werkzeug.exceptions import RequestEntityTooLarge

from service.api.audits.audit_entry import Entry, item_of, known_runs, looked_at, problem_json
from service.api.audits.bad_lines import BadLines
from service.auth.caller import caller
from service.context import context
from service.problems.errors import Place, Problem
from service.schemas.audit_requests import AuditHead, ItemAsked, ItemName
from service.web.body import parse_json
from service.web.body_lines import lines_of
from service.web.idempotency import (
    Effect,
    begin_key,
    build_mismatch_problem,
    given_key,
    in_flight,
    request_line,
    within_quotas,
)
from store.access import idempotency, projects
from store.access.backlog import Overfull
from store.access.quotas import QuotaExceeded
from store.audits import audit_uploads, audits
from store.runs.submission import QueuedCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from service.web.body_lines import Line
    from store.access.projects import Project
    from store.audits.audits import NewItem
    from store.database.session import Transaction
    from store.runs.model import Queue

    Begun = Callable[[Transaction, AuditHead], tuple[Project, str, int]]

MOST_BYTES: Final = 256 << 20
MOST_LINES: Final = 50_000
_BATCH_LINES: Final = 500
_BATCH_BYTES: Final = 4 << 20
_HOPELESS: Final = frozenset({"too-large", "invalid-request"})
"""Codes of refusals that the same upload would meet again."""


def _chain_digest(chain: bytes, line: Line) -> bytes:
    return hashlib.sha256(chain + line.digest).digest()


@dataclass(slots=True, kw_only=True)
class _Upload:
    """Where one stands.

    Attributes:
        stored: Items that are stored. chain: the digest over the lines up to them, as this request has sent them.
        expected: That digest as it was stored; None: this request is the first one.
        over: All of it had come before; this request only asks for the answer.
        bad: Lines of this request that were refused.
    """

    key: str | None
    head: AuditHead
    place: Project
    public_id: str
    number: int
    chain: bytes
    stored: int = 0
    expected: bytes | None = None
    over: bool = False
    bad: BadLines = field(default_factory=BadLines)


def take(begun: Begun) -> tuple[str, dict[str, str]]:
    """Store the audit in the body; its public id, and headers of the answer.

    Args:
        begun: Stores what line 1 asks for as an audit that is open and empty: its project, public id and number.

    Raises:
        Problem: what line 1 has wrong; `too-large`, `quota-exceeded`, `idempotency-in-flight`, `idempotency-mismatch`.
    """
    request.max_content_length = MOST_BYTES
    lines = lines_of(request.stream)
    first = next(lines, None)
    if first is None:
        raise Problem("malformed-request", "The body is empty.")
    upload = _begin(parse_json(first.whole(), AuditHead, f"Line {first.number}"), first, begun)
    try:
        _go_on(upload, lines)
    except audit_uploads.Overtaken:
        with context().database.read() as transaction:
            found = audits.get(transaction, upload.public_id, tenant_id=caller().tenant_id)
        if found is not None and found.status == "open":
            raise in_flight() from None
    except Exception as error:
        hopeless = isinstance(error, RequestEntityTooLarge) or (isinstance(error, Problem) and error.code in _HOPELESS)
        if hopeless or upload.key is None:
            _give_up(upload)
        raise
    return upload.public_id, {"Idempotent-Replayed": "true"} if upload.over else {}


def _begin(head: AuditHead, first: Line, begun: Begun) -> _Upload:
    """Begin the upload, or resume it where it stands."""
    key, tenant_id = given_key(), caller().tenant_id
    chain = hashlib.sha256(request_line() + b"lines" + first.digest).digest()
    with within_quotas(), context().database.begin() as transaction:
        known = None if key is None else idempotency.find_key(transaction, key, tenant_id=tenant_id)
        if known is not None:
            return _resume_upload(transaction, head, known, key, chain)
        if key is not None:
            begin_key(transaction, key, chain)
        context().room.demand(transaction, tenant_id=tenant_id)
        place, public_id, number = begun(transaction, head)
        if key is not None:
            idempotency.advance(transaction, key, chain, public_id, tenant_id=tenant_id)
        Effect(transaction=transaction, key=None, known=None).done("audit.create", public_id)
    return _Upload(key=key, head=head, place=place, public_id=public_id, number=number, chain=chain)


def _resume_upload(
    transaction: Transaction, head: AuditHead, known: idempotency.TakenKey, key: str | None, chain: bytes
) -> _Upload:
    asked = caller()
    found = audits.get(transaction, known.about or "", tenant_id=asked.tenant_id)
    if found is None or asked.project not in {None, found.project}:
        raise build_mismatch_problem()
    return _Upload(
        key=key,
        head=head,
        place=projects.load_by_number(transaction, found.project_id),
        public_id=found.id,
        number=found.number,
        chain=chain,
        stored=found.items,
        expected=known.request_hash,
        over=known.over,
    )


def _go_on(upload: _Upload, lines: Iterator[Line]) -> None:
    """Pass over what is stored, then store the rest."""
    rest = _check_line_count(lines)
    if upload.expected is not None:
        _pass_over(upload, rest)
    if upload.over:
        if next(rest, None) is not None:
            raise build_mismatch_problem()
        return
    batch: list[tuple[Line, Entry]] = []
    size = 0
    for line in rest:
        batch.append((line, _looked_at(upload, line)))
        size += len(line.raw or b"")
        if len(batch) == _BATCH_LINES or size >= _BATCH_BYTES:
            _store_all(upload, batch)
            batch, size = [], 0
    _store_all(upload, batch)
    if not upload.stored:
        place = Place(pointer="#", code="too-short", detail="There is no line but the first: an audit has items.")
        raise Problem("invalid-request", place.detail, places=(place,))
    _close(upload)


def _check_line_count(lines: Iterator[Line]) -> Iterator[Line]:
    for count, line in enumerate(lines):
        if count == MOST_LINES:
            detail = f"An audit has at most {MOST_LINES:,} items; line {line.number} is one more."
            hint = "Send several audits. This one is canceled; what it has stored goes when it is deleted."
            raise Problem("too-large", detail, hint=hint)
        yield line


def _pass_over(upload: _Upload, lines: Iterator[Line]) -> None:
    for _ in range(upload.stored):
        line = next(lines, None)
        if line is None:
            raise build_mismatch_problem()
        upload.chain = _chain_digest(upload.chain, line)
    if upload.chain != upload.expected:
        raise build_mismatch_problem()


def _store_all(upload: _Upload, batch: list[tuple[Line, Entry]]) -> None:
    for first in range(0, len(batch), audit_uploads.AT_ONCE):
        _store(upload, batch[first : first + audit_uploads.AT_ONCE])


def _store(upload: _Upload, batch: list[tuple[Line, Entry]]) -> None:
    """Store the items of some lines and begin their runs, all or as many as there is room for.

    Raises:
        Overtaken: another request has stored them.
        Problem: `quota-exceeded`, `queue-full`, when as much as fits is stored. `invalid-request`: too many bad lines.
    """
    entries = [entry for _, entry in batch]
    queues: set[Queue] = set()
    items: list[NewItem] = []
    full: Exception | None = None
    chain, counted = upload.chain, QueuedCounts()
    with within_quotas(), context().database.begin() as transaction:
        audit_uploads.hold(transaction, upload.number, upload.stored)
        context().room.demand(transaction, tenant_id=caller().tenant_id)
        known = known_runs(transaction, entries)
        named = [entry.name for entry in entries if entry.name is not None]
        taken = set(audit_uploads.find_taken_names(transaction, upload.number, named))
        for line, entry in batch:
            checked = _refuse_duplicate(upload, line, entry) if entry.name in taken else entry
            try:
                if checked.program is not None:
                    context().backlog.demand(transaction, checked.queue, tenant_id=caller().sharing)
                items.append(_locate_problem(line, item_of(transaction, checked, upload.place, known, counted)))
            except (QuotaExceeded, Overfull) as error:
                full = error
                break
            chain = _chain_digest(chain, line)
            taken |= {checked.name} - {None}
            queues |= {checked.queue} if checked.program is not None else set()
        audit_uploads.grow(transaction, upload.number, upload.stored, items)
        if upload.key is not None:
            idempotency.advance(transaction, upload.key, chain, upload.public_id, tenant_id=caller().tenant_id)
    upload.stored, upload.chain = upload.stored + len(items), chain
    for queue in sorted(queues):
        context().wakeups.publish(queue)
    with within_quotas():
        if full is not None:
            raise full


def _locate_problem(line: Line, item: NewItem) -> NewItem:
    """Add to the problem of an item the line that it is in."""
    return item if item.problem is None else replace(item, problem={**item.problem, "line": line.number})


def _looked_at(upload: _Upload, line: Line) -> Entry:
    """Check a line, and return what it asks for.

    Raises:
        Problem: `invalid-request`: one bad line too many.
    """
    began = time.monotonic()
    try:
        entry = looked_at(upload.head.whole(parse_json(line.whole(), ItemAsked, f"Line {line.number}")))
    except Problem as error:
        entry = Entry(name=_name_in(line.raw), problem=problem_json(error))
    if entry.problem is not None:
        upload.bad.add(line.number, entry.problem, time.monotonic() - began)
    return entry


def _name_in(raw: bytes | None) -> str | None:
    """Read the `custom_id` of a line that has something else wrong; None if it has none that could be stored."""
    try:
        name = msgspec.json.decode(raw or b"").get("custom_id")
        return ItemName.model_validate({"custom_id": name}).custom_id
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, RecursionError, ValidationError):
        return None


def _refuse_duplicate(upload: _Upload, line: Line, entry: Entry) -> Entry:
    detail = f"An earlier line has the `custom_id` {entry.name!r:.210}."
    place = Place(pointer="#/custom_id", code="doubled-custom-id", detail=detail)
    problem = problem_json(Problem("invalid-request", detail, places=(place,)))
    if entry.problem is None:  # else the line is counted
        upload.bad.add(line.number, problem)
    return Entry(name=None, problem=problem)


def _close(upload: _Upload) -> None:
    with context().database.begin() as transaction:
        audit_uploads.close(transaction, upload.number, upload.stored)
        if upload.key is not None:
            answer = idempotency.Answer(status=200, body=upload.public_id.encode())
            idempotency.done(transaction, upload.key, answer, tenant_id=caller().tenant_id)


def _give_up(upload: _Upload) -> None:
    with context().database.begin() as transaction:
        audit_uploads.give_up(transaction, upload.number)
        if upload.key is not None:
            idempotency.free(transaction, upload.key, tenant_id=caller().tenant_id)
