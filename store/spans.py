"""Spans for a collector of OpenTelemetry: OTLP as JSON over HTTP, in batches. Nothing of it runs unless a URL is named.

1. Nobody waits for the collector: spans are queued, a thread of their own sends them, and what does not fit is dropped.
2. A span tells names, numbers and ids of ours; no text that came from a request's body or from a snippet.

Source: opentelemetry.io/docs/specs/otlp (1.x), "JSON Protobuf Encoding" and "OTLP/HTTP Request".
"""

from __future__ import annotations

import http.client
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from store.trace import Span, begun, below

Kind = Literal["internal", "server", "consumer"]

MOST_WAITING: Final = 4096
"""Spans kept while the collector does not take them; beyond, the oldest go."""

BATCH: Final = 512
FLUSH_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 5.0
TELL_SECONDS: Final = 60.0
"""Between two lines of the log about a collector that takes nothing."""

_KINDS: Final[Mapping[Kind, int]] = {"internal": 1, "server": 2, "consumer": 5}
_ERROR: Final = {"code": 2}

_log: Final = logging.getLogger(__name__)


class Spans:
    """Where the spans of one process go; made once per process, after its last fork.

    Args:
        url: Of the collector's traces, `http://collector:4318/v1/traces`; None: there is none, and nothing is done.
        service: Its name there: `backprobe-api`, `backprobe-worker`.
    """

    def __init__(self, url: str | None, service: str) -> None:
        self._url, self._service = url, service
        self._waiting: deque[dict[str, Any]] = deque(maxlen=MOST_WAITING)
        self._news, self._stop = threading.Event(), threading.Event()
        self._told_at = -TELL_SECONDS
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    @property
    def on(self) -> bool:
        """Somebody takes spans."""
        return self._url is not None

    def span(self, of: Span | None) -> Span | None:
        """The span to go on with: the caller's, or the first of a trace of our own where spans are taken."""
        return begun() if of is None and self.on else of

    @contextmanager
    def within(self, of: Span | None, name: str) -> Generator[None]:
        """A step of ours below a span; one that raises is told as failed."""
        if of is None or not self.on:
            yield
            return
        own, at, failed = below(of), time.time_ns(), True
        try:
            yield
            failed = False
        finally:
            self.add(own, name, at, failed=failed)

    def add(
        self,
        span: Span | None,
        name: str,
        begun_ns: int,
        kind: Kind = "internal",
        *,
        failed: bool = False,
        **told: str | int,
    ) -> None:
        """A span that ends now.

        Args:
            span: None, or one that its caller does not record: nothing is sent.
            name: Of few kinds: a route, a step.
            begun_ns: Of `time.time_ns()`.
            kind: Of OpenTelemetry.
            failed: It is our failure.
            told: Attributes; `__` in a name stands for a dot.
        """
        if span is None or not span.sampled or not self.on:
            return
        said: dict[str, Any] = {
            "traceId": span.trace_id,
            "spanId": span.span_id,
            "name": name,
            "kind": _KINDS[kind],
            "startTimeUnixNano": str(begun_ns),
            "endTimeUnixNano": str(time.time_ns()),
            "attributes": [_attribute(key.replace("__", "."), value) for key, value in told.items()],
        }
        if span.parent_id:
            said["parentSpanId"] = span.parent_id
        if failed:
            said["status"] = _ERROR
        self._waiting.append(said)
        self._started()
        if len(self._waiting) >= BATCH:
            self._news.set()

    def close(self) -> None:
        """Send what waits, once, and end."""
        self._stop.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(ANSWER_SECONDS + 1)

    def _started(self) -> None:
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
                    self._thread.start()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            self._news.wait(FLUSH_SECONDS)
            self._news.clear()
            stopping = self._stop.is_set()
            while self._waiting and self._send():
                pass

    def _send(self) -> bool:
        """Send a batch; False: the collector does not take it, and it is lost."""
        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        scope = {"scope": {"name": "backprobe"}, "spans": batch}
        resource = {"attributes": [_attribute("service.name", self._service)]}
        body = json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})
        try:
            status = self._post(body.encode())
        except (OSError, http.client.HTTPException) as error:
            self._tell(type(error).__name__, len(batch))
            return False
        if status >= http.client.BAD_REQUEST:
            self._tell(f"it answered {status}", len(batch))
        return status < http.client.BAD_REQUEST

    def _post(self, body: bytes) -> int:
        parts = urlsplit(self._url or "")
        https = parts.scheme == "https"
        kind = http.client.HTTPSConnection if https else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=ANSWER_SECONDS)
        try:
            connection.request("POST", parts.path or "/", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read(1024)
            return answer.status
        finally:
            connection.close()

    def _tell(self, why: str, lost: int) -> None:
        now = time.monotonic()
        if now - self._told_at >= TELL_SECONDS:
            self._told_at = now
            _log.warning("the collector of spans takes nothing (%s); %d are lost", why, lost)


def _attribute(key: str, value: str | int) -> dict[str, Any]:
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
