"""Every error of the web process as problem+json (RFC 9457), in one shape.

1. Unknown routes, wrong methods and our own faults answer in the same shape as a bad field.
2. A 5xx names its request id and nothing else: the log has the cause, under that id.
3. A text from a snippet is a stranger's: it is cut and shown in `detail` only, never in a log line.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flask import Response, g, json, render_template, request
from werkzeug.exceptions import HTTPException

from service.context import context
from service.problems.catalogue import BY_STATUS, KINDS
from store.database.session import cause_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flask import Flask

log = logging.getLogger("backprobe.service")

LONGEST_DETAIL: Final = 1000
"""Characters of a detail; a stranger's text in it must not grow an answer without end."""

RETRY_SECONDS: Final = 5
"""After which a client may ask again when the database did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One thing that is wrong, and where: `pointer` into the body (RFC 6901, `#/limits/cpu_seconds`) or `parameter`.

    Attributes:
        line: 1-based line in the file that `pointer` leads to, for code that does not parse.
    """

    detail: str
    code: str
    pointer: str | None = None
    parameter: str | None = None
    header: str | None = None
    line: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the member of `errors`; places that do not apply are left out, as RFC 9457 has it."""
        places = {"pointer": self.pointer, "parameter": self.parameter, "header": self.header, "line": self.line}
        given = {name: value for name, value in places.items() if value is not None}
        return {**given, "code": self.code, "detail": self.detail[:LONGEST_DETAIL]}


class Problem(Exception):
    """The request is answered with this problem; its caller, or the operator, must act.

    Attributes:
        code: A key of `service.problems.catalogue.KINDS`.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        places: tuple[Place, ...] = (),
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail
        self.places = places
        self.hint = hint
        self.headers = dict(headers or {})


def _wants_page() -> bool:
    """Return whether a browser asks for a page, so that a person reads the error. Everything under /v1 stays JSON."""
    if request.path.startswith(("/v1", "/openapi.json")):
        return False
    best = request.accept_mimetypes.best_match(["application/problem+json", "application/json", "text/html"])
    return best == "text/html"


def keep_for_form(problem: Problem) -> Problem:
    """Return a problem that a person can correct in the form of a page; raise any other, and each one for a program."""
    if KINDS[problem.code].status != 422 or not _wants_page():
        raise problem
    return problem


def answer(problem: Problem) -> Response:
    """Build the response for one problem: problem+json, or the same facts as a page for a person."""
    kind = KINDS[problem.code]
    body = {
        "type": f"/problems/{kind.code}",
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail[:LONGEST_DETAIL],
        "code": kind.code,
        "hint": problem.hint or kind.hint,
        "instance": request.path[:LONGEST_DETAIL],
        "request_id": g.get("request_id"),
        "errors": [place.as_json() for place in problem.places],
    }
    if _wants_page():
        response = Response(render_template("problem.html", problem=body), kind.status, mimetype="text/html")
    else:
        response = Response(json.dumps(body), kind.status, mimetype="application/problem+json")
    response.headers["Cache-Control"] = "no-store"
    response.headers.update(problem.headers)
    return response


def _details(error: HTTPException) -> str:
    if error.code == 405:
        return f"{request.method} is not taken here."
    if error.code == 404:
        return f"No page and no resource has the address {request.path[:200]}."
    if error.code == 413:
        most = request.max_content_length
        return f"The body is larger than {most:,} bytes." if most else "The request is too large."
    return (error.description or error.name)[:LONGEST_DETAIL]


def from_framework(error: HTTPException) -> Problem:
    """Convert what Flask or werkzeug raised to a problem, with the headers that belong to it."""
    status = error.code or 500
    code = BY_STATUS.get(status, "malformed-request" if status < 500 else "internal-error")
    kept = {
        name: value for name, value in error.get_headers() if name.lower() in {"allow", "retry-after", "content-range"}
    }
    return Problem(code, _details(error), headers=kept)


def _unavailable() -> Problem:
    detail = (
        f"Request {g.get('request_id')} could not be answered: the database is away, full, damaged or not migrated."
    )
    return Problem("unavailable", detail, headers={"Retry-After": str(RETRY_SECONDS)})


def register(app: Flask) -> None:
    """Install the handlers on the application."""

    @app.errorhandler(Problem)
    def _problem(problem: Problem) -> Response:
        return answer(problem)

    @app.errorhandler(HTTPException)
    def _framework(error: HTTPException) -> Response:
        if error.response is not None or (error.code or 500) < 400:  # a redirect is no error
            return error.get_response()  # type: ignore[return-value] a base class of Response
        return answer(from_framework(error))

    @app.errorhandler(Exception)
    def _fault(error: Exception) -> Response:
        asked = (g.get("request_id"), request.method, "" if request.url_rule is None else request.url_rule.rule)
        if context().database.away(error):
            log.debug("request %s failed: %s %r: the database: %s", *asked, cause_of(error))
            return answer(_unavailable())
        # The log tells its class and trace (store/telemetry/logs.py), not its text.
        log.error("request %s failed: %s %r", *asked, exc_info=error)
        return answer(Problem("internal-error", f"Request {g.get('request_id')} failed on our side."))
