"""A line of the log for each request: who, which route, how it ended, how long it took.

1. It names the route as the code spells it, never the address: what a client wrote into it is not told.
2. What a view logs in between carries the same request id, tenant, actor and trace.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from flask import g, request
from structlog.contextvars import bind_contextvars, clear_contextvars

from service.context import context
from service.limits.turns import OF_MACHINES
from service.telemetry.metrics import route
from store.database.ids import is_id
from store.telemetry.trace import continue_span

if TYPE_CHECKING:
    from flask import Flask, Response

    from service.auth.caller import Caller

log = logging.getLogger("backprobe.service")

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")


def register(app: Flask) -> None:
    """Begin each request with its id, and end it with its line."""

    @app.before_request
    def _begin() -> None:
        asked = request.headers.get("X-Request-Id", "")
        g.request_id = asked if _REQUEST_ID.fullmatch(asked) else f"req_{secrets.token_hex(8)}"
        g.span, g.began_ns = context().spans.span(continue_span(request.headers.get("traceparent"))), time.time_ns()
        clear_contextvars()
        trace = {} if g.span is None else g.span.fields()
        bind_contextvars(request_id=g.request_id, method=_method(), route=route(), **trace)

    @app.after_request
    def _end(response: Response) -> Response:
        status = response.status_code
        quiet = route() in OF_MACHINES and status < 400  # they are asked every few seconds
        fields = {"status": status, "ms": round((time.perf_counter() - g.began) * 1000, 1)}
        if (run := g.get("run") or (request.view_args or {}).get("run", "")) and is_id("run", run):
            fields["run"] = run
        if g.span is not None and not quiet:
            method, status_of = _method(), {"http__response__status_code": status}
            told: dict[str, str | int] = {"http__request__method": method, "http__route": route(), **status_of}
            name, failed = f"{method} {route()}", status >= HTTPStatus.INTERNAL_SERVER_ERROR
            context().spans.add(g.span, name, g.began_ns, "server", failed=failed, **told)
        log.log(logging.DEBUG if quiet else logging.INFO, "answered", extra=fields)
        return response

    @app.teardown_request
    def _leave(_error: BaseException | None) -> None:
        clear_contextvars()  # what this thread logs before its next request is not about this one


def _method() -> str:
    return request.method if request.method.isalpha() and len(request.method) < 10 else "other"


def bind_caller(found: Caller) -> None:
    """Name the caller in each further log line of this request."""
    bind_contextvars(tenant=found.tenant_id, actor=found.actor)
