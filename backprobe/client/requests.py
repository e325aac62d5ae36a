"""What is asked of the service, and when it is asked again: generators that do no I/O.

A question yields `Send` and `Pause` and is sent a `Reply`; `clients.py` drives it, once with threads and once with
asyncio, so that the two cannot drift apart.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

MOST_TRIES: Final = 6
FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 30.0
MOST_WAIT_SECONDS: Final = 30
"""That the service waits in one request; a longer wait asks again."""

RECORD_MEDIA: Final = "application/vnd.backprobe.record"
_AGAIN: Final = frozenset({429, 502, 503, 504})


class ApiError(Exception):
    """The service refused: `detail` says what, `hint` what to do; `errors` point at the places.

    Attributes:
        status: Of HTTP. code: stable, kebab case; its page is `/problems/CODE`.
        request_id: By which the operator finds it in the log.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", "unknown"))
        self.detail = str(problem.get("detail", ""))
        self.hint = str(problem.get("hint", ""))
        self.request_id = problem.get("request_id")
        self.errors: list[Any] = list(problem.get("errors", ()))
        super().__init__(f"{self.code}: {self.detail} {self.hint}".strip())


class ServiceAway(Exception):
    """The service could not be reached, or said for too long that it cannot answer."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run, as `GET /v1/runs/{id}` tells it; fields that a newer service adds are left out, `told` has them all."""

    id: str
    status: str
    ended: bool
    entry: str | None
    named: bool | None = None
    created_at: str
    finished_at: str | None
    labels: dict[str, str]
    findings: dict[str, Any]
    error: dict[str, Any] | None
    links: dict[str, str]
    told: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @property
    def display_name(self) -> str:
        """What it runs, for people: its entry; of what nobody named, the end of its snippet's id."""
        return (self.entry or "-") if self.named is not False else f"snippet {str(self.told.get('snippet'))[-6:]}"


