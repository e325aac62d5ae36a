"""Spans for a collector of OpenTelemetry, by its SDK. Nothing of it is imported or runs unless a URL is named.

1. Nobody waits for the collector: the SDK queues spans, a thread sends them, and what does not fit is dropped.
2. A span holds names, numbers and ids of the service; no text that came from a request's body or from a snippet.
3. The ids are those of `store.telemetry.trace`, which go over the queue and into the log whether spans are sent or not.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from store.telemetry.trace import Span, begin_trace, child_span

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

Kind = Literal["internal", "server", "consumer"]

MOST_WAITING: Final = 4096
"""Spans kept while the collector does not take them; beyond, some go."""

BATCH: Final = 512
FLUSH_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 5.0

MISSING: Final = (
    "BACKPROBE_SPANS_URL is set, and OpenTelemetry is not installed:"
    " pip install 'backprobe[otel]', or unset it to send no spans"
)


class Spans:
    """Where the spans of one process go; made once per process, after its last fork.

    Args:
        url: Of the collector's traces, `http://collector:4318/v1/traces`; None: there is none, and nothing is done.
        service: Its name there: `backprobe-api`, `backprobe-worker`.

    Raises:
        ValueError: there is a URL, and the extra `otel` is not installed.
    """

    def __init__(self, url: str | None, service: str) -> None:
        self._sender = None if url is None else _Sender(url, service)

    @property
    def is_enabled(self) -> bool:
        """Somebody takes spans."""
        return self._sender is not None

    def span(self, of: Span | None) -> Span | None:
        """Return the span to go on with: the caller's, or the first of a new trace if spans are collected."""
        return begin_trace() if of is None and self.is_enabled else of

    @contextmanager
    def record_span(self, of: Span | None, name: str) -> Generator[None]:
        """Record a step as a child span of `of`; if the step raises, the span is marked as failed."""
        if of is None or not self.is_enabled:
            yield
            return
        own, at, failed = child_span(of), time.time_ns(), True
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
        """Add a span that ends now.

        Args:
            span: None, or one that its caller does not record: nothing is sent.
            name: Of few kinds: a route, a step.
            begun_ns: Of `time.time_ns()`.
            kind: Of OpenTelemetry.
            failed: It is our failure.
            told: Attributes; `__` in a name stands for a dot.
        """
        if span is None or not span.sampled or self._sender is None:
            return
        attributes = {key.replace("__", "."): value for key, value in told.items()}
        self._sender.send(span, name, begun_ns, kind, attributes, failed=failed)

    def close(self) -> None:
        """Send what waits, once, and end."""
        if self._sender is not None:
            self._sender.close()


class _Sender:
    """OpenTelemetry's, made once per process: every span names the same resource and scope.

    Raises:
        ValueError: it is not installed.
    """

    def __init__(self, url: str, service: str) -> None:
        try:
            from opentelemetry import trace as api
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk import trace as sdk
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        except ImportError:
            raise ValueError(MISSING) from None
        self._api, self._sdk = api, sdk
        self._resource, self._scope = Resource({"service.name": service}), InstrumentationScope("backprobe")
        self._sampled = api.TraceFlags(api.TraceFlags.SAMPLED)
        self._processor = BatchSpanProcessor(
            OTLPSpanExporter(endpoint=url, timeout=ANSWER_SECONDS),
            max_queue_size=MOST_WAITING,
            schedule_delay_millis=FLUSH_SECONDS * 1000,
            max_export_batch_size=BATCH,
        )

    def send(
        self, span: Span, name: str, begun_ns: int, kind: Kind, attributes: dict[str, str | int], *, failed: bool
    ) -> None:
        """Queue a span that ends now."""
        status = self._api.StatusCode.ERROR if failed else self._api.StatusCode.UNSET
        ended = self._sdk.ReadableSpan(
            name=name,
            context=self._context(span.trace_id, span.span_id),
            parent=self._context(span.trace_id, span.parent_id) if span.parent_id else None,
            resource=self._resource,
            attributes=attributes,
            kind=self._api.SpanKind[kind.upper()],
            status=self._api.Status(status),
            start_time=begun_ns,
            end_time=time.time_ns(),
            instrumentation_scope=self._scope,
        )
        self._processor.on_end(ended)

    def close(self) -> None:
        """Send what waits, once, and end."""
        self._processor.shutdown()

    def _context(self, trace_id: str, span_id: str) -> SpanContext:
        return self._api.SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=self._sampled)
