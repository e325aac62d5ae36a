"""Spans for a collector of OpenTelemetry, by its SDK. Nothing of it is imported or runs unless a URL is named.

1. Nobody waits for the collector: the SDK queues spans, a thread sends them, and what does not fit is dropped.
2. A span tells names, numbers and ids of ours; no text that came from a request's body or from a snippet.
3. The ids are those of `store.trace`, which go over the queue and into the log whether spans are sent or not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from store.trace import Span, begun, below

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

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
        self._url, self._service = url, service
        self._tell, self._close = (None, None) if url is None else _sender(url)

    @property
    def on(self) -> bool:
        """Somebody takes spans."""
        return self._tell is not None

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
        if span is None or not span.sampled or self._tell is None:
            return
        attributes = {key.replace("__", "."): value for key, value in told.items()}
        self._tell(_readable(span, name, begun_ns, kind, attributes, self._service, failed=failed))

    def close(self) -> None:
        """Send what waits, once, and end."""
        if self._close is not None:
            self._close()


def _sender(url: str) -> tuple[Callable[[ReadableSpan], None], Callable[[], None]]:
    """How a span is handed over, and how what waits is sent at the end."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ValueError(MISSING) from None
    processor = BatchSpanProcessor(
        OTLPSpanExporter(endpoint=url, timeout=ANSWER_SECONDS),
        max_queue_size=MOST_WAITING,
        schedule_delay_millis=FLUSH_SECONDS * 1000,
        max_export_batch_size=BATCH,
    )
    return processor.on_end, processor.shutdown


def _readable(
    span: Span, name: str, begun_ns: int, kind: Kind, attributes: dict[str, str | int], service: str, *, failed: bool
) -> ReadableSpan:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(span_id: str) -> SpanContext:
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(int(span.trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=flags)

    return ReadableSpan(
        name=name,
        context=context(span.span_id),
        parent=context(span.parent_id) if span.parent_id else None,
        resource=Resource({"service.name": service}),
        attributes=attributes,
        kind=SpanKind[kind.upper()],
        status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
        start_time=begun_ns,
        end_time=time.time_ns(),
        instrumentation_scope=InstrumentationScope("backprobe"),
    )