def run_of(told: dict[str, Any]) -> Run:
    """Read the run from an answer."""
    return msgspec.structs.replace(msgspec.convert(told, Run), told=told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A request to be sent; `body` goes as JSON, `content` as it is."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer; `lost`: none came, and why."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    lost: str | None = None

    def json(self) -> Any:
        """Decode the body."""
        return msgspec.json.decode(self.body)


T = TypeVar("T")
Question = Generator[Send | Pause, Reply | None, T]


def call(
    method: str,
    path: str,
    *,
    params: Mapping[str, Any] | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> Question[Reply]:
    """One request, sent again while that can help.

    Raises:
        ApiError: the service refused.
        ServiceAway: it did not answer after `MOST_TRIES`.
    """
    sent = dict(headers or {})
    if method == "POST":
        sent.setdefault("Idempotency-Key", uuid.uuid4().hex)
    given = {name: _parameter(value) for name, value in (params or {}).items() if value is not None}
    send = Send(method=method, path=path, params=given, body=body, headers=sent, content=content)
    pause = FIRST_PAUSE_SECONDS
    for tried in range(1, MOST_TRIES + 1):
        reply = yield send
        if reply is None:
            raise RuntimeError("a request was not answered by its driver")
        problem = _problem(reply)
        again = reply.lost is not None or reply.status in _AGAIN or problem.get("code") == "idempotency-in-flight"
        if not again and reply.status < 400:
            return reply
        if not again or (tried == MOST_TRIES and reply.lost is None):
            raise ApiError(reply.status, problem)
        if tried == MOST_TRIES:
            raise ServiceAway(f"{path}: {reply.lost}")
        yield Pause(seconds=_pause(reply, pause))
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
    raise ServiceAway(path)


def _pause(reply: Reply, pause: float) -> float:
    told = reply.headers.get("retry-after", "")
    least = float(told) if told.isdigit() else 0.0
    return min(max(least, pause * random.uniform(0.5, 1.5)), LONGEST_PAUSE_SECONDS)  # noqa: S311 - spreads clients, guards nothing


def _problem(reply: Reply) -> dict[str, Any]:
    if reply.status < 400:
        return {}
    try:
        found = reply.json()
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    return found if isinstance(found, dict) else {"code": "unknown", "detail": f"status {reply.status}"}


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def submit_run(body: Mapping[str, Any], wait: float) -> Question[Run]:
    """Submit a snippet and wait so many seconds for its end; the run as it then is."""
    first = min(int(wait), MOST_WAIT_SECONDS)
    reply = yield from call("POST", "/v1/runs", body=body, headers={"Prefer": f"wait={first}"} if first else {})
    run = run_of(reply.json())
    return (yield from wait_for_run(run.id, wait - first)) if wait > first and not run.ended else run


def wait_for_run(run: str, wait: float) -> Question[Run]:
    """One run; with `wait`, as soon as it has ended, or after so many seconds as it stands."""
    left = wait
    while True:
        now = min(max(int(left), 0), MOST_WAIT_SECONDS)
        reply = yield from call("GET", f"/v1/runs/{run}", headers={"Prefer": f"wait={now}"} if now else {})
        found = run_of(reply.json())
        left -= now
        if found.ended or left < 1:
            return found
        if "preference-applied" not in reply.headers:  # all places to wait were taken
            yield Pause(seconds=1.0)


def page(path: str, params: Mapping[str, Any], cursor: str | None) -> Question[tuple[list[Any], str | None]]:
    """Fetch a page of a list, and the cursor of the next one."""
    reply = yield from call("GET", path, params={**params, "cursor": cursor})
    told = reply.json()
    return told["items"], told["next_cursor"]


def ask_json(method: str, path: str, params: Mapping[str, Any] | None = None, body: Any = None) -> Question[Any]:
    """Fetch the JSON of one answer; None if it has no body."""
    reply = yield from call(method, path, params=params, body=body)
    return reply.json() if reply.body else None


def record(run: str) -> Question[bytes]:
    """Fetch the bytes of a run's record file."""
    return (yield from call("GET", f"/v1/runs/{run}/record", headers={"Accept": RECORD_MEDIA})).body


def upload_record(data: bytes, project: str | None) -> Question[Run]:
    """Upload a record file; return the run that it becomes."""
    sent = {"Content-Type": RECORD_MEDIA}
    return run_of(
        (yield from call("POST", "/v1/records", params={"project": project}, headers=sent, content=data)).json()
    )


def began(run: str, body: Mapping[str, Any]) -> Question[Run]:
    """Create the run of a recorder, or find it if this same request created it before."""
    return run_of((yield from call("PUT", f"/v1/runs/{run}", body=body)).json())


def put_frame(run: str, n: int, frame: bytes) -> Question[int]:
    """Send a frame; return the number of the frame that the service wants next."""
    path = f"/v1/runs/{run}/frames/{n}"
    reply = yield from call("PUT", path, headers={"Content-Type": RECORD_MEDIA}, content=frame)
    return int(reply.headers["next-frame"])


def ask_ended_run(run: str, body: Mapping[str, Any]) -> Question[Run]:
    """End the run of a recorder. While another request is ending it, ask again."""
    pause = FIRST_PAUSE_SECONDS
    for _ in range(MOST_TRIES):
        reply = yield from call("POST", f"/v1/runs/{run}/end", body=body)
        if reply.status != 202:
            return run_of(reply.json())
        yield Pause(seconds=_pause(reply, pause))
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
    raise ServiceAway(f"/v1/runs/{run}/end: another request has been ending it for too long")


class Resumed:
    """Where a stream of events stands: what was seen of it, and whether it is worth asking again when it breaks.

    Attributes:
        path: Of the stream.
        over: The run has ended, and all of its events were seen.
    """

    def __init__(self, run: str, after: int) -> None:
        self.path, self.over = f"/v1/runs/{run}/events", False
        self._after, self._tries, self._pause = after, 0, FIRST_PAUSE_SECONDS

    @property
    def headers(self) -> dict[str, str]:
        """To ask for the stream with, behind the last event that was seen."""
        return {"Accept": "text/event-stream"} | ({"Last-Event-ID": str(self._after)} if self._after else {})

    def decode_event(self, kind: str, number: str, data: str) -> dict[str, Any] | None:
        """Decode an event of the stream; return None for the last one, and for one without data."""
        self._tries, self._pause = 0, FIRST_PAUSE_SECONDS
        if kind == "end":
            self.over = True
            return None
        if not data:  # a comment, or how long to wait before coming back
            return None
        self._after = int(number)
        return msgspec.json.decode(data)

    def broken(self, reply: Reply) -> float:
        """Return the seconds after which to ask again for a stream that broke or was refused.

        Raises:
            ApiError: the service refused it. ServiceAway: it did not answer, again and again.
        """
        if reply.status == 204:
            self.over = True
            return 0.0
        if reply.lost is None and reply.status < 400:  # the service ends a stream after some minutes
            return FIRST_PAUSE_SECONDS
        self._tries += 1
        if reply.lost is None and (reply.status not in _AGAIN or self._tries >= MOST_TRIES):
            raise ApiError(reply.status, _problem(reply))
        if self._tries >= MOST_TRIES:
            raise ServiceAway(f"{self.path}: {reply.lost}")
        pause, self._pause = _pause(reply, self._pause), min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        return pause


def ask_answer(
    method: str, path: str, *, body: Any, headers: Mapping[str, str] | None, params: Mapping[str, Any]
) -> Question[Any]:
    """One answer: the value of its JSON, the bytes of anything else, None without a body."""
    sent = {"content": body} if isinstance(body, bytes) else {"body": body}
    reply = yield from call(method, path, params=params, headers=headers, **sent)
    is_json = reply.headers.get("content-type", "").partition(";")[0].endswith(("/json", "+json"))
    return (reply.json() if is_json else reply.body) if reply.body else None
