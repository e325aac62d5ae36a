"""Long answers in gzip, for whoever takes it.

1. Only what is read under /v1, as JSON or text, pages and their scripts and styles: records, Parquet, drawings and
   events go as they are.
2. In another coding an answer is another representation: its ETag is weak then, which If-None-Match takes and If-Match
   does not. So single things, which are changed by If-Match, are never coded.
3. No answer to a GET holds a secret beside what a stranger wrote, which a length could give away (BREACH). A page for
   somebody who logged in does, the token of the session, and goes as it is.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from flask import request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flask import Response

LEAST_BYTES: Final = 1400
"""Shorter answers fit into one packet as they are."""

LEVEL: Final = 1
"""A page of 590 tensors, 388 kB of JSON, becomes 24 kB in 4.4 ms; at level 6, 18 kB in 13.8 ms (one shared core)."""

_CODED: Final = frozenset({"application/json", "application/x-ndjson", "text/csv", "application/sarif+json"})
_STATIC: Final = frozenset({"text/css", "text/javascript", "application/javascript"})
_GZIP: Final = 16 + zlib.MAX_WBITS


def encode(response: Response) -> None:
    """Code the answer that is on its way, if it is one of those and its client takes gzip."""
    if not (_may_be(response) or _is_page(response) or _is_static(response)):
        return
    response.vary.add("Accept-Encoding")
    if request.accept_encodings["gzip"] <= 0 or (not response.is_streamed and len(response.get_data()) < LEAST_BYTES):
        return
    if response.is_streamed:
        response.response = _compress_pieces(response.iter_encoded())
        response.headers.pop("Content-Length", None)
    else:
        response.set_data(b"".join(_compress_pieces([response.get_data()])))
    response.content_encoding = "gzip"
    tag, weak = response.get_etag()
    if tag is not None and not weak:
        response.set_etag(tag, weak=True)


def _may_be(response: Response) -> bool:
    single = "ETag" in response.headers and request.path.count("/") <= 3
    read = request.method == "GET" and request.path.startswith("/v1/") and not single
    return read and response.status_code == 200 and response.mimetype in _CODED


def _is_page(response: Response) -> bool:
    if request.method != "GET" or response.status_code != 200 or response.mimetype != "text/html":
        return False
    return b'name="csrf' not in response.get_data()


def _is_static(response: Response) -> bool:
    if request.method != "GET" or response.status_code != 200 or not request.path.startswith("/static/"):
        return False
    if response.mimetype not in _STATIC or request.accept_encodings["gzip"] <= 0:
        return False
    response.direct_passthrough = False
    response.get_data()  # a static file, some kB
    return True


def _compress_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Flushed after each piece: a list that is streamed comes as it is read."""
    coder = zlib.compressobj(LEVEL, zlib.DEFLATED, _GZIP)
    for piece in pieces:
        if coded := coder.compress(piece) + coder.flush(zlib.Z_SYNC_FLUSH):
            yield coded
    yield coder.flush()
