"""Pages of other sites (CORS): none may ask, unless the operator has listed its origin; then the API, never the pages.

A listed origin's page brings a key as any program does: no cookie and no stored password of a browser is taken for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flask import Response, request

if TYPE_CHECKING:
    from collections.abc import Sequence

METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE"
ASKED: Final = (
    "Authorization, Content-Type, Accept, Prefer, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, "
    "X-Request-Id, traceparent"
)
"""Request headers that the API reads."""

TOLD: Final = (
    "Content-Location, ETag, Idempotent-Replayed, Link, Location, Preference-Applied, RateLimit, RateLimit-Policy, "
    "Retry-After, X-Request-Id"
)
"""Headers of answers that a page may read."""

PREFLIGHT_SECONDS: Final = 600


def is_listed(origins: Sequence[str]) -> bool:
    """Return whether this request comes from a page of a listed origin, and asks the API."""
    return request.path.startswith("/v1/") and request.headers.get("Origin") in origins


def preflight(origins: Sequence[str]) -> Response | None:
    """Answer a browser that asks whether its page may send a request; None if it does not ask that, or may not."""
    asks = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
    if not (asks and is_listed(origins)):
        return None
    headers = {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": ASKED,
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
    }
    return Response(status=204, headers=headers)


def tell(response: Response, origins: Sequence[str]) -> None:
    """Let a listed page read the answer."""
    if not origins:
        return
    response.vary.add("Origin")
    if is_listed(origins):
        response.headers["Access-Control-Allow-Origin"] = request.headers["Origin"]
        response.headers["Access-Control-Expose-Headers"] = TOLD
