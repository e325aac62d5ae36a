"""The requests of a recorder, and what each answer means for it.

201, 200, 204; 202 to the end          taken
nothing, 408, 429, 5xx                 again, after a pause
409 frame-missing                      taken up to the number in Next-Frame, which is sent next
409 run-ended                          over: nobody wants more of this run
422 id-time-refused                    the id's time: this machine's clock is wrong, and the answer has another
401, 403, 413, every other one         refused: what is there is spooled, and nothing more is sent
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal

from backprobe.recorder.connection import Answer, Connection

MEDIA: Final = "application/vnd.backprobe.record"
_TAKEN: Final = frozenset({200, 201, 202, 204})
_AGAIN: Final = frozenset({408, 425, 429})

Meaning = Literal["taken", "again", "missing", "over", "clock", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What an answer means.

    Attributes:
        why: In words, for a log: empty where it was taken.
        wanted: Number of the frame that is wanted next; None: not told.
        retry_after: Seconds that the service asks for; None: it does not.
        server_ms: Unix milliseconds of the service's clock; None: not told.
    """

    meaning: Meaning
    why: str = ""
    wanted: int | None = None
    retry_after: float | None = None
    server_ms: int | None = None
    told: Any = None


def begin(connection: Connection, run: str, body: Mapping[str, Any]) -> Reply:
    """Make the run, or learn that this very request made it."""
    return _reply(connection.ask("PUT", f"/v1/runs/{run}", json.dumps(body, sort_keys=True).encode()))


def frames(connection: Connection, run: str, n: int, body: bytes) -> Reply:
    """Send frames, the first of which has the number `n`."""
    return _reply(connection.ask("PUT", f"/v1/runs/{run}/frames/{n}", body, MEDIA))


def end(connection: Connection, run: str, body: Mapping[str, Any]) -> Reply:
    """Say how the job ended."""
    return _reply(connection.ask("POST", f"/v1/runs/{run}/end", json.dumps(body).encode()))


def findings(connection: Connection, run: str) -> Reply:
    """Fetch the findings of the run so far, worst first, at most 100; `told` has them."""
    return _reply(connection.ask("GET", f"/v1/runs/{run}/findings?suppressed=false&limit=100"))


def _reply(answer: Answer) -> Reply:
    if answer.lost is not None:
        return Reply(meaning="again", why=answer.lost)
    retry_after = _seconds(answer.headers.get("retry-after", ""))
    if answer.status in _TAKEN:
        return Reply(meaning="taken", wanted=_number(answer.headers.get("next-frame", "")), told=_json(answer.body))
    problem = _json(answer.body)
    code = str(problem.get("code", "")) if isinstance(problem, dict) else ""
    detail = str(problem.get("detail", ""))[:300] if isinstance(problem, dict) else ""
    why = f"{answer.status} {code}: {detail}".strip(": ")
    if answer.status in _AGAIN or answer.status >= 500 or code == "idempotency-in-flight":
        return Reply(meaning="again", why=why, retry_after=retry_after)
    if code == "frame-missing":
        return Reply(meaning="missing", why=why, wanted=_number(answer.headers.get("next-frame", "")))
    if code == "run-ended":
        return Reply(meaning="over", why=why)
    if code == "id-time-refused":
        return Reply(meaning="clock", why=why, server_ms=_milliseconds(answer.headers.get("date", "")))
    return Reply(meaning="refused", why=why)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _seconds(text: str) -> float | None:
    number = _number(text)
    return None if number is None else float(number)


def _milliseconds(text: str) -> int | None:
    try:
        return int(parsedate_to_datetime(text).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        return None
