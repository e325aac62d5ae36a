"""Answers: JSON bytes, pages with their cursor, ETags and 304."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec
from flask import Response, request

from backprobe import __version__
from service.auth.caller import caller
from service.context import context
from service.openapi.document import Answer
from service.problems.errors import Place, Problem

if TYPE_CHECKING:
    import datetime
    from collections.abc import Mapping, Sequence

    from service.web.parameters import Page
    from store.runs.model import RunRow

REVISION: Final = hashlib.sha256(__version__.encode()).hexdigest()[:6]
"""Part of every ETag: another version may show the same state in another way."""

SAME: Final = Answer(text="Not changed since.")
"""The description of a 304 in the OpenAPI document."""

_encoder = msgspec.json.Encoder()


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Build a JSON answer; `value` is plain (`queries.as_json`)."""
    return Response(_encoder.encode(value), status, dict(headers or {}), mimetype="application/json")


def conditional(answer: Response) -> Response:
    """Return the answer with an ETag of its bytes if it has none; 304 if the client has this very state already."""
    tag, _ = answer.get_etag()
    if tag is None:
        tag = hashlib.sha256(answer.get_data()).hexdigest()[:16]
        answer.headers["ETag"] = f'"{tag}"'
        answer.headers["Cache-Control"] = "no-cache"
    if not request.if_none_match.contains_weak(tag):
        return answer
    kept = {name: value for name, value in answer.headers.items() if name not in {"Content-Type", "Content-Length"}}
    return Response(status=304, headers=kept)


def etag_of(run: RunRow) -> str:
    """Return the ETag of everything below a run, with quotes. It changes whenever a reader could see a difference."""
    place = "" if run.queue_position is None else f"-q{run.queue_position}"
    return f'"{run.version}{place}-{REVISION}"'


def not_modified(run: RunRow, headers: Mapping[str, str] | None = None) -> Response | None:
    """304 if the client has this very state already; the record is not touched for it.

    Args:
        run: Whose.
        headers: Those of the answer, with its ETag; not given: `cache_headers`.
    """
    told = cache_headers(run) if headers is None else dict(headers)
    if request.if_none_match.contains_weak(told["ETag"].strip('"')):
        return Response(status=304, headers=told)
    return None


def check_match(what: str, etag: str) -> None:
    """Let a change go on only if its sender has seen the thing as it is.

    Args:
        what: It, for people: `run run_01JD...`.
        etag: Its ETag now, quotes included.

    Raises:
        Problem: `if-match-needed`, `stale`.
    """
    if not request.if_match:
        raise Problem("if-match-needed", f"A change of {what} was sent without If-Match.")
    if not request.if_match.contains(etag.strip('"')):
        place = Place(header="If-Match", code="stale", detail=f"The ETag of {what} is {etag} now.")
        raise Problem("stale", place.detail, places=(place,), headers={"ETag": etag})


def cache_headers(run: RunRow) -> dict[str, str]:
    """ETag, and how long the answer holds: the record of an ended run is kept by clients, and asked for again daily."""
    below = request.path.count("/") > 3
    lasting = run.ended and below
    return {"ETag": etag_of(run), "Cache-Control": "private, max-age=86400" if lasting else "no-cache"}


def iso(at: datetime.datetime) -> str:
    """Format a time in UTC as the store compares it: `2026-11-20T19:52:29.123Z`."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sign(listing: str, filters: Mapping[str, Any], key: Sequence[int | float | str | None]) -> str:
    """Sign the cursor that leads behind `key` in a list of the caller's tenant; another tenant's is refused."""
    return context().cursors.sign(f"{caller().tenant_id} {listing}", filters, key)


def next_link(cursor: str | None) -> dict[str, str]:
    """Return the header that leads to the next page of this request's list; empty at the end."""
    if cursor is None:
        return {}
    again = {name: value for name, value in request.args.items() if name != "cursor"}
    return {"Link": f'<{request.path}?{urlencode({**again, "cursor": cursor})}>; rel="next"'}


def next_address(listing: str, query: Page, after: Sequence[int | str | None] | None) -> str | None:
    """Return the address of the next page of a list on a page for people; None: this was the last.

    Args:
        listing, query: As of `page_reply`.
        after: Key of the last item; None: there are no more.
    """
    if after is None:
        return None
    again = {name: value for name, value in request.args.items() if name != "cursor"}
    return f"{request.path}?{urlencode({**again, 'cursor': sign(listing, query.filters(), after)})}"


def page_reply(
    listing: str,
    query: Page,
    items: Sequence[Any],
    after: Sequence[int | str | None] | None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Build a page of a list: items, the signed cursor of the next page, and the same as a Link header.

    Args:
        listing: What the list is of; a cursor of another one is refused.
        query: The parameters, which the cursor is bound to.
        items: Plain values.
        after: Key of the last item; None: this was the last page.
    """
    sent = dict(headers or {})
    cursor = None
    if after is not None:
        cursor = sign(listing, query.filters(), after)
        sent |= next_link(cursor)
    return json_reply({"items": items, "next_cursor": cursor}, headers=sent)


def read_cursor(listing: str, query: Page) -> list[Any] | None:
    """Return the key that the cursor of this request contains; None: the first page.

    Raises:
        Problem: `bad-cursor`.
    """
    if query.cursor is None:
        return None
    return context().cursors.read(f"{caller().tenant_id} {listing}", query.filters(), query.cursor)
